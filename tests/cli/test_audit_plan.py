"""A plan says what a simulation says, and a bound is explained in plain words."""

import json
import shlex
import subprocess

import numpy as np
import pytest
from scipy.special import ndtri

from auditkit import (
    Fixed,
    GaussianDP,
    audit_scores,
    one_run,
    one_run_fdp,
    panoramia,
    two_worlds,
    zero_run,
)
from auditkit.cli import main
from auditkit.cli.explain import explain
from auditkit.cli.power import (
    Setting,
    accuracy,
    error_rates,
    least_without_error,
    mu_of,
    plan,
    power_of,
)

AUDITS = 1500


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 50.0])
def test_the_mechanism_of_a_plan_has_the_epsilon_asked_for(epsilon):
    assert float(GaussianDP(mu_of(epsilon, 1e-5)).epsilon(1e-5)) == pytest.approx(epsilon)


@pytest.mark.parametrize("share", [1.0, 0.5, 0.1, 0.01])
@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_accuracy_on_the_most_extreme_scores_is_that_of_a_simulation(share, mu):
    rng = np.random.default_rng(0)
    members = rng.random(400_000) < 0.5
    scores = rng.normal(mu * members)
    guesses = round(share * members.size / 2)
    order = np.argsort(-scores)
    right = members[order[:guesses]].sum() + (~members[order[-guesses:]]).sum()
    found = right / (2 * guesses)
    error = np.sqrt(0.25 / (2 * guesses))
    assert accuracy(share, mu) == pytest.approx(found, abs=5 * error)


def simulated(setting, examples, share, mu):
    """Return the share of audits whose bound reaches the target, audits played one by one."""
    rng = np.random.default_rng(1)
    reached = 0
    for _ in range(AUDITS):
        members = rng.random(examples) < 0.5
        if setting.method == "two-worlds":
            members = np.arange(examples) < examples // 2
        scores = rng.normal(mu * members)
        cut = -ndtri(error_rates(share, mu)[0]) if setting.method == "two-worlds" else None
        bound = audit_scores(
            scores,
            members,
            method=setting.method,
            family=setting.family,
            threshold=Fixed(guesses=share) if cut is None else Fixed(cut),
            delta=setting.delta,
        )
        reached += bound.epsilon >= setting.target
    return reached / AUDITS


@pytest.mark.parametrize(
    ("method", "target", "true", "examples", "share"),
    [
        ("one-run", 1.0, 4.0, 600, 0.2),
        ("one-run", 0.5, 3.0, 300, 1.0),
        ("one-run-fdp", 1.0, 2.5, 500, 0.2),
        ("one-run-fdp", 2.0, 4.0, 900, 0.2),
        ("two-worlds, gaussian", 2.0, 4.0, 400, 0.5),
        ("two-worlds, gaussian", 1.0, 2.0, 1000, 0.5),
        ("two-worlds", 1.0, 4.0, 900, 0.1),
        ("two-worlds", 1.0, 6.0, 300, 0.2),
        ("two-worlds", 1.0, 12.0, 60, 0.5),
    ],
)
def test_the_power_agrees_with_simulation_within_its_error(method, target, true, examples, share):
    method, _, family = method.partition(", ")
    setting = Setting(method, target, family or None)
    mu = mu_of(true, setting.delta)
    planned = power_of(setting, examples, share=share, mu=mu)
    played = simulated(setting, examples, share, mu)
    error = np.sqrt(max(played * (1 - played), 0.01) / AUDITS)
    assert 0.02 < planned < 0.98  # a case that could go either way
    assert planned == pytest.approx(played, abs=3.5 * error)


def test_the_power_of_a_zero_run_agrees_with_simulation():
    """Every example betrays its membership as much: of the correct guesses e^-shift are left."""
    setting = Setting("zero-run", 1.0, shift=0.3)
    mu = mu_of(4.0, 1e-5)
    planned = power_of(setting, 3000, share=0.1, mu=mu)
    rng = np.random.default_rng(0)
    right = rng.binomial(300, accuracy(0.1, mu), size=20_000)
    kept = rng.binomial(right, np.exp(-0.3))
    played = np.mean(one_run_fdp(kept, 300, 3000).epsilon >= 1.0)
    assert planned == pytest.approx(played, abs=0.015)


def test_the_power_of_panoramia_is_not_above_that_of_a_simulation():
    """A plan fixes one threshold; the audit takes the best of all and does no worse."""
    setting = Setting("panoramia", 1.0, delta=0.0)
    mu = mu_of(6.0, 1e-5)
    planned = power_of(setting, 800, share=0.2, mu=mu)
    rng = np.random.default_rng(0)
    reached = 0
    for _ in range(300):
        members = rng.random(800) < 0.5
        bound = panoramia(rng.normal(size=800), rng.normal(mu * members), members)
        reached += bound.c_plus_epsilon_lower >= 1.0
    assert 0.05 < planned <= reached / 300 + 3.5 * np.sqrt(0.25 / 300)


@pytest.mark.parametrize("share", [0.5, 0.2, 0.001])
@pytest.mark.parametrize("mu", [0.1, 1.0, 5.0])
def test_so_many_runs_lie_above_the_cut(share, mu):
    fpr, fnr = error_rates(share, mu)
    assert (fpr + 1.0 - fnr) / 2.0 == pytest.approx(share)
    assert -ndtri(fpr) - ndtri(fnr) == pytest.approx(mu)
    assert fpr <= fnr + 1e-12


def test_a_plan_for_two_worlds_follows_the_family_and_takes_the_best_cut():
    mu = mu_of(4.0, 1e-5)
    plain, gaussian = Setting("two-worlds", 1.0), Setting("two-worlds", 1.0, "gaussian")
    assert plan(gaussian, mu=mu, power=0.8).share == 0.5
    assert plan(gaussian, mu=mu, power=0.8).examples == 216
    found = plan(plain, mu=mu, power=0.8)
    assert found.share == 0.1
    assert 1400 < found.examples < 1500
    assert found.power >= 0.8
    for share in (0.2, 0.05):
        assert power_of(plain, found.examples, share=share, mu=mu) < 0.8
    assert least_without_error(gaussian) < least_without_error(plain)
    assert plan(plain, mu=mu_of(1.01, 1e-5), power=0.8) is None


@pytest.mark.parametrize(
    "method", ["one-run", "one-run-fdp", "two-worlds", "two-worlds, gaussian", "panoramia"]
)
@pytest.mark.parametrize("target", [0.5, 2.0])
def test_the_least_number_without_an_error_is_the_least(method, target):
    method, _, family = method.partition(", ")
    least = least_without_error(Setting(method, target, family or None))

    def shown(examples):
        if method == "panoramia":
            from auditkit import panoramia_ceiling

            return panoramia_ceiling(examples)
        if method == "two-worlds":
            how = {"method": "gaussian"} if family else {}
            return two_worlds(0, examples // 2, 0, examples // 2, **how).epsilon
        if method == "one-run":
            return one_run(examples, examples, examples, delta=1e-5).epsilon
        return one_run_fdp(examples, examples, examples).epsilon

    assert shown(least) >= target > shown(least - 1)


def all_right(examples, shift, audits=40):
    """Return what zero runs show in the middle, where every guess is right."""
    members = np.arange(examples) % 2 == 0
    propensity = np.full(examples, 1.0 / (1.0 + np.exp(-shift)))
    guesses = np.where(members, 1, -1)
    return np.median([zero_run(guesses, members, propensity, rng=i).epsilon for i in range(audits)])


@pytest.mark.parametrize(("target", "shift"), [(1.0, 0.3), (3.0, 0.1)])
def test_the_least_number_of_a_zero_run_pays_for_its_shift(target, shift):
    least = least_without_error(Setting("zero-run", target, shift=shift))
    assert least > least_without_error(Setting("zero-run", target))
    assert all_right(round(1.1 * least), shift) >= target > all_right(round(0.8 * least), shift)


def test_a_large_shift_leaves_nothing_to_show(capsys):
    assert least_without_error(Setting("zero-run", 1.0, shift=1.0)) is None
    assert all_right(50_000, 1.0, audits=2) == 0.0
    arguments = ["plan", "--target-epsilon", "1", "--method", "zero-run", "--shift"]
    assert main([*arguments, "1"]) == 1
    told = capsys.readouterr().err
    assert "no number of examples shows ε = 1" in told
    assert "keeps 37% of the right guesses" in told
    assert main([*arguments, "0.3"]) == 0
    assert "keeps 74% of its guesses" in capsys.readouterr().out


def test_a_plan_reaches_what_it_promises_and_hardly_more():
    setting = Setting("one-run-fdp", 1.0)
    mu = mu_of(3.0, 1e-5)
    found = plan(setting, mu=mu, power=0.8)
    assert found.power >= 0.8
    fewer = power_of(setting, round(0.9 * found.examples), share=found.share, mu=mu)
    assert fewer < 0.8


def test_more_leak_more_power_or_a_lower_target_take_no_more_examples():
    def examples(target, true, power):
        found = plan(Setting("one-run-fdp", target), mu=mu_of(true, 1e-5), power=power)
        return found.examples

    base = examples(1.0, 3.0, 0.8)
    assert examples(1.0, 4.0, 0.8) < base < examples(1.0, 3.0, 0.95)
    assert examples(0.8, 3.0, 0.8) < base


def test_what_no_number_of_examples_can_show_has_no_plan():
    assert plan(Setting("one-run", 2.0), mu=mu_of(2.1, 1e-5), power=0.8) is None
    assert least_without_error(Setting("one-run", 60.0)) is None


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
        ("auditkit ", {"audit", "plan", "explain", "data", "completion"}),
        ("auditkit data ", {"list", "fetch", "verify", "path"}),
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
