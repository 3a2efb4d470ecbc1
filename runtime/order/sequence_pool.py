"""Rows that wait for a number, and those that leave: taken out in the order of steps."""

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
        ids: which they are.
        writers: of each its writer's number.
        at: at which step.
        is_late: those that are counted as late; None: none.
        kept: of the rows that there were before `count_late` those that are still here.
    """

    batch: Batch
    ids: Int64Array
    writers: Int64Array
    at: Int64Array
    is_late: BoolArray | None = None
    kept: Int64Array | None = None

    def count_late(self, late: BoolArray, tally: StepTally, *, passes: bool) -> None:
        """Count rows as late that are not yet, and leave them out unless they are to be passed."""
        if self.is_late is not None:
            late = late & ~self.is_late
        if not late.any():
            return
        tally.add(LATE if passes else LATE_DROPPED, self.at[late])
        if passes:
            self.is_late = late if self.is_late is None else late | self.is_late
            return
        kept = (~late).nonzero()[0]
        self.batch, self.kept = self.batch.take(kept), kept
        self.ids, self.writers, self.at = self.ids[kept], self.writers[kept], self.at[kept]


class Pool:
    """The rows that wait for a number. All that came together is copied once a piece, if any is."""

    STATE = Fields("_held", "_ids", "_writers")

    def __init__(self) -> None:
        self._held: Batch | None = None
        self._ids = np.empty(0, dtype=np.int64)  # ascending
        self._writers = np.empty(0, dtype=np.int64)

    @property
    def rows(self) -> int:
        """How many wait."""
        return len(self._ids)

    def taken(
        self, batch: Batch, writers: Int64Array | None, first_id: int, fates: Fates, line: StepLine
    ) -> Leaving:
        """Return the rows that leave; keep those that wait.

        Args:
            batch: rows that have come.
            writers: shape (rows,), of each its writer's number; None: 0.
            first_id: of the first of them; the others follow.
            fates: what became of them, and of those that waited.
            line: the steps.
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
        kept = stays.nonzero()[0]
        self._held = batch.take(kept) if len(kept) else None
        self._ids, self._writers = all_ids[kept], all_writers[kept]
        return Leaving(batch.take(places), ids, all_writers[places], at)


def _in_time(fates: Fates, line: StepLine) -> tuple[Int64Array, Int64Array]:
    """Return (ids of rows that leave, at which step), in the order of leaving."""
    if not fates.released:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    ids = np.concatenate([one for one, _ in fates.released])
    places = np.concatenate(
        [np.full(len(one), at) if isinstance(at, int) else at for one, at in fates.released]
    )
    at = line.steps(places)
    if bool((at[1:] >= at[:-1]).all()):
        return ids, at
    order = np.argsort(at, kind="stable")
    return ids[order], at[order]
