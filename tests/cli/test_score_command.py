"""`auditkit score` writes what a model says of its members and of others, ready to be audited."""

import json
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch

from auditkit import datasets, toss_coins
from auditkit.attacks.membership import difficulty_calibration, rmia
from auditkit.cli import main
from auditkit.cli.score_files import read_scores

FACTORIES = """
import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier


def read(name):
    with np.load(name) as file:
        return dict(file)

members, others = read("members.npz"), read("others.npz")

def tree():
    return DecisionTreeClassifier(random_state=0).fit(members["features"], members["labels"])

def plain():
    return LogisticRegression(max_iter=300).fit(others["features"], others["labels"])

def network():
    return torch.nn.Sequential(torch.nn.Linear(20, 8), torch.nn.ReLU(), torch.nn.Linear(8, 10))

def nothing():
    return 3

def fails():
    raise RuntimeError("of my own")

def undefined():
    return torch.nn.Sequential(network(), torch.nn.Threshold(1e9, float("nan")))

def narrow():
    return torch.nn.Linear(3, 10)


class Wrapped(torch.nn.Module):
    def __init__(self, inner, wrap):
        super().__init__()
        self.inner, self.wrap = inner, wrap

    def forward(self, rows):
        return self.wrap(self.inner(rows))


class Output:
    def __init__(self, logits):
        self.loss, self.logits = None, logits

def seeded(classes=10):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(20, 8), torch.nn.ReLU(), torch.nn.Linear(8, classes))

def raw():
    return seeded()

def softmax():
    return torch.nn.Sequential(seeded(), torch.nn.Softmax(dim=1))

def half():
    return Wrapped(softmax(), lambda told: told.to(torch.bfloat16))

def sigmoids():
    return torch.nn.Sequential(seeded(), torch.nn.Sigmoid())

def in_dict():
    return Wrapped(seeded(), lambda told: {"loss": None, "logits": told})

def in_object():
    return Wrapped(seeded(), Output)

def in_tuple():
    return Wrapped(seeded(), lambda told: (None, told, told.flip(1)))

def in_list():
    return Wrapped(seeded(), lambda told: [told, told[:3]])

def binary():
    return seeded(1)

def flat_binary():
    return torch.nn.Sequential(seeded(1), torch.nn.Flatten(0))

def sigmoid():
    return torch.nn.Sequential(seeded(1), torch.nn.Sigmoid())

def two():
    one = seeded(1)
    return Wrapped(one, lambda told: torch.cat((torch.zeros_like(told), told), 1))

def at_most_one():  # for members alone all outputs lie in [0, 1]
    return Wrapped(seeded(1), lambda told: told.clamp(0.0, 1.0) if len(told) == 300 else told - 5.0)

def deep():
    return Wrapped(seeded(), lambda told: told[:, :, None])

def short():
    return Wrapped(seeded(), lambda told: told[1:])

def unnamed():
    return Wrapped(seeded(), lambda told: {"out": told})

def empty():
    return Wrapped(seeded(), lambda told: (None, "logits"))

def classes():
    return Wrapped(seeded(), lambda told: told.argmax(1))

number = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    images = datasets.load("cifar10", part="features")
    features, labels = images["train_features"][:600, :20], images["train_labels"][:600]
    parts = {"members": slice(0, 300), "others": slice(300, 500), "population": slice(500, 600)}
    for name, part in parts.items():
        np.savez(tmp_path / f"{name}.npz", features=features[part], labels=labels[part])
    (tmp_path / "factories.py").write_text(textwrap.dedent(FACTORIES), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("factories", None)


def scored(*arguments, output="scores.csv"):
    data = ["--members", "members.npz", "--others", "others.npz", "--output", output]
    return main(["score", *arguments, *data])


def chances(folder, name, model):
    with np.load(folder / f"{name}.npz") as file:
        data = dict(file)
    given = model.predict_proba(data["features"]).astype(np.float64)
    given /= given.sum(axis=1, keepdims=True)
    return given[np.arange(len(data["labels"])), data["labels"]]


def test_a_tree_knows_its_members_by_heart(folder, capsys):
    assert scored("factories:tree") == 0
    said = capsys.readouterr()
    assert "500 rows" in said.out
    assert "if a coin decided:\n  auditkit audit scores.csv --membership randomised\n" in said.out
    assert "were taken for 1e-12" in said.err
    table = read_scores(folder / "scores.csv")
    assert table.member.sum() == 300
    assert (table.score[table.member] == 0.0).all()
    assert table.score[~table.member].mean() < -10.0
    assert main(["audit", "scores.csv", "--method", "two-worlds", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["claim"] == "estimate"


@pytest.mark.usefixtures("folder")
def test_scores_carry_the_names_by_which_coins_know_them(capsys):
    coins = toss_coins(range(500), method="one-run")
    coins.save("coins.json")
    with np.load("members.npz") as first, np.load("others.npz") as second:
        both = {name: np.concatenate((first[name], second[name])) for name in first.files}
    for name, chosen in (("members", coins.members), ("others", ~coins.members)):
        part = {role: column[chosen] for role, column in both.items()}
        np.savez(f"{name}.npz", ids=np.flatnonzero(chosen), **part)
    sys.modules.pop("factories", None)
    assert scored("factories:tree") == 0
    assert "\n  auditkit audit scores.csv --coins COINS.json\n" in capsys.readouterr().out
    assert main(["audit", "scores.csv", "--coins", "coins.json", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["claim"], told["diagnostics"]["plan"]) == (
        "lower bound",
        "planned before training",
    )
    np.savez("others.npz", **{role: column[~coins.members] for role, column in both.items()})
    assert scored("factories:tree") == 1
    assert "ids must be in both datasets" in capsys.readouterr().err


def test_the_loss_of_a_network_is_torchs_own(folder):
    import factories

    torch.manual_seed(0)
    network = factories.network()
    torch.save(network.state_dict(), folder / "weights.pt")
    assert scored("factories:network", "--weights", "weights.pt") == 0
    table = read_scores(folder / "scores.csv")
    with np.load(folder / "members.npz") as file:
        data = dict(file)
    with torch.no_grad():
        losses = torch.nn.functional.cross_entropy(
            network(torch.tensor(data["features"])), torch.tensor(data["labels"]), reduction="none"
        )
    assert np.allclose(table.score[table.member], -losses.numpy(), atol=1e-5)


def test_weights_of_a_wrapped_model_fit_the_model(folder):
    import factories

    torch.manual_seed(0)
    state = factories.network().state_dict()
    torch.save(state, folder / "plain.pt")
    torch.save({f"_module.{key}": value for key, value in state.items()}, folder / "opacus.pt")
    scored("factories:network", "--weights", "plain.pt", output="a.npz")
    scored("factories:network", "--weights", "opacus.pt", output="b.npz")
    plain, wrapped = (read_scores(folder / name).score for name in ("a.npz", "b.npz"))
    assert (plain == wrapped).all()


def test_attacks_with_a_reference_are_those_of_the_package(folder):
    reference = ["--reference", "factories:tree"]
    assert scored("factories:plain", "--attack", "calibrated", *reference) == 0
    import factories

    audited, other = factories.plain(), factories.tree()
    own = [chances(folder, name, audited) for name in ("members", "others", "population")]
    ref = [chances(folder, name, other) for name in ("members", "others", "population")]
    both, both_ref = np.concatenate(own[:2]), np.concatenate(ref[:2])
    floor = np.maximum
    expected = difficulty_calibration(-np.log(floor(both, 1e-12)), -np.log(floor(both_ref, 1e-12)))
    assert np.allclose(read_scores(folder / "scores.csv").score, expected)
    extra = ["--attack", "rmia", "--population", "population.npz"]
    assert scored("factories:plain", *extra, *reference) == 0
    expected = rmia(both, both_ref, own[2], ref[2])
    assert np.allclose(read_scores(folder / "scores.csv").score, expected)


def test_label_inference_plays_the_others_as_a_placebo(folder, capsys):
    arguments = ["--attack", "label-inference", "--reference", "factories:plain", "--seed", "3"]
    assert scored("factories:tree", *arguments) == 0
    said = capsys.readouterr().out
    assert said.endswith("scores.csv --membership randomised\n")  # the command tossed this coin
    table = read_scores(folder / "scores.csv")
    assert table.placebo.sum() == 200
    assert 100 < table.chosen[~table.placebo].sum() < 200
    capsys.readouterr()
    asked = ["--threshold", "guesses:1.0", "--membership", "randomised"]
    assert main(["audit", "scores.csv", "--json", *asked]) == 0
    bound = json.loads(capsys.readouterr().out)
    assert bound["adjacency"] == "label"
    assert bound["details"]["placebo_examples"] == 200


def test_weights_are_tensors_and_no_program(folder, capsys):
    class Program:
        def __reduce__(self):
            return print, ("run",)

    torch.save({"0.weight": Program()}, folder / "evil.pt")
    assert scored("factories:network", "--weights", "evil.pt") == 1
    said = capsys.readouterr()
    assert "state dict" in said.err
    assert "run" not in said.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nowhere:tree"], "cannot be imported"),
        (["factories:missing"], "has no function missing"),
        (["factories:number"], "has no function number"),
        (["factories:nothing"], "must return a torch module"),
        (["factories:tree", "--weights", "members.npz"], "weights are for a torch module"),
        (["factories:network", "--weights", "members.npz"], "state dict"),
    ],
)
def test_what_is_no_model_is_refused(folder, capsys, arguments, told):
    assert scored(*arguments) == 1
    assert told in capsys.readouterr().err
    assert not (folder / "scores.csv").exists()


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"features": np.ones((3, 20))}, "features and labels"),
        ({"features": np.ones(3), "labels": np.ones(3, int)}, "one label for each example"),
        ({"features": np.ones((3, 20)), "labels": np.ones(2, int)}, "one label for each example"),
        ({"features": np.ones((3, 20)), "labels": np.ones(3)}, "whole numbers"),
        ({"features": np.ones((3, 20)), "labels": np.full(3, 99)}, "must be below 10"),
    ],
)
def test_what_is_no_dataset_is_refused(folder, capsys, arrays, told):
    np.savez(folder / "bad.npz", **arrays)
    data = ["--members", "bad.npz", "--others", "others.npz", "--output", "scores.csv"]
    assert main(["score", "factories:plain", *data]) == 1
    assert told in capsys.readouterr().err


def test_no_names_are_made_up_for_examples(folder):
    assert scored("factories:tree") == 0
    assert read_scores(folder / "scores.csv").headers == ("score", "member")


def test_features_go_along_so_that_a_shift_can_be_tested(folder, capsys):
    for more, warned in (([], True), (["--features"], False)):
        assert scored("factories:tree", *more) == 0
        capsys.readouterr()
        asked = ["--method", "one-run", "--membership", "randomised", "--json"]
        assert main(["audit", "scores.csv", *asked]) == 0
        told = json.loads(capsys.readouterr().out)
        assert any("taken on your word" in text for text in told["warnings"]) == warned
    table = read_scores(folder / "scores.csv")
    with np.load(folder / "members.npz") as file:
        members = file["features"]
    assert table.headers[2:] == tuple(f"feature_{place:02}" for place in range(1, 21))
    assert np.allclose(table.features[table.member], members, rtol=1e-6)


def test_features_that_are_no_rows_are_refused(folder, capsys):
    np.savez(folder / "others.npz", features=np.ones((9, 4, 5)), labels=np.ones(9, int))
    np.savez(folder / "members.npz", features=np.zeros((9, 4, 5)), labels=np.ones(9, int))
    (folder / "factories.py").write_text(
        "import torch\n\n"
        "def network():\n"
        "    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(20, 10))\n"
    )
    assert scored("factories:network") == 0
    assert scored("factories:network", "--features") == 1
    assert "features must be rows of the same numbers" in capsys.readouterr().err


def test_members_among_the_others_are_refused_where_they_are_all_there(folder, capsys):
    with np.load(folder / "members.npz") as file:
        inside = dict(file)
    with np.load(folder / "others.npz") as file:
        outside = dict(file)
    both = {name: np.concatenate([inside[name], outside[name]]) for name in inside}
    np.savez(folder / "both.npz", **both)
    for others in ("members.npz", "both.npz"):
        data = ["--members", "members.npz", "--others", others, "--output", "scores.csv"]
        assert main(["score", "factories:tree", *data]) == 1
        assert "300 of the 300 members among the others" in capsys.readouterr().err
        assert not (folder / "scores.csv").exists()


def test_a_member_among_the_others_is_told(folder, capsys):
    assert scored("factories:tree") == 0
    assert "of a member" not in capsys.readouterr().err
    with np.load(folder / "members.npz") as file:
        inside = dict(file)
    with np.load(folder / "others.npz") as file:
        outside = dict(file)
    for name, values in outside.items():
        values[:3] = inside[name][:3]
    outside["features"][3:5] = inside["features"][3:5]  # under labels of their own
    outside["labels"][3:5] = (inside["labels"][3:5] + 1) % 10
    np.savez(folder / "others.npz", **outside)
    assert scored("factories:tree") == 0
    assert "3 of the others have the features and the label of a member" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["tree"],
        ["factories:tree", "--attack", "calibrated"],
        ["factories:tree", "--reference", "factories:plain"],
        ["factories:tree", "--attack", "rmia", "--reference", "factories:plain"],
        ["factories:tree", "--attack", "guess"],
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_it_does_not_understand_ends_with_2(capsys, arguments):
    with pytest.raises(SystemExit) as caught:
        scored(*arguments)
    assert caught.value.code == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_the_output_is_csv_or_npz(capsys):
    with pytest.raises(SystemExit):
        scored("factories:tree", output="scores.txt")
    assert "must end in .csv or .npz" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("factory", "told"),
    [
        ("factories:fails", "factories:fails() failed (line "),
        ("factories:narrow", "the Linear failed on features of shape (300, 20) (line "),
        ("factories:undefined", "a model's scores must be finite, and 500 of 500 are not"),
        ("broken:model", "broken cannot be imported (line "),
    ],
)
def test_what_fails_in_their_code_is_told_without_a_traceback(capsys, folder, factory, told):
    (folder / "broken.py").write_text("def model(:")
    assert scored(factory) == 1
    assert told in capsys.readouterr().err
    assert not (folder / "scores.csv").exists()


@pytest.mark.parametrize("content", [b"", b"junk" * 10])
def test_weights_that_are_none_are_told_without_a_traceback(capsys, folder, content):
    (folder / "weights.pt").write_bytes(content)
    assert scored("factories:network", "--weights", "weights.pt") == 1
    assert "must be a state dict" in capsys.readouterr().err


def test_what_is_read_is_not_overwritten(capsys, folder):
    before = (folder / "members.npz").read_bytes()
    with pytest.raises(SystemExit):
        scored("factories:tree", output="members.npz")
    assert "must not overwrite what is read" in capsys.readouterr().err
    assert (folder / "members.npz").read_bytes() == before


@pytest.mark.usefixtures("folder")
def test_a_module_without_weights_is_scored_as_it_came_and_that_is_said(capsys):
    assert scored("factories:network") == 0
    assert "scored as factories:network() returned it" in capsys.readouterr().err
    assert scored("factories:tree") == 0
    assert "returned it" not in capsys.readouterr().err


# what a network may return


def scores_of(factory, *arguments):
    assert scored(f"factories:{factory}", *arguments, output="told.npz") == 0
    return read_scores(Path("told.npz")).score


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("factory", "told"),
    [
        (
            "softmax",
            "the outputs of factories:softmax were taken for probabilities and not for log",
        ),
        ("in_dict", 'the entry "logits" of the dict that factories:in_dict returns was taken'),
        ("in_object", "the attribute logits of the object that factories:in_object returns was"),
        ("in_tuple", "the first tensor of the tuple that factories:in_tuple returns was taken"),
        ("in_list", "the first tensor of the list that factories:in_list returns was taken"),
    ],
)
def test_probabilities_and_wrapped_logits_give_the_scores_of_plain_logits(capsys, factory, told):
    plain = scores_of("raw")
    assert "taken" not in capsys.readouterr().err
    assert np.allclose(scores_of(factory), plain, rtol=1e-5)
    said = capsys.readouterr().err
    assert told in said
    assert said.count("taken") == 1


@pytest.mark.usefixtures("folder")
def test_probabilities_in_half_precision_are_probabilities(capsys):
    plain = scores_of("raw")
    assert np.allclose(scores_of("half"), plain, atol=0.02)
    assert "taken for probabilities" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
def test_outputs_in_the_unit_interval_that_do_not_sum_to_1_are_logits_and_that_is_said(capsys):
    scores_of("sigmoids")
    assert "were taken for logits, though all lie in [0, 1]" in capsys.readouterr().err


def binary_labels(folder):
    for name in ("members", "others", "population"):
        with np.load(folder / f"{name}.npz") as file:
            data = dict(file)
        np.savez(folder / f"{name}.npz", features=data["features"], labels=data["labels"] % 2)


@pytest.mark.parametrize(
    ("factory", "told"),
    [
        ("binary", "the one output of factories:binary was taken for the logit of label 1."),
        ("flat_binary", "was taken for the logit of label 1."),
        ("sigmoid", "was taken for the probability of label 1, since all lie in [0, 1]."),
    ],
)
def test_one_output_is_that_of_label_1(capsys, folder, factory, told):
    binary_labels(folder)
    columns = scores_of("two")
    capsys.readouterr()
    assert np.allclose(scores_of(factory), columns, rtol=1e-4)
    assert told in capsys.readouterr().err


def test_members_and_others_are_read_in_one_way(folder, capsys):
    binary_labels(folder)
    scores_of("at_most_one")
    assert "was taken for the logit of label 1." in capsys.readouterr().err


def test_one_output_is_of_two_labels(capsys, folder):
    assert scored("factories:binary") == 1
    assert "labels must be below 2, the classes of the model, got 9" in capsys.readouterr().err
    binary_labels(folder)
    reference = ["--reference", "factories:sigmoid"]
    scores_of("binary", "--attack", "calibrated", *reference)
    scores_of("binary", "--attack", "rmia", *reference, "--population", "population.npz")
    scores_of("binary", "--attack", "label-inference", *reference)
    assert set(np.unique(read_scores(Path("told.npz")).chosen)) == {0, 1}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("factory", "told"),
    [
        ("deep", "(examples, 1) or (examples,), got (300, 10, 1) for 300 examples"),
        ("short", "(examples, 1) or (examples,), got (299, 10) for 300 examples"),
        ("unnamed", "or a list that begins with them, got a dict of 'out'"),
        ("empty", "or a list that begins with them, got a tuple"),
        ("classes", "or a list that begins with them, got a Tensor of torch.int64"),
    ],
)
def test_other_outputs_are_refused_by_shape_and_kind(capsys, folder, factory, told):
    assert scored(f"factories:{factory}") == 1
    assert told in capsys.readouterr().err
    assert not (folder / "scores.csv").exists()
