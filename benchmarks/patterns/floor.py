"""The floor: stretches of the stream looked at whole, evenly spread, and nothing between them.

Anybody can build it, with a filter on time. A stretch is ten windows long, and as many are looked
at as can be afforded: so many that no event waits longer than the bound. What a window costs, and
which matches it has, is known from a run at leisure; so this is the floor with hindsight.
"""

from __future__ import annotations

import json
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

WINDOWS = 10
PHASES = 8
SHARES = tuple(n / 40 for n in range(40, 0, -1))


def floor_recall(
    matches: Collection[tuple[int, str]],
    work_s: FloatArray,
    *,
    from_s: float,
    window_s: float,
    bound_s: float,
) -> float:
    """Return the recall of the floor, in the mean of where its first stretch begins.

    Args:
        matches: the start of the window in ns, and its events, as a run at leisure found them.
        work_s: shape (seconds,), what the events of each second take.
        from_s: matches count of windows that begin from then on; so do stretches.
        window_s: how long a window is.
        bound_s: how long an event may wait.
    """
    found = []
    for phase in range(PHASES):
        for share in SHARES:
            begin = from_s - WINDOWS * window_s / share * phase / PHASES
            if _waits_s(work_s, begin, WINDOWS * window_s, share, from_s) <= bound_s:
                break
        found.append((share, phase))
    return float(np.mean([kept_at(matches, share, from_s, window_s, at) for share, at in found]))


def kept_at(
    matches: Collection[tuple[int, str]], share: float, from_s: float, window_s: float, phase: int
) -> float:
    """Return the recall where this share of the stream is looked at.

    Args:
        matches: as of `floor_recall`.
        share: of the stream.
        from_s: matches count of windows that begin from then on.
        window_s: how long a window is.
        phase: where the first stretch begins, in parts of a period.
    """
    spans = np.array([(start / 1e9, _last_s(events)) for start, events in matches]).reshape(-1, 2)
    spans = spans[spans[:, 0] >= from_s]
    period = WINDOWS * window_s / share
    begin = from_s - period * phase / PHASES
    places, ends = ((spans[:, at] - begin) % period for at in (0, 1))
    is_whole = (ends < share * period) & (places <= ends)
    is_whole &= spans[:, 1] - spans[:, 0] < period
    return float(np.count_nonzero(is_whole)) / max(len(spans), 1)


def _waits_s(
    work_s: FloatArray, begin: float, length_s: float, share: float, from_s: float
) -> float:
    """Return how long an event waits at most, if stretches of this length are looked at."""
    waiting, most = 0.0, 0.0
    for second in range(int(from_s), len(work_s)):
        if (second - begin) % (length_s / share) < length_s:
            waiting += work_s[second]
        most = max(most, waiting)
        waiting = max(waiting - 1.0, 0.0)
    return most


def _last_s(events: str) -> float:
    """Return when the last event of a match was, by the ids of events: their times in ns."""
    last: int = max(at for _, at in json.loads(events))
    return last / 1e9
