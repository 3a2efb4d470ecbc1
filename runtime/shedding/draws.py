"""Chance that depends on which pair it is drawn for, not on when: a replay draws the same.

A pair is an event in a window. Each has a number between 0 and 1 of its own, a hash of the two
numbers and a seed, so it is the same however rows are cut into batches, and nothing of it has to
be kept but the seed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from runtime.model import Int64Array

FloatArray = npt.NDArray[np.float64]

_GOLDEN, _SECOND, _THIRD = (
    np.uint64(one) for one in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
_UNIT = 2.0**-53


def mixed(numbers: Int64Array, *, salt: int) -> npt.NDArray[np.uint64]:
    """Return a well mixed 64-bit number for each of these, by the finalizer of SplitMix64."""
    start = np.uint64(salt * int(_GOLDEN) % 2**64)
    hashed = numbers.astype(np.uint64) * _GOLDEN + start
    hashed ^= hashed >> np.uint64(30)
    hashed *= _SECOND
    hashed ^= hashed >> np.uint64(27)
    hashed *= _THIRD
    hashed ^= hashed >> np.uint64(31)
    return hashed


def draws_of_pairs(events: Int64Array, windows: Int64Array, *, seed: int) -> FloatArray:
    """Return a number in [0, 1) for each pair.

    Args:
        events: shape (pairs,), the number of the event.
        windows: shape (pairs,), the number of the window.
        seed: 0 or more.
    """
    of_windows = mixed(windows, salt=2 * seed + 1)
    hashed = mixed((mixed(events, salt=2 * seed + 2) ^ of_windows).view(np.int64), salt=0)
    return _as_share(hashed)


def draws_of_windows(windows: Int64Array, *, seed: int) -> FloatArray:
    """Return a number in [0, 1) for each window, by its number."""
    return _as_share(mixed(windows, salt=2 * seed + 3))


def _as_share(hashed: npt.NDArray[np.uint64]) -> FloatArray:
    share: FloatArray = (hashed >> np.uint64(11)).astype(np.float64) * _UNIT
    return share
