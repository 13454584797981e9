"""With a network, and AUDITKIT_NETWORK_TESTS=1: every set arrives and is what its card says."""

import os

import numpy as np
import pytest

from auditkit.datasets import CARDS, load, verify

pytestmark = pytest.mark.skipif(
    not os.environ.get("AUDITKIT_NETWORK_TESTS"), reason="needs a network and 650 MB"
)
FACTS = {
    "cifar10": {"train_labels": [5_000] * 10, "test_labels": [1_000] * 10},
    "fashion-mnist": {"train_labels": [6_000] * 10, "test_labels": [1_000] * 10},
    "mnist": {
        "train_labels": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
        "test_labels": [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009],
    },
    "census-income": {
        "train_labels": [187_141, 12_382],
        "test_labels": [93_576, 6_186],
        "train_years": [99_827, 99_696],
        "test_years": [49_816, 49_946],
    },
    "adult": {"train_labels": [24_720, 7_841], "test_labels": [12_435, 3_846]},
    "patients": {"labels": [117_015, 54_052], "years": [59_997, 55_146, 55_924]},
    "film-sentences": {"labels": [4_265, 4_265]},
    "imdb": {"labels": [25_000, 25_000]},
    "domains": {"domains": [10_605, 3_708, 5_190, 4_200]},
    "newsgroups": {},
}
SHAPES = {
    "cifar10": {"train_images": (50_000, 32, 32, 3), "test_images": (10_000, 32, 32, 3)},
    "census-income": {"train_features": (199_523, 31), "test_features": (99_762, 31)},
    "adult": {"train_features": (32_561, 13), "test_features": (16_281, 13)},
    "patients": {"features": (171_067, 134)},
    "newsgroups": {"train_texts": (11_293,), "test_texts": (7_528,)},
}


def test_the_facts_cover_all_that_can_be_fetched():
    assert FACTS.keys() == {name for name, card in CARDS.items() if card.files}


@pytest.mark.parametrize("name", FACTS)
def test_each_set_arrives_and_is_what_its_card_says(name):
    data = load(name, part="complete")
    for array, counts in FACTS[name].items():
        assert np.unique(data[array], return_counts=True)[1].tolist() == counts
    for array, shape in SHAPES.get(name, {}).items():
        assert data[array].shape == shape
    assert set(verify(name).values()) == {""}
