"""The contract of rules of intervals: cells of rows, and intervals that are over."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from slackwater.runtime.model import Batch, BoolArray, Int64Array
from slackwater.runtime.model.ranges import unfold
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.aggregate.accumulators import Pairs
from slackwater.runtime.operators.aggregate.interval_cells import IntervalCells


class InCells(NamedTuple):
    """Rows in cells: row `rows[i]` counts in cell `cells[i]`.

    Attributes:
        rows: shape (entries,); None if each row counts once, in order.
        cells: shape (entries,).
        until_ns: shape (rows,), time until which a row holds its cell open; None if its own.
        late: shape (rows,), whether a row came too late to count anywhere; None if none did.
        opens_none: shape (rows,), whether a row came too late for an interval of its own, though it
            may count in others; None if none did.
    """

    rows: Int64Array | None
    cells: Int64Array
    until_ns: Int64Array | None = None
    late: BoolArray | None = None
    opens_none: BoolArray | None = None


class Left(NamedTuple):
    """Intervals that leave, in the order in which they do.

    Attributes:
        pairs: the cells of each, by time.
        start_ns, end_ns: shape (intervals,), the times of `window_start` and `window_end`.
        event_time_ns: shape (intervals,), the event time of each result.
        gone: the cells that are in no other interval, once these are over.
    """

    pairs: Pairs
    start_ns: Int64Array
    end_ns: Int64Array
    event_time_ns: Int64Array
    gone: Int64Array

    @classmethod
    def of(
        cls, cells: IntervalCells, entries: Int64Array, starts: Int64Array, counts: Int64Array
    ) -> Left | None:
        """Return intervals that each leave at their end, with all their cells; None if none.

        Args:
            cells: all cells that were made so far.
            entries: shape (entries,), cells, of which an interval has neighbours.
            starts: shape (intervals,), the first entry of each, as the intervals leave.
            counts: shape (intervals,), the entries of each.
        """
        if not len(starts):
            return None
        results, places = unfold(starts, counts)
        own = entries.take(places)
        pairs = Pairs(own, results, len(starts), are_single=len(own) == len(starts))
        begins = counts.cumsum() - counts
        ends_ns = np.maximum.reduceat(cells.lasts.take(own), begins)
        return cls(
            pairs, np.minimum.reduceat(cells.firsts.take(own), begins), ends_ns, ends_ns, own
        )


class IntervalRule(Protocol):
    """A rule finds the cells of rows, and the intervals that are over.

    Attributes:
        past_end_ns: added to `window_end`, the first time of which a row is not in the interval;
            None if rows count by their number, so that none misses an interval.
    """

    STATE: Fields
    past_end_ns: int | None

    def over_ns(self, until_ns: int) -> int:
        """Return the time before which rows may be late, by the watermark: that itself."""
        return until_ns

    def over_after(self, cells: IntervalCells, codes: Int64Array, held: Int64Array) -> Int64Array:
        """Return the places of rows with which intervals are over.

        There are none where the watermark decides.

        Args:
            cells: all cells that were made so far.
            codes: shape (rows,), codes of the rows' keys.
            held: shape (cells so far or fewer,), the rows in each cell.

        Returns:
            Places, ascending.
        """
        del cells, held
        return codes[:0]

    def take(
        self,
        cells: IntervalCells,
        batch: Batch,
        codes: Int64Array,
        held: Int64Array,
        *,
        over_ns: int,
    ) -> InCells:
        """Return the cells of rows, made where needed.

        Args:
            cells: all cells that were made so far.
            batch: rows, ascending by event time.
            codes: shape (rows,), codes of their keys.
            held: shape (cells so far or fewer,), the rows in each cell.
            over_ns: result of `over_ns` for the watermark so far.
        """
        ...

    def over(self, cells: IntervalCells, held: Int64Array, until_ns: int) -> Left | None:
        """Return the intervals that are over once the watermark is there; None if none is."""
        ...

    def still_open(
        self, cells: IntervalCells, held: Int64Array, some: Int64Array, at_ns: int
    ) -> Left | None:
        """Return the intervals of some cells that are open at a time; None if none."""
        ...
