"""Coins and the plan of an audit: tossed fairly, kept whole, checked, and named in the result."""

import json

import numpy as np
import pytest
from scipy.stats import binom

from auditkit import (
    Bonferroni,
    Coins,
    Fixed,
    MultiSplit,
    Split,
    Sweep,
    audit_scores,
    panoramia,
    toss_coins,
)
from auditkit.bounds.one_run import COINS
from auditkit.bounds.scores import METHODS, UNSEEN
from auditkit.coins import FAMILIES

RULES = [
    Bonferroni(10),
    Bonferroni((Fixed(guesses=0.1), Fixed(0.5))),
    Fixed(guesses=2),
    Fixed(guesses=np.float64(0.25)),
    Split(0.2, seed=5, rule="midpoint"),
    MultiSplit(5, seed=2),
    Sweep(),
]


def leaking(coins, leak=3.0):
    return np.random.default_rng(0).normal(leak * coins.members)


@pytest.fixture
def coins():
    return toss_coins(range(1000), method="one-run")


def test_coins_are_fair_and_know_nothing_of_their_neighbours():
    bits = toss_coins(range(200_001), method="one-run").members
    for count, trials in ((bits.sum(), 200_001), ((bits[1:] ^ bits[:-1]).sum(), 200_000)):
        assert binom.cdf(count, trials, 0.5) > 1e-9
        assert binom.sf(count, trials, 0.5) > 1e-9


def test_no_two_tosses_are_the_same():
    tosses = [toss_coins(["a"], method="one-run") for _ in range(20)]
    assert len({toss.digest for toss in tosses}) == 20  # so that a digest gives no coin away


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize(("method", "family"), [("one-run", None), ("two-worlds", "gaussian")])
def test_what_was_saved_is_loaded(tmp_path, rule, method, family):
    ids = ["ä/1", "b, c", "3"]
    if method == "two-worlds" and not isinstance(rule, Split | MultiSplit | Sweep):
        rule = Bonferroni((Fixed(0.5), Fixed(-1)))
    made = toss_coins(
        ids, method=method, threshold=rule, delta=np.float64(1e-6), confidence=0.9, family=family
    )
    made.save(tmp_path / "new" / "coins.json")
    read = Coins.load(tmp_path / "new" / "coins.json")
    assert read.ids == tuple(ids)
    np.testing.assert_array_equal(read.members, made.members)
    assert read.plan == made.plan
    assert read.digest == made.digest
    assert read.changes(made.plan) == ()
    told = json.loads((tmp_path / "new" / "coins.json").read_text())
    assert told["sha256"] == made.digest
    assert set(told["coins"].values()) <= {"in", "out"}


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('": "in"', '": "out"', "was edited"),
        ('"delta": 1e-05', '"delta": 1e-06', "was edited"),
        ('"candidates": 10', '"candidates": 20', "was edited"),
        ('"candidates": 10', '"candidates": 0', "no file of coins"),
        ('"sha256": "', '"sha256": "0', "was edited"),
        ('"one-run"', '"one-ran"', "no file of coins.*method must be one of"),
        ('": "in"', '": "maybe"', "no file of coins"),
        ("auditkit coins 1", "auditkit coins 2", "format must be 'auditkit coins 1'"),
        ('"salt"', '"pepper"', "no file of coins"),
        ("}", "", "no file of coins"),
    ],
)
def test_a_file_that_was_edited_is_refused(coins, tmp_path, old, new, match):
    path = tmp_path / "coins.json"
    coins.save(path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=match):
        Coins.load(path)


@pytest.mark.parametrize("promise", [(1, 1e-5), (np.float64(0.5),)])
def test_a_promise_is_kept_under_the_digest(tmp_path, promise):
    made = toss_coins(range(9), method="one-run", promise=promise)
    path = tmp_path / "coins.json"
    made.save(path)
    read = Coins.load(path)
    assert read.promise == promise
    assert read.digest == made.digest
    audit_scores(np.arange(9.0), read, ids=range(9), **read.plan)  # of which it is no part
    told = json.loads(path.read_text())
    told["promise"][0] = 2.0
    path.write_text(json.dumps(told))
    with pytest.raises(ValueError, match="was edited"):
        Coins.load(path)
    del told["promise"]
    path.write_text(json.dumps(told))
    with pytest.raises(ValueError, match="was edited"):
        Coins.load(path)


@pytest.mark.parametrize("promise", [(), (1, 2, 3), (-1.0,), (1.0, 1.0), (np.nan, 0.1), "12"])
def test_a_promise_that_is_none_is_refused(promise):
    with pytest.raises(ValueError, match="promise must"):
        toss_coins(range(9), method="one-run", promise=promise)


def test_layout_does_not_matter_to_the_digest(coins, tmp_path):
    path = tmp_path / "coins.json"
    coins.save(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert Coins.load(path).digest == coins.digest


def test_coins_are_never_overwritten_and_never_half_there(coins, tmp_path, monkeypatch):
    path = tmp_path / "coins.json"
    coins.save(path)
    before = path.read_bytes()
    with pytest.raises(FileExistsError, match="coins are tossed once"):
        toss_coins(range(9), method="one-run").save(path)
    assert path.read_bytes() == before

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        coins.save(tmp_path / "other.json")
    assert [one.name for one in tmp_path.iterdir()] == ["coins.json"]


def test_ids_join_in_any_order_and_as_numbers_or_text(coins):
    order = np.random.default_rng(1).permutation(1000)
    np.testing.assert_array_equal(coins.of(order), coins.members[order])
    np.testing.assert_array_equal(coins.of(order.astype(str)), coins.members[order])


@pytest.mark.parametrize(
    ("ids", "match"),
    [
        (range(999), r"one side only \(1 such"),
        (range(1001), r"'1000' on one side only \(1 such"),
        (range(1, 1001), r"'1000' on one side only \(2 such"),
        ([0, *range(999)], "must not repeat, got '0' 2 times"),
        (np.zeros((2, 2), int), "list of texts or whole numbers"),
        ([0.5], "list of texts or whole numbers"),
    ],
)
def test_other_ids_are_refused(coins, ids, match):
    with pytest.raises(ValueError, match=match):
        audit_scores(leaking(coins)[: len(ids)], coins, ids=ids, method="one-run")


def test_coins_take_ids_of_the_scores_and_no_others(coins):
    with pytest.raises(ValueError, match=r"ids must name the scores.*no ids"):
        audit_scores(leaking(coins), coins, method="one-run")
    with pytest.raises(ValueError, match="member_ids be None"):
        audit_scores(
            leaking(coins), coins, method="one-run", ids=range(1000), member_ids=range(1000)
        )
    with pytest.raises(TypeError, match="members must be an array of numbers, got Coins"):
        panoramia(leaking(coins), leaking(coins), coins)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("rule", RULES[:1] + RULES[2:5], ids=repr)
def test_the_number_is_that_of_the_same_members(method, rule):
    if method == "two-worlds" and isinstance(rule, Fixed):
        rule = Fixed(1.5)
    coins = toss_coins(range(1000), method=method, threshold=rule)
    scores = leaking(coins)
    order = np.random.default_rng(1).permutation(1000)
    found = audit_scores(scores[order], coins, ids=order, **coins.plan)
    plain = audit_scores(scores, coins.members, method=method, threshold=rule)
    assert (found.epsilon, found.claim) == (plain.epsilon, "lower bound")
    assert found.assumptions[0].startswith("Membership was randomised by these coins (SHA-256 ")
    assert "planned before training" in found.assumptions[-1]
    assert not {COINS, UNSEEN} & set(found.assumptions)
    assert found.details["coins"] == coins.digest
    assert str(found).count(coins.digest) == 1


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"method": "two-worlds"}, "method is two-worlds, planned was one-run"),
        ({"threshold": Fixed(guesses=1.0)}, "guesses=1.0), planned was Bonferroni(candidates=10)"),
        ({"delta": 1e-6}, "delta is 1e-06, planned was 1e-05"),
        ({"confidence": 0.9}, "confidence is 0.9, planned was 0.95"),
        ({"method": "one-run-fdp", "family": "pure"}, "family is pure, planned was None"),
    ],
)
def test_a_changed_plan_is_named_and_makes_an_estimate(coins, changed, told):
    bound = audit_scores(leaking(coins), coins, ids=range(1000), **(coins.plan | changed))
    assert bound.claim == "estimate"
    assert told in bound.assumptions[-1]
    assert str(bound).startswith("ε ≈")


def test_one_guess_is_not_all():
    one = toss_coins(range(9), method="one-run", threshold=Fixed(guesses=1))
    assert len(one.changes(one.plan | {"threshold": Fixed(guesses=1.0)})) == 1
    assert one.changes(one.plan | {"family": None, "confidence": np.float64(0.95)}) == ()


def test_a_default_family_is_the_one_it_stands_for():
    coins = toss_coins(range(400), method="two-worlds")
    assert coins.changes(coins.plan | {"family": None}) == ()
    assert coins.changes(coins.plan | {"family": "gaussian"}) == (
        "family is gaussian, planned was approx",
    )
    assert tuple(FAMILIES) == METHODS


def test_half_of_our_own_coins_is_no_suspicion(coins):
    members = np.arange(1000) % 2 == 0
    even = Coins(coins.ids, members, coins.plan, coins.tossed, coins.salt)
    scores = leaking(even)
    assert audit_scores(scores, members, method="one-run").notices
    assert audit_scores(scores, even, ids=range(1000), method="one-run").notices == ()


@pytest.mark.parametrize(
    ("ids", "settings", "match"),
    [
        ([], {}, "ids must name at least 1 example"),
        (["a", "a"], {}, "must not repeat"),
        ("a", {}, "list of texts"),
        ([1, "1"], {}, "must not repeat"),
        ("abc", {"method": "zero-run"}, "method must be one of 'one-run', "),
        ("abc", {"delta": 1.0}, "delta must lie in"),
        ("abc", {"confidence": 95}, "confidence must lie strictly between"),
        ("abc", {"family": "gaussian"}, "family must be None with method='one-run'"),
        ("abc", {"method": "two-worlds", "family": "pure"}, "family must be one of 'approx'"),
        ("abc", {"method": "one-run-fdp", "delta": 0.0}, "delta must be above 0"),
        ("abc", {"threshold": Fixed(guesses=4)}, "at most the number of examples, 3, got 4"),
        (
            "abc",
            {"method": "two-worlds", "threshold": Bonferroni((Fixed(0.5), Fixed(guesses=2)))},
            "threshold must be a cut for method='two-worlds'",
        ),
    ],
)
def test_what_cannot_be_planned_is_refused(ids, settings, match):
    listed = list(ids) if ids == "abc" else ids
    with pytest.raises(ValueError, match=match):
        toss_coins(listed, **({"method": "one-run"} | settings))


def test_a_rule_has_to_be_one():
    with pytest.raises(TypeError, match="threshold must be Fixed, Bonferroni"):
        toss_coins(["a"], method="one-run", threshold=0.5)


@pytest.mark.parametrize(("epsilon", "rule"), [(0.0, Bonferroni(10)), (1.0, Fixed(guesses=1.0))])
def test_bounds_by_coins_of_a_file_cover_the_truth(tmp_path, epsilon, rule):
    """Randomised response on each coin, which is exactly ε: above it in 5% of audits at most."""
    above, audits = 0, 300
    rng = np.random.default_rng(0)
    for audit in range(audits):
        path = tmp_path / f"{audit}.json"
        toss_coins(range(200), method="one-run", threshold=rule, delta=0.0).save(path)
        coins = Coins.load(path)
        kept = rng.random(200) < np.exp(epsilon) / (1.0 + np.exp(epsilon))
        scores = np.where(kept, coins.members, ~coins.members) + 1e-3 * rng.random(200)
        bound = audit_scores(scores, coins, ids=range(200), **coins.plan)
        assert bound.claim == "lower bound"
        above += bound.epsilon > epsilon
    assert binom.sf(above - 1, audits, 0.05) > 1e-6, f"{above} of {audits}"
