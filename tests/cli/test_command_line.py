"""The command line says what there is, brings it, checks it, and fails with a number."""

import json
import logging
import subprocess
import sys

import pytest

import auditkit
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
    assert "by default bonferroni, or guesses:0.01 for observational-label" in said
    assert "auto goes by the columns: observational-label where there is chosen" in said


def test_help_is_quick_and_loads_nothing_heavy():
    code = (
        "import sys; from auditkit.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = ('torch', 'pandas', 'matplotlib', 'sklearn', 'numba', 'pooch')\n"
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
    assert cli.main.__doc__


SHORT = "score,member\n" + "\n".join(f"{row % 37},{row % 2}" for row in range(200))


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_closed_stream_costs_nothing_but_what_it_would_have_said(tmp_path, closed):
    (tmp_path / "scores.csv").write_text(SHORT)
    code = (
        f"import sys; sys.{closed} = None\n"
        "from auditkit.cli import main\n"
        "sys.exit(main(['audit', 'scores.csv', '--html', 'report.html']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").exists()


def test_an_output_without_greek_letters_is_no_error_and_its_json_stays_json(tmp_path, monkeypatch):
    (tmp_path / "scores.csv").write_text(SHORT)
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")
    code = "import sys; from auditkit.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "audit", "scores.csv"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert said.stdout.startswith(b"\\u03b5")
    said = subprocess.run([*command, "--json"], cwd=tmp_path, capture_output=True, check=True)
    assert json.loads(said.stdout.decode("ascii"))["sentence"].startswith("ε")


def test_a_path_too_long_and_too_little_memory_are_told_without_a_traceback(capsys, monkeypatch):
    assert main(["audit", "a" * 5000]) == 1
    assert "too long" in capsys.readouterr().err

    def path(_):
        raise MemoryError("3 TB")

    monkeypatch.setattr(datasets, "verify", path)
    assert main(["data", "verify"]) == 1
    assert "more memory than there is. 3 TB" in capsys.readouterr().err


def test_the_program_says_its_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"auditkit {auditkit.__version__}\n"
