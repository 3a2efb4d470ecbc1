"""Promises of a source from each row on. Source: merge_ts of [ssg] Def. 2.1.

| settings | from this row on, nothing older than |
| --- | --- |
| a promise expression | the largest value of it so far |
| no writer column | newest event time − disorder_ns (in order: the newest itself) |
| a writer column, disorder_ns > 0 | newest event time of all − disorder_ns |
| a writer column, no disorder | nothing: each writer is in order, and any may speak again |
| the same, and idle_ns | the least over the writers that are not idle (`idle_writers.py`) |

What a policy of another kind (`reorder.py`) promises stands in the place of newest − disorder_ns.
With out_of_order="sort" rows are held for `disorder_ns` and no longer, so newest −
disorder_ns counts there beside the expression.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from slackwater.runtime.errors import OperatorError, SchemaError
from slackwater.runtime.model import END_NS, START_NS, Batch, Columns, Int64Array
from slackwater.runtime.model.nullable import Nullable, without_mask
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.newest import NewestByRow, running_max
from slackwater.runtime.order.reorder import Reordering
from slackwater.runtime.sources.columns import time_ns
from slackwater.runtime.sources.spec import SourceSpec


def spoken_promise_ns(
    source: str, spec: SourceSpec, columns: Columns, event_time_ns: Int64Array, *, row: int
) -> Int64Array | None:
    """Return the promise expression's value of each row, shape (rows,); None if none is set.

    Args:
        source: its name, for errors.
        spec: settings of the source.
        columns: columns, at least those that the expression reads.
        event_time_ns: event times, shape (rows,).
        row: how many rows of the input came before, for errors.

    Raises:
        SchemaError: the expression gives neither timestamps nor whole nanoseconds, or plainly
            another unit.
    """
    if spec.promise is None:
        return None
    inputs = {name: columns[name] for name in spec.promise.columns()}
    try:
        spoken = spec.promise.computed(
            Batch(event_time_ns=event_time_ns, stimulus_time_ns=event_time_ns, columns=inputs)
        )
    except OperatorError as problem:
        raise SchemaError(
            f"source {source!r}: its promise {spec.promise!s} could not be computed in row "
            f"{row + (problem.place or 0)} (counted from 0): {problem}"
        ) from problem
    if isinstance(spoken := without_mask(spoken), Nullable):
        raise SchemaError(
            f"source {source!r}: its promise {spec.promise!s} is null in row "
            f"{row + int(spoken.valid.argmin())} (counted from 0), and every row promises a time; "
            "fill it, such as .fill_null(sw.event_time())"
        )
    if not isinstance(spoken, np.ndarray) or spoken.dtype.kind not in "iu":
        kind = spoken.type if isinstance(spoken, pa.Array) else spoken.dtype
        raise SchemaError(
            f"source {source!r}: its promise has type {kind}, and a promise is a time; make it "
            "a timestamp, or whole nanoseconds (an integer, not a float)"
        )
    spoken_ns = time_ns(source, "promise", spoken, unit="ns", row=row)
    if len(spoken_ns) and int(event_time_ns[0]) - int(spoken_ns[0]) > _ABSURD_NS:
        raise SchemaError(
            f"source {source!r}: from its row {row} on it promises nothing older than "
            f"{int(spoken_ns[0])} ns, decades before the event itself, so nothing would ever be "
            "ready; a promise is in nanoseconds: multiply seconds by 1_000_000_000, or make it "
            "a timestamp"
        )
    return spoken_ns


_ABSURD_NS = 20 * 365 * 86_400 * 10**9


class PromiseLine:
    """The running promise of one source; remembers how far it has come."""

    STATE = Fields("_reached_ns")

    def __init__(self, spec: SourceSpec, order: Reordering) -> None:
        self._order, self._sorts = order, spec.reorder.sorts
        self._is_bounded = spec.writer is None or spec.reorder.longest_ns > 0
        # Time by which it is before the newest, if that is all; a custom policy need not say so.
        self._lag_ns: int | None = getattr(order, "lag_ns", None)
        self._reached_ns = START_NS

    def extend(
        self,
        spoken_ns: Int64Array | None,
        event_time_ns: Int64Array,
        newest: NewestByRow,
        least_ns: Int64Array | None = None,
    ) -> tuple[Int64Array | NewestByRow, Int64Array | None] | None:
        """Return (the promise from each row on, the promise before each row), both (rows,).

        Args:
            spoken_ns: shape (rows,), from `spoken_promise_ns`.
            event_time_ns: shape (rows,), rows > 0.
            newest: the newest event time up to each row.
            least_ns: shape (rows,), the least over the writers; None if unknown.

        Returns:
            None if the source promises nothing. The promise before each row is None if no row
            is older than it, which is mostly so, and seen at half the cost.
        """
        if spoken_ns is None and least_ns is None and self._is_bounded and self._lag_ns:
            promise = newest.lagging(self._lag_ns, self._reached_ns)
            if promise.is_none_older():
                self._reached_ns = promise.last
                return promise, None
        newest_ns = newest.all()
        made_ns = (
            least_ns if least_ns is not None else self._made_ns(spoken_ns, event_time_ns, newest_ns)
        )
        if made_ns is None:
            return None
        reached_ns = self._reached_ns
        if made_ns is newest_ns and reached_ns <= newest_ns.item(0):
            after_ns = newest_ns  # which never runs back
        else:
            after_ns = running_max(made_ns, reached_ns)
        if after_ns.item(-1) >= END_NS:  # it would be taken for the end of the stream
            after_ns = np.minimum(after_ns, END_NS - 1)
        self._reached_ns = after_ns.item(-1)
        is_none_older = (
            event_time_ns.item(0) >= reached_ns
            and (
                after_ns is event_time_ns  # in order
                or not np.count_nonzero(event_time_ns[1:] < after_ns[:-1])
            )
        )
        if is_none_older:
            return after_ns, None
        before_ns = np.empty_like(after_ns)
        before_ns[0] = reached_ns
        before_ns[1:] = after_ns[:-1]
        return after_ns, before_ns

    @property
    def reached_ns(self) -> int:
        """How far the promise has come: all of its state."""
        return self._reached_ns

    @reached_ns.setter
    def reached_ns(self, reached_ns: int) -> None:
        self._reached_ns = reached_ns

    def _made_ns(
        self, spoken_ns: Int64Array | None, event_time_ns: Int64Array, newest_ns: Int64Array
    ) -> Int64Array | None:
        if spoken_ns is not None and not self._sorts:
            return spoken_ns
        if spoken_ns is None and not self._is_bounded:
            return None
        order_ns = self._order.promised_ns(event_time_ns, newest_ns)
        return order_ns if spoken_ns is None else np.maximum(order_ns, spoken_ns)
