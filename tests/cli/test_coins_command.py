"""`auditkit coins`, and `auditkit audit --coins`: nobody's word is needed for "randomised"."""

import json

import numpy as np
import pytest

from auditkit import Bonferroni, Coins, Fixed, Split, audit_scores, toss_coins
from auditkit.cli import main


def scored(path, coins, leak=3.0, **more):
    """Write scores in another order than that of the coins, and return them in theirs."""
    scores = np.random.default_rng(0).normal(leak * coins.members)
    columns = {"id": coins.ids, "score": scores, **more}
    rows = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    path.write_text("\n".join([",".join(columns), *reversed(rows)]) + "\n", encoding="utf-8")
    return scores


def played(capsys, *arguments):
    code = main(["audit", *map(str, arguments), "--json"])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    return code, (json.loads(said.out) if said.out else None), said.err


@pytest.fixture
def kept(tmp_path):
    coins = toss_coins(range(1000), method="one-run", threshold=Fixed(guesses=0.1), delta=1e-6)
    coins.save(tmp_path / "coins.json")
    return coins


def test_coins_are_tossed_by_number_with_a_plan(capsys, tmp_path):
    path = tmp_path / "coins.json"
    line = ["coins", "500", "--threshold", "split:0.3", "--seed", "4", "--output", str(path)]
    assert main([*line, "--method", "one-run-fdp", "--confidence", "0.9"]) == 0
    coins = Coins.load(path)
    assert coins.ids == tuple(map(str, range(500)))
    assert coins.plan == {
        "method": "one-run-fdp",
        "family": "gaussian",
        "threshold": Split(0.3, seed=4),
        "delta": 1e-5,
        "confidence": 0.9,
    }
    said = capsys.readouterr().out
    assert coins.digest in said
    assert f"{int(coins.members.sum()):,} are in" in said
    assert main([*line, "--method", "one-run"]) == 1
    assert "coins are tossed once" in capsys.readouterr().err


def test_coins_are_tossed_for_names_in_a_file(capsys, tmp_path):
    names, path = tmp_path / "names.txt", tmp_path / "coins.json"
    names.write_text("a b\nc,d\n7\n", encoding="utf-8")
    assert main(["coins", str(names), "--output", str(path)]) == 0
    assert Coins.load(path).ids == ("a b", "c,d", "7")
    assert Coins.load(path).plan["threshold"] == Bonferroni(10)
    capsys.readouterr()
    for text, told in (("id\na\n", "no heading"), ("a\n\nb\n", "got '' in line 2"), ("", "1 exam")):
        names.write_text(text, encoding="utf-8")
        assert main(["coins", str(names), "--output", str(tmp_path / "other.json")]) == 1
        assert told in capsys.readouterr().err
    assert not (tmp_path / "other.json").exists()


def test_an_audit_by_coins_takes_plan_and_membership_from_them(capsys, tmp_path, kept):
    path = tmp_path / "scores.csv"
    scores = scored(path, kept)
    code, told, err = played(capsys, path, "--coins", tmp_path / "coins.json")
    expected = audit_scores(scores, kept, ids=kept.ids, **kept.plan)
    assert (code, told["epsilon"], told["claim"]) == (0, expected.epsilon, "lower bound")
    assert told["assumptions"] == list(expected.assumptions)
    assert told["details"]["coins"] == told["asked"]["coins"] == kept.digest
    assert told["diagnostics"]["plan"] == "planned before training"
    assert "on your word" not in err
    assert "--membership" not in err
    assert main(["audit", str(path), "--coins", str(tmp_path / "coins.json")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "plan: planned before training" in said
    assert "randomised by these coins" in said


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        (["--threshold", "guesses:0.2"], "threshold is Fixed("),
        (["--delta", "1e-5"], "delta is 1e-05, planned was 1e-06"),
        (["--confidence", "0.9"], "confidence is 0.9"),
        (["--method", "one-run-fdp"], "method is one-run-fdp, planned was one-run"),
    ],
)
def test_what_was_changed_is_named_and_makes_an_estimate(capsys, tmp_path, kept, changed, named):
    scored(tmp_path / "scores.csv", kept)
    code, told, err = played(
        capsys, tmp_path / "scores.csv", "--coins", tmp_path / "coins.json", *changed
    )
    assert (code, told["claim"]) == (0, "estimate")
    assert told["diagnostics"]["plan"] == "changed since"
    assert named in err
    assert all(row["claim"] == "estimate" for row in told["sensitivity"] if "(used)" in row["to"])


def test_other_rules_than_the_planned_one_are_shown_as_estimates(capsys, tmp_path, kept):
    scored(tmp_path / "scores.csv", kept)
    _, told, _ = played(capsys, tmp_path / "scores.csv", "--coins", tmp_path / "coins.json")
    rules = [row for row in told["sensitivity"] if row["changed"] == "threshold rule"]
    assert [row["claim"] for row in rules] == ["lower bound", *["estimate"] * (len(rules) - 1)]


@pytest.mark.parametrize(
    ("method", "family", "rule"),
    [("two-worlds", "gaussian", Bonferroni(10)), ("one-run", None, Split(0.3, seed=9))],
)
def test_family_and_seed_are_parts_of_the_plan(capsys, tmp_path, method, family, rule):
    coins = toss_coins(range(1000), method=method, family=family, threshold=rule)
    coins.save(tmp_path / "coins.json")
    scores = scored(tmp_path / "scores.csv", coins)
    _, told, _ = played(capsys, tmp_path / "scores.csv", "--coins", tmp_path / "coins.json")
    expected = audit_scores(scores, coins, ids=coins.ids, **coins.plan)
    assert (told["epsilon"], told["claim"]) == (expected.epsilon, "lower bound")


def test_a_member_column_may_say_the_same_and_nothing_else(capsys, tmp_path, kept):
    path, coins = tmp_path / "scores.csv", tmp_path / "coins.json"
    scored(path, kept, member=kept.members.astype(int))
    assert played(capsys, path, "--coins", coins)[1]["claim"] == "lower bound"
    wrong = kept.members.copy()
    wrong[999] ^= True
    scored(path, kept, member=wrong.astype(int))
    code, _, err = played(capsys, path, "--coins", coins)
    assert code == 1
    assert "must say what the coins decided, got another in row 1 (1 such" in err


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda rows: rows[:-3], "0 rows have another id, and 3 of the coins have no row"),
        (lambda rows: [*rows, "1000,0.5"], "1 rows have another id, the first in row 1001, and 0"),
        (lambda rows: ["id,score", "x,1", *rows[2:]], "the first in row 1, and 1 of the coins"),
        (lambda rows: [row.split(",")[1] for row in rows], "takes a column id"),
    ],
)
def test_rows_are_those_of_the_coins(capsys, tmp_path, kept, edit, told):
    path = tmp_path / "scores.csv"
    scored(path, kept)
    rows = edit(path.read_text().splitlines())
    more = ",member" if rows[0] == "score" else ""
    rows = [rows[0] + more, *(row + (",1" if more else "") for row in rows[1:])]
    path.write_text("\n".join(rows) + "\n")
    code, _, err = played(capsys, path, "--coins", tmp_path / "coins.json")
    assert code == 1
    assert told in " ".join(err.split())


def test_membership_is_not_asked_twice_and_other_methods_take_no_coins(capsys, tmp_path, kept):
    scored(tmp_path / "scores.csv", kept)
    line = ["audit", str(tmp_path / "scores.csv"), "--coins", str(tmp_path / "coins.json")]
    with pytest.raises(SystemExit) as caught:
        main([*line, "--membership", "randomised"])
    assert caught.value.code == 2
    assert "--membership is told by --coins" in capsys.readouterr().err
    assert main([*line, "--method", "zero-run"]) == 1
    assert "--coins are for one-run, one-run-fdp, two-worlds" in capsys.readouterr().err


def test_a_promise_is_planned_with_the_coins(capsys, tmp_path):
    path, scores = tmp_path / "coins.json", tmp_path / "scores.csv"
    line = ["coins", "1000", "--output", str(path)]
    with pytest.raises(SystemExit) as caught:
        main([*line, "--promise", "1,1e-5", "--promise", "2,1e-5"])
    assert caught.value.code == 2
    assert "--promise: must be given once" in capsys.readouterr().err
    assert main([*line, "--promise", "0.5,1e-5"]) == 0
    assert "promise (0.5, 1e-05)-DP" in capsys.readouterr().out
    coins = Coins.load(path)
    assert coins.promise == (0.5, 1e-5)
    scored(scores, coins)
    _, told, _ = played(capsys, scores, "--coins", path)
    assert told["promised"]["curve"] == "(0.5, 1e-05)-DP"
    assert told["promised"]["p_value"] < 0.05
    assert told["diagnostics"]["plan"] == "planned before training"
    _, again, _ = played(capsys, scores, "--coins", path, "--promise", "0.5,1e-5")
    assert again["promised"] == told["promised"]
    _, other, err = played(capsys, scores, "--coins", path, "--promise", "gaussian:0.5")
    assert "promise is 0.5-GDP, planned was (0.5, 1e-05)-DP" in err
    assert other["diagnostics"]["plan"] == "changed since"
    assert other["promised"]["p_value"] is None
    assert "another was planned" in other["promised"]["sentence"]
    assert (other["epsilon"], other["claim"]) == (told["epsilon"], told["claim"])


def test_a_promise_that_was_not_planned_is_told(capsys, tmp_path, kept):
    scored(tmp_path / "scores.csv", kept)
    coins = tmp_path / "coins.json"
    line = (tmp_path / "scores.csv", "--coins", coins)
    _, told, err = played(capsys, *line, "--promise", "1,1e-6")
    assert "promise is (1, 1e-06)-DP, planned was none" in err
    assert told["promised"]["p_value"] < 0.05
    assert "not planned with the coins" in told["promised"]["sentence"]
    with pytest.raises(SystemExit):
        main(["audit", *map(str, line), "--promise", "1,1e-6", "--promise", "1,1e-6"])
    assert "--promise: must be given once" in capsys.readouterr().err


def test_a_file_without_members_hints_at_coins(capsys, tmp_path, kept):
    scored(tmp_path / "scores.csv", kept)
    code, _, err = played(capsys, tmp_path / "scores.csv")
    assert code == 1
    assert "--coins COINS.json says so" in err


def test_a_file_of_names_that_is_not_there_is_told(capsys, tmp_path):
    with pytest.raises(SystemExit) as caught:
        main(["coins", str(tmp_path / "no"), "--output", str(tmp_path / "coins.json")])
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"there is no file '{tmp_path / 'no'}'\n"
