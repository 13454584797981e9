"""`auditkit lira`: a matrix of models and examples becomes a file that the audit reads."""

import numpy as np
import pytest

from auditkit.attacks.lira import lira
from auditkit.cli import main
from auditkit.cli.score_files import read_scores


def matrix(folder, models=17, examples=400):
    rng = np.random.default_rng(0)
    kept = rng.random((models, examples)) < 0.5
    said = rng.normal(0.0, 3.0, examples) + 2.0 * kept + rng.normal(size=kept.shape)
    np.save(folder / "said.npy", said)
    np.save(folder / "kept.npy", kept)
    return said, kept


def run(folder, *more, output="scores.csv"):
    paths = [str(folder / name) for name in ("said.npy", "kept.npy")]
    return main(["lira", *paths, "--output", str(folder / output), *more])


def test_one_model_is_scored_by_the_others(tmp_path, capsys):
    said, kept = matrix(tmp_path)
    assert run(tmp_path, "--audited", "3", "--variance", "global") == 0
    table = read_scores(tmp_path / "scores.csv")
    others = np.arange(17) != 3
    expected = lira(said[3], said[others], kept[others], variance="global")
    np.testing.assert_array_equal(table.score, expected)
    np.testing.assert_array_equal(table.member, kept[3])
    said = capsys.readouterr().out
    assert "--membership randomised" in said
    assert f"  auditkit audit {tmp_path / 'scores.csv'} --coins COINS.json\n" in said
    assert main(["audit", str(tmp_path / "scores.csv"), "--membership", "randomised"]) == 0
    assert run(tmp_path, "--mode", "offline", "--variance", "global", output="scores.npz") == 0


def test_models_in_pairs_are_told(tmp_path, capsys):
    _, kept = matrix(tmp_path, models=16)
    kept[8:] = ~kept[:8]
    np.save(tmp_path / "kept.npy", kept)
    assert run(tmp_path, "--variance", "global") == 0
    told = capsys.readouterr()
    assert "no independent coins" in " ".join(told.err.split())
    assert "--membership fixed-size" in told.out


def spoilt(value):
    """Return a matrix with one value that is not like the others."""
    array = np.zeros((17, 400))
    array[2, 7] = value
    return array


@pytest.mark.parametrize(
    ("name", "array", "told"),
    [
        ("said", np.zeros(3), "must have the shape (models, examples)"),
        ("said", np.zeros((17, 400), dtype="U1"), "must hold numbers"),
        (
            "said",
            spoilt(np.nan),
            "said.npy must hold finite numbers, got nan in row 2, column 7, c",
        ),
        ("said", spoilt(-np.inf), "got -inf in row 2, column 7, counted from 0 (1 such in all)"),
        ("said", spoilt(np.nan)[..., None], "in row 2, column 7, query 0"),
        ("kept", spoilt(0.5) > 0, "shadow_members must leave"),
        ("kept", spoilt(0.5), "kept.npy must hold 0 or 1, got 0.5 in row 2, column 7"),
        ("kept", np.zeros((17, 400)), "kept.npy shadow_members, which leave out row 0"),
        ("kept", np.array([{}]), "NPY file of one plain array"),
    ],
)
def test_a_bad_matrix_is_refused_in_a_sentence(tmp_path, capsys, name, array, told):
    matrix(tmp_path)
    np.save(tmp_path / f"{name}.npy", array)
    assert run(tmp_path) == 1
    assert told in capsys.readouterr().err
    assert not (tmp_path / "scores.csv").exists()


def test_a_model_that_is_not_there_is_refused(tmp_path, capsys):
    matrix(tmp_path)
    assert run(tmp_path, "--audited", "17") == 1
    assert "0 to 16" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run(tmp_path, output="scores.txt")
