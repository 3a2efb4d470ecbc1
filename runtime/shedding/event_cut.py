"""EventCut drops the events of least worth from all their windows.

Used where work is counted in events. The worth of an event is the number of matches that it is
likely to be in. It is the sum, over the windows that wait for it, of the chance that events of its
type at its place are in a match. Events are ranked by the power of two of their worth, and among
equal ones by a draw of the windows that have them. So windows that lose events lose them together:
a few matches go whole and the others stay as they are.

```
rank      worth ≤ 2⁻²³   …   2⁻³: w5 w2 w9   2⁻²: w5 w2 w9   …     w5: the draw of a window
                                      ^ so much is to go: all up to here
```
"""

from __future__ import annotations

from math import exp

import numpy as np

from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.model.state import Fields
from slackwater.runtime.shedding.draws import FloatArray, draws_of_events

_POWERS = 32
_LEAST = -24
"""Powers of two that are told apart: from 2^−24 on, 32 of them."""
_DRAWS = 32
"""Parts in which draws of windows are told apart."""
RANKS = _POWERS * _DRAWS
_FEW = 256
"""So many events must have been ranked before their ranks are used."""


class EventCut:
    """EventCut counts the events of each rank, and cuts by rank.

    Args:
        seed: the seed of the draws.

    Source: [espice] §3.4 and Algorithm 1, of events in place of pairs, over the stream that came
        last in place of a partition of a window.
    """

    STATE = Fields("_counts", "_events")

    def __init__(self, *, seed: int) -> None:
        self._seed = seed
        self._counts: FloatArray = np.zeros(RANKS)
        self._events = 0.0

    def dropped(self, ranks: Int64Array, events: Int64Array, *, share: float) -> BoolArray:
        """Return which events go, this share of them in the mean, shape (events,).

        Args:
            ranks: shape (events,), see `ranks_of`.
            events: shape (events,), their numbers.
            share: share to be dropped, 0 to 1.
        """
        counts = self._counts
        if self._events < _FEW:  # the events here tell more than earlier ones
            counts = counts + np.bincount(ranks, minlength=RANKS)
        chances = chances_of(counts, share).take(ranks)
        is_dropped: BoolArray = chances >= 1
        open_ = np.flatnonzero((chances > 0) & ~is_dropped)
        if len(open_):
            is_dropped[open_] = draws_of_events(events[open_], seed=self._seed) < chances[open_]
        return is_dropped

    def saw(self, ranks: Int64Array, *, length: float) -> None:
        """Count events that were there to be dropped or kept.

        Args:
            ranks: shape (events,), rank of each.
            length: the counts are a mean over so many earlier events.
        """
        if not len(ranks):
            return
        keep = exp(-len(ranks) / max(length, 1.0))
        self._counts = keep * self._counts + np.bincount(ranks, minlength=RANKS)
        self._events = keep * self._events + len(ranks)


def ranks_of(worths: FloatArray, draws: FloatArray) -> Int64Array:
    """Return the ranks of events, 0 to RANKS − 1.

    Args:
        worths: shape (events,), 0 or more.
        draws: shape (events,), 0 to 1: of the windows that have them.
    """
    _, powers = np.frexp(worths)  # worth = m · 2^power, m in [½, 1)
    powers = np.where(worths > 0, np.clip(powers - 1 - _LEAST, 0, _POWERS - 1), 0)
    return powers * _DRAWS + np.minimum((draws * _DRAWS).astype(np.int64), _DRAWS - 1)


def chances_of(counts: FloatArray, share: float) -> FloatArray:
    """Return the chance of each rank to be dropped for a share, the least first.

    Args:
        counts: events of each rank.
        share: share of them, 0 to 1.
    """
    wanted = share * counts.sum()
    before = np.cumsum(counts) - counts
    # Empty ranks are dropped if all lower ones are.
    chances: FloatArray = np.where(before < wanted, 1.0, 0.0)
    at = np.flatnonzero((before < wanted) & (before + counts > wanted))
    chances[at] = (wanted - before[at]) / counts[at]
    return chances
