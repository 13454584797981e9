"""What is stored as a text comes out again, and stacked columns meet the right examples."""

import numpy as np
import pytest
from experiments.panoramia.packed import pack, pack_bytes, unpack, unpack_bytes
from experiments.panoramia.stacks import GENERATED, PARTS, UNSEEN, loss, mixture

RNG = np.random.default_rng(0)


def test_numbers_come_out_to_a_tenth_and_bytes_as_they_were():
    numbers = np.append(RNG.normal(0.0, 8.0, 5_000), (-3_000.0, 3_000.0))
    assert np.abs(unpack(pack(numbers)) - numbers).max() <= 0.05 + 1e-9
    many = RNG.integers(0, 256, 999).astype(np.uint8)
    np.testing.assert_array_equal(unpack_bytes(pack_bytes(many)), many)
    with pytest.raises(ValueError, match="numbers must be within"):
        pack(np.array([4_000.0]))
    with pytest.raises(ValueError, match="numbers must be within"):
        pack(np.array([np.nan]))
    with pytest.raises(TypeError, match="array must be of bytes"):
        pack_bytes(numbers)


def test_an_example_meets_what_is_stored_of_it():
    sizes = dict(zip(PARTS, (30, 20, 30, 20, 25, 15), strict=True))
    columns = {name: RNG.normal(size=size) for name, size in sizes.items()}
    wide = {name: RNG.normal(size=(size, 2)) for name, size in sizes.items()}
    for parts in (GENERATED, UNSEEN):
        rows = {**sizes, "real": 15} if parts == UNSEEN else sizes
        if parts == UNSEEN:
            columns["real"], wide["real"] = columns["real"][:15], wide["real"][:15]
        mixed = mixture(parts, columns, wide)
        expected = [np.column_stack((columns[name], wide[name])) for name in parts]
        np.testing.assert_array_equal(mixed.see, np.concatenate(expected))
        shown = (mixed.train_real, mixed.train_other, mixed.real, mixed.other)
        for name, part in zip(parts, shown, strict=True):
            assert len(part) == rows[name]
            np.testing.assert_array_equal(loss(columns)(part), columns[name])
            np.testing.assert_array_equal(loss(wide)(part), wide[name])
