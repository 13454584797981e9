"""Attacks on stored scores: by losses, by the auditor's own model, and by shadow models.

A setting is a kind of training; its models differ by their coins, and each has the others for its
shadow models. Nothing is trained here but the auditor's head.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import log_expit

from auditkit.attacks.lira import lira, logit_confidence
from auditkit.attacks.membership import difficulty_calibration, rmia
from auditkit.experiment import stored
from experiments.five_audits import deals, heads, networks, private_networks, texts
from experiments.five_audits.audits import LONG, SHORT
from experiments.zero_run.heads import unpack

LOSS, CALIBRATED, RMIA, LIRA = "loss", "calibrated", "RMIA", "LiRA"


class Setting(NamedTuple):
    """A training whose models are audited."""

    study: str
    which: dict[str, object]  # of its rows
    models: int
    promised: float  # for add/remove; infinite without privacy
    language: bool = False

    @property
    def reported(self) -> range:
        """Models that results are of."""
        return range(deals.REPORTED)

    @property
    def choosing(self) -> range:
        """Models that attacks are chosen on."""
        return range(deals.REPORTED, deals.FULLY)


HEADS = {
    "head, ε = 2": (2.0, SHORT),
    "head, ε = 8": (8.0, SHORT),
    "head, 10 passes": (math.inf, SHORT),
    "head, 100 passes": (math.inf, LONG),
}
SETTINGS = {
    name: Setting(heads.HEADS, {"epsilon": epsilon, "passes": passes}, heads.MODELS, epsilon)
    for name, (epsilon, passes) in HEADS.items()
}
SETTINGS |= {
    f"network, {setting}": Setting(
        networks.NETWORKS, {"setting": setting}, networks.MODELS, math.inf
    )
    for setting in (networks.VIEWS, networks.HEART)
}
SETTINGS |= {
    f"network, ε = {epsilon:g}": Setting(id_, {}, private_networks.MODELS, epsilon)
    for epsilon, id_ in private_networks.PRIVATE.items()
}
SETTINGS["text"] = Setting(texts.TEXTS, {}, texts.MODELS, math.inf, language=True)


@cache
def told(setting: str, part: str, column: str = "odds") -> dict[int, np.ndarray]:
    """Return what the models of a setting say of a part, by model."""
    chosen = SETTINGS[setting]
    rows = stored(chosen.study)
    for name, value in {**chosen.which, "part": part}.items():
        rows = rows[rows[name] == value]
    found = {
        int(model): unpack(text) for model, text in zip(rows["model"], rows[column], strict=True)
    }
    if not found:
        raise ValueError(f"{chosen.study} has nothing of {setting!r} and part {part!r}")
    return found


def reference(setting: str, part: str) -> np.ndarray:
    """Return what the auditor's own model says: a head, or the language model before tuning."""
    if SETTINGS[setting].language:
        return told(setting, part)[texts.BEFORE]
    _, labels = deals.asked(deals.CIFAR, part)
    return logit_confidence(deals.expected(deals.CIFAR, part), labels)


def members(setting: str, part: str, model: int) -> np.ndarray:
    """Return the coins of a part, as they were tossed before a model was trained.

    Those of a null, which no model has seen, decided nothing.
    """
    own = part in ("coined", "planted")
    if SETTINGS[setting].language:
        coins = texts.toss(model) if own else texts.blank(model)
    else:
        coins = (deals.toss if own else deals.blank)(deals.CIFAR, model)
    return coins[part in ("planted", "decoys")]


def logs(setting: str, odds: np.ndarray) -> np.ndarray:
    """Return logarithms of probabilities; of a text that of a token, in the mean."""
    return odds if SETTINGS[setting].language else log_expit(odds)


def scores(setting: str, part: str, model: int) -> dict[str, np.ndarray]:
    """Return the scores of a part by every attack that takes no model but the auditor's own."""
    own, hers = told(setting, part)[model], reference(setting, part)
    expected, unseen = (np.exp(logs(setting, one)) for one in (hers, reference(setting, "unseen")))
    return {
        LOSS: own,
        CALIBRATED: difficulty_calibration(-logs(setting, own), -logs(setting, hers)),
        RMIA: relative(setting, model, own, expected, unseen),
    }


def shadowed(setting: str, part: str, model: int) -> dict[str, np.ndarray]:
    """Return the scores of examples with coins, with shadow models for RMIA and LiRA.

    Where an attack is chosen, models whose results are reported are no shadow models: the choice
    would know of their coins.
    """
    chosen, odds = SETTINGS[setting], told(setting, part)
    shadows = [one for one in range(chosen.models) if one != model]
    if model in chosen.choosing:
        shadows = [one for one in shadows if one not in chosen.reported]
    others = np.array([odds[one] for one in shadows])
    inside = np.array([members(setting, part, one) for one in shadows])
    chances = np.exp(logs(setting, others))
    without = np.where(inside, 0.0, chances).sum(axis=0) / (~inside).sum(axis=0)
    said = told(setting, "unseen")
    unseen = np.mean([np.exp(logs(setting, said[one])) for one in shadows], axis=0)
    return scores(setting, part, model) | {
        RMIA: relative(setting, model, odds[model], without, unseen),
        LIRA: lira(odds[model], others, inside, variance="global"),
    }


def relative(
    setting: str, model: int, own: np.ndarray, expected: np.ndarray, unseen: np.ndarray
) -> np.ndarray:
    """Score by RMIA, among examples that no model has seen.

    Expected are probabilities by models without an example, of the part and of the unseen ones.
    """
    population = np.exp(logs(setting, told(setting, "unseen")[model]))
    return rmia(np.exp(logs(setting, own)), expected, population, unseen)
