"""Numbers on the way to a table and back: a tenth each, thousands of them as one short text."""

import base64
import bz2

import numpy as np

STEPS = 10  # parts of 1 that are kept


def pack(numbers: np.ndarray) -> str:
    """Return numbers as a text, to a tenth."""
    whole = np.rint(STEPS * np.asarray(numbers, np.float64))
    limit = np.iinfo(np.int16).max
    if not np.abs(whole).max() <= limit:
        raise ValueError(f"numbers must be within ±{limit / STEPS:g}, got {np.abs(numbers).max()}")
    low, high = whole.astype("<i2").view(np.uint8).reshape(-1, 2).T
    return base64.b85encode(bz2.compress(low.tobytes() + high.tobytes())).decode()


def unpack(text: str) -> np.ndarray:
    """Return the numbers that `pack` was given."""
    planes = np.frombuffer(bz2.decompress(base64.b85decode(text)), np.uint8).reshape(2, -1)
    return np.ascontiguousarray(planes.T).view("<i2")[:, 0] / STEPS


def pack_bytes(array: np.ndarray) -> str:
    """Return an array of bytes as a text."""
    if array.dtype != np.uint8:
        raise TypeError(f"array must be of bytes, got {array.dtype}")
    return base64.b85encode(bz2.compress(array.tobytes())).decode()


def unpack_bytes(text: str) -> np.ndarray:
    """Return the bytes that `pack_bytes` was given, in one row."""
    return np.frombuffer(bz2.decompress(base64.b85decode(text)), np.uint8)
