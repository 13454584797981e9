"""A verdict is recorded with its reason, and for no longer than its check holds."""

import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from auditkit import finding as package_finding
from auditkit.claims import VERDICTS, Finding, claim, finding

MODULE = sys.modules["auditkit.claims"]

WHY = "The two agree within the noise of ten runs."


@pytest.fixture(autouse=True)
def own_findings(monkeypatch):
    monkeypatch.setattr(MODULE, "FINDINGS", {})


def made(id="OBS-1", **changes):  # noqa: A002
    words = {
        "paper": 2.0,
        "measured": 1.93,
        "verdict": "reproduced",
        "why": WHY,
        "figure": "OBS-F2",
        "check": True,
    }
    return claim(id, **{**words, **changes})


# --- the record ----------------------------------------------------------------------------------


def test_a_claim_is_recorded_once_and_found_by_its_id():
    assert made() is finding("OBS-1")
    assert made(measured=1.95) is finding("OBS-1")
    assert list(MODULE.FINDINGS) == ["OBS-1"]
    assert package_finding is finding


def test_a_claim_that_nobody_has_recorded_is_named():
    made()
    with pytest.raises(ValueError, match=r"got 'OBS-2'; recorded are OBS-1\. Import"):
        finding("OBS-2")


@pytest.mark.parametrize(
    ("value", "stored"),
    [("below ε at all six", "below ε at all six"), (3, 3), (np.float64(0.5), 0.5), (np.int8(4), 4)],
)
def test_values_are_words_or_numbers(value, stored):
    record = made(paper=value, measured=value)
    assert record.paper == record.measured == stored
    assert type(record.paper) is type(stored)


# --- the check -----------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", VERDICTS)
@pytest.mark.parametrize("check", [False, np.bool_(False), lambda: False])
def test_a_verdict_whose_check_fails_is_an_error_and_leaves_no_record(verdict, check):
    message = f"claim OBS-1 is recorded as {verdict}, .* Paper: 2.0. Measured: 1.93."
    with pytest.raises(AssertionError, match=message):
        made(verdict=verdict, check=check)
    assert not MODULE.FINDINGS


def test_a_check_that_breaks_is_heard():
    with pytest.raises(ZeroDivisionError):
        made(check=lambda: 1 / 0)


@pytest.mark.parametrize("check", [None, 1, "yes", lambda: 1, lambda: np.array([True, True])])
def test_a_check_is_true_or_false_and_not_something_like_it(check):
    with pytest.raises(TypeError, match="check must be True or False, got"):
        made(check=check)
    assert not MODULE.FINDINGS


# --- the page ------------------------------------------------------------------------------------


def test_a_notebook_shows_the_two_values_the_reason_and_where_to_look():
    html = made(paper="below <1>", figure=("OBS-F2", "OBS-T1"))._repr_html_()
    table = ElementTree.fromstring(html)
    assert table.get("id") == "OBS-1"
    rows = {row.find("th").text: "".join(row.find("td").itertext()) for row in table.iter("tr")}
    assert rows == {
        "claim": "OBS-1, reproduced",
        "paper": "below <1>",
        "measured": "1.93",
        "why": WHY,
        "shown by": "OBS-F2, OBS-T1",
    }
    assert [link.get("href") for link in table.iter("a")] == [
        "../book/scorecard.html#OBS-1",
        "../book/figures.html#OBS-F2",
        "../book/figures.html#OBS-T1",
    ]


def test_a_number_is_shown_with_four_digits():
    html = made(paper=1.23456, measured=123456)._repr_html_()
    assert "<td>1.235</td>" in html
    assert "<td>123456</td>" in html


def test_a_finding_can_be_compared():
    assert made() == Finding("OBS-1", 2.0, 1.93, "reproduced", WHY, "OBS-F2")


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "obs-1", "OBS1", "OBS-", "OBS-F1", "../OBS-1", "OBS-1 ", 1])
def test_an_id_has_paper_and_number(name):
    with pytest.raises(ValueError, match='id must be as in "OBS-1", got'):
        made(name)


@pytest.mark.parametrize("name", ["paper", "measured"])
@pytest.mark.parametrize("value", ["", " ", None, True, np.nan, np.inf, [1.0], np.array([1.0, 2])])
def test_a_value_is_words_or_a_finite_number(name, value):
    with pytest.raises(ValueError, match=f"{name} must be a finite number or words, got"):
        made(**{name: value})


@pytest.mark.parametrize("verdict", ["open", "Reproduced", "", None])
def test_a_verdict_is_one_of_three(verdict):
    with pytest.raises(ValueError, match="verdict must be one of 'reproduced', 'partly', 'not rep"):
        made(verdict=verdict)


@pytest.mark.parametrize("why", ["", None, "Noise.", "the two agree within noise", 3])
def test_a_reason_is_a_sentence(why):
    with pytest.raises(ValueError, match="why must be at least one sentence with its full stop"):
        made(why=why)


@pytest.mark.parametrize("figure", ["OBS-1", "", ["OBS-F2", "fig. 2"], [3]])
def test_a_figure_has_an_id_of_the_book(figure):
    with pytest.raises(ValueError, match='figure must be as in "OBS-F2"'):
        made(figure=figure)


@pytest.mark.parametrize("figure", [None, [], (), 2, {"OBS-F2"}])
def test_a_claim_is_shown_by_something(figure):
    with pytest.raises(ValueError, match="figure must be the id of a figure, or a list of them"):
        made(figure=figure)
