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


CHAPTERS = {
    "first": "A canary sings. Another canary, and canaries in *differential privacy*.\n\nA canary.",
    "longer": "Label differential privacy. Canaries. Then **differential privacy**.",
    "names": "The pate of a PATE-FM user, in PATE. Null of it. The **null** is meant.",
    "no_prose": """## A canary

`canary` $canary$ [a canary](https://example.org)
![A canary sings on a branch.](https://example.org/a.png)

```python
canary
```

<p>canary</p>

% canary

And the last canary.
""",
}
group = pytest.mark.xdist_group("glossary")  # which is built once


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Return the folder of a book, built, with one chapter a text and a page that is none."""
    root = tmp_path_factory.mktemp("glossary")
    pages = {f"chapters/{name}": text for name, text in CHAPTERS.items()}
    pages["book/other"] = "A canary."
    files = {
        "conf.py": CONF,
        "index.md": "\n".join(["# A book\n\n```{toctree}\nbook/glossary", *pages, "```\n"]),
        "book/glossary.md": GLOSSARY,
        **{f"{name}.md": f"# One\n\n{text}\n" for name, text in pages.items()},
    }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", ".", "_build"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return root / "_build"


def links(page: Path) -> list[tuple[str, str]]:
    """Return the links of a page to the glossary: term and words."""
    html = page.read_text(encoding="utf-8")
    return re.findall(r'glossary\.html#term-([^"]+)"><span[^>]*>(.*?)</span></a>', html, re.S)


@group
def test_the_first_use_is_a_link_and_no_other(built):
    assert links(built / "chapters/first.html") == [
        ("canary", "canary"),
        ("differential-privacy", "differential privacy"),
    ]


@group
def test_the_longer_term_is_meant_and_plurals_and_capitals_are_found(built):
    assert links(built / "chapters/longer.html") == [
        ("label-differential-privacy", "Label differential privacy"),
        ("canary", "Canaries"),
        ("differential-privacy", "differential privacy"),
    ]


@group
def test_names_keep_their_spelling_and_everyday_words_have_to_be_set_apart(built):
    assert links(built / "chapters/names.html") == [("PATE", "PATE"), ("null", "null")]


@group
def test_what_is_no_prose_stays_as_it_is(built):
    page = built / "chapters/no_prose.html"
    assert links(page) == [("canary", "canary")]
    assert "And the last <a" in page.read_text(encoding="utf-8")


@group
def test_other_pages_write_their_own_links(built):
    assert links(built / "book/other.html") == []


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
