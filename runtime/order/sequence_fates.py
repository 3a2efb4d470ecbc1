"""Fates of numbered rows: a `Numbering` takes a `Piece` and notes its `Fates`."""

from __future__ import annotations

from dataclasses import dataclass, field

from slackwater.runtime.model import Int64Array


@dataclass(slots=True)
class Piece:
    """Rows of the input, by writer, and in the order of their coming within each.

    Attributes:
        rows: shape (rows,), the place of each in the order of its coming.
        ids: shape (rows,), a number for each row of the input, ascending as they came.
        clock_ns: shape (rows,), the newest arrival up to each; `clock`, the same as integers.
        event_ns: shape (rows,), event times.
        before_ns: shape (rows,), the newest event time of its writer before each.
        newest_at: shape (rows,), the last position up to each whose event was the newest of its
            writer; it may belong to the writer before; −1 if there is no such row.
    """

    rows: Int64Array
    ids: Int64Array
    clock_ns: Int64Array
    event_ns: Int64Array
    before_ns: Int64Array
    newest_at: memoryview[int]
    clock: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Fates:
    """Fates of a piece's rows, by place: a row, or, below zero, a moment.

    Attributes:
        released: (ids, one place for all of them or a place for each), in the order of leaving.
        moments: (when a wait ended, its writer); place −1 − n is the n-th of these.
        late: (place, id) of each row whose number had been given up or was below the first.
        unknown: places of rows with numbers below all remembered ones.
        duplicates: places of rows whose number had come before.
        given_up: (place, how many numbers).
        renumbered: places of rows that started a new numbering.
        silent_ns: shape (rows,), by place: when the row's writer is silent if nothing follows; None
            if the source has one writer.
    """

    released: list[tuple[Int64Array, Int64Array | int]] = field(default_factory=list)
    moments: list[tuple[int, int]] = field(default_factory=list)
    late: list[tuple[int, int]] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    duplicates: list[int] = field(default_factory=list)
    given_up: list[tuple[int, int]] = field(default_factory=list)
    renumbered: list[int] = field(default_factory=list)
    silent_ns: Int64Array | None = None

    def moment(self, ended_ns: int, writer: int) -> int:
        """Add the moment at which a wait ended; return its place."""
        self.moments.append((ended_ns, writer))
        return -len(self.moments)
