"""EventNumbers counts each key's events, where scopes or shedding need their numbers."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.ground.arrays import GrowableArray


class EventNumbers:
    """EventNumbers counts the events of each key.

    Attributes:
        counts: shape (keys,), the number of events of each so far.
    """

    STATE = Fields(Field("counts", by=OWNER))

    def __init__(self) -> None:
        self.counts = GrowableArray(np.int64)

    def of(self, codes: Int64Array, keys: int) -> Int64Array:
        """Return the number of each row among those of its key, from 1 on.

        Args:
            codes: shape (rows,), of their keys.
            keys: all codes are below this, or 0.
        """
        self.counts.resize(max(keys, len(self.counts), 1))
        counts = self.counts.values
        if keys <= 1:
            begin = int(counts[0]) + 1
            counts[0] += len(codes)
            return np.arange(begin, begin + len(codes))
        order = codes.argsort(kind="stable")
        ordered = codes.take(order)
        begins = np.flatnonzero(np.diff(ordered, prepend=-1))
        lengths = np.diff(begins, append=len(codes))
        numbers = np.empty(len(codes), dtype=np.int64)
        numbers[order] = np.arange(1, len(codes) + 1) - begins.repeat(lengths)
        numbers += counts.take(codes)
        counts[ordered.take(begins)] += lengths
        return numbers


def with_openers(
    places: Int64Array, kinds: Int64Array, opens: BoolArray
) -> tuple[Int64Array, Int64Array]:
    """Return the rows that fit something, and those that windows open with.

    Args:
        places: places of the rows that fit an event.
        kinds: the kind of each of these; 0 fits nothing.
        opens: shape (rows,), whether a window opens with the row.
    """
    more = np.setdiff1d(np.flatnonzero(opens), places, assume_unique=True)
    if not len(more):
        return places, kinds
    both = np.concatenate([places, more])
    order = both.argsort(kind="stable")
    return both.take(order), np.concatenate([kinds, np.zeros(len(more), np.int64)]).take(order)
