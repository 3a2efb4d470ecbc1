"""K-slack buffers: rows wait until the newest is far enough ahead.

How far depends on the policy, and may differ from row to row. The promise is the newest event time
released, not newest − K: a row is in its place unless a younger one was released before it, however
much older than the newest it is.

```
event time      1   10   5   12  3       K = 2
newest − K     -1    8   8   10  10
released        -    1   5   10  -       5 is older than 8, and still leaves in its place
promised        -    1   5   10  10
late?           -    -   -    -  yes
```

Source: [thesis] §2.3.1, Eq. 2.1. Differs: a late row that is passed on leaves at once, not with the
next row that moves the newest: a wait would gain nothing.
"""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import START_NS, Batch, Int64Array, format_ns
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.sorting import SortBuffer
from slackwater.runtime.shown import shown

Late = Literal["drop", "pass"]


class Slack(Protocol):
    """Slack of the rows of one source: the part in which K-slack buffers differ.

    Its class declares its state, as that of a `Reordering` does.
    """

    def reached_ns(
        self, event_time_ns: Int64Array, newest_ns: Int64Array, released: Released
    ) -> Int64Array:
        """Return the newest event time released once each row is taken, shape (rows,).

        Args:
            event_time_ns: shape (rows,), rows > 0, the next of the input.
            newest_ns: shape (rows,), the newest event time up to each row.
            released: its `extend` takes the threshold up to which rows may leave; each row once, in
                order.
        """
        ...


class Released:
    """Event times released so far: a row leaves as soon as a threshold reaches it.

    It has event times only, ahead of the rows themselves: a source promises for a whole block
    before it hands the rows on.
    """

    STATE = Fields("_threshold_ns", "_reached_ns", "_waiting")

    def __init__(self) -> None:
        self._threshold_ns = START_NS
        self._reached_ns = START_NS
        self._waiting = SortBuffer()

    @property
    def reached_ns(self) -> int:
        """Newest event time released so far; START_NS before any."""
        return self._reached_ns

    def extend(self, event_time_ns: Int64Array, threshold_ns: Int64Array) -> Int64Array:
        """Return the newest event time released once each row has come, shape (rows,).

        Args:
            event_time_ns: event times, shape (rows,).
            threshold_ns: shape (rows,), up to which rows may leave, inclusive. Where it runs back,
                rows that have left stay released.
        """
        rows = len(event_time_ns)
        if rows == 0:
            return event_time_ns
        threshold_ns = np.maximum.accumulate(threshold_ns)
        np.maximum(threshold_ns, self._threshold_ns, out=threshold_ns)
        self._threshold_ns = int(threshold_ns[-1])
        reached_ns = np.full(rows, self._reached_ns, dtype=np.int64)
        # At the row whose threshold releases each; the last write is the newest event time.
        if (waited := self._waiting.release(self._threshold_ns)) is not None:
            reached_ns[threshold_ns.searchsorted(waited.event_time_ns)] = waited.event_time_ns
        leaves = np.maximum(threshold_ns.searchsorted(event_time_ns), np.arange(rows))
        may_leave = leaves < rows
        leaving_ns = event_time_ns[may_leave]
        np.maximum.at(reached_ns, leaves[may_leave], leaving_ns)
        if len(leaving_ns) < rows:
            stays_ns = event_time_ns[~may_leave]
            self._waiting.add(Batch(event_time_ns=stays_ns, stimulus_time_ns=stays_ns, columns={}))
        reached_ns = np.maximum.accumulate(reached_ns)
        self._reached_ns = int(reached_ns[-1])
        return reached_ns


class Buffering:
    """Reordering that holds rows for as long as its slack says."""

    STATE = Fields("_slack", "_released", "_held")

    def __init__(self, slack: Slack) -> None:
        self._slack = slack
        self._released = Released()
        self._held = SortBuffer()

    def promised_ns(  # noqa: D102 - see Reordering
        self, event_time_ns: Int64Array, newest_ns: Int64Array
    ) -> Int64Array:
        # Not newest − K: only a row older than a released one is out of its place.
        return self._slack.reached_ns(event_time_ns, newest_ns, self._released)

    def put(self, rows: Batch, promised_ns: int) -> Batch | None:  # noqa: D102 - see Reordering
        self._held.add(rows)
        return self._held.release(promised_ns)

    def rest(self) -> Batch | None:  # noqa: D102 - see Reordering
        return self._held.release()


class Buffer:
    """Base of the policies of K-slack buffers, which are frozen.

    Attributes:
        late: whether a late row is dropped, or passed on out of order; counted either way.
    """

    late: Late
    refuses = False
    sorts = True

    @property
    def may_mix(self) -> bool:  # noqa: D102 - see Reorder
        return self.late == "pass"

    @property
    def passes_late(self) -> bool:  # noqa: D102 - see Reorder
        return self.late == "pass"

    def _with_late(self, what: str) -> str:
        return f"{what}; late rows go on" if self.passes_late else what


def check_buffer(who: str, *, late: str, **lengths_ns: int) -> None:
    """Check the settings that all policies of buffers have.

    Args:
        who: the policy, for errors.
        late: rule for late rows, as `Buffer.late`.
        lengths_ns: {setting: its length}, each more than zero.

    Raises:
        SettingError: a setting is out of range.
    """
    if late not in ("drop", "pass"):
        raise SettingError(
            f"{who}: late={shown(late)} must be 'drop' (late rows are omitted, and counted) or "
            "'pass' (they go on out of order, and are counted)"
        )
    for name, length_ns in lengths_ns.items():
        if length_ns < 1:
            raise SettingError(
                f"{who}: {name}={format_ns(length_ns)} must be more than zero; write it like "
                "'500ms' or '6s'"
            )


def check_delay_from(who: str, delay_from: str) -> None:
    """Check the word for where a delay is measured from.

    Raises:
        SettingError: the word is unknown.
    """
    if delay_from not in ("next", "newest"):
        raise SettingError(
            f"{who}: delay_from={shown(delay_from)} must be 'next' (from the next row that moves "
            "the newest, as the paper has it) or 'newest' (from the newest when the row came)"
        )
