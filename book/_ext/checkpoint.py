"""Ask the reader: a question with choices, each of which says when it is opened why it is right.

    :::{checkpoint} The question?
    - [ ] A choice
      Why it is wrong. It may hold formulas and links.
    - [x] The right choice
      Why.
    :::

A choice is its first line, and what is indented below it is said of it. Exactly one is right. Each
choice is a `details` with the choice as its button: the browser opens it by mouse or key, tells a
screen reader so, and needs no script for it. Nothing is stored.
"""

import re
from typing import Any, NamedTuple

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

CLASS = "auditkit-checkpoint"
CHOICE = re.compile(r"^- \[([ x])\] (.+)\n((?:(?: {2,}.*)?\n)*)", re.MULTILINE)
WORDS = {True: "Right.", False: "Not this."}


class Choice(NamedTuple):
    """One answer: whether it is right, what it says, and what is said of it."""

    right: bool
    said: str
    feedback: str


def choices(text: str) -> list[Choice]:
    """Return the choices that are written under a question; a ValueError says what is wrong."""
    text = text.strip("\n") + "\n"
    rest = CHOICE.sub("", text).strip()
    if rest:
        raise ValueError(f"this is neither a choice nor indented below one: {rest.splitlines()[0]}")
    found = [
        Choice(mark == "x", said.strip(), re.sub(r"^ {2}", "", below, flags=re.MULTILINE).strip())
        for mark, said, below in CHOICE.findall(text)
    ]
    right = sum(one.right for one in found)
    if len(found) < 2 or right != 1:
        raise ValueError(f"{right} of {len(found)} choices are right, and it takes 1 of 2 or more")
    for one in found:
        if not one.feedback:
            raise ValueError(f"nothing is said of the choice {one.said}")
    return found


class checkpoint(nodes.General, nodes.Element):  # noqa: N801 (docutils names its nodes so)
    """The box: a question, and a list of answers."""


class answer(nodes.General, nodes.Element):  # noqa: N801
    """One answer: its button, then what is said of it."""


class button(nodes.General, nodes.TextElement):  # noqa: N801
    """What a choice says. No paragraph, so no term in it becomes a link."""


class Checkpoint(SphinxDirective):
    """The directive above."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the box."""
        (question,) = self.arguments
        try:
            items = [self.item(choice) for choice in choices("\n".join(self.content))]
        except ValueError as error:
            raise self.error(f"checkpoint “{question}”: {error}") from error
        number = self.env.new_serialno("checkpoint") + 1
        name = f"checkpoint-{number}"
        box = checkpoint(classes=[CLASS], ids=[name], question=f"{name}-question")
        box += nodes.paragraph("", "", *self.parse_inline(question)[0], ids=[box["question"]])
        box += nodes.enumerated_list("", *items, enumtype="upperalpha")
        return [box]

    def item(self, choice: Choice) -> nodes.Node:
        """Return one choice of the list."""
        said = button("", "", *self.parse_inline(choice.said)[0])
        links = (nodes.reference, addnodes.pending_xref)
        if any(isinstance(node, links) for node in said.findall()):
            raise ValueError(f"a choice is a button and holds no link: {choice.said}")
        feedback = self.parse_text_to_nodes(f"**{WORDS[choice.right]}** {choice.feedback}")
        right = ["right"] if choice.right else []
        return nodes.list_item("", answer("", said, *feedback, classes=right))


def open_box(self: Any, node: checkpoint) -> None:
    """Open the box, which is named by its question."""
    named = {"aria-labelledby": node["question"]}
    self.body.append(self.starttag(node, "div", role="group", **named))


def close_box(self: Any, node: checkpoint) -> None:
    """Close it."""
    self.body.append("</div>\n")


def open_answer(self: Any, node: answer) -> None:
    """Open what a choice folds."""
    self.body.append(self.starttag(node, "details"))


def close_answer(self: Any, node: answer) -> None:
    """Close it."""
    self.body.append("</div></details>")


def open_button(self: Any, node: button) -> None:
    """Open the button."""
    self.body.append("<summary><span>")


def close_button(self: Any, node: button) -> None:
    """Close it, and open what is said of the choice."""
    self.body.append('</span></summary><div class="feedback">')


def in_words(self: Any, node: nodes.Node) -> None:
    """Leave the words alone where there is no browser."""


def setup(app: Sphinx) -> dict[str, bool]:
    """Add nodes and directive."""
    silent = (in_words, in_words)
    app.add_node(checkpoint, html=(open_box, close_box), latex=silent, text=silent)
    app.add_node(answer, html=(open_answer, close_answer), latex=silent, text=silent)
    app.add_node(button, html=(open_button, close_button), latex=silent, text=silent)
    app.add_directive("checkpoint", Checkpoint)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
