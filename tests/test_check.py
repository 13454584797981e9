"""The border: nothing that is no number, or out of range, gets past it without a word."""

from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auditkit import _check

NOT_NUMBERS = [
    "0.5",
    b"0.5",
    None,
    1 + 2j,
    np.complex128(1),
    [[1], [2, 3]],
    {1, 2},
    object(),
    np.datetime64("2020-01-01"),
    np.ma.array([1.0, 2.0], mask=[False, True]),
    10**400,
]


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=lambda value: type(value).__name__)
def test_what_is_no_number_is_a_type_error_that_names_the_argument(value):
    with pytest.raises(TypeError, match="speed must be one number, got "):
        _check.scalar("speed", value)
    with pytest.raises(TypeError, match="speed must be an array of numbers, got "):
        _check.numbers("speed", value)


def test_text_does_not_turn_into_numbers():
    with pytest.raises(TypeError, match="scores"):
        _check.numbers("scores", ["1", "2"])
    with pytest.raises(TypeError, match="scores"):
        _check.numbers("scores", np.array(["1", 2], dtype=object))


def test_long_values_are_shortened_in_the_error():
    with pytest.raises(TypeError) as error:
        _check.numbers("scores", ["x"] * 1000)
    assert len(str(error.value)) < 120


@pytest.mark.parametrize("value", [2, 2.0, True, np.float32(2), np.array(2), Decimal(2)])
def test_every_kind_of_real_number_is_one_number(value):
    assert isinstance(_check.scalar("x", value), float)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_are_finite(value):
    with pytest.raises(ValueError, match=f"x must be a finite number, got {value}"):
        _check.scalar("x", value)
    with pytest.raises(ValueError, match=f"x must hold finite numbers, got {value}"):
        _check.numbers("x", [1.0, value])


def test_a_scalar_has_its_least_value():
    assert _check.scalar("x", 1, least=1.0) == 1.0
    with pytest.raises(ValueError, match=r"of at least 1, got 0\.5"):
        _check.scalar("x", 0.5, least=1.0)
    with pytest.raises(TypeError, match="one number"):
        _check.scalar("x", [1.0])


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 1.1])
def test_a_fraction_lies_strictly_inside(value):
    with pytest.raises(ValueError, match=f"confidence must lie strictly .* got {value}"):
        _check.fraction("confidence", value)
    with pytest.raises(ValueError, match="propensity must lie strictly"):
        _check.fractions("propensity", [0.5, value])
    assert _check.fraction("confidence", 0.5) == 0.5


@pytest.mark.parametrize("value", [0.0, -0.1, 1.0000001])
def test_a_rate_lies_above_zero_and_may_be_one(value):
    assert _check.rate("sampling_rate", 1) == 1.0
    with pytest.raises(ValueError, match=rf"sampling_rate must lie in \(0, 1\], got {value}"):
        _check.rate("sampling_rate", value)


def test_there_are_two_classes_at_least():
    _check.classes("votes", np.ones((3, 2)))
    for shape in ((), (0,), (5, 1)):
        with pytest.raises(ValueError, match="votes must have at least 2 classes on its last axis"):
            _check.classes("votes", np.ones(shape))


def test_a_delta_may_be_zero_but_not_one():
    assert _check.delta("delta", 0) == 0.0
    for value in (1.0, -1e-9):
        with pytest.raises(ValueError, match=r"delta must lie in \[0, 1\)"):
            _check.delta("delta", value)


def test_a_choice_is_one_of_the_options():
    assert _check.choice("method", "a", ("a", "b")) == "a"
    for value in ("c", None, ["a"]):
        with pytest.raises(ValueError, match="method must be one of 'a', 'b', got"):
            _check.choice("method", value, ("a", "b"))


def test_dimensions_are_checked_where_they_matter():
    assert _check.numbers("x", [[1.0]]).shape == (1, 1)
    with pytest.raises(ValueError, match=r"x must have 1 dimension\(s\), got shape \(1, 1\)"):
        _check.numbers("x", [[1.0]], ndim=1)


@pytest.mark.parametrize("value", [-1, 0.5, 1e300, 2**53])
def test_counts_are_whole_numbers_that_a_float_can_hold(value):
    with pytest.raises(ValueError, match="correct must hold whole numbers"):
        _check.counts("correct", [1, value])


@settings(deadline=None)
@given(st.lists(st.integers(0, 2**53 - 1), max_size=5))
def test_counts_come_back_as_they_went_in(values):
    assert _check.counts("correct", values).tolist() == values
    assert _check.counts("correct", np.array(values, dtype=float)).dtype == np.int64


def test_codes_and_members_hold_nothing_else():
    assert _check.members("members", [0, 1.0, True]).tolist() == [False, True, True]
    with pytest.raises(ValueError, match="members must hold 0, 1 only, got -1"):
        _check.members("members", [-1, 1])
    with pytest.raises(ValueError, match=r"guesses must hold -1, 0, 1 only, got 0\.5"):
        _check.codes("guesses", [0.5], (-1, 0, 1))


def test_lengths_are_compared_by_name():
    two, three = np.zeros(2), np.zeros(3)
    _check.same_length(scores=two, members=two)
    with pytest.raises(ValueError, match="scores has 2, members has 3"):
        _check.same_length(scores=two, members=three)


def test_what_is_checked_is_not_changed():
    values = np.array([3.0, 1.0])
    assert _check.numbers("x", values) is values


def test_the_unit_interval_is_closed():
    assert _check.unit("alpha", [0, 1]).tolist() == [0.0, 1.0]
    for value in (-1e-9, 1.1):
        with pytest.raises(ValueError, match=r"alpha must lie in \[0, 1\], got"):
            _check.unit("alpha", [0.5, value])


def test_arrays_have_their_least_value_too():
    assert _check.at_least("mu", [0.0, 2.0], 0.0).tolist() == [0.0, 2.0]
    with pytest.raises(ValueError, match="mu must hold numbers of at least 0, got -1"):
        _check.at_least("mu", [1.0, -1.0], 0.0)


def test_an_identifier_names_a_file_anywhere():
    assert _check.identifier("id", "OBS-F2_a") == "OBS-F2_a"
    for value in ("", "a b", "../a", "-a", None, "a\n"):
        with pytest.raises(ValueError, match="id must be letters"):
            _check.identifier("id", value)


def test_a_flag_is_true_or_false():
    assert _check.flag("draw", np.True_) is True
    for value in (1, "yes", None):
        with pytest.raises(TypeError, match="draw must be True or False, got"):
            _check.flag("draw", value)


def test_a_positive_number_is_above_zero():
    assert _check.positive("sigma", 2) == 2.0
    for value in (0, -1.0):
        with pytest.raises(ValueError, match=f"sigma must be above 0, got {value}"):
            _check.positive("sigma", value)


def test_orders_are_above_zero_and_not_one():
    assert _check.orders("orders", [0.5, 2]).tolist() == [0.5, 2.0]
    for value in (0.0, 1.0, -2.0):
        with pytest.raises(
            ValueError, match=f"orders must lie above 0 and not be 1, got {value:g}"
        ):
            _check.orders("orders", [2.0, value])
    with pytest.raises(
        ValueError, match=r"orders must have at most 1 dimension, got shape \(1, 1\)"
    ):
        _check.orders("orders", [[2.0]])


def test_probabilities_sum_to_one_within_a_billionth():
    exact = _check.distributions("p", [[0.25, 0.75 + 5e-10], [1.0, 0.0]])
    assert (exact.sum(axis=1) == 1.0).all()
    with pytest.raises(ValueError, match=r"p must sum to 1 within 1e-9, got 0\.9"):
        _check.distributions("p", [0.5, 0.4])
    with pytest.raises(ValueError, match=r"p must hold numbers of at least 0, got -0\.5"):
        _check.distributions("p", [1.5, -0.5])
    with pytest.raises(ValueError, match=r"p must be an array of probabilities, got 1\.0"):
        _check.distributions("p", 1.0)


def test_a_source_of_randomness_is_a_generator_or_a_seed():
    rng = np.random.default_rng(3)
    assert _check.generator("rng", rng) is rng
    assert _check.generator("rng", 3).random() == np.random.default_rng(3).random()
    assert isinstance(_check.generator("rng", None), np.random.Generator)
    for value in (-1, 0.5, True, "3"):
        with pytest.raises(ValueError, match="rng must be a numpy Generator, a seed"):
            _check.generator("rng", value)


@pytest.mark.parametrize(
    "value",
    [
        np.array([2**60, 2**60 + 1]),
        np.array([2**64 - 5, 3], dtype=np.uint64),
        [2**53 + 1, 0],
        [-(2**63), 1],
        np.array([2**80, 1], dtype=object),
    ],
)
def test_whole_numbers_that_a_float_cannot_hold_are_refused(value):
    with pytest.raises(
        ValueError, match=r"scores must hold whole numbers of at most 2\*\*53 in size"
    ):
        _check.numbers("scores", value)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.int64, object])
def test_whole_numbers_that_a_float_holds_are_taken(dtype):
    value = np.array([2**8 - 1, 0, 7], dtype=dtype)
    assert _check.numbers("scores", value).tolist() == [255.0, 0.0, 7.0]
