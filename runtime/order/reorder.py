"""Policies for rows out of order in a source: their interface, and the simple ones.

A policy, a `Reorder`, is frozen and travels in the plan. It begins a `Reordering`, which holds its
state while a source runs. Two rules hold for every source: rows older than its promise are late,
and a promise never runs back.

```
event time   3   5   4   9   6   8    at most 2 older than the newest, or more:
newest       3   5   5   9   9   9    refused   as they come   sorted
promised     1   3   3   7   7   7
late?        -   -   -   -   yes -    error     dropped        dropped
leaves                                3 5 4 9   3 5 4 9 8      3 4 5, at the end 8 9
```
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import (
    START_NS,
    Batch,
    BoolArray,
    Int64Array,
    concat_batches,
    format_ns,
)
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.sorting import SortBuffer

__all__ = [
    "AsTheyCome",
    "OrderedOrRefused",
    "Reorder",
    "Reordering",
    "SortedWithin",
    "put_around_late",
]


class Reordering(Protocol):
    """State of one source whose rows are put in order. It depends on no clock.

    Its class declares its state in STATE, or has `snapshot()` and `restore(state)`; see
    `runtime/model/state.py`.
    """

    def promised_ns(self, event_time_ns: Int64Array, newest_ns: Int64Array) -> Int64Array:
        """Return the promise from each row on: no older row follows.

        The promise may run back; the source then keeps its earlier one.

        Args:
            event_time_ns: shape (rows,), rows > 0, the next of the input.
            newest_ns: shape (rows,), the newest event time of the input up to each row.

        Returns:
            Shape (rows,), int64; START_NS where nothing is promised.
        """
        ...

    def put(self, rows: Batch, promised_ns: int) -> Batch | None:
        """Take rows, and return those that may leave now; None if none may.

        No row is late, unless the policy passes late rows on: then these include late rows, which
        leave at once, being older than the promise.

        Args:
            rows: rows after all earlier ones; their stimulus times are their arrivals.
            promised_ns: the source's promise, these rows included. No older row may be kept; the
                others may be.
        """
        ...

    def rest(self) -> Batch | None:
        """Return the rows held at the end of the input; None if none exists."""
        ...


class Reorder(Protocol):
    """Policy for rows that are out of order. Frozen; must pickle."""

    @property
    def text(self) -> str:
        """Text of the policy in `explain`."""
        ...

    @property
    def refuses(self) -> bool:
        """Whether a row older than the promise ends the job; else it is late."""
        ...

    @property
    def sorts(self) -> bool:
        """Whether rows leave in the order of their event times, over all writers."""
        ...

    @property
    def may_mix(self) -> bool:
        """Whether rows may leave in another order, without an error."""
        ...

    @property
    def passes_late(self) -> bool:
        """Whether a row older than the promise goes on, counted; else it is dropped."""
        ...

    @property
    def longest_ns(self) -> int:
        """Most time by which a row may be older than the newest without being late.

        Zero: a source of several writers, each in order, promises nothing by itself.
        """
        ...

    def begin(self) -> Reordering:
        """Return a reordering for the rows of one source."""
        ...


class _Within:
    """Base of our policies that are set by a disorder."""

    disorder_ns: int
    passes_late = False

    @property
    def longest_ns(self) -> int:
        return self.disorder_ns

    def begin(self) -> Reordering:
        return _Passing(self.disorder_ns)


@dataclass(frozen=True)
class OrderedOrRefused(_Within):
    """Policy that ends the job at a row more than `disorder_ns` older than the newest."""

    disorder_ns: int = 0
    refuses = True
    sorts = False

    @property
    def may_mix(self) -> bool:  # noqa: D102 - see Reorder
        return self.disorder_ns > 0

    @property
    def text(self) -> str:  # noqa: D102 - see Reorder
        return "in order, or an error"


@dataclass(frozen=True)
class AsTheyCome(_Within):
    """Policy that passes rows on as they come; late beyond `disorder_ns`."""

    disorder_ns: int = 0
    refuses = False
    sorts = False
    may_mix = True

    @property
    def text(self) -> str:  # noqa: D102 - see Reorder
        return f"late if more than {format_ns(self.disorder_ns)} older than the newest"


@dataclass(frozen=True)
class SortedWithin(_Within):
    """Policy that holds rows until the newest is `disorder_ns` ahead, and sorts them.

    Raises:
        SettingError: `disorder_ns` is zero.
    """

    disorder_ns: int
    refuses = False
    sorts = True
    may_mix = False

    def __post_init__(self) -> None:
        if self.disorder_ns == 0:
            raise SettingError(
                "out_of_order='sort' needs disorder=, how far events may be out of order; write "
                "disorder='2s', say"
            )

    @property
    def text(self) -> str:  # noqa: D102 - see Reorder
        return f"sorted within {format_ns(self.disorder_ns)}"

    def begin(self) -> Reordering:  # noqa: D102 - see Reorder
        return _Sorting(self.disorder_ns)


class _Passing:
    """Reordering that holds no row.

    Attributes:
        holds_nothing: True here. A custom policy without it may hold rows.
        lag_ns: time by which its promise is before the newest event time, always.
    """

    STATE = Fields()

    holds_nothing = True

    def __init__(self, disorder_ns: int) -> None:
        self.lag_ns = disorder_ns

    def promised_ns(self, event_time_ns: Int64Array, newest_ns: Int64Array) -> Int64Array:
        del event_time_ns
        if not self.lag_ns:
            return newest_ns
        earliest_ns = START_NS + self.lag_ns
        if newest_ns.item(0) < earliest_ns:  # the newest never runs back
            newest_ns = np.maximum(newest_ns, earliest_ns)
        promised: Int64Array = newest_ns - self.lag_ns
        return promised

    def put(self, rows: Batch, promised_ns: int) -> Batch | None:
        del promised_ns
        return rows

    def rest(self) -> Batch | None:
        return None


class _Sorting(_Passing):
    """Reordering that holds a row while an older one may come."""

    STATE = Fields("_held")

    holds_nothing = False

    def __init__(self, disorder_ns: int) -> None:
        super().__init__(disorder_ns)
        self._held = SortBuffer()

    def put(self, rows: Batch, promised_ns: int) -> Batch | None:
        self._held.add(rows)
        return self._held.release(promised_ns)

    def rest(self) -> Batch | None:
        return self._held.release()


def put_around_late(
    order: Reordering, rows: Batch, is_late: BoolArray, promised_ns: memoryview[int]
) -> tuple[Batch, Batch]:
    """Put the rows between late ones in order, and let the late ones leave.

    Args:
        order: takes what is not late.
        rows: some of them late.
        is_late: whether rows are late, shape (rows,).
        promised_ns: shape (rows,), from each row on.

    Returns:
        (What leaves up to the last late row, that one included, or to the last run of them; what
        comes after it, still to be put.)
    """
    count = len(is_late)
    edges = [0, *(np.flatnonzero(is_late[1:] != is_late[:-1]) + 1).tolist(), count]
    left = []
    for first, stop in pairwise(edges):
        piece: Batch | None = rows.slice(first, stop)
        if piece is not None and not is_late[first]:
            if stop == count:
                break
            piece = order.put(piece, promised_ns[stop - 1])
        if piece is not None:
            left.append(piece)
    return concat_batches(left), rows.slice(count if is_late[-1] else edges[-2], count)
