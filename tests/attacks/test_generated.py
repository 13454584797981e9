"""The pipeline of PANORAMIA: who sees what, how it is scored, and where nothing may be found."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from auditkit.attacks.generated import (
    Mixture,
    cross_entropy,
    features_of,
    generate,
    sampled_labels,
    score_with_generated,
    split_members,
)
from auditkit.bounds.panoramia_games import generated_audit
from auditkit.models.generators import (
    Examples,
    fit_chow_liu_tree,
    fit_gaussian_mixtures,
    rounded_like,
)


def normal(number, shift, seed, columns=3):
    rng = np.random.default_rng(seed)
    return Examples(rng.normal(size=(number, columns)) + shift)


def mixed(shift=1.0, pairs=1000, **options):
    parts = [
        normal(size, move, seed)
        for seed, (size, move) in enumerate([(500, 0), (500, shift), (pairs, 0), (pairs, shift)])
    ]
    return Mixture(*parts, **options)


class Fixed:
    """A model that says the same of every example."""

    def __init__(self, *chances):
        self.chances = chances

    def predict_proba(self, inputs):
        return np.tile(self.chances, (len(inputs), 1))


# what classifiers see


def test_a_loss_is_minus_the_log_of_the_probability_of_the_label():
    examples = Examples(np.zeros((2, 1)), np.array([0, 1]))
    np.testing.assert_allclose(cross_entropy(Fixed(0.2, 0.8))(examples), -np.log([0.2, 0.8]))


def test_the_loss_of_an_impossible_label_is_finite():
    loss = cross_entropy(Fixed(1.0, 0.0))(Examples(np.zeros((1, 1)), np.array([1])))
    assert np.isfinite(loss).all()
    assert loss[0] > 700


def test_a_cross_entropy_needs_labels_and_a_model():
    with pytest.raises(ValueError, match="labels"):
        cross_entropy(Fixed(1.0))(Examples(np.zeros((1, 1))))
    with pytest.raises(TypeError, match="predict_proba"):
        cross_entropy(lambda x: x)


class Named(Fixed):
    """The same with classes that are not 0, 1, and so on."""

    def __init__(self, classes, *chances):
        super().__init__(*chances)
        self.classes_ = np.array(classes)


def test_columns_of_a_model_are_its_classes():
    model = Named([1, 5], 0.25, 0.75)
    examples = Examples(np.zeros((3, 1)), np.array([5, 1, 3]))
    loss = cross_entropy(model)(examples)
    np.testing.assert_allclose(loss[:2], [-np.log(0.75), -np.log(0.25)])
    assert 700 < loss[2] < np.inf  # a class that the model has never met
    assert set(sampled_labels(model, np.zeros((50, 1)), rng=0)) == {1, 5}


def test_a_model_of_other_classes_altogether_is_turned_away():
    examples = Examples(np.zeros((2, 1)), np.array([0, 1]))
    for classes, words in ((["a", "b"], "must know classes"), ([0, 1, 2], "column")):
        with pytest.raises(ValueError, match=words):
            cross_entropy(Named(classes, 0.5, 0.5))(examples)


def test_labels_are_drawn_as_often_as_the_model_says():
    labels = sampled_labels(Fixed(0.2, 0.5, 0.3), np.zeros((20_000, 1)), rng=0)
    np.testing.assert_allclose(np.bincount(labels) / 20_000, [0.2, 0.5, 0.3], atol=0.015)


def test_a_label_of_probability_zero_is_never_drawn():
    labels = sampled_labels(Fixed(0.0, 1.0, 0.0), np.zeros((20_000, 1)), rng=0)
    assert (labels == 1).all()


def test_labels_are_columns_of_their_own():
    seen = features_of(Examples(np.ones((2, 1, 2)), np.array([2, 0])))
    np.testing.assert_array_equal(seen, [[1, 1, 0, 0, 1], [1, 1, 1, 0, 0]])


def test_an_attack_sees_the_loss_and_a_baseline_does_not():
    game = mixed(shift=0.0)
    known = {row.tobytes() for part in (game.train_real, game.real) for row in part.inputs}
    blind = game.scores()
    told = game.scores(lambda e: [float(row.tobytes() in known) for row in e.inputs])
    assert (blind.real > blind.other).mean() < 0.6
    assert (told.real > told.other).all()


def test_losses_of_several_numbers_are_columns():
    seen = []

    class Spy(LogisticRegression):
        def fit(self, rows, truth):
            seen.append(rows.shape)
            return super().fit(rows, truth)

    mixed().scores(lambda e: e.inputs[:, :2], lambda e: e.inputs[:, 0], classifier=Spy())
    assert seen == [(1000, 3 + 2 + 1)]


def test_see_decides_what_a_classifier_is_shown():
    blind = mixed(see=lambda e: np.zeros((len(e), 1))).scores()
    assert len(np.unique(np.append(blind.real, blind.other))) == 1


def test_what_is_seen_may_be_a_matrix_for_all_parts():
    by_function = mixed(see=lambda examples: examples.inputs[:, :1])
    parts = (by_function.train_real, by_function.train_other, by_function.real, by_function.other)
    matrix = np.concatenate([part.inputs[:, :1] for part in parts])
    by_matrix = mixed(see=matrix)
    np.testing.assert_array_equal(by_matrix.scores().real, by_function.scores().real)
    with pytest.raises(ValueError, match="same length"):
        mixed(see=matrix[1:]).scores()


@pytest.mark.parametrize("classifier", [LinearSVC(), DecisionTreeClassifier(max_depth=3)])
def test_any_classifier_of_scikit_learn_fits_and_is_left_untrained(classifier):
    scores = mixed(shift=2.0).scores(classifier=classifier)
    assert scores.real.mean() > scores.other.mean()
    assert not hasattr(classifier, "classes_")


def test_what_is_no_classifier_is_turned_away():
    with pytest.raises(TypeError, match="classifier"):
        mixed().scores(classifier=np.mean)


def test_audited_pairs_are_not_trained_on():
    game = mixed(shift=0.0, pairs=300)
    scores = game.scores(classifier=DecisionTreeClassifier(random_state=0))
    assert abs((scores.real - scores.other).mean()) < 0.2


def test_a_mixture_needs_pairs_and_labels_throughout():
    one, two = normal(5, 0, 0), normal(6, 0, 0)
    with pytest.raises(ValueError, match="same length"):
        Mixture(one, one, one, two)
    with pytest.raises(ValueError, match="labels"):
        Mixture(one, one, one, one.labelled(np.zeros(5)))


def test_a_mixture_of_two_precisions_is_refused():
    one, two = normal(5, 0, 0), normal(5, 0, 1)
    single, whole = (
        Examples(two.inputs.astype(np.float32)),
        Examples(np.rint(two.inputs).astype(int)),
    )
    with pytest.raises(ValueError, match="same precision, got float64 and float32"):
        Mixture(one, single, one, single)
    with pytest.raises(ValueError, match="same precision, got float32 and float64"):
        Mixture(single, one, single, one)
    Mixture(single, single, single, single)
    Mixture(whole, one, whole, one)  # a whole number is the same in both


def test_scores_by_loss_are_highest_where_the_loss_is_lowest():
    game = mixed()
    scores = game.loss_scores(lambda e: e.inputs[:, 0])
    np.testing.assert_array_equal(scores.real, -game.real.inputs[:, 0])


# the first phase


@given(members=st.integers(3, 60), data=st.data())
def test_members_are_dealt_once_each(members, data):
    training = data.draw(st.integers(1, members - 2))
    audited = data.draw(st.integers(1, members - training - 1))
    parts = split_members(members, training=training, audited=audited, rng=0)
    assert [len(part) for part in parts] == [members - training - audited, training, audited]
    assert sorted(np.concatenate(parts)) == list(range(members))


def test_a_deal_leaves_members_to_the_generator():
    with pytest.raises(ValueError, match="leave members to the generator"):
        split_members(10, training=5, audited=5, rng=0)


@pytest.mark.parametrize(("made", "error"), [(np.zeros((3, 2)), "make 4"), (np.zeros(4), "shape")])
def test_a_generator_has_to_make_what_is_asked(made, error):
    class Odd:
        def sample(self, number, *, rng):  # noqa: ARG002
            return made

    with pytest.raises(ValueError, match=error):
        generate(Odd(), 4, rng=0)


def test_what_is_no_generator_is_turned_away():
    with pytest.raises(TypeError, match="sample"):
        generate(np.zeros(3), 4, rng=0)


# all of it


class TrueLaw:
    """A generator that draws from the law of the data."""

    def sample(self, number, *, rng):
        return people(number, rng)


def people(number, rng):
    # labels that nothing tells: who is right about them knows them by heart
    return Examples(rng.normal(size=(number, 3)), rng.integers(8, size=number))


def tree(examples, _rng):
    return DecisionTreeClassifier(random_state=0).fit(examples.inputs, examples.labels)


def whole_audit(members, model, fit_generator=lambda *_: TrueLaw()):
    rng = np.random.default_rng(0)
    scores = score_with_generated(
        members,
        model,
        fit_generator=fit_generator,
        fit_model=tree,
        training=600,
        audited=1000,
        rng=rng,
    )
    return generated_audit(*scores, flips=3, rng=rng)


def test_a_model_that_knows_its_members_by_heart_is_found_out():
    rng = np.random.default_rng(0)
    members = people(2600, rng)
    result = whole_audit(members, tree(members, rng))
    measured = np.mean([game.details["difference"] for game in result.games])
    null = np.mean([game.details["difference"] for game in result.null_games])
    assert measured > 1.0 > 0.2 > null


def test_a_model_of_other_people_is_not():
    rng = np.random.default_rng(0)
    members, others = people(2600, rng), people(2600, rng)
    result = whole_audit(members, tree(others, rng))
    assert max(game.epsilon for game in result.games) < 0.2


def test_labels_are_drawn_where_a_generator_gives_none():
    class Bare(TrueLaw):
        def sample(self, number, *, rng):
            return people(number, rng).inputs

    rng = np.random.default_rng(0)
    members = people(1000, rng)
    scores = score_with_generated(
        members,
        tree(members, rng),
        fit_generator=lambda *_: Bare(),
        fit_model=tree,
        training=200,
        audited=200,
        rng=0,
    )
    assert len(scores.attack) == 200


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_decimals_do_not_tell_generated_examples_from_real_ones(kind):
    rng = np.random.default_rng(0)
    prices, labels = np.round(rng.gamma(4.0, 2.0, (3000, 2)), 1), rng.integers(8, size=3000)
    members = Examples(prices.astype(kind), labels)
    for fit in (
        lambda own, rng: rounded_like(fit_gaussian_mixtures(own, rng), own),
        lambda own, _: fit_chow_liu_tree(own),
    ):
        result = whole_audit(members, tree(members, rng), fit)
        assert np.mean([game.c_lower for game in result.games]) < 1.0  # 3.7 by rounding alone
        assert np.mean([game.details["difference"] for game in result.games]) > 1.0


def test_an_audit_names_the_precisions_that_do_not_match():
    class Single(TrueLaw):
        def sample(self, number, *, rng):
            return people(number, rng).inputs.astype(np.float32)

    members = people(1000, np.random.default_rng(0))
    with pytest.raises(ValueError, match="precision, got float64 and float32"):
        score_with_generated(
            members,
            tree(members, None),
            fit_generator=lambda *_: Single(),
            fit_model=tree,
            training=200,
            audited=200,
            rng=0,
        )


def test_an_audit_needs_labelled_members():
    with pytest.raises(ValueError, match="labels"):
        whole_audit(normal(2600, 0, 0), Fixed(1.0))


def test_a_model_of_other_columns_is_refused_before_anything_is_fitted():
    rng = np.random.default_rng(0)
    members = people(2600, rng)
    wide = Examples(np.column_stack((members.inputs, members.inputs)), members.labels)

    def never(*_):
        raise AssertionError("a model that cannot be audited is trained for")

    with pytest.raises(ValueError, match="features"):
        score_with_generated(
            members,
            tree(wide, rng),
            fit_generator=never,
            fit_model=never,
            training=600,
            audited=1000,
            rng=0,
        )


def test_an_audit_needs_members_without_holes():
    members = people(2600, np.random.default_rng(0))
    members.inputs[7, 1] = np.nan
    with pytest.raises(ValueError, match=r"members\.inputs must hold finite numbers, got nan"):
        whole_audit(members, Fixed(1.0))
