"""What all K-slack buffers have in common: rows wait until the newest is far enough ahead of them.

How far is the policy's matter, and may differ from row to row. What is promised is what was
released, and not newest − K: a row that finds no younger one released before it is in its place,
however far behind the newest it comes.

```
event time      1   10   5   12  3       K = 2
newest − K     -1    8   8   10  10
released        -    1   5   10  -       5 is behind 8, and still leaves in its place
promised        -    1   5   10  10
late?           -    -   -    -  yes
```

Source: [thesis] §2.3.1, Eq. 2.1. Differs: a late row that is passed on leaves at once, and not with
the next row that moves the newest: nothing is gained by its waiting.
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import START_NS, Batch, Int64Array, format_ns
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.sorting import SortBuffer

Late = Literal["drop", "pass"]


class Slack(Protocol):
    """How long the rows of one source wait: the part in which K-slack buffers differ.

    Its class declares its state, as that of a `Reordering` does.
    """

    def reached_ns(
        self, event_time_ns: Int64Array, newest_ns: Int64Array, released: Released
    ) -> Int64Array:
        """Return the newest event time released when each row has been taken, shape (rows,).

        Args:
            event_time_ns: shape (rows,), rows > 0, the next of the input.
            newest_ns: shape (rows,), the newest event time up to each row.
            released: to be told how far rows may leave; each row once, in order.
        """
        ...


class Released:
    """Which rows have left by when, if a row leaves as soon as a threshold has reached it.

    It knows event times only, ahead of the rows themselves: what a source promises is said of a
    block before its rows are handed on.
    """

    STATE = Fields("_threshold_ns", "_reached_ns", "_waiting")

    def __init__(self) -> None:
        self._threshold_ns = START_NS
        self._reached_ns = START_NS
        self._waiting = SortBuffer()

    @property
    def reached_ns(self) -> int:
        """The newest event time released so far; START_NS: nothing was."""
        return self._reached_ns

    def extend(self, event_time_ns: Int64Array, threshold_ns: Int64Array) -> Int64Array:
        """Return the newest event time released by each row's coming, shape (rows,).

        Args:
            event_time_ns: shape (rows,).
            threshold_ns: shape (rows,), up to where rows may leave, this one included. Where it
                runs back, what has left has left.
        """
        rows = len(event_time_ns)
        if rows == 0:
            return event_time_ns
        threshold_ns = np.maximum.accumulate(threshold_ns)
        np.maximum(threshold_ns, self._threshold_ns, out=threshold_ns)
        self._threshold_ns = int(threshold_ns[-1])
        reached_ns = np.full(rows, self._reached_ns, dtype=np.int64)
        # By the row at whose coming each may leave; the last to write is the newest of them.
        if (waited := self._waiting.release(self._threshold_ns)) is not None:
            reached_ns[threshold_ns.searchsorted(waited.event_time_ns)] = waited.event_time_ns
        leaves = np.maximum(threshold_ns.searchsorted(event_time_ns), np.arange(rows))
        may_leave = leaves < rows
        leaving_ns = event_time_ns[may_leave]
        np.maximum.at(reached_ns, leaves[may_leave], leaving_ns)
        if len(leaving_ns) < rows:
            stays_ns = event_time_ns[~may_leave]
            self._waiting.add(Batch(stays_ns, stays_ns, {}))
        reached_ns = np.maximum.accumulate(reached_ns)
        self._reached_ns = int(reached_ns[-1])
        return reached_ns


class Buffering:
    """A `Reordering` that holds rows for as long as its slack says."""

    STATE = Fields("_slack", "_released", "_held")

    def __init__(self, slack: Slack) -> None:
        self._slack = slack
        self._released = Released()
        self._held = SortBuffer()

    def promised_ns(self, event_time_ns: Int64Array, newest_ns: Int64Array) -> Int64Array:
        """Return what was released: nothing older is in its place behind it."""
        return self._slack.reached_ns(event_time_ns, newest_ns, self._released)

    def put(self, rows: Batch, promised_ns: int) -> Batch | None:
        """Hold rows; return those up to the promise, in order."""
        self._held.add(rows)
        return self._held.release(promised_ns)

    def rest(self) -> Batch | None:
        """Return what is held."""
        return self._held.release()


class Buffer:
    """What the policies of K-slack buffers say alike. Those are frozen, and have these settings.

    Attributes:
        late: a late row is dropped, or passed on out of order; counted either way.
    """

    late: Late
    refuses = False
    sorts = True

    @property
    def may_mix(self) -> bool:
        """Where late rows go on, they do so out of order."""
        return self.late == "pass"

    @property
    def passes_late(self) -> bool:
        """Whether late rows go on."""
        return self.late == "pass"

    def _said(self, what: str) -> str:
        return f"{what}; late rows go on" if self.passes_late else what


def check_buffer(who: str, *, late: str, **lengths_ns: int) -> None:
    """Check what all policies of buffers are given.

    Args:
        who: the policy, for errors.
        late: as `Buffer.late`.
        lengths_ns: {setting: its length}, each more than zero.

    Raises:
        SettingError: one is out of range.
    """
    if late not in ("drop", "pass"):
        raise SettingError(
            f"{who}: late={late!r} must be 'drop' (late rows are left out, and counted) or 'pass' "
            "(they go on out of order, and are counted)"
        )
    for name, length_ns in lengths_ns.items():
        if length_ns < 1:
            raise SettingError(
                f"{who}: {name}={format_ns(length_ns)} must be more than zero; write it like "
                "'500ms' or '6s'"
            )


def check_delay_from(who: str, delay_from: str) -> None:
    """Check from when a delay is counted.

    Raises:
        SettingError: no such word.
    """
    if delay_from not in ("next", "newest"):
        raise SettingError(
            f"{who}: delay_from={delay_from!r} must be 'next' (from the next row that moves the "
            "newest, as the paper has it) or 'newest' (from the newest when the row came)"
        )
