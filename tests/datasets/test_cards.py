"""A card says all that one should know, and its sources add up."""

import re

import pytest

from auditkit.datasets import CARDS
from auditkit.datasets.loading import READERS

FETCHED = [card for card in CARDS.values() if card.files]


def test_every_card_has_a_reader():
    assert READERS.keys() == CARDS.keys()
    assert all(name == card.name for name, card in CARDS.items())


@pytest.mark.parametrize("card", CARDS.values(), ids=lambda card: card.name)
def test_no_card_leaves_anything_open(card):
    for field in ("title", "what", "size", "task", "licence", "citation", "stands_in"):
        assert getattr(card, field), field
    assert card.what.endswith(".")
    assert card.stands_in.endswith(".")
    assert bool(card.files) == bool(card.package) == (not card.bring)


@pytest.mark.parametrize("card", FETCHED, ids=lambda card: card.name)
def test_each_source_brings_every_file(card):
    files = {file.name for file in card.files}
    origins = [card.package, *card.addresses]
    for thing in (*card.files, *origins):
        assert re.fullmatch("[0-9a-f]{64}", thing.sha256)
        assert thing.size > 0
    assert card.package.convert or set(card.package.members.values()) == files
    if card.addresses:
        assert {name for each in card.addresses for name in each.members.values()} == files
    assert card.bytes == sum(file.size for file in card.files)
