"""What the experiments of the chapter share: training, rows of games, audits with real examples."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.special import betaincinv, logit
from torch import nn

from auditkit.attacks.generated import Loss, Mixture
from auditkit.bounds.panoramia_games import one_run_games, panoramia_games, real_games
from auditkit.evidence import PairedScores
from auditkit.models.training import Models, fit_many

TARGET, NULL, OWNERS_NULL = "audited", "null", "owner's null"
PAPERS, NESTED = "as in the paper", "with the helper"
PANORAMIA, REAL, ONE_RUN = "PANORAMIA", "RM;RN", "O(1)"
MEMBERS_ONLY = "O(1), members only"


def settled(
    network: Callable[[], nn.Module],
    inputs: np.ndarray,
    labels: np.ndarray,
    *,
    passes: int,
    rate: float,
    batch_size: int,
    seed: int,
    start: Models | None = None,
) -> Models:
    """Train a network by Adam, the last fifth of the passes at a tenth of the rate.

    At one rate Adam now and then leaps away from weights that know all examples by heart. Rounding
    then decides whether it is back when training ends. If not, an audit may find half as much.
    """
    slow = passes // 5
    for each, speed in ((passes - slow, rate), (slow, rate / 10)):
        start = fit_many(
            network,
            inputs,
            labels,
            seeds=[seed],
            epochs=each,
            batch_size=batch_size,
            learning_rate=speed,
            optimizer="adam",
            initial=None if start is None else start.weights,
        )
    return start


def game_rows(
    baseline: PairedScores,
    attack: PairedScores,
    /,
    *,
    pairs: Sequence[int],
    flips: int,
    coins: int,
    **about: object,
) -> list[dict]:
    """Play PANORAMIA's games with so many pairs, and return a row for each toss of the coins.

    ``difference`` is ε̃ with its sign.
    """
    return [
        {
            **about,
            "audit": PANORAMIA,
            "pairs": number,
            "flip": flip,
            "c_lower": game.c_lower,
            "both_lower": game.c_plus_epsilon_lower,
            "difference": game.details["difference"],
            "ceiling": game.details["ceiling"],
        }
        for number in pairs
        for flip, game in enumerate(
            panoramia_games(baseline.first(number), attack.first(number), flips=flips, rng=coins)
        )
    ]


def real_rows(
    attack: PairedScores, /, *, pairs: Sequence[int], flips: int, coins: int, **about: object
) -> list[dict]:
    """Play the games of RM;RN; ``difference`` is the bound on ε, and c is 0."""
    return [
        {
            **about,
            "audit": REAL,
            "pairs": number,
            "flip": flip,
            "c_lower": 0.0,
            "both_lower": game.epsilon,
            "difference": game.epsilon,
            "ceiling": game.details["ceiling"],
        }
        for number in pairs
        for flip, game in enumerate(real_games(attack.first(number), flips=flips, rng=coins))
    ]


def one_run_rows(
    scores: PairedScores,
    /,
    *,
    pairs: Sequence[int],
    flips: int,
    coins: int,
    attack: str = "loss",
    guess: str = "both",
    **about: object,
) -> list[dict]:
    """Play O(1) with two thresholds, or with that for members alone; ``difference`` bounds ε."""
    return [
        {
            **about,
            "audit": ONE_RUN if guess == "both" else MEMBERS_ONLY,
            "attack": attack,
            "pairs": number,
            "flip": flip,
            "c_lower": 0.0,
            "both_lower": game.epsilon,
            "difference": game.epsilon,
            "ceiling": None,
        }
        for number in pairs
        for flip, game in enumerate(
            one_run_games(scores.first(number), flips=flips, guess=guess, rng=coins)
        )
    ]


def all_rows(
    generated: Mixture,
    unseen: Mixture,
    helper: Loss,
    losses: dict[str, Loss],
    *,
    pairs: Sequence[int],
    flips: int,
    coins: int,
    **about: object,
) -> list[dict]:
    """Audit models by generated and by unseen real examples, with equal coins for each.

    The attack sees the model's loss, as in the paper, or the helper's loss too, as the baseline
    does. O(1) ranks by the loss, as in the paper, or by the scores of the attack with the helper.
    `losses` has a model by its name.
    """
    baseline = generated.scores(helper)
    rows = []
    for release, loss in losses.items():
        options = {"pairs": pairs, "flips": flips, "coins": coins, "release": release, **about}
        for attack, seen in ((PAPERS, (loss,)), (NESTED, (helper, loss))):
            rows += game_rows(baseline, generated.scores(*seen), attack=attack, **options)
            scores = unseen.scores(*seen)
            rows += real_rows(scores, attack=attack, **options)
        # the scores are now those of the attack with the helper
        for guess in ("both", "members"):
            rows += one_run_rows(unseen.loss_scores(loss), guess=guess, **options)
            rows += one_run_rows(scores, attack=NESTED, guess=guess, **options)
    return rows


def curves(
    mixed: Mixture, helper: Loss, losses: dict[str, Loss], *, coins: int, **about: object
) -> list[dict]:
    """Return precision and bound along the recall, for one toss.

    For the baseline, for both attacks on the audited model, and for the null.
    """
    seen = {
        ("baseline", "none"): (helper,),
        (PAPERS, TARGET): (losses[TARGET],),
        (NESTED, TARGET): (helper, losses[TARGET]),
        (NESTED, NULL): (helper, losses[NULL]),
    }
    toss = np.random.default_rng(coins).random(len(mixed.real)) < 0.5
    return [
        {"attack": attack, "release": release, **about, **row}
        for (attack, release), columns in seen.items()
        for row in curve(mixed.scores(*columns), toss)
    ]


def curve(scores: PairedScores, coins: np.ndarray) -> list[dict]:
    """Return what the best guesses show, for 80 numbers of them; ``lower`` pays for the union."""
    order = np.argsort(-scores.shown(coins), kind="stable")
    guesses = np.unique(np.geomspace(5, len(coins), 80).astype(np.int64))
    correct = np.cumsum(coins[order])[guesses - 1]
    rows = []
    level = 0.025 / len(coins)
    for number, right in zip(guesses.tolist(), correct.tolist(), strict=True):
        least = float(logit(betaincinv(right, number - right + 1, level))) if right else 0.0
        rows.append(
            {
                "guesses": number,
                "correct": right,
                "recall": right / int(coins.sum()),
                "precision": right / number,
                "lower": max(0.0, least),
            }
        )
    return rows
