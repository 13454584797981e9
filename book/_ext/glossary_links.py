"""Link each term of the glossary where a chapter first uses it.

Terms come from `book/glossary.md`. What is a heading, code, a formula, a link, a picture, the
output of a cell or a question with choices stays as it is. A term is looked for as a word, in the
singular or the plural; a name such as PATE in its own spelling only. Where one term is a part of
another, the longer one is meant.
"""

import re
from pathlib import Path
from typing import Any

import checkpoint
from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

GLOSSARY = "book/glossary"
CHAPTERS = "chapters/"

# Terms that are everyday words too: a chapter means its own sense of them when it sets them in
# italics or bold, and else often the everyday one.
EVERYDAY = {"baseline", "ceiling", "certificate", "claim", "closeness", "confidence", "coverage"}
EVERYDAY |= {"estimate", "examples", "level", "mechanism", "null", "overlap", "tightness"}

UNTOUCHED = (
    nodes.title, nodes.rubric, nodes.caption, nodes.term, nodes.literal, nodes.literal_block,
    nodes.math, nodes.math_block, nodes.raw, nodes.reference, nodes.image, nodes.comment,
    nodes.footnote_reference, nodes.target, nodes.Invisible, nodes.substitution_reference,
    addnodes.pending_xref, addnodes.download_reference,
)  # fmt: skip
LEFT_ALONE = {"cell", checkpoint.CLASS}


def terms(app: Sphinx) -> list[str]:
    """Return the terms of the glossary, the longest first."""
    path = Path(app.env.doc2path(GLOSSARY))
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    inside = "\n".join(re.findall(r"^```\{glossary\}\n(.*?)^```", text, flags=re.M | re.S))
    return sorted(re.findall(r"^(\S.*)$", inside, flags=re.M), key=len, reverse=True)


def pattern(term: str) -> str:
    """Return what finds a term in a text."""
    forms = re.escape(term).replace(r"\ ", r"\s+")
    if term.endswith("y"):
        forms = f"{forms[:-1]}(?:y|ies)"
    elif not term.endswith("s"):
        forms += "s?"
    name = re.search(r"[A-Z]", term[1:])  # PATE, f-DP, CaPC
    return f"(?-i:{forms})" if name else f"(?i:{forms})"


def watch_the_glossary(app: Sphinx, docname: str, source: list[str]) -> None:
    """Have a chapter read again when the glossary changes."""
    if docname.startswith(CHAPTERS) and GLOSSARY in app.env.found_docs:
        app.env.note_dependency(str(app.env.doc2path(GLOSSARY)))


def link_terms(app: Sphinx, doctree: nodes.document) -> None:
    """Turn the first use of each term into a link to its entry."""
    if not app.env.docname.startswith(CHAPTERS) or GLOSSARY not in app.env.found_docs:
        return
    every = terms(app)
    if not every:
        return
    left = {f"t{i}": term for i, term in enumerate(every)}
    groups = "|".join(f"(?P<{name}>{pattern(term)})" for name, term in left.items())
    finder = re.compile(rf"(?<![\w-])(?:{groups})(?![\w-])")
    for text in list(doctree.findall(nodes.Text)):
        if can_hold_a_link(text):
            parts = split(text, finder, left)
            if not all(isinstance(part, nodes.Text) for part in parts):
                text.parent.replace(text, parts)


def can_hold_a_link(text: nodes.Text) -> bool:
    """Tell whether a text is prose of the chapter itself."""
    node, prose = text.parent, False
    while node is not None:
        if isinstance(node, UNTOUCHED) or LEFT_ALONE & set(node.get("classes", [])):
            return False
        prose = prose or isinstance(node, nodes.paragraph)
        node = node.parent
    return prose


def split(text: nodes.Text, finder: re.Pattern[str], left: dict[str, str]) -> list[nodes.Node]:
    """Return a text in parts, with links for the terms that were still to come."""
    parts: list[nodes.Node] = []
    marked = isinstance(text.parent, (nodes.emphasis, nodes.strong))
    whole, done = text.astext(), 0
    for match in finder.finditer(whole):
        name = str(match.lastgroup)
        term = left.get(name)
        if term is None or (term in EVERYDAY and not marked):
            continue
        del left[name]
        parts += [nodes.Text(whole[done : match.start()]), link(term, match[0])]
        done = match.end()
    return [part for part in [*parts, nodes.Text(whole[done:])] if part.astext()]


def link(term: str, shown: str) -> nodes.Node:
    """Return a link to a term, which Sphinx resolves as it does those that are written."""
    inner = nodes.inline(shown, shown, classes=["xref", "std", "std-term"])
    return addnodes.pending_xref(
        "", inner, refdomain="std", reftype="term", reftarget=term, refwarn=True, refexplicit=True
    )


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect both steps."""
    app.connect("source-read", watch_the_glossary)
    app.connect("doctree-read", link_terms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
