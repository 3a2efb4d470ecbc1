"""What a source does with rows that come out of order: a policy, one of ours or any other.

The policy, a `Reorder`, is frozen, and travels in the plan. What it knows while a source runs is
in the `Reordering` that it begins. Beside it stands what every source does: rows behind its promise
are late, and a promise never runs back.

```
event time   3   5   4   9   6   8    within 2, or more behind than that:
newest       3   5   5   9   9   9    refused   as they come   sorted
promised     1   3   3   7   7   7
late?        -   -   -   -   yes -    error     dropped        dropped
leaves                                3 5 4 9   3 5 4 9 8      3 4 5, at the end 8 9
```
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import START_NS, Batch, Int64Array, format_ns
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.sorting import SortBuffer

__all__ = [
    "AsTheyCome",
    "OrderedOrRefused",
    "Reorder",
    "Reordering",
    "SortedWithin",
]


class Reordering(Protocol):
    """The rows of one source being put in order. What it does may not depend on any clock.

    Its class declares its state in STATE, or has `snapshot()` and `restore(state)`; see
    `runtime/model/state.py`.
    """

    def promised_ns(self, event_time_ns: Int64Array, newest_ns: Int64Array) -> Int64Array:
        """Return what is promised from each row on: nothing older comes behind it.

        It may run back; the source then keeps to what it has promised before.

        Args:
            event_time_ns: shape (rows,), rows > 0, the next of the input.
            newest_ns: shape (rows,), the newest event time of the input up to each row.

        Returns:
            Shape (rows,), int64; START_NS for nothing.
        """
        ...

    def put(self, rows: Batch, promised_ns: int) -> Batch | None:
        """Take rows, and return those that may leave now; None: none.

        None of them is late, unless the policy passes late rows on: then these are among them, and
        leave at once, being older than what is promised.

        Args:
            rows: behind all that were put before; their stimulus times are their arrivals.
            promised_ns: what the source has promised, these rows included. No row that is
                older may be kept; of those that may stay, any.
        """
        ...

    def rest(self) -> Batch | None:
        """Return what is held, at the end of the input; None: nothing."""
        ...


class Reorder(Protocol):
    """A way to treat rows that are out of order. Frozen; must pickle."""

    @property
    def text(self) -> str:
        """How `explain` says it."""
        ...

    @property
    def refuses(self) -> bool:
        """Whether a row behind the promise ends the job. Otherwise it is dropped, and counted."""
        ...

    @property
    def sorts(self) -> bool:
        """Whether rows leave in the order of their event times, whoever wrote them."""
        ...

    @property
    def may_mix(self) -> bool:
        """Whether rows may leave in another order than that, and no error says so."""
        ...

    @property
    def passes_late(self) -> bool:
        """Whether a row behind the promise goes on, counted, rather than being dropped."""
        ...

    @property
    def longest_ns(self) -> int:
        """How far a row may be behind the newest without being late, at most, in event time.

        Zero: a source of several writers, each in order, promises nothing by itself.
        """
        ...

    def begin(self) -> Reordering:
        """Return what puts the rows of one source in order."""
        ...


class _Within:
    """What ours have in common: how far a row may be out is a setting of theirs."""

    disorder_ns: int
    passes_late = False

    @property
    def longest_ns(self) -> int:
        """As far as it may be out."""
        return self.disorder_ns

    def begin(self) -> Reordering:
        """Hold nothing."""
        return _Passing(self.disorder_ns)


@dataclass(frozen=True)
class OrderedOrRefused(_Within):
    """A row that is further behind the newest than `disorder_ns` ends the job."""

    disorder_ns: int = 0
    refuses = True
    sorts = False

    @property
    def may_mix(self) -> bool:
        """Within what is no error, yes."""
        return self.disorder_ns > 0

    @property
    def text(self) -> str:
        """How `explain` says it."""
        return "in order, or an error"


@dataclass(frozen=True)
class AsTheyCome(_Within):
    """A row that is further behind the newest than `disorder_ns` is late; others leave at once."""

    disorder_ns: int = 0
    refuses = False
    sorts = False
    may_mix = True

    @property
    def text(self) -> str:
        """How `explain` says it."""
        return f"late behind {format_ns(self.disorder_ns)}"


@dataclass(frozen=True)
class SortedWithin(_Within):
    """Rows are held until the newest is `disorder_ns` ahead of them, and leave in order.

    Raises:
        SettingError: `disorder_ns` is zero.
    """

    disorder_ns: int
    refuses = False
    sorts = True
    may_mix = False

    def __post_init__(self) -> None:
        if self.disorder_ns == 0:
            raise SettingError("out_of_order='sort' needs disorder='…', how far events may be out")

    @property
    def text(self) -> str:
        """How `explain` says it."""
        return f"sorted within {format_ns(self.disorder_ns)}"

    def begin(self) -> Reordering:
        """Hold rows from now on."""
        return _Sorting(self.disorder_ns)


class _Passing:
    """Nothing is held.

    Attributes:
        holds_nothing: so, for good; what a policy does not say is that it may hold rows.
    """

    STATE = Fields()

    holds_nothing = True

    def __init__(self, disorder_ns: int) -> None:
        self._disorder_ns = disorder_ns

    def promised_ns(self, event_time_ns: Int64Array, newest_ns: Int64Array) -> Int64Array:
        del event_time_ns
        if not self._disorder_ns:
            return newest_ns
        earliest_ns = START_NS + self._disorder_ns
        if newest_ns.item(0) < earliest_ns:  # the newest never runs back
            newest_ns = np.maximum(newest_ns, earliest_ns)
        behind_ns: Int64Array = newest_ns - self._disorder_ns
        return behind_ns

    def put(self, rows: Batch, promised_ns: int) -> Batch | None:
        del promised_ns
        return rows

    def rest(self) -> Batch | None:
        return None


class _Sorting(_Passing):
    """Rows are held for as long as an older one may come."""

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
