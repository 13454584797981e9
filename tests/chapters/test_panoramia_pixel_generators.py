"""Images made smaller, brought along directions, made noisy; and generators of images."""

import numpy as np
import pytest
import torch
from experiments.panoramia.pixel_generators import (
    Along,
    Diffusion,
    Filtered,
    Resampled,
    fit_diffusion,
    fit_filter,
    fit_variational,
    grey_levels,
    principal_directions,
    reduced,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from auditkit.models.generators import Examples

IMAGES = np.random.default_rng(0).random((60, 6, 6)).astype(np.float32)
LABELS = np.arange(60) % 3


class Uniform:
    """A generator that a test knows all about."""

    def sample(self, number, *, rng):
        return Examples(rng.random((number, 2)))


@pytest.mark.parametrize("factor", [1, 2, 3, 6])
def test_a_small_pixel_is_the_mean_of_a_square(factor):
    small = reduced(IMAGES, factor)
    for row in range(6 // factor):
        for column in range(6 // factor):
            square = IMAGES[
                :, row * factor : (row + 1) * factor, column * factor : (column + 1) * factor
            ]
            np.testing.assert_allclose(
                small[:, row, column], square.reshape(60, -1).mean(axis=1), rtol=1e-6
            )


@given(st.integers(0, 2**32), st.floats(0.0, 0.5))
@settings(max_examples=25, deadline=None)
def test_grey_levels_are_256_in_the_unit_interval(seed, noise):
    levels = grey_levels(3.0 * IMAGES - 1.0, noise=noise, rng=seed)
    assert levels.min() >= 0.0
    assert levels.max() <= 1.0
    np.testing.assert_allclose(255.0 * levels, np.round(255.0 * levels), atol=1e-4)
    np.testing.assert_array_equal(levels, grey_levels(3.0 * IMAGES - 1.0, noise=noise, rng=seed))


def test_noise_has_the_spread_it_says():
    grey = np.full((500, 6, 6), 0.5)
    assert grey_levels(grey, noise=0.1, rng=0).std() == pytest.approx(0.1, rel=0.02)
    assert grey_levels(grey).std() == 0.0


def test_directions_are_those_of_a_singular_value_decomposition():
    found = principal_directions(IMAGES, 5)
    rows = IMAGES.reshape(60, -1).astype(float)
    slow = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][:5]
    np.testing.assert_allclose(np.abs((found.basis * slow).sum(axis=1)), 1.0, atol=1e-4)
    np.testing.assert_allclose(found.basis @ found.basis.T, np.eye(5), atol=1e-5)
    coordinates = found.coordinates(IMAGES)
    assert (np.diff(coordinates.var(axis=0)) <= 0).all()
    np.testing.assert_allclose(found.coordinates(found.images(coordinates)), coordinates, atol=1e-5)


def test_all_directions_give_images_back():
    found = principal_directions(IMAGES, 36)
    np.testing.assert_allclose(found.images(found.coordinates(IMAGES)), IMAGES, atol=1e-5)


def test_a_generator_along_directions_makes_images_that_lie_along_them():
    directions = principal_directions(IMAGES, 2)
    made = Along(directions, Uniform()).sample(7, rng=0).inputs
    assert made.shape == (7, 6, 6)
    np.testing.assert_allclose(directions.images(directions.coordinates(made)), made, atol=1e-5)


def test_without_noise_examples_are_drawn_as_they_are():
    made = Resampled(Examples(IMAGES, LABELS), 0.0).sample(200, rng=0)
    which = [int(np.flatnonzero((image == IMAGES).all(axis=(1, 2)))[0]) for image in made.inputs]
    np.testing.assert_array_equal(LABELS[which], made.labels)
    assert len(set(which)) > 50


def test_a_filter_lets_through_what_scores_enough_and_no_less_than_was_asked_for():
    made = Filtered(Uniform(), lambda drawn: drawn.inputs[:, 0], 0.8).sample(500, rng=0)
    assert len(made) == 500
    assert made.inputs[:, 0].min() >= 0.8
    with pytest.raises(ValueError, match="least must let some examples through"):
        Filtered(Uniform(), lambda drawn: drawn.inputs[:, 0], 2.0).sample(3, rng=0)


def test_a_fitted_filter_removes_its_share_of_what_is_least_real():
    rng = np.random.default_rng(0)
    real = Examples(rng.random((2000, 2)) / 2)  # a quarter of what the generator makes
    kept = fit_filter(Uniform(), real, rng, removed=0.6, see=lambda drawn: drawn.inputs)
    fresh = Uniform().sample(4000, rng=rng)
    assert (kept.score(fresh) < kept.least).mean() == pytest.approx(0.6, abs=0.1)
    inside = (kept.sample(2000, rng=rng).inputs < 0.5).all(axis=1).mean()
    assert inside > 0.5


def test_an_autoencoder_of_two_plain_classes_makes_both():
    plain = np.repeat((0.0, 1.0), 256)[:, None, None] * np.ones((512, 4, 4))
    before = torch.get_rng_state()
    labels = np.repeat((0, 1), 256)
    made = [
        fit_variational(Examples(plain, labels), 3, latent=2, width=32, passes=120).sample(
            40, rng=1
        )
        for _ in range(2)
    ]
    grey = made[0].inputs.mean(axis=(1, 2))
    assert grey[made[0].labels == 1].mean() > 0.8 > 0.2 + grey[made[0].labels == 0].mean()
    assert set(made[0].labels) == {0, 1}
    np.testing.assert_array_equal(made[0].inputs, made[1].inputs)
    assert torch.equal(before, torch.get_rng_state())


def test_steps_of_exact_velocities_end_at_the_data():
    # all data are 1, so that what is noise in a row is known at every angle
    def exact(x, times, _):
        angles = times[:, None] * np.pi / 2
        noise = (x - torch.cos(angles)) / torch.sin(angles)
        return torch.cos(angles) * noise - torch.sin(angles)

    one = np.ones(2, np.float32)
    made = Diffusion(exact, np.array([0.5, 0.5]), 3 * one, 2 * one, 7).sample(9, rng=0)
    np.testing.assert_allclose(made.inputs, 5.0, atol=1e-4)


def test_a_diffusion_model_finds_where_classes_are_and_how_wide():
    rng = np.random.default_rng(0)
    labels = np.arange(2000) % 2
    rows = rng.normal(size=(2000, 2)) * (0.5, 1.0) + np.where(labels, 2.0, -2.0)[:, None]
    before = torch.get_rng_state()
    model = fit_diffusion(Examples(rows, labels), 0, width=64, updates=700, steps=20)
    made = model.sample(2000, rng=1)
    for label, centre in ((0, -2.0), (1, 2.0)):
        own = made.inputs[made.labels == label]
        np.testing.assert_allclose(own.mean(axis=0), centre, atol=0.4)
        np.testing.assert_allclose(own.std(axis=0), (0.5, 1.0), rtol=0.4)
    assert torch.equal(before, torch.get_rng_state())
    again = fit_diffusion(Examples(rows[:50], labels[:50]), 0, width=4, updates=2).sample(5, rng=1)
    same = fit_diffusion(Examples(rows[:50], labels[:50]), 0, width=4, updates=2).sample(5, rng=1)
    np.testing.assert_array_equal(again.inputs, same.inputs)


FLAT = Examples(IMAGES.reshape(60, -1), LABELS)
GREY = Examples(IMAGES, LABELS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reduced(IMAGES, 4), "factor must divide 6"),
        (lambda: reduced(IMAGES[:, :3], 1), "images must be of shape"),
        (lambda: grey_levels(IMAGES, noise=-1.0), "noise"),
        (lambda: grey_levels(IMAGES[0]), "images"),
        (lambda: principal_directions(IMAGES, 37), "number must be at most 36"),
        (lambda: principal_directions(IMAGES, 2).images(np.zeros(2)), "coordinates"),
        (lambda: Resampled(GREY, -1.0).sample(3, rng=0), "noise"),
        (lambda: Resampled(GREY, 1.0).sample(0, rng=0), "number"),
        (lambda: fit_filter(Uniform(), FLAT, 0, removed=1.0, see=lambda e: e.inputs), "removed"),
        (lambda: fit_variational(FLAT, 0), "examples.inputs"),
        (lambda: fit_variational(Examples(2 * IMAGES, LABELS), 0), "grey levels"),
        (lambda: fit_variational(Examples(IMAGES), 0), "examples must have labels"),
        (lambda: fit_variational(GREY, 0, latent=0), "latent"),
        (lambda: fit_variational(GREY, 0, width=0), "width"),
        (lambda: fit_variational(GREY, 0, passes=0), "passes"),
        (lambda: fit_diffusion(GREY, 0), "examples.inputs"),
        (lambda: fit_diffusion(Examples(FLAT.inputs), 0), "examples must have labels"),
        (lambda: fit_diffusion(FLAT, 0, width=0), "width"),
        (lambda: fit_diffusion(FLAT, 0, updates=0), "updates"),
        (lambda: fit_diffusion(FLAT, 0, steps=0), "steps"),
        (lambda: fit_diffusion(FLAT, "seed"), "rng"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_images_are_made_in_the_precision_of_those_that_were_fitted(kind):
    images = Examples(IMAGES.astype(kind), LABELS)
    rows = Examples(images.inputs[:, 0], LABELS)
    directions = principal_directions(images.inputs, 6)
    for source in (
        Along(directions, fit_diffusion(rows, 0, width=4, updates=1, steps=1)),
        Resampled(images, 0.1),
        fit_variational(images, 0, latent=2, width=4, passes=1),
        fit_diffusion(rows, 0, width=4, updates=1, steps=1),
    ):
        assert source.sample(3, rng=0).inputs.dtype == kind


def test_decimals_that_are_drawn_again_are_the_same_numbers():
    prices = Examples(np.round(IMAGES.astype(float), 1), LABELS)
    assert np.isin(Resampled(prices, 0.0).sample(100, rng=0).inputs, prices.inputs).all()
