"""The floor: stretches of the stream looked at whole, evenly spread, and nothing between them.

Anybody can build it, with a filter on time. It knows the load of the run beforehand, and no
matches: of all lengths and shares that keep the bound it takes those that leave the most
windows whole, `share · (1 − 1 / length in windows)`. It does so for each of eight phases, where
the first stretch begins, and counts in the mean of those in which a bound can be kept.

What waits grows by (overload − 1) a second while all is looked at, so that no stretch is longer
than bound / (overload − 1), and none of more windows than that.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

WINDOWS = 10
"""Windows of a long stretch."""
LENGTHS = (15.0, 10.0, 7.0, 5.0, 4.0, 3.0, 2.0, 1.5)
"""Lengths of a stretch, in windows."""
SHARES = tuple(n / 40 for n in range(40, 0, -1))
PHASES = 8


class Floor(NamedTuple):
    """Even stretches that keep the bound; means, where it is that of several phases.

    Attributes:
        recall: share of the matches.
        windows: length of a stretch; 0: no stretches keep the bound.
        share: of the stream that is looked at.
    """

    recall: float = 0.0
    windows: float = 0.0
    share: float = 0.0


def floor_of(
    matches: Collection[tuple[int, str]],
    work_s: FloatArray,
    *,
    from_s: float,
    window_s: float,
    bound_s: float,
) -> Floor:
    """Return the mean of the phases in which stretches keep the bound.

    Args:
        matches: the start of the window in ns, and its events, as a run at leisure found them.
        work_s: shape (seconds,), what the events of each second take.
        from_s: matches count of windows that begin from then on.
        window_s: how long a window is.
        bound_s: how long an event may wait.
    """
    spans = spans_of(matches, from_s)
    found = [
        floor_of_phase(spans, work_s, phase, from_s=from_s, window_s=window_s, bound_s=bound_s)
        for phase in range(PHASES)
    ]
    kept = [one for one in found if one.share]
    return Floor(*np.mean(kept, axis=0).tolist()) if kept else Floor()


def floor_of_phase(
    spans: FloatArray,
    work_s: FloatArray,
    phase: int,
    *,
    from_s: float,
    window_s: float,
    bound_s: float,
) -> Floor:
    """Return the floor of one phase; see `floor_of`."""
    windows, share = 0.0, 0.0
    for length in LENGTHS:
        most = share * (1 - 1 / windows) if windows else 0.0
        # A period that is longer than the run may have no stretch in it.
        least = length * window_s / (len(work_s) - from_s)
        for one in (one for one in SHARES if one > least and one * (1 - 1 / length) > most):
            if longest_wait_s(work_s, one, from_s, length * window_s, phase) <= bound_s:
                windows, share = length, one
                break
    if not share:
        return Floor()
    return Floor(recall_at(spans, share, from_s, windows * window_s, phase), windows, share)


def spans_of(matches: Collection[tuple[int, str]], from_s: float) -> FloatArray:
    """Return (start of the window, last event) in s, of windows that begin from then on."""
    spans = np.array([(start / 1e9, _last_s(events)) for start, events in matches]).reshape(-1, 2)
    return spans[spans[:, 0] >= from_s]


def recall_at(spans: FloatArray, share: float, from_s: float, length_s: float, phase: int) -> float:
    """Return the recall where this share of the stream is looked at.

    Args:
        spans: shape (matches, 2), see `spans_of`.
        share: of the stream.
        from_s: when the first period begins, but for the phase.
        length_s: how long a stretch is.
        phase: where the first stretch begins, in parts of a period.
    """
    period = length_s / share
    begin = from_s - period * phase / PHASES
    first, last = ((spans[:, at] - begin) % period for at in (0, 1))
    is_whole = (last < length_s) & (first <= last) & (spans[:, 1] - spans[:, 0] < period)
    return float(np.count_nonzero(is_whole)) / max(len(spans), 1)


def mean_recall_at(
    matches: Collection[tuple[int, str]], share: float, from_s: float, length_s: float
) -> float:
    """Return the recall where this share is looked at, in the mean of the phases."""
    spans = spans_of(matches, from_s)
    found = [recall_at(spans, share, from_s, length_s, phase) for phase in range(PHASES)]
    return float(np.mean(found))


def longest_wait_s(
    work_s: FloatArray, share: float, from_s: float, length_s: float, phase: int
) -> float:
    """Return how long an event waits at most where this share is looked at."""
    period = length_s / share
    begin = from_s - period * phase / PHASES
    waiting = longest = 0.0
    for second, work in enumerate(work_s[int(from_s) :].tolist(), int(from_s)):
        if (second - begin) % period < length_s:
            waiting += work
            longest = max(longest, waiting)
        waiting = max(waiting - 1.0, 0.0)
    return longest


def _last_s(events: str) -> float:
    """Return when the last event of a match was, by the ids of events: their times in ns."""
    last: int = max(at for _, at in json.loads(events))
    return last / 1e9
