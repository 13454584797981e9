"""What ships in `data`: small enough, whole, and what its description says."""

import numpy as np
import pytest

from auditkit.datasets import CARDS, load, shipped

PARTS = {
    "fashion-mnist": "small",
    "cifar10": "features",
    "census-income": "small",
    "film-sentences": "embeddings",
}


def test_what_ships_is_small():
    sizes = [part.size for card in CARDS.values() for part in card.shipped]
    assert sum(sizes) < 45_000_000
    assert max(sizes) < 15_000_000


@pytest.mark.parametrize("dataset", PARTS)
def test_each_part_can_be_read_without_a_network(dataset, monkeypatch, tmp_path):
    monkeypatch.setenv("AUDITKIT_DATA", str(tmp_path / "nothing"))
    data = load(dataset, part=PARTS[dataset])
    assert len(data.arrays) >= 2
    assert len(data.class_names) in {2, 10}
    for array in data.arrays.values():
        assert np.isfinite(array).all()


def test_the_small_part_has_as_many_of_each_class():
    data = load("fashion-mnist", part="small")
    for split, each in (("train", 2000), ("test", 400)):
        assert np.bincount(data[f"{split}_labels"]).tolist() == [each] * 10
        index = data[f"{split}_index"]
        assert (np.diff(index) > 0).all()
        assert len(index) == 10 * each


def test_all_images_have_features():
    data = load("cifar10", part="features")
    for split, each in (("train", 5000), ("test", 1000)):
        assert np.bincount(data[f"{split}_labels"]).tolist() == [each] * 10
        assert data[f"{split}_features"].shape == (10 * each, 256)
        assert data[f"{split}_features"].dtype == np.float32


def test_the_directions_are_those_in_which_the_first_images_vary():
    data = load("cifar10", part="features")
    directions = data["directions"].astype(np.float64)
    assert np.allclose(directions @ directions.T, np.eye(256), atol=1e-4)
    seen = data["train_features"][:3000].astype(np.float64)
    spread = seen.std(axis=0)
    assert (np.diff(spread) < 0.03 * spread[:-1]).all()
    # steps of 8 bits are all that is left of the mean and of what two directions share
    assert np.abs(seen.mean(axis=0) / spread).max() < 1e-3
    shared = np.corrcoef(seen.T) - np.eye(256)
    assert np.abs(shared).max() < 1e-2
    # others are centred by the mean of the first, so only nearly
    others = data["train_features"][3000:].astype(np.float64)
    assert np.abs(others.mean(axis=0) / spread).max() < 0.1


def test_the_features_know_the_classes():
    data = load("cifar10", part="features")
    features, labels = data["train_features"].astype(np.float64), data["train_labels"]
    scale = features.std(axis=0)
    one_hot = np.eye(10)[labels[:20000]]
    x = np.c_[features[:20000] / scale, np.ones(20000)]
    solution = np.linalg.solve(x.T @ x + 100 * np.eye(257), x.T @ one_hot)
    test = np.c_[data["test_features"].astype(np.float64) / scale, np.ones(10000)]
    assert ((test @ solution).argmax(axis=1) == data["test_labels"]).mean() > 0.8


def test_the_embeddings_know_the_mood():
    data = load("film-sentences", part="embeddings")
    embeddings = data["embeddings"].astype(np.float64)
    assert embeddings.shape == (8530, 384)
    assert np.allclose(np.linalg.norm(embeddings, axis=1), 1.0, atol=2e-3)
    assert np.bincount(data["labels"]).tolist() == [4265, 4265]
    order = np.random.default_rng(0).permutation(8530)
    x = np.c_[embeddings[order], np.ones(8530)]
    y = 2.0 * data["labels"][order] - 1.0
    solution = np.linalg.solve(x[:6000].T @ x[:6000] + np.eye(385), x[:6000].T @ y[:6000])
    assert (np.sign(x[6000:] @ solution) == y[6000:]).mean() > 0.7


def test_the_census_has_all_rows_of_both_years():
    data = load("census-income")
    assert len(data["train_labels"]) == 199_523
    assert len(data["test_labels"]) == 99_762
    assert set(np.unique(data["train_years"])) == {1994, 1995}
    assert abs(data["train_labels"].mean() - 0.062) < 0.001
    for place, name in enumerate(data.feature_names):
        if name in data.categories:
            codes = data["train_features"][:, place]
            assert codes.min() >= 0
            assert codes.max() < len(data.categories[name])


def test_a_file_that_was_changed_is_not_read(monkeypatch, tmp_path):
    part = CARDS["film-sentences"].shipped[0]
    content = bytearray((shipped.folder() / part.file).read_bytes())
    content[1000] ^= 1
    (tmp_path / part.file).write_bytes(content)
    monkeypatch.setattr(shipped, "folder", lambda: tmp_path)
    with pytest.raises(ValueError, match="SHA-256"):
        shipped.read(part)


def test_the_readme_has_the_hash_of_each_file():
    readme = (shipped.folder() / "README.md").read_text(encoding="utf-8")
    for card in CARDS.values():
        for part in card.shipped:
            assert f"| `{part.file}` | `{part.sha256}` |" in readme
