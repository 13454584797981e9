"""Better reference models: one put right, one that learns from the target, one that includes it.

A label attack needs generated labels that the two models together cannot tell from true ones, on
examples that neither was trained on. A reference model of its own falls short of that however well
it is trained: the target knows things about all examples that it does not. That is no memory of any
label, and yet the attack counts it. None of the three is in the paper.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

WEIGHT = 0.8  # of what the target says, when a reference model learns from it


def exponents(logs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the exponents with which models are multiplied to predict labels best.

    With one model the exponent is one over its temperature. With a reference model and the target
    the product is what the two say together of the label of an example that neither was trained on.

    Parameters
    ----------
    logs : array of shape (models, n, classes)
        Logits or log-probabilities, on examples that no model was trained on.
    labels : array of shape (n,)
        Their labels.

    Returns
    -------
    array of shape (models,)
        Those of the least log-loss, which is convex in them.

    References
    ----------
    Guo, Pleiss, Sun and Weinberger, "On calibration of modern neural networks", 2017, for one
    model. Genest and Zidek, "Combining probability distributions", 1986, for several.
    """
    rows, truth = np.arange(len(labels)), np.eye(logs.shape[2])[labels]

    def loss(powers: np.ndarray) -> tuple[float, np.ndarray]:
        predicted = log_softmax(np.tensordot(powers, logs, axes=1), axis=1)
        slopes = (logs * (np.exp(predicted) - truth)).sum(axis=(1, 2))
        return -predicted[rows, labels].mean(), slopes / len(labels)

    return minimize(loss, np.full(len(logs), 1.0 / len(logs)), jac=True, method="BFGS").x


def product(logs: np.ndarray, powers: np.ndarray) -> np.ndarray:
    """Return the probabilities that models give together, of shape (n, classes)."""
    return softmax(np.tensordot(powers, logs, axes=1), axis=1)


def lessons(said: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return soft labels that teach a reference model what the target knows, and a little more.

    The true labels are mixed in because they keep it from sharing too much: from a target that is
    too sure of itself it would learn to be so too.

    Parameters
    ----------
    said : array of shape (n, classes)
        Probabilities that the target gives examples of the auditor's own.
    labels : array of shape (n,)
        Their labels.

    Returns
    -------
    array of shape (n, classes)

    References
    ----------
    Hinton, Vinyals and Dean, "Distilling the knowledge in a neural network", 2015.
    """
    return WEIGHT * said + (1.0 - WEIGHT) * np.eye(said.shape[1])[labels]
