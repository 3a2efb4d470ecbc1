"""Block of rows that were read and are not yet handed over."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from slackwater.runtime.model import START_NS, Batch, BoolArray, Int64Array
from slackwater.runtime.order.newest import NewestByRow

_NEAR_ROWS = 8
"""So many rows are looked at one by one: takes of a paced source are small more often than not, and
the due times further on lie elsewhere in memory."""


@dataclass(frozen=True, slots=True)
class JudgedBlock:
    """Rows read but not yet handed over, with all that is decided of them.

    What is asked row by row is a memoryview, one integer a row: an element of it costs a third
    of an element of an array.

    Attributes:
        batch: the rows; its stimulus times are the due times of a paced source, and mean
            nothing for one that is not.
        rows: number of rows, as far as what is asked row by row goes.
        due_ns: the due time of each row; None if the source is not paced.
        newest_ns: the newest event time of the input up to each row.
        promised_ns: promise of each row: from there on nothing older comes; None if the source
            promises nothing.
        late: shape (rows,), which rows are older than was promised before them; None if none is.
        leaves: shape (rows + 1,), with each of them rows leaves[n] to leaves[n + 1] of the batch
            leave; None if each leaves with its own. Then `rows` are steps of a reordering, and
            `late` is None.
        read: shape (rows + 1,), how many rows of the input were read before each; None if one was
            for each.
        counts: {one of `steps.COUNTED`: how many up to each, shape (rows,)}.
        arrived_ns: shape (rows,), where arrivals are used: when each row arrived in effect, or
            each step was; None if they are not.
        sorts: whether they are put in order by their event times.
        refused_row: position of the row that ends the run where such are refused, or None.
        refusal: reason of the refusal.
    """

    batch: Batch
    rows: int
    due_ns: memoryview[int] | None
    newest_ns: memoryview[int] | NewestByRow
    promised_ns: memoryview[int] | NewestByRow | None
    late: BoolArray | None
    refused_row: int | None
    refusal: str
    leaves: Int64Array | None = None
    read: Int64Array | None = None
    counts: Mapping[str, Int64Array] = field(default_factory=dict)
    arrived_ns: Int64Array | None = None
    sorts: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether each row leaves when it is due, and needs no further work."""
        if self.due_ns is None or self.leaves is not None or self.late is not None:
            return False
        return self.arrived_ns is None and self.refused_row is None and not self.counts

    @property
    def is_as_read(self) -> bool:
        """Whether it has the rows that were read, one by one, none late."""
        return self.leaves is None and self.late is None and self.read is None and not self.counts

    def due_until(self, position: int, stop: int, now_ns: int) -> int:
        """Return the position after the last row that is due by now, up to `stop`."""
        due_ns = self.due_ns
        if due_ns is None:
            return stop
        near = position + _NEAR_ROWS
        end = near if near < stop else stop
        while position < end:
            if due_ns[position] > now_ns:
                return position
            position += 1
        return bisect_right(due_ns, now_ns, position, stop) if position < stop else position

    def leaving(self, start: int, stop: int) -> Batch:
        """Return what leaves with rows [start, stop)."""
        if self.leaves is None:
            return self.batch.slice(start, stop)
        return self.batch.slice(self.leaves.item(start), self.leaves.item(stop))

    def promises_ns(self, start: int, stop: int) -> Int64Array:
        """Return the promises of rows [start, stop), of a source that promises something."""
        assert self.promised_ns is not None, "the source promises something"
        return _of_all(self.promised_ns)[start:stop]

    def released_ns(self, rows: Batch, start: int, stop: int) -> Int64Array | int:
        """Return when rows that left with those of a range were released, by arrivals.

        A policy that holds rows to sort them releases each once nothing older is promised.

        Args:
            rows: rows that left, in the order of leaving.
            start: the first row, or step, that was taken.
            stop: place after the last.

        Returns:
            Shape (rows,), or one for all: not before then. START_NS: as they came.
        """
        if self.arrived_ns is None:
            return START_NS
        arrived_ns = self.arrived_ns[start:stop]
        if self.leaves is not None:
            return np.repeat(arrived_ns, np.diff(self.leaves[start : stop + 1]))
        if not self.sorts or self.promised_ns is None:
            return START_NS
        by = np.searchsorted(self.promises_ns(start, stop), rows.event_time_ns)
        released_ns: Int64Array = arrived_ns[np.minimum(by, stop - start - 1)]
        return released_ns

    def rows_read(self, start: int, stop: int) -> int:
        """Return how many rows of the input these are."""
        return stop - start if self.read is None else self.read.item(stop) - self.read.item(start)

    def counted(self, start: int, stop: int) -> Iterator[tuple[str, int]]:
        """Yield what else became of them: (word, how many)."""
        for word, up_to in self.counts.items():
            yield word, up_to.item(stop - 1) - (up_to.item(start - 1) if start else 0)

    def rest(self, start: int) -> dict[str, Any]:
        """Return the rows from this position on, as `of_rest` takes them."""
        refused_row, leaves, read = self.refused_row, self.leaves, self.read
        return {
            "batch": self.leaving(start, self.rows),
            "rows": self.rows - start,
            "leaves": None if leaves is None else leaves[start:] - leaves[start],
            "read": None if read is None else read[start:] - read[start],
            "counts": {
                word: up_to[start:] - (up_to[start - 1] if start else 0)
                for word, up_to in self.counts.items()
            },
            "due_ns": None if self.due_ns is None else np.asarray(self.due_ns)[start:],
            "newest_ns": _of_all(self.newest_ns)[start:],
            "promised_ns": None if self.promised_ns is None else _of_all(self.promised_ns)[start:],
            "late": None if self.late is None else self.late[start:],
            "sorts": self.sorts,
            "arrived_ns": None if self.arrived_ns is None else self.arrived_ns[start:],
            "refused": (None if refused_row is None else refused_row - start, self.refusal),
        }

    @classmethod
    def of_rest(cls, state: dict[str, Any]) -> JudgedBlock:
        """Return the block that `rest` described."""
        due_ns, promised_ns = state["due_ns"], state["promised_ns"]
        refused_row, refusal = state["refused"]
        return cls(
            state["batch"],
            state["rows"],
            None if due_ns is None else due_ns.data,
            state["newest_ns"].data,
            None if promised_ns is None else promised_ns.data,
            state["late"],
            refused_row,
            refusal,
            state["leaves"],
            state["read"],
            state["counts"],
            state["arrived_ns"],
            state["sorts"],
        )


def _of_all(times_ns: memoryview[int] | NewestByRow) -> Int64Array:
    """Return the times of all rows, shape (rows,)."""
    return times_ns.all() if isinstance(times_ns, NewestByRow) else np.asarray(times_ns)
