"""Rows that wait to leave by event time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from slackwater.runtime.model import Batch, Int64Array
from slackwater.runtime.model.batch import concat_batches
from slackwater.runtime.model.stable_order import stable_order
from slackwater.runtime.model.state import OWNER, Field, Fields


class InOrder:
    """Rows that wait to leave by event time; equal times leave as they came.

    They have the codes of their keys. They are in a few batches, earlier ones longer.
    """

    STATE = Fields(Field("_batches", of=OWNER, each=True))

    def __init__(self) -> None:
        self._batches: list[Batch] = []

    def __len__(self) -> int:
        return sum([len(batch) for batch in self._batches])

    def add(self, batch: Batch) -> None:
        """Add rows, and join short batches: each is at least twice the next."""
        batches = self._batches
        batches.append(in_order([batch]))
        while len(batches) > 1 and len(batches[-2]) < 2 * len(batches[-1]):
            batches[-2:] = [in_order(batches[-2:])]

    def until(self, event_time_ns: int) -> list[Batch]:
        """Take out the rows that are older than this."""
        gone, stay = list[Batch](), list[Batch]()
        for batch in self._batches:
            older = int(batch.event_time_ns.searchsorted(event_time_ns))
            if older:
                gone.append(batch.slice(0, older))
            if older < len(batch):
                stay.append(batch.slice(older, len(batch)))
        self._batches = stay
        return gone

    def codes(self) -> list[Int64Array]:
        """Return the codes of the keys of all rows."""
        return [batch.codes for batch in self._batches if batch.codes is not None]


def in_order(batches: Iterable[Batch]) -> Batch:
    """Return the rows of batches, at least one, by event time: a stable order."""
    rows = concat_batches(list(batches))
    times = rows.event_time_ns
    if np.count_nonzero(times[1:] < times[:-1]):
        rows = rows.take(stable_order(times))
    return rows
