"""The floor: stretches of the stream looked at whole, evenly spread, and nothing between them.

Anybody can build it, with a filter on time. It knows the load of the run beforehand, and no
matches: of all lengths and shares that keep the bound it takes those that leave the most
windows whole, `share · (1 − 1 / length in windows)`.

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

LENGTHS = (10.0, 7.0, 5.0, 4.0, 3.0, 2.0, 1.5)
"""Lengths of a stretch, in windows."""
SHARES = tuple(n / 40 for n in range(40, 0, -1))
PHASES = 8


class Floor(NamedTuple):
    """Stretches that keep the bound in every phase; recall in the mean of the phases.

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
    """Return the floor of a run.

    Args:
        matches: the start of the window in ns, and its events, as a run at leisure found them.
        work_s: shape (seconds,), what the events of each second take.
        from_s: matches count of windows that begin from then on.
        window_s: how long a window is.
        bound_s: how long an event may wait.
    """
    best, most = Floor(), 0.0
    for windows in LENGTHS:
        length_s = windows * window_s
        for share in SHARES:
            worth = share * (1 - 1 / windows)
            if worth <= most:
                break
            if longest_wait_s(work_s, share, from_s, length_s) <= bound_s:
                most = worth
                best = Floor(recall_at(matches, share, from_s, length_s), windows, share)
                break
    return best


def recall_at(
    matches: Collection[tuple[int, str]], share: float, from_s: float, length_s: float
) -> float:
    """Return the recall where this share is looked at, in the mean of where stretches begin.

    Args:
        matches: as of `floor_of`.
        share: of the stream.
        from_s: matches count of windows that begin from then on.
        length_s: how long a stretch is.
    """
    spans = np.array([(start / 1e9, _last_s(events)) for start, events in matches]).reshape(-1, 2)
    spans = spans[spans[:, 0] >= from_s]
    period = length_s / share
    found = []
    for phase in range(PHASES):
        begin = from_s - period * phase / PHASES
        first, last = ((spans[:, at] - begin) % period for at in (0, 1))
        is_whole = (last < length_s) & (first <= last) & (spans[:, 1] - spans[:, 0] < period)
        found.append(np.count_nonzero(is_whole) / max(len(spans), 1))
    return float(np.mean(found))


def longest_wait_s(work_s: FloatArray, share: float, from_s: float, length_s: float) -> float:
    """Return how long an event waits at most, wherever stretches begin."""
    period = length_s / share
    begins = from_s - period * np.arange(PHASES) / PHASES
    waiting, longest = np.zeros(PHASES), 0.0
    for second in range(int(from_s), len(work_s)):
        waiting += ((second - begins) % period < length_s) * work_s[second]
        longest = max(longest, float(waiting.max()))
        waiting = np.maximum(waiting - 1.0, 0.0)
    return longest


def _last_s(events: str) -> float:
    """Return when the last event of a match was, by the ids of events: their times in ns."""
    last: int = max(at for _, at in json.loads(events))
    return last / 1e9
