"""A plan says what a simulation says, and a bound is explained in plain words."""

import json
import shlex
import subprocess

import numpy as np
import pytest

from auditkit.cli import main
from auditkit.cli.explain import explain


def test_a_large_shift_is_told_to_leave_nothing_to_show(capsys):
    arguments = ["plan", "--target-epsilon", "1", "--method", "zero-run", "--shift"]
    assert main([*arguments, "1"]) == 1
    told = capsys.readouterr().err
    assert "no number of examples shows ε = 1" in told
    assert "keeps 37% of the right guesses" in told
    assert main([*arguments, "0.3"]) == 0
    assert "keeps 74% of its guesses" in capsys.readouterr().out


@pytest.mark.parametrize(
    "method",
    ["one-run", "one-run-fdp", "two-worlds", "observational-label", "zero-run", "panoramia"],
)
def test_the_command_says_how_many(capsys, method):
    assert main(["plan", "--target-epsilon", "1", "--method", method, "--true-epsilon", "6"]) == 0
    text = capsys.readouterr().out
    assert "without an error takes" in text
    row = next(line for line in text.splitlines() if line.strip().startswith("6 "))
    assert int(row.split()[1].replace(",", "")) > 10


def test_the_command_plans_for_the_family_asked_for(capsys):
    def runs(*asked):
        command = ["plan", "--target-epsilon", "1", "--true-epsilon", "4"]
        assert main([*command, "--method", "two-worlds", *asked]) == 0
        row = capsys.readouterr().out.splitlines()[3].split()
        return int(row[1].replace(",", "")), row[3]

    assert runs() == runs("--family", "approx")
    assert runs("--family", "gaussian") == (372, "50%")
    assert runs()[0] > 2000
    assert runs("--delta", "0")[0] > 2000  # where nothing is Gaussian, 0 is a δ like others


def test_a_part_for_choosing_comes_on_top(capsys):
    def least(*rule):
        main(["plan", "--target-epsilon", "1", "--true-epsilon", "6", *rule])
        words = capsys.readouterr().out.split("takes ")[1]
        return int(words.split()[0].replace(",", ""))

    assert least("--threshold", "split") == 2 * least("--threshold", "guesses:1.0")
    assert least("--threshold", "bonferroni:4") > least("--threshold", "guesses:1.0")
    assert least() == least("--threshold", "bonferroni:10")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--target-epsilon", "0"],
        ["--target-epsilon", "2", "--true-epsilon", "1"],
        ["--target-epsilon", "1", "--power", "1"],
        ["--target-epsilon", "1", "--threshold", "guesses:100"],
        ["--target-epsilon", "1", "--method", "auto"],
        ["--target-epsilon", "1", "--method", "one-run", "--shift", "1"],
        ["--target-epsilon", "1", "--method", "one-run", "--family", "gaussian"],
        ["--target-epsilon", "1", "--method", "two-worlds", "--family", "pure"],
    ],
)
def test_a_plan_that_makes_no_sense_ends_with_2(capsys, arguments):
    with pytest.raises(SystemExit) as caught:
        main(["plan", *arguments])
    assert caught.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_a_target_out_of_reach_is_refused(capsys):
    assert main(["plan", "--target-epsilon", "60"]) == 1
    assert "not even without an error" in capsys.readouterr().err


# Explaining

BOUND = {
    "epsilon": 1.25,
    "delta": 1e-5,
    "confidence": 0.95,
    "claim": "lower bound",
    "adjacency": "add/remove",
    "assumptions": ["Each example was in by a fair coin."],
    "details": {"correct": 118, "guesses": 120, "examples": 2000},
}


def words(**changed):
    return " ".join(text for _, told in explain({**BOUND, **changed}) for text in told)


def test_a_lower_bound_is_explained_with_what_it_is_not():
    said = words()
    assert "for any ε below 1.25" in said
    assert "3.49 times as likely" in said
    assert "not an upper limit" in said
    assert "118 of 120 guesses" in said
    assert "After the correction" not in said
    assert "After the correction 95 of them are counted." in words(
        details=BOUND["details"] | {"kept": 95}
    )
    assert BOUND["assumptions"][0] in said


def test_an_estimate_proves_nothing_and_a_zero_is_not_privacy():
    said = words(claim="estimate")
    assert "proves nothing" in said
    assert "not be reported as a proved leak" in said
    said = words(epsilon=0.0)
    assert "does not say that the mechanism is private" in said
    assert "no attack" in words(claim="upper bound")


def test_the_command_explains_what_audit_wrote(capsys, tmp_path):
    rng = np.random.default_rng(0)
    members = rng.random(400) < 0.5
    np.savez(tmp_path / "a.npz", score=rng.normal(2.0 * members), member=members)
    main(["audit", str(tmp_path / "a.npz"), "--json"])
    (tmp_path / "bound.json").write_text(capsys.readouterr().out, encoding="utf-8")
    assert main(["explain", str(tmp_path / "bound.json")]) == 0
    text = capsys.readouterr().out
    assert [line for line in text.splitlines() if not line.startswith(" ")] == [
        "What it says",
        "What it does not say",
        "What it rests on",
    ]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        "{}",
        json.dumps(BOUND | {"claim": "proof"}),
        json.dumps(BOUND | {"epsilon": "1"}),
        json.dumps(BOUND | {"epsilon": -1}),
        json.dumps(BOUND | {"epsilon": [1, 2]}),
        json.dumps(BOUND | {"delta": None}),
    ],
)
def test_what_is_no_bound_is_refused(capsys, tmp_path, content):
    (tmp_path / "bound.json").write_text(content, encoding="utf-8")
    assert main(["explain", str(tmp_path / "bound.json")]) == 1
    assert capsys.readouterr().out == ""


def test_a_file_cannot_drive_the_terminal(capsys, tmp_path):
    hostile = json.dumps(BOUND | {"assumptions": ["\x1b[2Jgone"], "adjacency": ["a"]})
    (tmp_path / "bound.json").write_text(hostile, encoding="utf-8")
    main(["explain", str(tmp_path / "bound.json")])
    assert "\x1b" not in capsys.readouterr().out


# Completion


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("auditkit ", {"coins", "audit", "plan", "explain", "data", "completion"}),
        ("auditkit data ", {"list", "fetch", "verify", "path"}),
        ("auditkit completion ", {"bash", "zsh"}),
        ("auditkit audit scores.csv --method ", {"auto", "one-run", "zero-run"}),
        ("auditkit audit scores.csv --family ", {"approx", "gaussian"}),
        ("auditkit plan --fam", {"--family"}),
        ("auditkit audit --mem", {"--membership"}),
        ("auditkit plan --t", {"--target-epsilon", "--true-epsilon", "--threshold"}),
    ],
)
def test_bash_completes(capsys, typed, offered):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    given = shlex.split(typed) + ([""] if typed.endswith(" ") else [])
    listed = " ".join(map(shlex.quote, given))
    asked = f"COMP_WORDS=({listed}); COMP_CWORD={len(given) - 1}; _auditkit"
    done = subprocess.run(
        ["bash", "-c", f'{script}\n{asked}; printf "%s\\n" "${{COMPREPLY[@]}}"'],
        capture_output=True,
        text=True,
        check=True,
    )
    assert offered <= set(done.stdout.split())


@pytest.mark.parametrize(
    "typed", ["auditkit audit ", "auditkit audit sc", "auditkit audit scores.csv --report "]
)
def test_where_a_file_is_due_bash_completes_files(capsys, typed):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert "complete -o default" in script  # files, where the function offers no word
    given = shlex.split(typed) + ([""] if typed.endswith(" ") else [])
    listed = " ".join(map(shlex.quote, given))
    asked = f"COMP_WORDS=({listed}); COMP_CWORD={len(given) - 1}; _auditkit"
    command = ["bash", "-c", f'{script}\n{asked}; printf "%s" "${{#COMPREPLY[@]}}"']
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "0"


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        '{"epsilon": 1, "delta": 1e-5, "confidence": 95, "claim": "lower bound"}',
        '{"epsilon": 1, "delta": 3, "confidence": 0.95, "claim": "lower bound"}',
        '{"epsilon": 1, "delta": 0, "confidence": 0.9, "claim": "estimate", "assumptions": 5}',
        '{"epsilon": 1, "delta": %s, "confidence": 0.9, "claim": "estimate"}' % ("9" * 400),
    ],
    ids=["deep", "confidence", "delta", "assumptions", "huge"],
)
def test_an_odd_bound_is_refused_in_a_sentence(capsys, tmp_path, content):
    (tmp_path / "bound.json").write_text(content)
    assert main(["explain", str(tmp_path / "bound.json")]) == 1
    assert len(capsys.readouterr().err) < 300


@pytest.mark.parametrize("epsilon", ['"inf"', "1e999", "9" * 400], ids=["word", "float", "int"])
def test_an_infinite_epsilon_is_explained_without_an_error(capsys, tmp_path, epsilon):
    rest = '"delta": 0, "confidence": 0.95, "claim": "upper bound"'
    bound = f'{{"epsilon": {epsilon}, {rest}}}'
    (tmp_path / "bound.json").write_text(bound)
    assert main(["explain", str(tmp_path / "bound.json")]) == 0
    assert "a factor of inf" in " ".join(capsys.readouterr().out.split())


def test_a_plan_without_delta_says_at_which_its_truth_is(capsys):
    assert main(["plan", "--target-epsilon", "1", "--delta", "0", "--true-epsilon", "4"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "The true ε is that at δ = 1e-05" in said
    assert "the one that guesses on this share" in said
    assert (
        main(["plan", "--target-epsilon", "1", "--true-epsilon", "4", "--threshold", "split"]) == 0
    )
    assert "less often than the table says" in " ".join(capsys.readouterr().out.split())
