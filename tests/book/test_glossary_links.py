"""A term of the glossary is a link where a chapter first uses it, and nowhere that would break."""

import re
import subprocess
import sys
from pathlib import Path

import book_site
import pytest

EXTENSIONS = Path(__file__).parents[2] / "book" / "_ext"
CONF = f"""
import sys
sys.path.insert(0, {str(EXTENSIONS)!r})
extensions = ["myst_parser", "glossary_links"]
myst_enable_extensions = ["dollarmath"]
nitpicky = True
"""
GLOSSARY = """# Glossary

```{glossary}
differential privacy
  A promise.

label differential privacy
  Another.

canary
  One made to be found.

PATE
  A system.

null
  Nothing to find.
```
"""


def chapter(text: str, root: Path, docname: str = "chapters/one") -> list[tuple[str, str]]:
    """Build a chapter of one text and return its links to the glossary: term and words."""
    files = {
        "conf.py": CONF,
        "index.md": f"# A book\n\n```{{toctree}}\nbook/glossary\n{docname}\n```\n",
        "book/glossary.md": GLOSSARY,
        f"{docname}.md": f"# One\n\n{text}\n",
    }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", ".", "_build"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    html = (root / "_build" / f"{docname}.html").read_text(encoding="utf-8")
    found = re.findall(r'glossary\.html#term-([^"]+)"><span[^>]*>(.*?)</span></a>', html, re.S)
    return [(term, words) for term, words in found]


def test_the_first_use_is_a_link_and_no_other(tmp_path):
    text = "A canary sings. Another canary, and canaries in *differential privacy*.\n\nA canary."
    assert chapter(text, tmp_path) == [
        ("canary", "canary"),
        ("differential-privacy", "differential privacy"),
    ]


def test_the_longer_term_is_meant_and_plurals_and_capitals_are_found(tmp_path):
    text = "Label differential privacy. Canaries. Then **differential privacy**."
    assert chapter(text, tmp_path) == [
        ("label-differential-privacy", "Label differential privacy"),
        ("canary", "Canaries"),
        ("differential-privacy", "differential privacy"),
    ]


def test_names_keep_their_spelling_and_everyday_words_have_to_be_set_apart(tmp_path):
    text = "The pate of a PATE-FM user, in PATE. Null of it. The **null** is meant."
    assert chapter(text, tmp_path) == [("PATE", "PATE"), ("null", "null")]


def test_what_is_no_prose_stays_as_it_is(tmp_path):
    text = """## A canary

`canary` $canary$ [a canary](https://example.org)
![A canary sings on a branch.](https://example.org/a.png)

```python
canary
```

<p>canary</p>

% canary

And the last canary.
"""
    assert chapter(text, tmp_path) == [("canary", "canary")]
    html = (tmp_path / "_build/chapters/one.html").read_text(encoding="utf-8")
    assert "And the last <a" in html


def test_other_pages_write_their_own_links(tmp_path):
    assert chapter("A canary.", tmp_path, "book/two") == []


@pytest.mark.site
@pytest.mark.xdist_group("site")
def test_every_numbered_chapter_links_some_terms_and_each_once(pages):
    chapters = [name for name in pages if name.startswith("chapters/")]
    for name in chapters:
        html = pages[name].path.read_text(encoding="utf-8")
        article = html.partition("<article")[2].partition("</article>")[0]
        terms = re.findall(r'glossary\.html#(term-[^"]+)"><span class="xref', article)
        assert len(set(terms)) >= (5 if name in NUMBERED else 0), name
        assert len(terms) == len(set(terms)), name


NUMBERED = [
    f"{name}.html"
    for name in re.findall(
        r"- file: (chapters/\w+)",
        (book_site.ROOT / "_toc.yml")
        .read_text()
        .partition("caption: Chapters")[2]
        .partition("caption:")[0],
    )
]
