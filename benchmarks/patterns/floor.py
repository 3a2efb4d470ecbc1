"""The floor: stretches of the stream looked at whole, evenly spread, and nothing between them.

Anybody can build it, with a filter on time. A stretch is so many windows long, and as many are
looked at as can be afforded: no event waits longer than the bound. What a window costs, and which
matches it has, is known from a run at leisure; so this is the floor with hindsight.

What waits grows by (overload - 1) a second while all is looked at: no stretch is longer than
bound / (overload - 1), and none of more windows than that can be had. Whatever
sheds has looked at all until it begins: as much as lets it begin waits then for the floor, too.
"""

from __future__ import annotations

import json
from collections.abc import Collection

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

WINDOWS = 10
LENGTHS = (10.0, 7.0, 5.0, 4.0, 3.0, 2.0, 1.5, 1.0)
"""Of a stretch, in windows; of those that keep the bound the best is the floor."""
PHASES = 8
BEGINS = 0.8
"""Of the bound: so much waits where matches begin to count, as in front of who sheds."""
SHARES = tuple(n / 40 for n in range(40, 0, -1))


def floor_recall(
    matches: Collection[tuple[int, str]],
    work_s: FloatArray,
    *,
    from_s: float,
    window_s: float,
    bound_s: float,
) -> tuple[float, float]:
    """Return the floor's recall, in the mean of where stretches may begin, and how long they are.

    Args:
        matches: the start of the window in ns, and its events, as a run at leisure found them.
        work_s: shape (seconds,), what the events of each second take.
        from_s: matches count of windows that begin from then on.
        window_s: how long a window is.
        bound_s: how long an event may wait.
    """
    best = (0.0, 0.0)
    for windows in LENGTHS:
        length_s = windows * window_s
        for share in SHARES:
            found = [
                kept_at(matches, share, from_s, length_s, phase)
                for phase in range(PHASES)
                if _keeps(work_s, share, from_s, length_s, phase, bound_s)
            ]
            if found:
                best = max(best, (float(np.mean(found)), windows))
                break
    return best


def kept_at(
    matches: Collection[tuple[int, str]], share: float, from_s: float, length_s: float, phase: int
) -> float:
    """Return the recall where this share of the stream is looked at.

    Args:
        matches: as of `floor_recall`.
        share: of the stream.
        from_s: matches count of windows that begin from then on.
        length_s: how long a stretch is.
        phase: where the first stretch begins, in parts of a period.
    """
    spans = np.array([(start / 1e9, _last_s(events)) for start, events in matches]).reshape(-1, 2)
    spans = spans[spans[:, 0] >= from_s]
    period = length_s / share
    begin = from_s - period * phase / PHASES
    places, ends = ((spans[:, at] - begin) % period for at in (0, 1))
    is_whole = (ends < share * period) & (places <= ends)
    is_whole &= spans[:, 1] - spans[:, 0] < period
    return float(np.count_nonzero(is_whole)) / max(len(spans), 1)


def _keeps(
    work_s: FloatArray, share: float, from_s: float, length_s: float, phase: int, bound_s: float
) -> bool:
    """Return whether no event waits longer than the bound if stretches of this length are seen."""
    period = length_s / share
    begin = from_s - period * phase / PHASES
    waiting = BEGINS * bound_s
    for second in range(int(from_s), len(work_s)):
        if (second - begin) % period < length_s:
            waiting += work_s[second]
        if waiting > bound_s:
            return False
        waiting = max(waiting - 1.0, 0.0)
    return True


def _last_s(events: str) -> float:
    """Return when the last event of a match was, by the ids of events: their times in ns."""
    last: int = max(at for _, at in json.loads(events))
    return last / 1e9
