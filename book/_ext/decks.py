"""Make the lecture decks: slides for a lecture, from `book/decks/<name>.md`.

A deck is Markdown. Its front matter says `title`, `chapter` and `minutes`. Each `## heading`, a
takeaway in a full sentence, begins a slide. On a line of its own,

    +++             what follows appears with the next key
    ???             what follows are the notes of the speaker, key n
    - [ ] no        an answer to a vote
    - [x] yes       the right one: it is marked with the next key

What the book says already is taken from it, on a line of its own as well:

    {figure} FND-F3           a picture with its alternative text, or a short table
    {finding} ZERO-2          what became of a paper's claim
    {formula} eq-backwards    a formula of the chapter, by its label or by how it begins
    {formula} eq-backwards +++ = b +++ + c     the same, cut before "= b" and "+ c": the parts
                              appear one by one
    {code} def chance         the code cell of the chapter that has a line beginning so
    {output} def chance       what that cell prints
    {goals}, {remember}       what the chapter opens and closes with

What is not there fails the build, by its name.
"""

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import citable_figures
import scorecard
import yaml
from docutils import nodes
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from sphinx.application import Sphinx

PAGE = "book/teaching"
DECKS = "book/decks"
UP = "../../"  # from a deck to the root of the site
HEADING = re.compile(r"^## +(.+)$", re.MULTILINE)
NOTES = re.compile(r"^\?\?\?$", re.MULTILINE)
STEP = re.compile(r"^\+\+\+$", re.MULTILINE)
VOTE = re.compile(r"(?:^- \[[ x]\] .+\n?)+", re.MULTILINE)
ANSWER = re.compile(r"^- \[([ x])\] (.+)$", re.MULTILINE)
TAKEN = re.compile(r"^\{(\w+)\} ?(.*)$", re.MULTILINE)
CUT = " +++ "
GROUP = r"(?<!\\)\{|\\left\b", r"(?<!\\)\}|\\right\b"  # how one begins and ends in TeX
DIRECTIVE = re.compile(r"^```\{prf:\w+\}[^\n]*\n:label: (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(r"\$\$(.+?)\$\$(?: \(([\w-]+)\))?|(?<!\$)\$([^$\n]+)\$(?!\$)", re.DOTALL)
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(?::[^\n]*\n)*(.*?)^```", re.MULTILINE | re.DOTALL)
BOX = r"^```\{{admonition\}} {}\n(?::[^\n]*\n)*(.*?)^```"
LINK = re.compile(r"\]\((\w+)\.md")
MATHS = f"""<script>
MathJax = {{ options: {{ enableMenu: false }} }};
</script>
<script defer src="{UP}_static/mathjax/tex-chtml-full.js"></script>"""


@dataclass(frozen=True)
class Slide:
    """One slide: a takeaway, what appears step by step, and what the speaker says."""

    heading: str
    steps: list[str]
    notes: str

    @property
    def answers(self) -> list[str]:
        """Return the marks of the answers to a vote, a blank or an x each."""
        return [mark for mark, _ in ANSWER.findall("\n".join(self.steps))]


@dataclass(frozen=True)
class Deck:
    """One lecture."""

    name: str
    title: str
    chapter: str
    minutes: int
    slides: list[Slide]


def read(path: Path) -> Deck:
    """Return the deck of a file."""
    _, front, text = path.read_text(encoding="utf-8").split("---\n", 2)
    _, *parts = HEADING.split(text)
    slides = []
    for heading, whole in zip(parts[::2], parts[1::2], strict=True):
        body, *notes = NOTES.split(whole)
        slides.append(Slide(heading, STEP.split(body), "".join(notes).strip()))
        if slides[-1].answers and slides[-1].answers.count("x") != 1:
            raise ValueError(f"{path.name}, {heading!r}: one answer to a vote has to be right")
    return Deck(path.stem, slides=slides, **yaml.safe_load(front))


def decks(root: Path) -> list[Deck]:
    """Return all decks, in the order of their chapters in the table of contents."""
    found = [read(path) for path in (root / DECKS).glob("*.md")]
    order = (root / "_toc.yml").read_text(encoding="utf-8") if found else ""
    return sorted(found, key=lambda deck: (order.find(deck.chapter), deck.name))


# --- what the book says already ------------------------------------------------------------------


class Book:
    """What the slides of a chapter may take from the book; each method answers to a `{name}`."""

    def __init__(self, app: Sphinx, chapter: str) -> None:
        self.app, self.chapter = app, chapter
        self.root = Path(app.srcdir)
        self.text = (self.root / f"{chapter}.md").read_text(encoding="utf-8")

    def figure(self, id_: str) -> str:
        """Return a figure with its address, or a table of at most twelve rows."""
        drawn = citable_figures.entries(self.app)
        (entry,) = only(f"figure {id_}", [one for one in drawn if one["id"] == id_])
        said = f"<p>{escape(entry['title'])}. {link(entry)}</p>"
        if entry["png"]:
            shown = f'<img src="{UP}{entry["png"]}" alt="{escape(entry["alt"])}">'
        else:
            rows = table(self.root / "_build" / entry["csv"])
            name = f'role="region" aria-label="{id_}" tabindex="0"'  # on a phone it scrolls
            shown = f'<div class="wide" {name}>{rows}</div>'
        return f"<figure>{shown}<figcaption>{said}</figcaption></figure>"

    def finding(self, id_: str) -> str:
        """Return a claim of a paper, the paper's value, ours and the verdict."""
        rows = [row for row in scorecard.claims(self.app) if row["id"] == id_ and row["record"]]
        (row,) = only(f"finding {id_}", rows)
        values = {"Paper": row["record"]["paper"], "Measured": row["record"]["measured"]}
        pairs = (f"<dt>{name}</dt><dd>{scorecard.shown(it)}</dd>" for name, it in values.items())
        return (
            f'<div class="finding"><p>{escape(row["claim"])}</p><dl>{"".join(pairs)}</dl>'
            f'<p><a href="../scorecard.html#{id_}">{id_}</a>: '
            f"<strong>{scorecard.verdict(row)}</strong></p></div>"
        )

    def formula(self, wanted: str) -> str:
        """Return a formula of the chapter, in parts where cuts are given."""
        name, *cuts = wanted.split(CUT)
        found = {tex for label, tex in formulas(self.text) if name == label or tex.startswith(name)}
        (tex,) = only(f"formula {name}", sorted(found))
        parts = []
        for cut in cuts:
            before, here, tex = tex.partition(cut)
            only(f"place to cut {name}: {cut}", [here] if here else [])
            opened, closed = (len(re.findall(group, before)) for group in GROUP)
            if opened != closed:
                raise ValueError(f"{cut} cuts {name} within a group, which leaves no formula")
            parts.append(before)
            tex = here + tex
        # the empty group keeps the distance of a sign that now begins a group of its own
        later = (rf"\class{{step later}}{{{{}}{part}}}" for part in [*parts[1:], tex])
        return f"$$\n{''.join([parts[0], *later]) if parts else tex}\n$$"

    def code(self, start: str) -> str:
        """Return a code cell of the chapter."""
        (cell,) = only(f"cell with {start}", [c for c in cells(self.text) if has_line(c, start)])
        return f"```python\n{cell}\n```"

    def output(self, start: str) -> str:
        """Return what a code cell of the chapter printed when the book was built."""
        blocks = [
            list(cell.findall(nodes.literal_block))
            for cell in self.app.env.get_doctree(self.chapter).findall(nodes.container)
            if cell.get("nb_element") == "cell_code"
        ]
        here = [(code, out) for code, *out in blocks if has_line(code.astext(), start)]
        ((_, out),) = only(f"cell with {start}", here)
        printed = "".join(one.astext() for one in out if "stream" in one["classes"]).strip()
        only(f"output of {start}", [printed] if printed else [])
        return f'<pre class="output">{escape(printed)}</pre>'

    def goals(self, _: str) -> str:
        """Return what one will learn."""
        return self.box("What you will learn")

    def remember(self, _: str) -> str:
        """Return what to remember."""
        return self.box("What to remember")

    def box(self, title: str) -> str:
        """Return what stands in a box of the chapter, its links seen from a deck."""
        found = re.findall(BOX.format(title), self.text, re.MULTILINE | re.DOTALL)
        (inside,) = only(f"box {title}", found)
        return LINK.sub(rf"]({UP}chapters/\1.html", inside).strip()


def only(what: str, found: list[Any]) -> list[Any]:
    """Return a list if it has one item: what is asked for is there, and is one."""
    if len(found) != 1:
        raise ValueError(f"{len(found) or 'no'} {what}")
    return found


def link(entry: dict[str, Any]) -> str:
    """Return a link to a figure where it stands."""
    return f'<a href="{UP}{entry["page"]}#{entry["id"]}">{entry["id"]}</a>'


def table(path: Path) -> str:
    """Return a short table."""
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    if len(rows) > 12:
        raise ValueError(f"{path.stem} has {len(rows)} rows, and a slide has room for 12")
    names = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    lines = ("".join(f"<td>{escape(grouped(value))}</td>" for value in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


def grouped(value: str) -> str:
    """Return a large whole number with its thousands apart, and all else as it is."""
    return f"{int(value):,}" if value.isdecimal() else value


def formulas(text: str) -> Iterator[tuple[str, str]]:
    """Yield the formulas of a chapter, with their labels or those of the theorem around them."""
    labels = {
        directive.start(2) + formula.start(): directive[1]
        for directive in DIRECTIVE.finditer(text)
        for formula in FORMULA.finditer(directive[2])
        if formula[1]
    }
    prose = CELL.sub(lambda cell: " " * len(cell[0]), text)
    for found in FORMULA.finditer(prose):
        label = found[2] or labels.get(found.start(), "")
        yield label, (found[1] or found[3]).strip().rstrip(" .,")


def cells(text: str) -> list[str]:
    """Return the code of a chapter's cells."""
    return [code.strip() for code in CELL.findall(text)]


def has_line(code: str, start: str) -> bool:
    """Tell whether a line of the code begins so."""
    return any(line.startswith(start) for line in code.splitlines())


# --- slides --------------------------------------------------------------------------------------


def markdown() -> MarkdownIt:
    """Return what turns Markdown with formulas into HTML."""
    md = MarkdownIt("commonmark", {"typographer": True}).enable(["table", "smartquotes"])
    return md.use(dollarmath_plugin, renderer=mark_maths)


def mark_maths(tex: str, options: dict[str, bool]) -> str:
    """Return a formula as MathJax looks for it."""
    return escape(rf"\[{tex}\]" if options["display_mode"] else rf"\({tex}\)", quote=False)


def show(deck: Deck, book: Book) -> Iterator[str]:
    """Yield the slides of a deck as HTML."""
    md = markdown()
    for number, slide in enumerate(deck.slides, 1):
        try:
            first, *later = (md.render(fill(step, book)) for step in slide.steps)
        except (ValueError, OSError) as error:
            raise ValueError(f"deck {deck.name}, {slide.heading!r}: {error}") from error
        steps = "".join(f'<div class="step">{step}</div>' for step in later)
        yield (
            f'<section id="slide-{number}" class="said"><h2>{md.renderInline(slide.heading)}</h2>'
            f'<div class="body">{first}{steps}</div>'
            f'<div class="notes">{md.render(slide.notes)}</div></section>'
        )


def fill(text: str, book: Book) -> str:
    """Put votes, and what the book says, in the place of the lines that stand for them."""
    known: dict[str, Callable[[str], str]] = {
        name: getattr(book, name)
        for name in ("figure", "finding", "formula", "code", "output", "goals", "remember")
    }

    def taken(match: re.Match[str]) -> str:
        if match[1] not in known:
            raise ValueError(f"{{{match[1]}}} is none of {', '.join(known)}")
        return f"\n{known[match[1]](match[2].strip())}\n"

    return TAKEN.sub(taken, VOTE.sub(vote, text))


def vote(answers: re.Match[str]) -> str:
    """Return the answers to a vote; the mark of the right one is a step of its own."""
    right = ' <strong class="step">✓ right</strong>'
    items = (
        f"<li>{markdown().renderInline(said)}{right if mark == 'x' else ''}</li>"
        for mark, said in ANSWER.findall(answers[0])
    )
    return f'<ol class="vote" type="A">{"".join(items)}</ol>\n'


def write(app: Sphinx, deck: Deck) -> str:
    """Return the page of a deck."""
    chapter = escape(app.env.titles[deck.chapter].astext())
    start = (
        f"<p>A lecture of {deck.minutes} minutes to the chapter "
        f'<a href="{UP}{deck.chapter}.html">{chapter}</a>.</p>'
    )
    slides = "\n".join(show(deck, Book(app, deck.chapter)))
    return citable_figures.page_of_slides(
        app, TITLE=escape(deck.title), UP=UP, MATHS=MATHS, START=start, SLIDES=slides
    )


# --- the site ------------------------------------------------------------------------------------


def write_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """List the decks among what there is for teachers."""
    if docname == PAGE:
        lines = map(listed, decks(Path(app.srcdir)))
        source[0] = source[0].replace("<!-- DECKS -->", "\n".join(lines))


def listed(deck: Deck) -> str:
    """Return what a teacher wants to know of a deck."""
    votes = sum(1 for slide in deck.slides if slide.answers)
    there = (
        f'<a href="decks/{deck.name}.html">{escape(deck.title)}</a>, to {{doc}}`/{deck.chapter}`'
    )
    return f"- {there}: {deck.minutes} minutes, {len(deck.slides)} slides, {votes} votes"


def publish(app: Sphinx, exception: Exception | None) -> None:
    """Write the decks beside the page that lists them."""
    if exception is None and app.builder.name == "html" and PAGE in app.env.found_docs:
        target = Path(app.outdir) / DECKS
        target.mkdir(parents=True, exist_ok=True)
        for deck in decks(Path(app.srcdir)):
            (target / f"{deck.name}.html").write_text(write(app, deck), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect both steps; `teaching` has the page read in every build."""
    app.connect("source-read", write_page)
    app.connect("build-finished", publish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
