"""`auditkit audit` says what may be said of a file, and refuses the rest."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from auditkit import (
    ApproxDP,
    Split,
    audit_scores,
    observational_label,
    one_run,
    one_run_fdp,
    panoramia,
)
from auditkit.bounds.promise import p_value_from_scores
from auditkit.cli import main
from auditkit.cli.audit import METHODS
from auditkit.cli.figures import curve
from auditkit.cli.question import pose
from auditkit.cli.score_files import read_scores

FIELDS = {"epsilon", "delta", "confidence", "claim", "adjacency", "method", "assumptions"}


@pytest.fixture
def write(tmp_path):
    def written(name="scores.csv", **columns):
        path = tmp_path / name
        rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
        lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return str(path)

    return written


def leaking(rows=1000, leak=2.0, seed=0):
    rng = np.random.default_rng(seed)
    members = rng.random(rows) < 0.5
    return {"score": rng.normal(leak * members), "member": members.astype(int)}


def shifted(rows=2000, seed=0):
    rng = np.random.default_rng(seed)
    feature = rng.normal(size=rows)
    propensity = expit(feature)
    members = rng.random(rows) < propensity
    score = feature + rng.normal(np.where(members, 2.0, 0.0))
    return {"score": score, "member": members.astype(int), "propensity": propensity}, feature


def labels(rows=4000, leak=1.0, placebo=True):
    rng = np.random.default_rng(0)
    chosen = rng.integers(2, size=rows * (1 + placebo))
    on_placebo = np.arange(chosen.size) >= rows
    mean = np.where(on_placebo, 0.0, np.where(chosen == 0, leak, -leak))
    columns = {"score": rng.normal(mean), "chosen": chosen}
    return columns | ({"placebo": on_placebo.astype(int)} if placebo else {})


def played(capsys, *arguments):
    code = main(["audit", *arguments, "--json"])
    said = capsys.readouterr()
    return code, (json.loads(said.out) if said.out else None), said.err


def refused(capsys, *arguments):
    assert main(["audit", *arguments, "--json"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "Traceback" not in said.err
    return said.err


def test_json_holds_the_bound_at_the_top_level_and_nothing_else(capsys, write):
    columns = leaking()
    code, bound, _ = played(
        capsys, write(**columns), "--method", "one-run", "--membership", "randomised"
    )
    assert code == 0
    assert set(bound) >= FIELDS | {"details"}
    expected = audit_scores(columns["score"], columns["member"], method="one-run")
    assert bound["epsilon"] == expected.epsilon
    assert bound["details"]["key"] == expected.details["key"]
    assert bound["claim"] == "lower bound"
    assert bound["confidence"] == 0.95
    assert bound["delta"] == 1e-5
    assert bound["details"]["guesses"] == expected.details["guesses"]
    assert bound["assumptions"] == list(expected.assumptions)


@pytest.mark.parametrize("method", ["one-run", "one-run-fdp", "two-worlds"])
def test_the_settings_reach_the_bound(capsys, write, method):
    columns = leaking()
    options = ["--delta", "1e-4", "--confidence", "0.9", "--threshold", "split:0.3", "--seed", "7"]
    _, bound, _ = played(
        capsys, write(**columns), "--method", method, "--membership", "randomised", *options
    )
    expected = audit_scores(
        columns["score"],
        columns["member"],
        method=method,
        threshold=Split(0.3, seed=7),
        delta=1e-4,
        confidence=0.9,
    )
    assert bound["epsilon"] == expected.epsilon
    assert bound["asked"]["seed"] == 7


def test_two_worlds_assume_a_gaussian_curve_on_request_only(capsys, write):
    columns = leaking()
    path = write(**columns)
    common = ["--method", "two-worlds", "--membership", "randomised"]
    _, plain, _ = played(capsys, path, *common)
    _, same, _ = played(capsys, path, *common, "--family", "approx")
    _, gaussian, _ = played(capsys, path, *common, "--family", "gaussian")
    assert plain["epsilon"] == same["epsilon"] < gaussian["epsilon"]
    assert (plain["asked"]["family"], gaussian["asked"]["family"]) == ("approx", "gaussian")
    assert not any("Gaussian" in text for text in plain["assumptions"])
    assert any("Gaussian" in text for text in gaussian["assumptions"])
    for found, family in ((plain, "approx"), (gaussian, "gaussian")):
        expected = audit_scores(
            columns["score"], columns["member"], method="two-worlds", family=family
        )
        assert found["epsilon"] == expected.epsilon
        assert found["ceiling"] >= found["epsilon"]
    _, exact, _ = played(capsys, path, *common, "--delta", "0")
    assert plain["epsilon"] <= exact["epsilon"] < 2.0 * plain["epsilon"]


@pytest.mark.parametrize("method", ["auto", "one-run", "one-run-fdp", "zero-run"])
def test_a_family_is_for_two_worlds(capsys, write, method):
    with pytest.raises(SystemExit) as caught:
        main(["audit", write(**leaking()), "--method", method, "--family", "gaussian"])
    assert caught.value.code == 2
    assert "--family is for --method two-worlds" in capsys.readouterr().err


def test_nothing_is_proved_where_nobody_said_how_membership_came_about(capsys, write):
    code, bound, err = played(capsys, write(**leaking()))
    assert code == 0
    assert bound["claim"] == "estimate"
    assert "--membership was not given" in err
    assert any("--membership was not given" in text for text in bound["assumptions"])


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_an_estimate_without_membership(capsys, write, method):
    columns = shifted()[0] | {"member": leaking(2000)["member"]} | {"baseline": np.arange(2000)}
    columns |= {"chosen": 1 - columns["member"], "placebo": np.arange(2000) % 2}
    code, bound, _ = played(capsys, write(**columns), "--method", method)
    assert (code, bound["claim"]) == (0, "estimate")


@pytest.mark.parametrize("method", ["auto", "one-run", "one-run-fdp", "two-worlds"])
def test_observed_membership_is_refused_and_zero_run_offered(capsys, write, method):
    told = refused(capsys, write(**leaking()), "--method", method, "--membership", "observed")
    assert "zero-run" in told
    assert "propensity" in told
    assert f"The method {'one-run' if method == 'auto' else method} proves nothing" in told


def test_with_a_propensity_zero_run_answers(capsys, write):
    columns, _ = shifted()
    path = write(**columns)
    told = refused(capsys, path, "--method", "one-run", "--membership", "observed")
    assert "say --method zero-run" in told
    code, bound, err = played(capsys, path, "--membership", "observed")
    assert (code, bound["claim"]) == (0, "lower bound")
    assert bound["method"].startswith("zero run")
    assert 0.0 < bound["epsilon"] < 10.0
    assert "as good as the propensities" in err


def test_propensities_fitted_on_the_way_give_an_estimate(capsys, write):
    columns, feature = shifted()
    del columns["propensity"]
    path = write(**columns, feature_1=feature)
    code, bound, _ = played(capsys, path, "--membership", "observed")
    assert (code, bound["claim"]) == (0, "estimate")
    assert any("fitted here" in text for text in bound["assumptions"])
    assert "overlap" not in bound
    assert 0.0 < bound["diagnostics"]["propensity_kept"] < 1.0


def test_zero_run_without_a_propensity_says_where_one_comes_from(capsys, write):
    path = write(**leaking())
    told = refused(capsys, path, "--method", "zero-run", "--membership", "observed")
    assert "fit_propensity" in told
    told = refused(capsys, path, "--method", "zero-run", "--membership", "randomised")
    assert "one-run-fdp" in told


def test_a_shift_alone_proves_nothing_by_zero_run(capsys, write):
    """The score says no more than the propensity does; in 20 audits at most a few exceed 0."""
    above = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        odds = rng.normal(size=400)
        members = rng.random(400) < expit(odds)
        path = write(score=odds, member=members.astype(int), propensity=expit(odds))
        _, bound, _ = played(capsys, path, "--membership", "observed")
        above += bound["epsilon"] > 0.0
    assert above <= 4  # of 20 at a level of 5%: more with probability 0.003


def test_zero_run_does_not_break_ties_by_the_order_of_the_file(capsys, write):
    members = np.repeat([1, 0, 0, 1], 250)
    score = np.repeat([1.0, 0.0, 1.0, 0.0], 250)  # right in the first half, wrong in the second
    path = write(score=score, member=members, propensity=np.full(1000, 0.5))
    for rule in ("guesses:0.2", "bonferroni:5", "split"):
        _, bound, _ = played(capsys, path, "--membership", "observed", "--threshold", rule)
        assert bound["epsilon"] < 0.3


def test_the_label_game_needs_its_placebo_for_a_bound(capsys, write):
    columns = labels()
    code, bound, _ = played(capsys, write(**columns), "--membership", "randomised")
    audited = columns["placebo"] == 0
    expected = observational_label(
        columns["score"][audited],
        columns["chosen"][audited],
        placebo_scores=columns["score"][~audited],
        placebo_chosen=columns["chosen"][~audited],
    )
    assert (code, bound["claim"]) == (0, "lower bound")
    assert bound["epsilon"] == expected.epsilon
    assert bound["adjacency"] == "label"
    _, bound, _ = played(capsys, write(**labels(placebo=False)), "--membership", "randomised")
    assert bound["claim"] == "estimate"
    told = refused(capsys, write(**columns), "--membership", "observed")
    assert "column chosen" in told


def test_panoramia_is_an_estimate_whatever_is_said(capsys, write):
    columns = leaking(2000, leak=4.0)
    columns["baseline"] = np.random.default_rng(1).normal(size=2000)
    for membership in ([], ["--membership", "randomised"], ["--membership", "observed"]):
        code, bound, _ = played(capsys, write(**columns), *membership)
        assert (code, bound["claim"]) == (0, "estimate")
    expected = panoramia(columns["baseline"], columns["score"], columns["member"])
    assert bound["epsilon"] == expected.epsilon
    assert bound["c_lower"] == expected.c_lower


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"score": [1, 2, 3], "member": [1, 1, 1]}, "member is 1 in every row"),
        ({"score": [1, 2, 3], "member": [0, 0, 0]}, "member is 0 in every row"),
        ({"score": [1, 1, 1, 1], "member": [0, 1, 0, 1]}, "the score is 1 in every row"),
        ({"score": [1, 2], "member": [0, 1], "id": ["a", "a"]}, "id must not repeat"),
        ({"score": [1, 2], "chosen": [0, 0]}, "chosen is 0 in every row"),
        ({"score": [1, 2], "chosen": [0, 1], "placebo": [1, 1]}, "every row is a placebo"),
        ({"score": [1, 2]}, "takes a column member"),
    ],
)
def test_what_proves_nothing_is_refused_in_a_sentence(capsys, write, columns, told):
    assert told in refused(capsys, write(**columns))


@pytest.mark.parametrize(
    "method",
    ["one-run", "one-run-fdp", "two-worlds", "two-worlds --family gaussian", "panoramia"],
)
def test_too_few_rows_are_told_how_many_it_takes(capsys, write, method):
    columns = {"score": [1, 2, 3, 4], "member": [0, 0, 1, 1], "baseline": [1, 2, 3, 4]}
    told = refused(capsys, write(**columns), "--method", *method.split())
    assert f"auditkit plan --target-epsilon 1 --method {method}" in told
    needed = int(told.split("it takes ")[1].split()[0])
    assert 8 <= needed <= 200


def test_the_number_of_rows_it_takes_is_the_least_one(capsys, write):
    path = write(score=[1, 2], member=[0, 1])
    told = refused(capsys, path, "--method", "one-run")
    rows = int(told.split("it takes ")[1].split()[0])
    for number, enough in ((rows, True), (rows - 1, False)):
        best = one_run(number, number, number, delta=1e-5, confidence=0.995)  # a tenth of the level
        assert (best.epsilon >= 1.0) == enough
    told = refused(capsys, path, "--method", "one-run", "--threshold", "split")
    rows = int(told.split("it takes ")[1].split()[0])
    counted = rows - round(rows / 2)
    assert one_run(counted, counted, counted, delta=1e-5).epsilon >= 1.0
    less = rows - 1 - round((rows - 1) / 2)
    assert one_run(less, less, less, delta=1e-5).epsilon < 1.0


def test_members_that_no_coin_can_have_drawn_are_refused(capsys, write):
    columns = leaking()
    columns["member"][:900] = 1
    told = refused(capsys, write(**columns), "--method", "one-run", "--membership", "randomised")
    assert "fair coins" in told
    assert "where no coin decided, see `zero_run`" in told


def test_features_that_betray_membership_turn_a_bound_into_an_estimate(capsys, write):
    columns = leaking(2000)
    rng = np.random.default_rng(1)
    fair = write(**columns, feature_a=rng.normal(size=2000))
    _, bound, _ = played(capsys, fair, "--membership", "randomised")
    assert bound["claim"] == "lower bound"
    assert bound["diagnostics"]["shift_p_value"] > 0.001
    unfair = write(**columns, feature_a=rng.normal(columns["member"]))
    _, bound, err = played(capsys, unfair, "--membership", "randomised")
    assert bound["claim"] == "estimate"
    assert "betray membership" in err
    assert bound["diagnostics"]["shift_p_value"] < 1e-6
    assert {row["claim"] for row in bound["sensitivity"]} == {"estimate"}


def test_propensities_that_are_rejected_prove_nothing_under_any_rule(capsys, write):
    columns, feature = shifted()
    path = write(**columns | {"propensity": np.full(2000, 0.5)}, feature_a=feature)
    _, bound, _ = played(capsys, path, "--membership", "observed")
    assert bound["claim"] == "estimate"
    assert {row["claim"] for row in bound["sensitivity"]} == {"estimate"}


def test_the_ceiling_of_a_zero_run_is_what_the_guesses_show_where_all_are_right(write, capsys):
    columns, _ = shifted()
    path = write(**columns)
    _, bound, _ = played(capsys, path, "--membership", "observed")
    counts = bound["details"]
    unthinned = one_run_fdp(counts["guesses"], counts["guesses"], counts["examples"]).epsilon
    assert counts["kept"] <= counts["kept_at_most"] < counts["guesses"]
    assert bound["epsilon"] <= bound["ceiling"] < unthinned
    columns["score"] = np.where(columns["member"], 1e6, -1e6)
    path = write(**columns)
    _, bound, _ = played(capsys, path, "--membership", "observed")
    assert bound["details"]["correct"] == bound["details"]["guesses"]
    assert bound["epsilon"] == pytest.approx(bound["ceiling"])
    _, shown, most = curve(pose(read_scores(Path(path)), "zero-run"))
    assert shown[0] == pytest.approx(most[0])  # so few that all of them are right
    assert (shown <= most).all()
    assert most[-1] < one_run_fdp(2000, 2000, 2000).epsilon


def test_two_worlds_says_that_each_row_is_a_run(capsys, write):
    told = "counted as a training run of its own"
    path = write(**leaking())
    _, bound, err = played(capsys, path, "--method", "two-worlds", "--membership", "randomised")
    assert told in err
    assert "not examples of one run" in bound["assumptions"][0]
    assert told not in played(capsys, path, "--membership", "randomised")[2]


@pytest.mark.parametrize("method", ["one-run", "one-run-fdp"])
def test_a_coin_that_nothing_could_check_is_taken_on_a_word(capsys, write, method):
    told = "That a coin decided is taken on your word"
    asked = ["--method", method, "--membership", "randomised"]
    assert told in played(capsys, write(**leaking()), *asked)[2]
    checked = write(**leaking(), feature_a=np.random.default_rng(1).normal(size=1000))
    assert told not in played(capsys, checked, *asked)[2]
    assert told not in played(capsys, write(**leaking()), "--method", method)[2]


@pytest.mark.parametrize(
    ("rule", "told"),
    [("guesses:100", True), ("0.5", True), ("split:0.3", False), ("bonferroni", False)],
)
def test_a_rule_fixed_by_hand_is_told_to_be_taken_for_fixed_beforehand(capsys, write, rule, told):
    path = write(**leaking())
    _, _, err = played(capsys, path, "--membership", "randomised", "--threshold", rule)
    assert ("taken as fixed before the scores were seen" in err) == told
    _, _, err = played(capsys, path, "--threshold", rule)  # an estimate as it is
    assert "taken as fixed" not in err


def test_the_rule_that_nobody_typed_was_fixed_beforehand(capsys, write):
    _, bound, err = played(capsys, write(**labels()), "--membership", "randomised")
    assert bound["claim"] == "lower bound"
    assert "taken as fixed" not in err


def test_a_score_that_knows_membership_is_doubted(capsys, write):
    columns = leaking()
    told = "made from the membership that it is to guess"
    assert told not in played(capsys, write(**columns), "--membership", "randomised")[2]
    columns["score"] = columns["member"]
    assert told in played(capsys, write(**columns), "--membership", "randomised")[2]


def test_features_under_their_own_names_are_told_and_can_be_named(capsys, write):
    columns = leaking(2000)
    rng = np.random.default_rng(1)
    path = write(**columns, age=rng.normal(columns["member"]), height=rng.normal(size=2000))
    assert main(["audit", path, "--membership", "randomised"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert 'begins with “feature”, so it goes unseen; not used: "age", "height"' in text
    named = ["--column", "feature=age", "--column", "feature=height"]
    _, bound, err = played(capsys, path, "--membership", "randomised", *named)
    assert bound["claim"] == "estimate"
    assert "betray membership" in err
    assert bound["data"]["columns"]["feature 2"] == "height"
    _, bound, _ = played(capsys, path, "--membership", "observed", *named)
    assert bound["method"].startswith("zero run")


def test_twins_in_and_out_of_training_are_told(capsys, write):
    columns = leaking(200)
    twins = np.arange(200) // 4
    _, bound, err = played(capsys, write(**columns, feature_a=twins))
    assert bound["diagnostics"]["repeated_features"] == 150
    assert "150 of 200 rows have the features of an earlier one" in err
    few = np.arange(200.0)
    few[1] = few[0]
    path = write(**columns, feature_a=few)
    assert "1 of 200 rows have the features" in played(capsys, path)[2]
    assert main(["audit", path]) == 0
    assert "  ! repeated examples: 1 (1 of 200 rows" in capsys.readouterr().out


def test_ties_everywhere_and_a_score_turned_round_are_told(capsys, write):
    columns = leaking()
    columns["score"] = (columns["score"] < 1.0).astype(int)
    _, bound, err = played(capsys, write(**columns), "--membership", "randomised")
    assert bound["diagnostics"]["tied_scores"] == 1000
    assert bound["diagnostics"]["auc"] < 0.45
    assert bound["epsilon"] == 0.0
    assert "an order drawn from all scores together" in err
    assert "needs its sign turned" in err
    _, turned, _ = played(
        capsys, write(**columns), "--membership", "randomised", "--column", "score=-score"
    )
    assert turned["epsilon"] > 0.5


def test_theory_stands_beside_the_bound_and_a_contradiction_is_told(capsys, write):
    promise = ["--noise-multiplier", "50", "--sampling-rate", "1", "--steps", "10"]
    path = write(**leaking(leak=4.0))
    _, bound, err = played(capsys, path, "--membership", "randomised", *promise)
    assert set(bound["upper_bounds"]) == {"add/remove", "substitute"}
    assert bound["upper_bounds"]["add/remove"] < bound["upper_bounds"]["substitute"]
    assert bound["epsilon"] > bound["upper_bounds"]["add/remove"]
    assert "exceeds the promised" in err
    assert "one of the 5% of audits" in err
    _, _, err = played(
        capsys, path, "--membership", "randomised", *promise, "--confidence", "0.999"
    )
    assert "one of the 0.1% of audits" in err


@pytest.mark.parametrize("method", ["one-run", "one-run-fdp", "two-worlds"])
def test_a_promise_gets_its_p_value(capsys, write, method):
    columns, asked = leaking(), ["--membership", "randomised", "--method", method]
    path = write(**columns)
    _, bound, _ = played(capsys, path, *asked, "--promise", "0.5,1e-5")
    told = bound["promised"]
    game = "two-worlds" if method == "two-worlds" else "one-run"
    expected = p_value_from_scores(
        columns["score"], columns["member"], ApproxDP(0.5, 1e-5), method=game
    )
    assert told["p_value"] == pytest.approx(expected, rel=1e-9)
    assert told["p_value"] < 0.05
    assert "it is refuted at the level of 5%" in told["sentence"]
    assert main(["audit", path, *asked, "--promise", "gaussian:9"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "promise of 9-GDP" in said
    assert "which does not show that it is kept" in said


def test_a_promise_gets_no_p_value_from_an_estimate_nor_from_another_method(capsys, write):
    _, bound, _ = played(capsys, write(**leaking()), "--promise", "0.5,1e-5")
    assert bound["claim"] == "estimate"
    assert bound["promised"]["p_value"] is None
    assert "no p-value from an estimate" in bound["promised"]["sentence"]
    err = refused(capsys, write(**shifted()[0]), "--method", "zero-run", "--promise", "1,0")
    assert "--promise is for one-run" in err


@pytest.mark.parametrize("text", ["1", "gaussian:1,2", "1,2", "-1,0", "laplace:1", ""])
def test_a_promise_has_one_of_two_forms(capsys, write, text):
    with pytest.raises(SystemExit) as ended:
        main(["audit", write(**leaking()), f"--promise={text}"])
    assert ended.value.code == 2
    assert "--promise" in capsys.readouterr().err


def test_what_would_have_been_stated_is_there(capsys, write):
    _, bound, _ = played(capsys, write(**leaking()), "--membership", "randomised")
    by = {
        (row["changed"], row["to"]): (row["epsilon"], row["claim"]) for row in bound["sensitivity"]
    }
    assert by["confidence", "0.95"][0] == pytest.approx(bound["epsilon"])
    assert by["confidence", "0.99"][0] < bound["epsilon"] < by["confidence", "0.9"][0]
    assert by["δ", "1e-05"][0] == pytest.approx(bound["epsilon"])
    assert by["threshold rule", "Sweep()"][1] == "estimate"
    assert bound["ceiling"] >= bound["epsilon"]


@pytest.mark.parametrize(
    ("method", "rule"),
    [
        ("one-run", "bonferroni:5"),
        ("one-run-fdp", "multi-split:3"),
        ("two-worlds", "bonferroni"),
        ("one-run", "guesses:100"),
        ("one-run", "0.5"),
        ("one-run", "sweep"),
        ("two-worlds", "1.0"),
        ("two-worlds --family gaussian", "1.0"),
        ("zero-run", "bonferroni:3"),
        ("zero-run", "guesses:0.1"),
        ("zero-run", "split"),
    ],
)
def test_a_bound_restated_as_it_is_stays_what_it_is(capsys, write, method, rule):
    """The table of settings, where nothing was changed, shows the bound itself."""
    columns = leaking() | {"propensity": np.full(1000, 0.4)}
    arguments = [write(**columns), "--method", *method.split(), "--threshold", rule]
    _, bound, _ = played(capsys, *arguments, "--membership", "randomised")
    same = [row["epsilon"] for row in bound["sensitivity"] if row["to"] in ("0.95", "1e-05")]
    assert same == pytest.approx([bound["epsilon"]] * 2, rel=1e-6)


def test_the_text_says_one_sentence_first_and_all_the_rest_after(capsys, write):
    assert main(["audit", write(**leaking()), "--membership", "randomised"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("ε ≥ ")
    for part in ("It assumes", "It would have been", "The data", "ceiling", "SHA-256"):
        assert part in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["--method", "guessing"],
        ["--delta", "1"],
        ["--delta", "x"],
        ["--confidence", "95"],
        ["--confidence", "0"],
        ["--seed", "-1"],
        ["--threshold", "best"],
        ["--threshold", "split:2"],
        ["--threshold", "bonferroni:0"],
        ["--membership", "unknown"],
        ["--noise-multiplier", "1"],
        ["--noise-multiplier", "1", "--sampling-rate", "2", "--steps", "1"],
        ["--method", "panoramia", "--threshold", "split"],
    ],
)
def test_what_it_does_not_understand_ends_with_2(capsys, write, arguments):
    with pytest.raises(SystemExit) as caught:
        main(["audit", write(**leaking()), *arguments])
    assert caught.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_a_file_that_is_not_there_ends_with_2_and_an_empty_one_with_1(capsys, tmp_path):
    with pytest.raises(SystemExit) as caught:
        main(["audit", str(tmp_path / "nowhere.csv")])
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"there is no file '{tmp_path / 'nowhere.csv'}'\n"
    (tmp_path / "empty.csv").touch()
    assert "empty.csv is empty" in refused(capsys, str(tmp_path / "empty.csv"))


def test_the_report_does_not_overwrite_the_scores(capsys, write):
    path = write(**leaking())
    with pytest.raises(SystemExit):
        main(["audit", path, "--html", path])
    assert "must not overwrite" in capsys.readouterr().err


def test_as_a_program_it_writes_json_and_nothing_else(write):
    code = "import sys; from auditkit.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, "audit", write(**leaking(100)), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["claim"] == "estimate"


def test_who_stops_reading_gets_no_traceback(write):
    code = "import sys; from auditkit.cli import main; sys.exit(main(sys.argv[1:]))"
    line = [sys.executable, "-c", code, "audit", write(**leaking(100))]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


def test_confidence_holds_at_the_null(capsys, write):
    """Scores that say nothing exceed 0 in at most 5% of audits, but for the luck of 60 of them."""
    above = 0
    for seed in range(60):
        _, bound, _ = played(
            capsys, write(**leaking(60, leak=0.0, seed=seed)), "--membership", "randomised"
        )
        above += bound["epsilon"] > 0.0
    assert above <= 8  # more with probability 0.003 at a rate of 5%


@pytest.mark.parametrize(
    "method", ["one-run-fdp", "two-worlds --family gaussian", "zero-run", "observational-label"]
)
def test_a_gaussian_method_without_delta_is_refused_and_says_nothing_infinite(
    capsys, write, method
):
    columns = shifted()[0] | {"member": leaking(2000)["member"]}
    columns |= {"chosen": 1 - columns["member"]}
    asked = ["--method", *method.split(), "--delta", "0"]
    told = refused(capsys, write(**columns), *asked, "--membership", "randomised")
    assert f"--method {method} takes a δ above 0" in told
    assert main(["plan", "--target-epsilon", "1", *asked]) == 1
    assert f"--method {method} takes a δ above 0" in capsys.readouterr().err


def test_what_no_number_of_rows_would_show_does_not_blame_the_guesses_alone(capsys, write):
    path = write(**leaking())
    asked = ["--membership", "randomised", "--confidence", "0.999999999999"]
    told = refused(capsys, path, "--method", "one-run", *asked)
    assert "a smaller δ or less confidence" in told


def test_a_missing_column_is_told_without_what_drives_a_terminal(capsys, write):
    path = write(**leaking(), **{"\x1b[31m": np.zeros(1000)})
    told = refused(capsys, path, "--method", "panoramia")
    assert "\x1b" not in told
    assert "\\x1b[31m" in told


def test_theory_at_no_delta_says_what_to_leave_out(capsys, write):
    theory = ["--noise-multiplier", "1", "--sampling-rate", "0.1", "--steps", "10"]
    told = refused(capsys, write(**leaking()), "--method", "one-run", "--delta", "0", *theory)
    assert "no finite ε of DP-SGD at δ = 0" in told


def test_a_report_that_is_a_folder_is_refused_before_any_work(capsys, write, tmp_path):
    with pytest.raises(SystemExit):
        main(["audit", write(**leaking()), "--html", str(tmp_path)])
    assert "is a folder" in capsys.readouterr().err


def test_a_placebo_that_makes_an_estimate_is_named_first(capsys, write):
    columns = labels()
    columns["placebo"] = np.arange(len(columns["score"])) % 4 == 0
    _, bound, _ = played(capsys, write(**columns), "--membership", "randomised")
    assert bound["claim"] == "estimate"
    assert "lacebo" in bound["warnings"][0]
