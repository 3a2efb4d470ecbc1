"""One side of a join: its rows, and an index over them that is made only when it is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from runtime.model import END_NS, Batch, Int64Array
from runtime.operators.join_index import Layout, RunIndex
from runtime.operators.join_rows import HeldRows

Matches = Iterator[tuple[Int64Array, Int64Array]]
"""(rows searched for, by their place among the searches; positions of the rows found)."""


class Search(NamedTuple):
    """Rows of the other side: find what has the same key, not more than `within_ns` away."""

    codes: Int64Array
    event_time_ns: Int64Array
    within_ns: int
    horizon_ns: int
    """But nothing older than this."""

    def take(self, rows: Int64Array | slice) -> Search:
        """Return some of the rows."""
        return self._replace(codes=self.codes[rows], event_time_ns=self.event_time_ns[rows])


class JoinSide:
    """What one side of a join holds.

    Rows are indexed when the other side first searches for them: where one side is rare, most
    of the other's rows expire before that.

    Args:
        keys: the key columns.
        columns: the columns that are needed later.
    """

    def __init__(self, keys: Sequence[str], columns: Sequence[str]) -> None:
        self.keys = tuple(keys)
        self.rows = HeldRows(columns)
        self._index = RunIndex()
        self._indexed = 0  # position of the first row that is not in the index yet

    def append(self, batch: Batch, codes: Int64Array) -> None:
        """Hold these rows too."""
        self.rows.append(batch, codes)

    def forget_index(self) -> None:
        """Index all rows anew when they are next needed: the layout or the codes have changed."""
        self._index = RunIndex()
        self._indexed = self.rows.start

    def settle(self, layout: Layout) -> None:
        """Bring all rows into the index; those that are not yet, as one run."""
        start, end = max(self._indexed, self.rows.start), self.rows.end
        if start < end:
            entries = layout.pack(self.rows.codes(start, end), self.rows.times(start, end))
            self._index.add(entries, start)
        self._indexed = end

    @property
    def runs(self) -> int:
        """How many runs the index has."""
        return self._index.runs

    def matches(self, search: Search, layout: Layout, *, first_run: int = 0) -> Matches:
        """Yield what a search finds among the rows settled, some at a time.

        With an inexact layout, also rows that are somewhat too far away.
        """
        times = search.event_time_ns
        low = layout.pack(search.codes, np.maximum(times - search.within_ns, search.horizon_ns))
        high = layout.pack(search.codes, times + search.within_ns)
        return self._index.matches(low, high, first_run=first_run)

    def expire(self, horizon_ns: int) -> None:
        """Let rows go that are older than this; END_NS: all."""
        rows = self.rows
        if horizon_ns == END_NS:
            rows.drop_before(rows.end)
        else:
            rows.drop_older_than(horizon_ns)
        if len(self._index):
            self._index.tidy(rows.start, len(rows))

    def snapshot(self) -> dict[str, Any]:
        """Return the rows held; the index follows from them."""
        return self.rows.snapshot()

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self.rows.restore(state)
        self.forget_index()
