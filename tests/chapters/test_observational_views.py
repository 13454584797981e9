"""Views of images: the same things seen otherwise."""

import numpy as np
import pytest
import torch
from experiments.observational import views
from experiments.observational.views import strong_views, weak_views

IMAGES = np.random.default_rng(0).integers(256, size=(600, 16, 16, 3), dtype=np.uint8)
X = torch.from_numpy(IMAGES[:40].astype(np.float32) / 255.0).permute(0, 3, 1, 2)
HALF = torch.full((40,), 0.5)


@pytest.mark.parametrize("change", [weak_views, strong_views])
def test_a_seed_decides_the_views(change):
    first = change(IMAGES, rng=3)
    assert first.shape == IMAGES.shape
    assert first.dtype == np.uint8
    assert np.array_equal(first, change(IMAGES, rng=np.random.default_rng(3)))
    assert not np.array_equal(first, change(IMAGES, rng=4))


def test_a_weak_view_is_the_image_moved_and_maybe_mirrored():
    wide = np.pad(IMAGES, ((0, 0), (2, 2), (2, 2), (0, 0)), mode="reflect")
    found = []
    for view, whole in zip(weak_views(IMAGES, rng=0), wide, strict=True):
        (fits,) = [
            (down, right, mirrored)
            for down in range(5)
            for right in range(5)
            for mirrored in (False, True)
            if np.array_equal(
                view[:, ::-1] if mirrored else view, whole[down : down + 16, right : right + 16]
            )
        ]
        found.append(fits)
    down, right, mirrored = np.array(found).T
    assert set(down) == set(right) == set(range(5))
    assert 0.4 < mirrored.mean() < 0.6


def test_strong_views_are_farther_from_the_image_than_weak_ones():
    smooth = np.tile(np.linspace(0, 200, 16, dtype=np.uint8)[:, None, None], (300, 1, 16, 3))
    near, far = (
        np.abs(change(smooth, rng=0) - smooth.astype(float)).mean(axis=(1, 2, 3))
        for change in (weak_views, strong_views)
    )
    assert far.mean() > 2 * near.mean()
    assert (far > 0).all()


def test_a_strong_view_has_a_grey_square_of_up_to_half_the_side():
    black = np.zeros((500, 16, 16, 3), np.uint8)
    x = torch.from_numpy(black.astype(np.float32)).permute(0, 3, 1, 2)
    grey = (views._cut_out(x, np.random.default_rng(0)) == 0.5).all(1).numpy()
    high, wide = grey.any(2).sum(1), grey.any(1).sum(1)
    assert np.array_equal(grey.sum((1, 2)), high * wide)
    assert high.max() <= 8
    assert wide.max() <= 8
    assert set(high) >= set(range(1, 9))


def test_every_operation_keeps_numbers_between_0_and_1():
    for operation in views._ALL:
        for strength in (0.0, 0.3, 0.999999):
            found = operation(X, torch.full((40,), strength))
            assert found.shape == X.shape
            assert found.min() >= -1e-6
            assert found.max() <= 1 + 1e-6


def test_every_operation_but_one_changes_the_image():
    changed = [not torch.equal(each(X, torch.full((40,), 0.8)), X) for each in views._ALL]
    assert changed.count(False) == 1


@pytest.mark.parametrize("name", ["rotate", "shear x", "shear y", "shift x", "shift y"])
def test_affine_maps_of_middle_strength_are_none(name):
    assert torch.allclose(views._affine(name)(X, HALF), X, atol=1e-6)


def test_affine_maps_go_where_they_say():
    right = views._affine("shift x")(X, torch.zeros(40))  # by 0.3 of the side, 4.8 pixels
    assert torch.allclose(right[..., 5:], torch.lerp(X[..., :11], X[..., 1:12], 0.2), atol=1e-5)
    assert torch.allclose(right[..., :4], torch.tensor(0.5))
    across = torch.linspace(0, 1, 16).expand(1, 3, 16, 16)
    for name in ("rotate", "shear y"):
        turned = views._affine(name)(across.mT, torch.ones(1))[..., 5:11, 5:11]
        slopes = torch.gradient(turned, dim=(2, 3))
        assert all(float(slope.std()) < 1e-3 for slope in slopes)
        angle = float(torch.atan2(slopes[1].mean(), slopes[0].mean()))
        assert abs(angle) == pytest.approx(
            np.pi / 6 if name == "rotate" else np.arctan(0.3), abs=1e-3
        )


def test_an_even_histogram_is_even():
    ramp = (X * 0.2 + 0.4) ** 2
    even = views._equalise(ramp, HALF).flatten(2).sort(2).values
    assert torch.allclose(even, torch.linspace(0, 1, 256).expand_as(even), atol=0.03)


def test_stretching_reaches_both_ends_and_leaves_flat_images_alone():
    found = views._stretch(X * 0.1 + 0.3, HALF).flatten(2)
    assert torch.allclose(found.amin(2), torch.tensor(0.0))
    assert torch.allclose(found.amax(2), torch.tensor(1.0))
    flat = torch.full((1, 3, 8, 8), 0.2)
    assert torch.equal(views._stretch(flat, HALF[:1]), flat)
    assert torch.equal(views._equalise(flat, HALF[:1]), flat)


def test_fewer_bits_are_fewer_levels():
    levels = [
        len(views._posterise(X, torch.full((40,), strength)).unique())
        for strength in (0.0, 0.2, 0.4, 0.6, 0.8)
    ]
    assert levels == [256, 128, 64, 32, 16]


def test_bright_pixels_become_their_negative():
    found = views._solarise(X, HALF)
    assert torch.equal(found[X < 0.5], X[X < 0.5])
    assert found.max() <= 0.5


@pytest.mark.parametrize("change", [weak_views, strong_views])
@pytest.mark.parametrize(
    "images", [IMAGES[0], IMAGES[..., :1], IMAGES[:, :8], IMAGES[:, :7, :7], IMAGES.astype(float)]
)
def test_bad_images_are_named(change, images):
    with pytest.raises(ValueError, match=r"images must have shape \(n, side, side, 3\)"):
        change(images, rng=0)


def test_bad_randomness_is_named():
    with pytest.raises(ValueError, match="rng must be"):
        weak_views(IMAGES, rng=0.5)
