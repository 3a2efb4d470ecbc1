"""The same queries answered offline, in plain NumPy: what every run is checked against.

Written without any of the runtime's code. What a stream can reach at most is in
`benchmarks/engine/limit.py`, where programs for some of these queries go part by part.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def pairs_within(
    left_ns: npt.NDArray[np.int64],
    left_key: npt.NDArray[np.int64],
    right_ns: npt.NDArray[np.int64],
    right_key: npt.NDArray[np.int64],
    within_ns: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the positions (left, right) of all pairs with equal keys and |Δt| ≤ within.

    Args:
        left_ns: shape (rows,), event times.
        left_key: shape (rows,), small non-negative integers.
        right_ns: shape (rows,), event times.
        right_key: shape (rows,), small non-negative integers.
        within_ns: largest distance, >= 0.
    """
    if not len(left_ns) or not len(right_ns):
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    order, searches = _by_key(right_ns, right_key), _by_key(left_ns, left_key)
    # One axis for key and time: keys far enough apart that no window reaches the next one.
    base = min(left_ns.min(), right_ns.min())
    span = int(max(left_ns.max(), right_ns.max()) - base) + 2 * within_ns + 2
    assert span * (int(max(right_key.max(), left_key.max())) + 1) < 2**63
    axis = right_key.take(order) * span + (right_ns.take(order) - base) + within_ns
    # Searched in its own order, so that neighbours look at the same memory.
    at = left_key.take(searches) * span + (left_ns.take(searches) - base) + within_ns
    first = np.searchsorted(axis, at - within_ns, "left")
    counts = np.searchsorted(axis, at + within_ns, "right") - first
    left = np.repeat(searches, counts)
    starts = np.repeat(first - np.concatenate(([0], np.cumsum(counts)[:-1])), counts)
    return left, order.take(starts + np.arange(len(left)))


def _by_key(times_ns: npt.NDArray[np.int64], key: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the order by key, then time."""
    if int(key.max()) < 2**16 and bool((times_ns[1:] >= times_ns[:-1]).all()):
        return key.astype(np.uint16).argsort(kind="stable")  # a radix sort
    return np.lexsort((times_ns, key))


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
