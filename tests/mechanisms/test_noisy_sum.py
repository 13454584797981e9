"""The noisy sum is as private as it says, and its propensities are those of its records."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2, kstest, norm

from auditkit.mechanisms.noisy_sum import PulledSphere, noisy_sum


@pytest.mark.parametrize("dimension", [2, 5, 60])
@pytest.mark.parametrize("place", [-0.7, 0.0, 0.4])
def test_the_log_odds_are_those_of_the_integrated_densities(dimension, place):
    family = PulledSphere(dimension, 2.0, 0.5)

    def mass(pull):
        def density(length):
            return np.exp(
                (dimension - 1) * np.log(length) - 0.5 * length**2 + length * pull * place
            )

        peak = np.sqrt(dimension)
        return quad(density, 1e-12, peak + 15.0, points=[peak], epsabs=0, epsrel=1e-11)[0]

    expected = np.log(mass(2.0) / mass(0.5)) - 0.5 * (2.0**2 - 0.5**2)
    assert family.log_odds(place) == pytest.approx(expected, abs=1e-8)


def test_propensities_are_the_shares_of_members():
    family, rng = PulledSphere(300, 2.0, 0.5), np.random.default_rng(0)
    members = rng.random(200_000) < 0.5
    chances = family.propensity(family.draw_projections(members, axes=1, rng=rng)[:, 0])
    for part in np.array_split(np.argsort(chances), 20):
        error = members[part].mean() - chances[part].mean()
        assert abs(error) < 4.0 * np.sqrt(0.25 / part.size)


def test_without_a_difference_every_propensity_is_one_half():
    places = np.linspace(-1.0, 1.0, 9)
    np.testing.assert_allclose(PulledSphere(50, 2.0, 2.0).propensity(places), 0.5, atol=1e-12)


def test_records_have_length_one_and_projections_have_their_law():
    family, rng = PulledSphere(40, 3.0, 1.0), np.random.default_rng(1)
    members = np.ones(4000, bool)
    records = family.draw(members, rng=rng)
    np.testing.assert_allclose(np.linalg.norm(records, axis=1), 1.0, atol=1e-6)
    seen = family.draw_projections(members, axes=2, rng=rng)
    for axis in (0, 1):
        assert kstest(records[:, axis], seen[:, axis]).pvalue > 1e-4
    whole = family.draw_projections(members, axes=40, rng=rng)
    np.testing.assert_allclose(np.linalg.norm(whole, axis=1), 1.0, atol=1e-12)


def test_the_sum_has_the_noise_that_it_says():
    rng = np.random.default_rng(2)
    records = np.eye(500)[:7]
    noise = noisy_sum(records, sigma=1.5, rng=rng) - records.sum(axis=0)
    spread = (noise**2).sum() / 1.5**2
    assert chi2.cdf(spread, 500) == pytest.approx(0.5, abs=0.4999)
    assert kstest(noise / 1.5, norm.cdf).pvalue > 1e-4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PulledSphere(1, 1.0, 1.0), r"^dimension must"),
        (lambda: PulledSphere(3, -1.0, 1.0), r"^member_pull must"),
        (lambda: PulledSphere(3, 1.0, float("nan")), r"^other_pull must"),
        (lambda: PulledSphere(3, 1.0, 1.0).log_odds([1.5]), r"^along must lie"),
        (
            lambda: PulledSphere(3, 1.0, 1.0).draw_projections([True], axes=4, rng=0),
            r"^axes must be at most dimension, got 4 of 3",
        ),
        (lambda: noisy_sum([[1.0, 1.0]], sigma=1.0, rng=0), r"^records must be no longer than 1"),
        (lambda: noisy_sum([1.0], sigma=1.0, rng=0), r"^records must have 2 dim"),
        (lambda: noisy_sum([[1.0]], sigma=0.0, rng=0), r"^sigma must"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
