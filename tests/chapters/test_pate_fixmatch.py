"""PATE-FM: the student learns what the teachers agree on, and nothing without a vote."""

import math

import numpy as np
import pytest
from experiments.observational import pate_fixmatch
from experiments.observational.images import split
from experiments.observational.pate_fixmatch import pate_fm, queries

EXAMPLES = 2500


@pytest.fixture(autouse=True)
def more_steps_than_so_few_images_get(monkeypatch):
    monkeypatch.setattr(pate_fixmatch, "STEPS", 2000)
    monkeypatch.setattr(pate_fixmatch, "STUDENT_STEPS", 3000)


def test_the_student_is_about_as_good_as_the_vote():
    images = split(EXAMPLES)
    student, about = pate_fm(images, math.inf, 0, np.random.default_rng(0))
    unseen = student.predict(pate_fixmatch._scale(images) * images.unseen.features)[0]
    accuracy = (unseen == images.unseen.labels).mean()
    assert about["teachers"] > 0.55
    assert about["released"] > about["teachers"]
    assert accuracy > 0.7


def test_noise_that_drowns_the_vote_leaves_nothing_to_learn():
    images = split(EXAMPLES)
    _, about = pate_fm(images, 0.01, 0, np.random.default_rng(0))
    assert about["released"] < 0.25


def test_fewer_labels_are_released_where_the_noise_is_large():
    assert queries(math.inf) == queries(10.0) > queries(1.0)


def test_the_whole_half_of_the_images_makes_250_teachers():
    assert pate_fixmatch.WHOLE // pate_fixmatch.LABELS == 250
