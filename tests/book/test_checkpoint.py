"""A question with choices is written without a mistake, and opens for everybody."""

import re
import subprocess
import sys
from pathlib import Path

import book_site
import checkpoint
import pytest
import student

ROOT = book_site.ROOT
PAGES = sorted([*(ROOT / "book").glob("*.md"), *(ROOT / "chapters").rglob("*.md")])
WRITTEN = re.compile(r"^:::\{checkpoint\} ([^\n]+)\n(.*?)^:::$", re.MULTILINE | re.DOTALL)
CHAPTERS = [  # of the papers' chapters those that have been written anew
    "foundations",
    "observational_label_dp",
    "zero_run",
    "five_audits",
    "exact_one_run",
]

SOUND = """:::{checkpoint} Is $x$ a "choice"?
- [ ] No, `x` is none.
  It has a [link](index.md) and $y$.
  It goes on.

  A second paragraph with a canary.
- [x] Yes
  It is.
:::
"""
BROKEN = {
    "Which is right?": "- [ ] A\n  No.\n- [ ] B\n  No.\n",
    "Are two right?": "- [x] A\n  Yes.\n- [x] B\n  Yes.\n",
    "Is it alone?": "- [x] A\n  Yes.\n",
    "And why?": "- [ ] A\n- [x] B\n  Yes.\n",
    "Is it a choice?": "- [x] A\n  Yes.\n- B\n",
    "Is it indented?": "- [ ] A\nNo.\n- [x] B\n  Yes.\n",
    "Does it lead away?": "- [ ] [A](index.md)\n  No.\n- [x] B\n  Yes.\n",
}


def build(root: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Build a page with the directive, and whatever fails fails the build."""
    conf = f"""
import sys
sys.path.insert(0, {str(ROOT / "book" / "_ext")!r})
extensions = ["myst_parser", "checkpoint"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
"""
    (root / "conf.py").write_text(conf, encoding="utf-8")
    (root / "index.md").write_text(f"# A page\n\n{text}", encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", ".", "_build"]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_each_choice_is_a_button_that_says_in_words_what_it_is(tmp_path):
    assert build(tmp_path, SOUND).stderr == ""
    html = (tmp_path / "_build" / "index.html").read_text(encoding="utf-8")
    box = re.search(r'<div[^>]*class="auditkit-checkpoint".*?</ol>\n</div>', html, re.S)[0]
    (name,) = re.findall(r'role="group"', box) and re.findall(r'aria-labelledby="(\S+)"', box)
    assert f'<p id="{name}">Is <span class="math' in box
    buttons = re.findall(r"<summary><span>(.*?)</span></summary>", box, re.S)
    assert [re.sub("<.*?>", "", one) for one in buttons] == ["No, x is none.", "Yes"]
    told = re.findall(r'<div class="feedback"><p><strong>(.*?)</strong>', box)
    assert told == ["Not this.", "Right."]
    assert "A second paragraph" in box
    assert "<script" not in box


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    """Return what a build says of questions that are wrong in one way each."""
    text = "\n".join(f":::{{checkpoint}} {name}\n{body}:::\n" for name, body in BROKEN.items())
    done = build(tmp_path_factory.mktemp("broken"), text)
    assert done.returncode != 0
    return done.stderr


@pytest.mark.parametrize("question", BROKEN)
def test_a_mistake_fails_the_build_with_file_and_question(question, failed):
    assert re.search(rf"index\.md:\d+: ERROR: checkpoint “{re.escape(question)}”", failed)


def test_a_notebook_has_the_choices_as_a_list_and_the_answer_folded():
    notebook = student.plain(SOUND, {"other"})
    question, listed, *answer = notebook.split("\n\n")
    assert question == '**Checkpoint.** Is $x$ a "choice"?'
    assert listed.splitlines() == ["- **A.** No, `x` is none.", "- **B.** Yes"]
    assert answer[0] == "<details>\n<summary>Answer</summary>"
    assert answer[1].startswith("**A. Not this.** It has a link and $y$.")
    assert answer[-2:] == ["**B. Right.** It is.", "</details>"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_question_of_the_book_is_written_as_it_should_be(path):
    text = path.read_text(encoding="utf-8")
    found = WRITTEN.findall(text)
    assert len(found) == text.count("{checkpoint}")
    for question, body in found:
        assert question.endswith("?")
        checkpoint.choices(body)


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_has_two_checkpoints_and_says_the_time_it_takes(name):
    text = (ROOT / "chapters" / f"{name}.md").read_text(encoding="utf-8")
    lesson, _, exercises = text.partition("\n## Exercises\n")
    assert lesson.count("{checkpoint}") >= 2
    stated = r"^\*\*Time:\*\* (\d+) minutes to read, (\d+) for the exercises\.$"
    ((read, work),) = re.findall(stated, lesson, re.MULTILINE)
    assert len(re.findall(r"\w+", lesson)) / 400 < int(read) < 60
    minutes = re.findall(r"\{exercise\} .* · (\d+) minutes, ", exercises)
    assert sum(map(int, minutes)) == int(work)


@pytest.mark.site
@pytest.mark.xdist_group("site")
def test_a_choice_opens_by_keys_says_what_it_is_and_nothing_is_kept(seen):
    quiz = seen["quiz"]
    assert quiz["folded"]
    assert quiz["focus"] == "SUMMARY"
    assert quiz["opened"] == [True, *[False] * (quiz["choices"] - 1)]
    assert re.match(r"(Right|Not this)\.", quiz["told"])
    assert quiz["closed"]
    assert quiz["reloaded"] == 0
    assert not quiz["kept"]


@pytest.mark.site
@pytest.mark.xdist_group("site")
def test_without_scripts_a_question_is_the_same(seen):
    assert seen["quiz"]["without a script"] == seen["quiz"]["told"]
