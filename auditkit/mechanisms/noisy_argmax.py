"""The law of the largest of several noisy counts, by quadrature, when the counts are known.

The integral and its error are described at `auditkit.mechanisms.voting.noisy_argmax_probabilities`,
which checks what comes in. Here the counts are given in units of the noise, a row a histogram.
"""

import math

import numpy as np
from numba import njit, prange

from auditkit._types import Floats

TINY = float(np.finfo(np.float64).tiny)
REACH = 8.5  # standard deviations after which a Gaussian holds no more than 1e-17
FADED = 55.0  # standard deviations behind the winner after which exp(-d²/4) is no double any more


@njit(cache=True, parallel=True)
def argmax_rows(scaled: Floats) -> Floats:
    """Compute the law for each row of votes over sigma."""
    laws = np.zeros(scaled.shape)
    for row in prange(scaled.shape[0]):
        _argmax_law(scaled[row], laws[row])
    return laws


@njit(cache=True)
def _argmax_law(scaled: Floats, law: Floats) -> None:
    """Add the law of argmax(scaled + standard noise) to `law`, by the trapezoidal rule."""
    classes = scaled.size
    top = scaled.max()
    bottom = top
    for i in range(classes):
        if scaled[i] > top - FADED:
            bottom = min(bottom, scaled[i])
    # on the line z = x + iy the integrand grows like exp(classes y²/2) at most: this step leaves
    # a relative error of exp(-2π² / (classes step²)) < 1e-13
    step = min(0.25, 0.8 / math.sqrt(classes))
    low = 0.5 * (bottom + top) - REACH
    high = top + REACH + math.sqrt(2.0 * math.log(classes))
    below = np.empty(classes)
    for node in range(int((high - low) / step) + 1):
        x = low + node * step
        product = step / math.sqrt(2.0 * math.pi)
        for i in range(classes):
            z = x - scaled[i]
            below[i] = 1.0 if z > REACH else 0.5 * math.erfc(-z / math.sqrt(2.0))
            product *= below[i]
        if product > 0.0:
            for i in range(classes):
                law[i] += math.exp(-0.5 * (x - scaled[i]) ** 2) * (product / below[i])
