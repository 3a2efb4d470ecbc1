"""What becomes of the rows of a read, where events are dropped under load."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.operators.pattern.open_windows import OpenWindow
from slackwater.runtime.operators.pattern.what_if import Trial
from slackwater.runtime.shedding.probes import Block

NOTHING: frozenset[int] = frozenset()


@dataclass
class Kept:
    """What becomes of rows.

    Attributes:
        known: shape (1 or 2, rows), what is known of each row, see `EventKinds`.
        opens: shape (rows,), whether it opens a window, where events do.
        is_shed: shape (rows,): no window of theirs keeps them.
        is_idle: shape (rows,): no window waits when they come, whatever becomes of those before.
        is_in_gap: whether rows are passed over: all are shed, and windows that open are given up.
        blocks: of all events: windows that begin with one of these are tried.
        lost: {row: keys of the windows that it is dropped of}, of those that fit something and are
            not shed.
        tried: {row: of windows that are tried the trial, and whether it loses it}.
        done: {code of a key: rows after which no open window of it waits for a match}: the operator
            notes them, where it is events that are dropped.
    """

    known: Int64Array
    opens: BoolArray
    is_shed: BoolArray
    is_idle: BoolArray
    is_in_gap: bool = False
    blocks: list[Block] = field(default_factory=list)
    lost: dict[int, frozenset[int]] = field(default_factory=dict)
    tried: dict[int, list[tuple[Trial, bool]]] = field(default_factory=dict)
    done: dict[int, list[int]] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is lost, and nothing is tried."""
        return not self.lost and not self.tried and not self.is_shed.any()

    def left(self, places: Int64Array) -> BoolArray:
        """Return which of these rows the operator still has to look at.

        Those that go are looked at if a window opens with them, or one that is tried has them.
        """
        is_left = ~(self.is_shed | self.is_idle) | self.opens
        if self.tried:
            is_left[list(self.tried)] = True
        return is_left.take(places)


class Own(NamedTuple):
    """The rows of one key in a read; shape (rows,) each, but what is known: (1 or 2, rows).

    Attributes:
        code: of the key.
        at: their places in the read.
        numbers: which of the key's events they are.
        times: event times.
        known: what is known of them, see `EventKinds`.
        opens: whether an event that is this opens a window.
        events: which of all events they are.
        matters: whether it fits something.
        may_match: whether it may be in a match: what only forbids may not.
    """

    code: int
    at: Int64Array
    numbers: Int64Array
    times: Int64Array
    known: Int64Array
    opens: BoolArray
    events: Int64Array
    matters: BoolArray
    may_match: BoolArray


class Covered(NamedTuple):
    """Which rows of a key its open windows have: [first, behind); shape (windows,) both.

    `total`, shape (rows,), is how many windows have each row.
    """

    first: Int64Array
    behind: Int64Array
    total: Int64Array

    def of(self, windows: list[OpenWindow]) -> Iterator[tuple[OpenWindow, int, int]]:
        """Yield each of these windows, and where its rows begin and end."""
        return zip(windows, self.first.tolist(), self.behind.tolist(), strict=True)
