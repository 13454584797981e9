"""Prepared images, who may see them, and what tells real from generated ones."""

import numpy as np
import pytest
from experiments.panoramia import pixels
from experiments.panoramia.audits import NULL

from auditkit.datasets import load

pytestmark = pytest.mark.usefixtures("few")


@pytest.fixture
def few(monkeypatch):
    """Make everything small: 1,200 members, 400 unseen images, and short trainings."""
    data = load("fashion-mnist")
    parts = {
        f"{part}_{what}": data[f"{part}_{what}"][:: 20_000 // 1_200 if part == "train" else 10]
        for part in ("train", "test")
        for what in ("images", "labels")
    }
    monkeypatch.setattr(pixels, "load", lambda _: parts)
    for name, value in {
        "TRAINING": 200,
        "AUDITED": 500,
        "UNSEEN_TRAINING": 100,
        "PAIRS": (100, 500),
        "PASSES": (1, 10),
        "HELPED": 1,
    }.items():
        monkeypatch.setattr(pixels, name, value)
    for function in (pixels.world, pixels.targets):
        function.cache_clear()
    yield
    for function in (pixels.world, pixels.targets):
        function.cache_clear()


def known(images) -> set[bytes]:
    return {image.tobytes() for image in images.inputs}


def test_parts_share_no_image_and_the_null_sees_none_that_is_audited():
    images = pixels.world("14 × 14", 0)
    parts = [known(part) for part in (images.train, images.real, images.unseen)]
    assert all(not one & other for i, one in enumerate(parts) for other in parts[:i])
    assert (parts[0] | parts[1]) < known(images.members)
    assert not (parts[0] | parts[1]) & known(images.spare_finished)
    assert not known(images.members) & (known(images.unseen) | known(images.unseen_train))


@pytest.mark.parametrize("preparation", ["28 × 28", "14 × 14, noise 0.3", "16 directions"])
def test_prepared_and_generated_images_have_the_same_256_levels(preparation):
    images, rng = pixels.world(preparation, 0), np.random.default_rng(0)
    made = images.finish(pixels.resampled(images, rng).sample(50, rng=rng), rng)
    side = 14 if "14" in preparation else 28
    for part in (images.real, images.unseen, made):
        assert part.inputs.shape[1:] == (side, side)
        np.testing.assert_allclose(255 * part.inputs, np.round(255 * part.inputs), atol=1e-3)
        assert 0.0 <= part.inputs.min() < part.inputs.max() <= 1.0


def test_images_along_directions_have_no_more_of_them():
    spare = pixels.world("16 directions", 0).spare.inputs.reshape(-1, 784)
    values = np.linalg.svd(spare - spare.mean(axis=0), compute_uv=False)
    assert values[15] > 1.0 > 1e3 * values[16]


def test_verdicts_on_images_of_one_law_are_no_better_than_chance():
    images = pixels.world("14 × 14", 0)
    parts = (images.train, images.spare[:200], images.real[:300], images.unseen[:300])
    judged = pixels.verdicts(pixels.mixed(images, parts), 0)
    assert len(judged) == 1000
    # a network's own lessons would show a large difference
    trained = judged[:200].mean() - judged[200:400].mean()
    assert abs(trained) < 3 * judged[:400].std() * np.sqrt(2 / 200)


def test_a_cell_plays_every_baseline_and_every_model(monkeypatch):
    monkeypatch.setattr(pixels, "verdicts", lambda *_: np.zeros(1400))
    rows = pixels.generated("mixtures", "16 directions", 0, 2, rng=np.random.default_rng(0))
    blind = {row["baseline"] for row in rows if row["release"] == "none"}
    assert blind == {"trees", "network", "network and helper"}
    assert {row["release"] for row in rows} == {
        "none",
        "1 passes",
        "10 passes",
        NULL,
        pixels.LARGER_NULL,
    }
    for row in rows:
        assert 0.0 <= row["c_lower"] <= row["ceiling"]
        if row["release"] == "none":
            assert row["difference"] == 0.0


def test_real_unseen_images_show_no_null_that_was_trained_on_them():
    rows = pixels.unseen("16 directions", 0, 2)
    assert {row["release"] for row in rows} == {"1 passes", "10 passes"}
    assert {row["audit"] for row in rows} == {"RM;RN", "O(1)"}


def test_the_floor_under_a_generator_tells_flattened_images_from_whole_ones(monkeypatch):
    monkeypatch.setattr(pixels, "TRAINING", 250)
    free = pixels.floor("16 directions", 0, 2, rng=np.random.default_rng(0))
    assert {row["baseline"] for row in free} == {pixels.TREES, pixels.NETWORK}
    assert max(row["c_lower"] for row in free) < 0.5
    monkeypatch.setattr(pixels, "ALONG", 4)
    rows = pixels.floor("14 × 14", 0, 2, rng=np.random.default_rng(0))
    assert max(row["c_lower"] for row in rows) > 0.5


def test_every_generator_meets_images_as_they_are_and_easier_ones():
    cells = pixels.generated.paper
    for name in pixels.GENERATORS:
        met = {cell["preparation"] for cell in cells if cell["generator"] == name}
        assert met >= {"14 × 14", "32 directions"}
    names = {cell["preparation"] for cell in cells}
    assert names == set(pixels.PREPARATIONS)
    assert len({tuple(cell.values()) for cell in cells}) == len(cells)
