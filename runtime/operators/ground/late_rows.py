"""Late rows came too late to count in full: their count, and the rows themselves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from slackwater.runtime.model import (
    END_NS,
    START_NS,
    Batch,
    BoolArray,
    GateRead,
    Int64Array,
    concat_batches,
)
from slackwater.runtime.model.state import Fields

OR_LATE = "; if it came late (idle= of a source, a slack before), .late() has it"
"""What an error of a change says of its cause where rows before it may be missing."""
OR_LATER = "; with idle= or out_of_order= of a source it may come later"
"""The same where a change that comes late counts."""


@dataclass(frozen=True, slots=True)
class LateRows:
    """Rows of one port that missed a result of theirs.

    Attributes:
        port: the port.
        batch: the rows, as they came.
        late_by_ns: shape (rows,), > 0: how far the time that the operator was done with was ahead.
        is_dropped: shape (rows,): whether it counts nowhere; else it missed some windows only.
        found_ns: promise that the operator would have made when it found the rows, if it says so;
            else START_NS, for the promise of its stage before the read.
    """

    port: int
    batch: Batch
    late_by_ns: Int64Array
    is_dropped: BoolArray
    found_ns: int = START_NS


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

    def drop(self, batch: Batch, done_ns: int | Int64Array, port: int = 0) -> None:
        """Note rows that count nowhere: all until `done_ns` was done."""
        self.dropped += len(batch)
        if self.keeps:
            late_by_ns = np.maximum(done_ns - batch.event_time_ns, 1)
            self.add([LateRows(port, batch, late_by_ns, np.ones(len(batch), dtype=np.bool_))])

    def in_time(
        self, released: GateRead, done_ns: int, *, port: int = 0, takes_late: bool = False
    ) -> Batch | None:
        """Return the rows of a port that are in time; None if none is.

        The others are dropped: late rows, and those in order that are older than `done_ns`, which
        come only after the end.

        Args:
            released: a read of the gate.
            done_ns: event time until which all is done.
            port: number of the port.
            takes_late: whether late rows count, too, as rows of the time `done_ns`; only after the
                end they are dropped.
        """
        late, in_order = released.late[port], released.ports[port]
        parts: list[Batch] = []
        if late is not None and len(late):
            if takes_late and done_ns < END_NS:
                times_ns = np.maximum(late.event_time_ns, done_ns)
                parts.append(late.with_(event_time_ns=times_ns))
            else:
                self.drop(late, done_ns, port)
        if in_order is not None and len(in_order):
            if in_order.event_time_ns.item(0) < done_ns:
                is_late = in_order.event_time_ns < done_ns
                self.drop(in_order.keep(is_late), done_ns, port)
                in_order = in_order.keep(~is_late)
            if len(in_order):
                parts.append(in_order)
        return concat_batches(parts) if parts else None

    def add(self, rows: Iterable[LateRows]) -> None:
        """Keep rows that some step takes; `dropped` does not count them."""
        self._rows += rows

    def take(self) -> tuple[list[LateRows], int]:
        """Return the rows and the number of dropped rows since the last call.

        No snapshot has them: take them after each read.
        """
        rows, self._rows = self._rows, []
        dropped, self._taken = self.dropped - self._taken, self.dropped
        return rows, dropped

    def derive(self) -> None:  # noqa: D102
        self._taken = self.dropped
