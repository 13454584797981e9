"""The command line says what there is, brings it, checks it, and fails with a number."""

import logging
import subprocess
import sys

import pytest

from auditkit import cli, datasets
from auditkit.cli import main


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AUDITKIT_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_list_names_every_set_and_where_it_is(capsys, cache):
    assert main(["data", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["name", *datasets.CARDS]
    assert "yours to bring" in next(line for line in lines if line.startswith("criteo"))
    assert "to fetch" in next(line for line in lines if line.startswith("imdb"))
    (cache / "imdb").mkdir(parents=True)
    (cache / "imdb/reviews.json").touch()
    main(["data", "list"])
    lines = capsys.readouterr().out.splitlines()
    assert "in the cache" in next(line for line in lines if line.startswith("imdb"))


def test_list_says_what_ships(capsys, monkeypatch):
    part = datasets.Part("mnist", "small", "mnist.npz", "0", 1, "x", "x", "x")
    monkeypatch.setattr(datasets.Card, "shipped", property(lambda _: (part,)))
    main(["data", "list"])
    assert "ships 'small', to fetch" in capsys.readouterr().out


def test_path_is_the_cache_or_a_folder_in_it(capsys, cache):
    assert main(["data", "path"]) == 0
    assert main(["data", "path", "mnist"]) == 0
    assert capsys.readouterr().out.split() == [str(cache), str(cache / "mnist")]


def test_fetch_goes_on_after_a_failure_and_ends_with_1(capsys, monkeypatch, tmp_path):
    def fetch(name):
        logging.getLogger("auditkit.datasets").info("%s: trying", name)
        if name == "mnist":
            raise FileNotFoundError("mnist could not be had: three ways out")
        (tmp_path / "file").write_bytes(b"0" * 2_000_000)
        return {"file": tmp_path / "file"}

    monkeypatch.setattr(datasets, "fetch", fetch)
    assert main(["data", "fetch", "mnist", "adult"]) == 1
    said = capsys.readouterr()
    assert "adult: 1 files, 2.0 MB, right, " in said.out
    assert "mnist: trying" in said.err
    assert "three ways out" in said.err
    assert main(["data", "fetch", "adult"]) == 0
    assert not logging.getLogger("auditkit.datasets").handlers


def test_fetch_all_means_all_that_can_be_fetched(monkeypatch):
    asked = []
    monkeypatch.setattr(datasets, "fetch", lambda name: asked.append(name) or {})
    assert main(["data", "fetch", "--all"]) == 0
    assert asked == [name for name, card in datasets.CARDS.items() if card.files]


@pytest.mark.parametrize("arguments", [["fetch", "criteo"], ["fetch", "nothing"]])
def test_what_cannot_be_fetched_is_told_without_a_traceback(capsys, arguments):
    assert main(["data", *arguments]) == 1
    assert "criteo" in capsys.readouterr().err


def test_verify_tells_right_from_wrong_from_absent(capsys, cache):
    assert main(["data", "verify", "imdb", "criteo"]) == 0
    assert capsys.readouterr().out == "imdb: not here\ncriteo: bring it yourself\n"
    (cache / "imdb").mkdir(parents=True)
    (cache / "imdb/reviews.json").write_text("[]")
    assert main(["data", "verify", "imdb"]) == 1
    assert "imdb: reviews.json: reviews.json has 2 bytes where" in capsys.readouterr().out


def test_verify_checks_everything_unless_told_what(capsys, monkeypatch):
    monkeypatch.setattr(datasets, "verify", lambda _: {"file": ""})
    assert main(["data", "verify"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(datasets.CARDS)


def test_an_interrupt_ends_with_130(capsys, monkeypatch):
    def fetch(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(datasets, "fetch", fetch)
    assert main(["data", "fetch", "mnist"]) == 130
    assert "nothing half" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["data"], ["data", "fetch"], ["data", "path", "x"]])
def test_what_it_does_not_understand_ends_with_2(capsys, arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_the_help_of_an_audit_says_what_is_done_where_nothing_is_said(capsys):
    with pytest.raises(SystemExit):
        main(["audit", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "by default split:0.5, or guesses:0.01 for observational-label" in said
    assert "auto goes by the columns: observational-label where there is chosen" in said


def test_help_is_quick_and_loads_nothing_heavy():
    code = (
        "import sys; from auditkit.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in ('torch', 'pandas', 'sklearn', 'pooch', 'PIL') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
    assert cli.main.__doc__
