"""A result says what it means, in a sentence and in a table."""

import numpy as np
import pytest

from auditkit import Bound


def bound(**changes):
    fields = {
        "epsilon": 1.25, "delta": 1e-5, "confidence": 0.95, "claim": "lower bound",
        "adjacency": "add/remove", "method": "one run",
    }  # fmt: skip
    return Bound(**(fields | changes))


@pytest.mark.parametrize(
    ("claim", "sign"), [("lower bound", "≥"), ("estimate", "≈"), ("upper bound", "≤")]
)
def test_the_sign_says_what_is_proved(claim, sign):
    link = "at a nominal" if claim == "estimate" else "with"
    text = f"ε {sign} 1.250 at δ = 1e-05 {link} 95% confidence"
    assert str(bound(claim=claim)).startswith(text)


def test_an_estimate_says_that_it_is_no_bound():
    assert "estimate, not a bound" in str(bound(claim="estimate"))


def test_another_claim_is_refused():
    message = "claim must be one of 'lower bound', 'estimate', 'upper bound', got 'proof'"
    with pytest.raises(ValueError, match=message):
        bound(claim="proof")


@pytest.mark.parametrize(
    ("confidence", "percent", "share"),
    [
        (0.95, "95", "0.95"),
        (0.999999, "99.9999", "0.999999"),
        (1 - 1e-9, "99.9999999", "0.999999999"),
        (1 - 1e-12, "99.9999999999", "0.999999999999"),
    ],
)
def test_no_confidence_is_printed_as_certainty(confidence, percent, share):
    result = bound(confidence=confidence)
    assert f"with {percent}% confidence" in str(result)
    assert f"<td>{share}</td>" in result._repr_html_()


def test_what_is_assumed_is_part_of_the_sentence():
    sentence = "The mechanism's trade-off curve is Gaussian."
    assert sentence in str(bound(assumptions=(sentence,)))


def test_a_statement_without_chance_has_no_confidence():
    text = str(bound(claim="upper bound", confidence=None))
    assert "confidence" not in text
    assert "none" in bound(claim="upper bound", confidence=None)._repr_html_()


@pytest.mark.parametrize(
    ("epsilon", "text"),
    [
        (np.array([1.0, 2.0]), "[1.000, 2.000]"),
        (np.linspace(0, 3, 100), "100 values from 0.000 to 3.000"),
        (np.array(0.5), "0.500"),
        (1.5e-4, "0.00015"),
    ],
)
def test_arrays_and_small_numbers_are_readable(epsilon, text):
    assert text in str(bound(epsilon=epsilon))


@pytest.mark.parametrize(
    ("claim", "epsilon", "text"),
    [
        ("lower bound", 0.8469, "0.846"),
        ("upper bound", 0.8461, "0.847"),
        ("estimate", 0.8469, "0.847"),
        ("lower bound", 0.3, "0.300"),  # whose binary form lies below
        ("lower bound", 9.9999e-3, "0.009999"),
        ("upper bound", 1.23451e-4, "0.0001235"),
        ("lower bound", np.array([0.1239, 2.0]), "[0.123, 2.000]"),
        ("upper bound", np.inf, "inf"),
    ],
)
def test_what_is_printed_is_no_stronger_than_what_was_found(claim, epsilon, text):
    result = bound(claim=claim, epsilon=epsilon)
    assert f" {text} at δ" in str(result)
    assert f"<td>{text}</td>" in result._repr_html_()


def test_the_table_shows_every_detail_and_escapes_it():
    table = bound(details={"guesses": 100, "rule": "<script>"})._repr_html_()
    assert "<td>100</td>" in table
    assert "&lt;script&gt;" in table
    assert "<script>" not in table


def test_a_result_cannot_be_changed():
    with pytest.raises(AttributeError):
        bound().epsilon = 2.0


def test_results_with_arrays_can_be_compared_and_collected():
    one = bound(epsilon=np.array([1.0, 2.0]))
    assert one == bound(epsilon=np.array([1.0, 2.0])) != bound(epsilon=np.array([1.0, 3.0]))
    assert len({one, one}) == 1
