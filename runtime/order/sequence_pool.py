"""Pool of rows that wait for a number, and rows that leave it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.model import Batch, BoolArray, Int64Array, concat_batches
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.sequence_fates import Fates
from slackwater.runtime.order.step_line import StepLine
from slackwater.runtime.order.steps import LATE, LATE_DROPPED, StepTally


@dataclass(slots=True)
class Leaving:
    """Rows that leave, in the order of leaving; every array has shape (rows,).

    Attributes:
        batch: the rows.
        ids: the number of each row of the input.
        writers: the number of its writer.
        at: the step at which it leaves.
        is_late: whether it is counted as late; None if no row is.
        kept: indices of the rows that the last `count_late` kept, among those before it; None if it
            kept all.
    """

    batch: Batch
    ids: Int64Array
    writers: Int64Array
    at: Int64Array
    is_late: BoolArray | None = None
    kept: Int64Array | None = None

    def count_late(self, late: BoolArray, tally: StepTally, *, passes: bool) -> None:
        """Count rows as late that are not yet counted, and drop them unless `passes`."""
        if self.is_late is not None:
            late = late & ~self.is_late
        if not late.any():
            return
        tally.add(LATE if passes else LATE_DROPPED, self.at[late])
        if passes:
            self.is_late = late if self.is_late is None else late | self.is_late
            return
        rest = (~late).nonzero()[0]
        self.batch, self.kept = self.batch.take(rest), rest
        self.ids, self.writers, self.at = self.ids[rest], self.writers[rest], self.at[rest]


class Pool:
    """Rows that wait for a number; if any does, they are copied once a piece."""

    STATE = Fields("_held", "_ids", "_writers")

    def __init__(self) -> None:
        self._held: Batch | None = None
        self._ids = np.empty(0, dtype=np.int64)  # ascending
        self._writers = np.empty(0, dtype=np.int64)

    @property
    def rows(self) -> int:
        """Number of rows that wait."""
        return len(self._ids)

    def take(
        self, batch: Batch, writers: Int64Array | None, first_id: int, fates: Fates, line: StepLine
    ) -> Leaving:
        """Return the rows that leave; keep those that wait.

        Args:
            batch: rows that have come.
            writers: shape (rows,), the number of each one's writer; None if all are 0.
            first_id: the id of the first of them; the others follow.
            fates: the fates of these rows and of those that waited.
            line: steps of the writers.
        """
        rows, held = len(batch), len(self._ids)
        ids, at = _in_time(fates, line)
        new_ids = np.arange(first_id, first_id + rows)
        if writers is None:
            writers = np.zeros(rows, dtype=np.int64)
        if not held and len(ids) == rows and bool((ids == new_ids).all()):
            return Leaving(batch, ids, writers, at)
        if self._held is not None:
            batch = concat_batches([self._held, batch]) if rows else self._held
        all_ids = np.append(self._ids, new_ids)
        all_writers = np.append(self._writers, writers)
        places = all_ids.searchsorted(ids)
        stays = np.ones(len(all_ids), dtype=np.bool_)
        stays[places] = False
        for gone in (fates.duplicates, fates.unknown, [row for row, _ in fates.late]):
            stays[np.array(gone, dtype=np.int64) + held] = False
        rest = stays.nonzero()[0]
        self._held = batch.take(rest) if len(rest) else None
        self._ids, self._writers = all_ids[rest], all_writers[rest]
        return Leaving(batch.take(places), ids, all_writers[places], at)


def _in_time(fates: Fates, line: StepLine) -> tuple[Int64Array, Int64Array]:
    """Return (ids of rows that leave, at which step), in the order of leaving."""
    if not fates.released:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    ids = np.concatenate([part for part, _ in fates.released])
    places = np.concatenate(
        [np.full(len(part), at) if isinstance(at, int) else at for part, at in fates.released]
    )
    at = line.steps(places)
    if bool((at[1:] >= at[:-1]).all()):
        return ids, at
    order = np.argsort(at, kind="stable")
    return ids[order], at[order]
