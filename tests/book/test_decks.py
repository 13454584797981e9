"""The lecture decks: made from the book, complete, and led through by keys."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import book_site
import citable_figures
import decks
import pytest
from docutils import nodes
from docutils.utils import new_document

ROOT = book_site.ROOT
ALL = decks.decks(ROOT)
CHAPTER = """# One

```{admonition} What you will learn
:class: tip
- To read [another](two.md).
```

```{prf:theorem} A theorem
:label: thm-one
Let $x > \\sqrt{0 + 1}$. Then

$$a = b + c .$$
```

$$
d = e
$$ (eq-two)

```{code-cell} ipython3
:tags: [hide-input]

price = 3  # in $, not $x$
print(price)
```

citable(figure, "ONE-F1", rows)
citable(None, "ONE-T1", rows)
"""
DECK = """---
title: A deck
chapter: chapters/one
minutes: 5
---

## Apples are *round*.

First.

+++

Second, $x < 1$.

???

2 min. Show one.

## Is it so?

- [ ] No
- [x] Yes, $y$

???

3 min. Ask.
"""


def made(root: Path, deck: str = DECK) -> SimpleNamespace:
    """Write a book of one chapter, as built, and return as much of Sphinx as a deck asks."""
    files = {
        "_toc.yml": "root: book/start\n  - file: chapters/one\n",
        "book/decks/one.md": deck,
        "book/slides.template.html": "<!-- TITLE -->|<!-- START -->|<!-- SLIDES -->",
        "chapters/one.md": CHAPTER,
        "_build/figures/ONE-F1.json": json.dumps(entry("ONE-F1", png="figures/ONE-F1.png")),
        "_build/figures/ONE-T1.json": json.dumps(entry("ONE-T1", png=None)),
        "_build/figures/ONE-T1.csv": "fruit,price\napple & pear,3000\n",
        "data/claims.csv": "id,paper,claim,where,stands_in\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    env = SimpleNamespace(
        found_docs={"book/teaching", "chapters/one"},
        doc2path=lambda name: str(root / f"{name}.md"),
        titles={"chapters/one": SimpleNamespace(astext=lambda: "One & all")},
        get_doctree=lambda _: ran(),
    )
    builder = SimpleNamespace(name="html")
    (root / "book/teaching.md").write_text("<!-- DECKS -->", encoding="utf-8")
    return SimpleNamespace(srcdir=str(root), outdir=str(root / "html"), env=env, builder=builder)


def ran() -> nodes.document:
    """Return what Sphinx keeps of the chapter's cell."""
    page = new_document("one.md")
    cell = nodes.container(nb_element="cell_code")
    cell += nodes.literal_block(text="price = 3  # in $, not $x$\nprint(price)")
    cell += nodes.literal_block(text="a warning", classes=["output", "stderr"])
    cell += nodes.literal_block(text="3 < 4\n", classes=["output", "stream"])
    page += [nodes.container(), cell]
    return page


def entry(id_: str, png: str | None) -> dict[str, str | None]:
    alt = 'A line "rises" from left to right.'
    return {
        "id": id_,
        "title": "Apples & pears",
        "csv": f"figures/{id_}.csv",
        "png": png,
        "alt": alt,
    }


@pytest.fixture
def book(tmp_path):
    return decks.Book(made(tmp_path), "chapters/one")


# --- the decks of the book -----------------------------------------------------------------------


def test_there_are_decks():
    assert [deck.name for deck in ALL] == ["foundations", "obs", "zero", "pan", "exact"]


@pytest.mark.parametrize("deck", ALL, ids=lambda deck: deck.name)
def test_a_deck_is_a_lecture(deck):
    assert 20 <= len(deck.slides) <= 30
    headings = [slide.heading for slide in deck.slides]
    assert [one for one in headings if not re.match(r"[A-Z].+ .+ .+[.?]$", one)] == []
    assert len(set(headings)) == len(headings)
    assert sum(1 for slide in deck.slides if slide.answers) >= 4
    assert "{goals}" in deck.slides[-1].steps[0]


@pytest.mark.parametrize("deck", ALL, ids=lambda deck: deck.name)
def test_each_slide_has_notes_and_minutes_that_add_up_to_the_lecture(deck):
    minutes = [re.match(r"(\d+) min\. \w", slide.notes) for slide in deck.slides]
    assert all(minutes)
    assert sum(int(found[1]) for found in minutes if found) == deck.minutes


@pytest.mark.parametrize("deck", ALL, ids=lambda deck: deck.name)
def test_what_a_deck_takes_from_the_book_is_there(deck):
    book = decks.Book(SimpleNamespace(srcdir=str(ROOT)), deck.chapter)
    drawn = {
        id_
        for path in (ROOT / "chapters").rglob("*.md")
        for id_ in citable_figures.CALL.findall(path.read_text(encoding="utf-8"))
    }
    claims = (ROOT / "data/claims.csv").read_text(encoding="utf-8")
    for slide in deck.slides:
        for name, what in decks.TAKEN.findall("\n".join(slide.steps)):
            if name == "figure":
                assert what in drawn
            elif name == "finding":
                assert f"\n{what}," in claims
            else:  # what a cell prints is known once it has run; before, the cell has to be there
                assert getattr(book, name.replace("output", "code"))(what)


def test_the_plans_of_the_teaching_kit_use_the_decks():
    plans = (ROOT / "book/teaching.md").read_text(encoding="utf-8")
    assert [deck.name for deck in ALL if f"decks/{deck.name}.html" not in plans] == []
    lecture = plans.partition("## One lecture\n")[2].partition("\n## ")[0]
    minutes = sum(int(found) for found in re.findall(r"^\| (\d+) \|", lecture, re.MULTILINE))
    assert minutes == ALL[0].minutes


# --- what a deck is made of ----------------------------------------------------------------------


def test_slides_have_steps_votes_and_notes(tmp_path):
    decks.publish(made(tmp_path), None)
    html = (tmp_path / "html/book/decks/one.html").read_text(encoding="utf-8")
    title, start, slides = html.split("|")
    assert title == "A deck"
    assert "5 minutes" in start
    assert '<a href="../../chapters/one.html">One &amp; all</a>' in start
    assert '<section id="slide-1" class="said"><h2>Apples are <em>round</em>.</h2>' in slides
    second = r'<p>Second, <span class="math inline">\(x &lt; 1\)</span>.</p>'
    assert f'<div class="step">{second}' in slides
    assert '<div class="notes"><p>2 min. Show one.</p>' in slides
    assert '<ol class="vote" type="A"><li>No</li><li>Yes, <span class="math inline">' in slides
    assert slides.count('<strong class="step">✓ right</strong>') == 1


def test_a_deck_is_listed_with_minutes_slides_and_votes(tmp_path):
    source = ["<!-- DECKS -->"]
    decks.write_page(made(tmp_path), decks.PAGE, source)
    link = '<a href="decks/one.html">A deck</a>, to {doc}`/chapters/one`'
    assert source == [f"- {link}: 5 minutes, 2 slides, 1 votes"]


def test_a_figure_brings_picture_alternative_and_address(book):
    html = book.figure("ONE-F1")
    assert '<img src="../../figures/ONE-F1.png" alt="A line &quot;rises&quot; from' in html
    assert "Apples &amp; pears." in html
    assert '<a href="../../chapters/one.html#ONE-F1">ONE-F1</a>' in html


def test_a_finding_has_both_values_and_the_verdict(book, monkeypatch):
    record = {"paper": 2.0, "measured": "1 < 2", "verdict": "partly"}
    rows = [
        {"id": "ONE-1", "claim": "Apples & pears.", "record": record},
        {"id": "ONE-2", "claim": "Open.", "record": None},
    ]
    monkeypatch.setattr(decks.scorecard, "claims", lambda _: rows)
    html = book.finding("ONE-1")
    assert "<p>Apples &amp; pears.</p>" in html
    assert "<dt>Paper</dt><dd>2</dd><dt>Measured</dt><dd>1 &lt; 2</dd>" in html
    assert '<a href="../scorecard.html#ONE-1">ONE-1</a>: <strong>partly</strong>' in html
    with pytest.raises(ValueError, match="no finding ONE-2"):
        book.finding("ONE-2")


def test_a_table_is_shown_if_it_is_short(book):
    assert "<td>apple &amp; pear</td><td>3,000</td>" in book.figure("ONE-T1")
    path = book.root / "_build/figures/ONE-T1.csv"
    path.write_text("a\n" + "1\n" * 13)
    with pytest.raises(ValueError, match="ONE-T1 has 13 rows"):
        book.figure("ONE-T1")


@pytest.mark.parametrize(
    ("wanted", "tex"),
    [
        ("eq-two", "d = e"),
        ("thm-one", "a = b + c"),
        ("a = b", "a = b + c"),
        ("x >", r"x > \sqrt{0 + 1}"),
        ("thm-one +++ + c", r"a = b \class{step later}{{}+ c}"),
        ("thm-one +++ = +++ +", r"a \class{step later}{{}= b }\class{step later}{{}+ c}"),
    ],
)
def test_a_formula_is_found_by_label_or_beginning_and_cut(book, wanted, tex):
    assert book.formula(wanted) == f"$$\n{tex}\n$$"


def test_code_output_and_goals_are_those_of_the_chapter(book):
    assert book.code("price = ").splitlines()[1:-1] == [
        "price = 3  # in $, not $x$",
        "print(price)",
    ]
    assert book.output("price = ") == '<pre class="output">3 &lt; 4</pre>'
    assert book.goals("") == "- To read [another](../../chapters/two.html)."


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{figure} ONE-F2", "no figure ONE-F2"),
        ("{finding} ONE-9", "no finding ONE-9"),
        ("{formula} eq-three", "no formula eq-three"),
        ("{formula} thm-one +++ = d", "no place to cut thm-one: = d"),
        ("{formula} x > +++ + 1", "+ 1 cuts x > within a group"),
        ("{code} cost =", "no cell with cost ="),
        ("{output} cost =", "no cell with cost ="),
        ("{remember}", "no box What to remember"),
        ("{picture} ONE-F1", "{picture} is none of figure, "),
    ],
)
def test_what_is_not_there_fails_the_build_by_its_name(tmp_path, line, complaint):
    app = made(tmp_path, DECK.replace("First.", line))
    message = re.escape(f"deck one, 'Apples are *round*.': {complaint}")
    with pytest.raises(ValueError, match=message):
        decks.publish(app, None)


@pytest.mark.parametrize(("before", "after"), [("[ ]", "[x]"), ("[x]", "[ ]")])
def test_a_vote_has_one_right_answer(tmp_path, before, after):
    made(tmp_path, DECK.replace(before, after))
    with pytest.raises(ValueError, match=r"one\.md, 'Is it so\?': one answer to a vote"):
        decks.decks(tmp_path)


# --- the built decks -----------------------------------------------------------------------------


def steps_of(slide: decks.Slide) -> int:
    """Return how many keys it takes to see all of a slide."""
    cuts = "\n".join(slide.steps).count(decks.CUT)
    return len(slide.steps) - 1 + slide.answers.count("x") + cuts


@pytest.mark.site
@pytest.mark.xdist_group("site")
@pytest.mark.parametrize("name", [deck.name for deck in ALL])
def test_keys_lead_through_a_deck_step_by_step_and_back(name, seen):
    walked = seen["decks"][f"book/decks/{name}.html"]
    slides = next(deck for deck in ALL if deck.name == name).slides
    assert walked["steps"] == [0, *map(steps_of, slides)]
    steps = sum(walked["steps"])
    assert walked["hidden"] == steps
    assert walked["presses"] == steps + len(slides)
    assert walked["there"] == [f"slide-{len(slides)}", 0]
    assert walked["back"] == ["start", steps]
    assert walked["notes"] == [0, len(slides), 0]
    assert walked["clicked"] == ["slide-1", steps]
    assert walked["errors"] == []


@pytest.mark.site
@pytest.mark.xdist_group("site")
@pytest.mark.parametrize("name", [deck.name for deck in ALL])
def test_each_slide_prints_on_a_page_with_all_its_steps(name, seen):
    walked = seen["decks"][f"book/decks/{name}.html"]
    assert walked["printed"] == len(walked["steps"])
    assert walked["hidden in print"] == 0
