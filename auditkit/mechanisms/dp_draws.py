"""Random numbers that are functions of their place: Philox, and normal numbers made of its words.

Each of the words is a bijection of (place, step, model, stream) under a key from the seed, so that
no two of them share an input. All loops are written so that the compiler turns them into vector
instructions: words of 32 bits wait in 64, where products need no carrying.

References
----------
Salmon, Moraes, Dror and Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3", for Philox
4x32-10. Box and Muller (1958), "A note on the generation of random normal deviates". Polynomials:
Cephes library, single precision.
"""

import numpy as np
from numba import njit

FREELY = {"reassoc", "contract", "nsz"}
F32, I32, U64 = np.float32, np.int32, np.uint64
LOW, HALF = U64(2**32 - 1), U64(32)
MULTIPLY = U64(0xD2511F53), U64(0xCD9E8D57)
ADD = U64(0x9E3779B9), U64(0xBB67AE85)
SAMPLED = U64(2)  # the stream of the batches; those of noise have lower numbers
LANES = 16  # places are padded to a multiple, or most time would go into the rest of a loop


@njit
def _round(c0, c1, c2, c3, k0, k1):  # type: ignore[no-untyped-def]
    p, s = MULTIPLY[0] * c0, MULTIPLY[1] * c2
    c0, c1, c2, c3 = (s >> HALF) ^ c1 ^ k0, s & LOW, (p >> HALF) ^ c3 ^ k1, p & LOW
    return c0, c1, c2, c3, (k0 + ADD[0]) & LOW, (k1 + ADD[1]) & LOW


@njit
def _rounds(s):  # type: ignore[no-untyped-def]
    return _round(*_round(*s))


@njit
def fill_words(words, step, model, stream, k0, k1):  # type: ignore[no-untyped-def]
    """Fill four rows with words of 32 bits."""
    a, b, c, d = words[0], words[1], words[2], words[3]
    for i in range(len(a)):
        s = (U64(i), step, model, stream, k0, k1)
        s = _rounds(_rounds(_rounds(_rounds(_rounds(s)))))
        a[i], b[i], c[i], d[i] = s[0], s[1], s[2], s[3]


@njit(fastmath=FREELY)
def normal_pair(first, second):  # type: ignore[no-untyped-def]
    """Return two normal numbers: a radius from one word, an angle from the other."""
    u = F32(I32(first >> U64(1))) * F32(2.0**-31) + F32(2.0**-32)
    bits = F32(u).view(I32)
    exponent = I32((bits - I32(0x3F3504F3)) >> I32(23))  # so that the rest lies between √½ and √2
    m = I32(bits - I32(exponent << I32(23))).view(F32) - F32(1.0)
    p = F32(7.0376836292e-2)
    p = p * m + F32(-1.1514610310e-1)
    p = p * m + F32(1.1676998740e-1)
    p = p * m + F32(-1.2420140846e-1)
    p = p * m + F32(1.4249322787e-1)
    p = p * m + F32(-1.6668057665e-1)
    p = p * m + F32(2.0000714765e-1)
    p = p * m + F32(-2.4999993993e-1)
    p = p * m + F32(3.3333331174e-1)
    logarithm = m * m * m * p - F32(0.5) * m * m + m + F32(exponent) * F32(0.6931471805599453)
    radius = np.sqrt(F32(-2.0) * logarithm)
    # an angle of up to an eighth of a turn to either side, then its low bits mirror and turn it
    w = I32(second)
    t = F32(w) * F32(2.0**-31 * np.pi / 4.0)
    s = t * t
    sine = t + t * s * (
        F32(-1.6666654611e-1) + s * (F32(8.3321608736e-3) - s * F32(1.9515295891e-4))
    )
    cosine = F32(4.166664568298827e-2) + s * (
        F32(-1.388731625493765e-3) + s * F32(2.443315711809948e-5)
    )
    cosine = F32(1.0) - F32(0.5) * s + s * s * cosine
    radius = -radius if w & I32(1) else radius
    swap = (w & I32(2)) != 0
    return radius * (sine if swap else cosine), radius * (cosine if swap else sine)


@njit(fastmath=FREELY)
def _turn(a, b, x, y):  # type: ignore[no-untyped-def]
    for i in range(len(a)):
        x[i], y[i] = normal_pair(a[i], b[i])


@njit
def _padded(numbers):  # type: ignore[no-untyped-def]
    """Return how many places of four words give that many numbers."""
    return (numbers + 4 * LANES - 1) // (4 * LANES) * LANES


@njit(cache=True, nogil=True, fastmath=FREELY)
def add_normal(to, key, first, step, stream, deviation):  # type: ignore[no-untyped-def]
    """Add normal numbers to rows, one a model from number `first` on."""
    models, numbers = to.shape
    words = np.empty((4, _padded(numbers)), dtype=np.uint64)
    normal = np.empty(words.shape, dtype=np.float32)
    flat, scale = normal.reshape(-1), F32(deviation)
    for model in range(models):
        fill_words(words, U64(step), U64(first + model), U64(stream), key[0], key[1])
        _turn(words[0], words[1], normal[0], normal[1])
        _turn(words[2], words[3], normal[2], normal[3])
        row = to[model]
        for j in range(numbers):
            row[j] += scale * flat[j]


@njit(cache=True, nogil=True)
def fill_sampled(to, key, first, step, below):  # type: ignore[no-untyped-def]
    """Fill rows with 1 where a word is less than `below`, else 0."""
    models, numbers = to.shape
    words = np.empty((4, _padded(numbers)), dtype=np.uint64)
    flat = words.reshape(-1)
    for model in range(models):
        fill_words(words, U64(step), U64(first + model), SAMPLED, key[0], key[1])
        row = to[model]
        for j in range(numbers):
            row[j] = flat[j] < below
