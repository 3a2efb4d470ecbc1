"""The same queries answered offline, in plain NumPy: what every run is checked against.

Written without any of the runtime's code, and the fastest that we know: the limit of what a
stream can reach.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Table = Mapping[str, npt.NDArray[Any]]


def pairs_within(
    left_ns: npt.NDArray[np.int64],
    left_key: npt.NDArray[np.int64],
    right_ns: npt.NDArray[np.int64],
    right_key: npt.NDArray[np.int64],
    within_ns: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the positions (left, right) of all pairs with equal keys and |Δt| ≤ within.

    Args:
        left_ns, right_ns: shape (rows,), event times.
        left_key, right_key: shape (rows,), small non-negative integers.
        within_ns: largest distance, >= 0.
    """
    order = np.lexsort((right_ns, right_key))
    times, keys = right_ns[order], right_key[order]
    # One axis for key and time: keys far enough apart that no window reaches the next one.
    if not len(left_ns) or not len(right_ns):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    base = min(left_ns.min(), right_ns.min())
    span = int(max(left_ns.max(), right_ns.max()) - base) + 2 * within_ns + 2
    assert span * (int(max(keys.max(), left_key.max())) + 1) < 2**63
    axis = keys * span + (times - base) + within_ns
    at = left_key * span + (left_ns - base) + within_ns
    first = np.searchsorted(axis, at - within_ns, "left")
    last = np.searchsorted(axis, at + within_ns, "right")
    counts = last - first
    left = np.repeat(np.arange(len(left_ns)), counts)
    starts = np.repeat(first - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
    return left, order[starts + np.arange(len(left))]


def mean_count_per_second(
    times_ns: npt.NDArray[np.int64],
    key: npt.NDArray[np.int64],
    value: npt.NDArray[np.float64],
    *,
    window_ns: int = 1_000_000_000,
) -> dict[str, npt.NDArray[Any]]:
    """Return window_start, key, count and mean of value, sorted by window and key."""
    window = times_ns // window_ns
    keys = int(key.max()) + 1
    cell = (window - window.min()) * keys + key
    count = np.bincount(cell)
    total = np.bincount(cell, weights=value)
    found = np.flatnonzero(count)
    return {
        "window_start": (found // keys + window.min()) * window_ns,
        "key": found % keys,
        "count": count[found],
        "mean": total[found] / count[found],
    }
