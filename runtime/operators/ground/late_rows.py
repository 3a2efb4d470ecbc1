"""Late rows came too late to count in full: their count, and the rows themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slackwater.runtime.model import Batch, BoolArray, Int64Array
from slackwater.runtime.model.state import Fields


@dataclass(frozen=True, slots=True)
class LateRows:
    """Rows of one port that missed a result of theirs.

    Attributes:
        port: the port.
        batch: the rows, as they came.
        late_by_ns: shape (rows,), > 0: how far the time that the operator was done with was ahead.
        is_dropped: shape (rows,): whether it counts nowhere; else it missed some windows only.
    """

    port: int
    batch: Batch
    late_by_ns: Int64Array
    is_dropped: BoolArray


class Missed:
    """Late rows of an operator.

    Args:
        keeps: whether a step takes the rows.

    Attributes:
        dropped: rows so far that counted in no result of theirs.
    """

    STATE: ClassVar = Fields("dropped")

    def __init__(self, *, keeps: bool) -> None:
        self.keeps = keeps
        self.dropped = self._taken = 0
        self._rows: list[LateRows] = []

    def drop(self, batch: Batch, done_ns: int) -> None:
        """Note rows of port 0 that count nowhere: the operator was done with `done_ns`."""
        self.dropped += len(batch)
        if self.keeps:
            late_by_ns = np.maximum(done_ns - batch.event_time_ns, 1)
            self.add([LateRows(0, batch, late_by_ns, np.ones(len(batch), dtype=np.bool_))])

    def add(self, rows: Iterable[LateRows]) -> None:
        """Keep rows that some step takes; `dropped` does not count them."""
        self._rows += rows

    def take(self) -> tuple[list[LateRows], int]:
        """Return the rows since the last call, and how many have been dropped since then.

        No snapshot has them: take them after each read.
        """
        rows, self._rows = self._rows, []
        dropped, self._taken = self.dropped - self._taken, self.dropped
        return rows, dropped

    def after_restore(self) -> None:  # noqa: D102
        self._taken = self.dropped
