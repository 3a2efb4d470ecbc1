"""The fate of the rows of a read, where events are dropped under load."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from slackwater.runtime.model import BoolArray, Int64Array
from slackwater.runtime.shedding.probes import Block
from slackwater.runtime.shedding.wrapper.open_windows import OpenWindow
from slackwater.runtime.shedding.wrapper.what_if import Trial

NOTHING: frozenset[int] = frozenset()


@dataclass
class Kept:
    """Kept says what becomes of the rows of a read.

    Attributes:
        known: shape (1 or 2, rows), what is known of each row, see `EventKinds`.
        opens: shape (rows,), whether it opens a window, where events do.
        is_shed: shape (rows,): no window of theirs keeps them.
        is_idle: shape (rows,): no window waits when they come, whatever becomes of those before.
        is_in_gap: whether rows are passed over: all are shed, and windows that open are given up.
        blocks: blocks of all events: windows that begin with one of these are tried.
        lost: {row: keys of the windows that it is dropped of}, for rows that fit something and are
            not shed.
        tried: {row: the trials of its tried windows, and whether it is lost there}.
        done: {code of a key: rows after which no open window of it waits for a match}: the operator
            notes them, where events are dropped.
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

        Dropped rows are looked at if a window opens with them, or a tried window has them.
        """
        is_left = ~(self.is_shed | self.is_idle) | self.opens
        if self.tried:
            is_left[list(self.tried)] = True
        return is_left.take(places)


class Own(NamedTuple):
    """The rows of one key in a read; shape (rows,) each.

    Attributes:
        code: the code of the key.
        at: their places in the read.
        numbers: their numbers among the key's events.
        times: event times.
        known: their type and feature, see `EventKinds`.
        opens: whether a window opens with the event.
        events: their numbers among all events.
        matters: whether it fits something.
        may_match: whether it may be in a match: a row that only forbids may not.
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
    """The rows of a key in its open windows: [first, end); shape (windows,) both.

    `total`, shape (rows,), is the number of windows of each row.
    """

    first: Int64Array
    end: Int64Array
    total: Int64Array

    def of(self, windows: list[OpenWindow]) -> Iterator[tuple[OpenWindow, int, int]]:
        """Yield each of these windows, and where its rows begin and end."""
        return zip(windows, self.first.tolist(), self.end.tolist(), strict=True)
