"""Draws depend on the event, not on the time: a replay draws the same.

Each event has a number between 0 and 1 of its own, a hash of its number and a seed. So it is the
same however rows are cut into batches, and only the seed has to be kept. All windows of the event
have the same number: those that drop it with the same chance do so together. An event that no
window keeps is work that is saved, whatever an operator shares among windows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from slackwater.runtime.model import Int64Array

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


def draws_of_events(events: Int64Array, *, seed: int) -> FloatArray:
    """Return a number in [0, 1) for each event, by its number."""
    return _as_share(mixed(events, salt=2 * seed + 2))


def draws_of_windows(windows: Int64Array, *, seed: int) -> FloatArray:
    """Return a number in [0, 1) for each window, by its number."""
    return _as_share(mixed(windows, salt=2 * seed + 3))


def _as_share(hashed: npt.NDArray[np.uint64]) -> FloatArray:
    share: FloatArray = (hashed >> np.uint64(11)).astype(np.float64) * _UNIT
    return share
