"""PATE-FM: the student learns what the teachers agree on, and nothing without a vote."""

import math

import numpy as np
import pytest
from experiments.observational import pate_fixmatch
from experiments.observational.images import split
from experiments.observational.pate_fixmatch import pate_fm, queries

EXAMPLES = 2500


@pytest.fixture(autouse=True)
def fewer_teachers_and_steps_and_views_of_features(monkeypatch):
    """Stand-ins for views, which need the images: features with noise."""
    features, rng = split(EXAMPLES).audited.features, np.random.default_rng(0)
    noise = rng.normal(scale=0.5 * features.std(), size=(3, *features.shape)).astype(np.float32)
    views = (features + 0.2 * noise[:1]), (features + noise[1:])
    monkeypatch.setattr(pate_fixmatch, "views", lambda: views)
    for name, few in (("TEACHERS", 25), ("STEPS", 200), ("STUDENT_STEPS", 300)):
        monkeypatch.setattr(pate_fixmatch, name, few)


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
