"""What a policy makes of rows as they arrive: when each leaves, in which order, and how late.

Time is the stream's own. A row is published when it is sent to us, and it takes no time on its way:
the thesis' clients send the rows of a shuffled file one after the other. So what a row waits for is
its latency; that it was behind when it came is the dataset's doing. Both are told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.frame import check
from benchmarks.order.disorder import MS, Arrivals, steps_back
from slackwater.runtime.model import START_NS, Batch, BoolArray, Int64Array
from slackwater.runtime.order.reorder import Reorder
from slackwater.runtime.order.sequence import BySequence
from slackwater.runtime.order.sequence_order import NumberedRows, SequenceOrder


@dataclass(frozen=True)
class Outcome:
    """What a policy made of a stream.

    Attributes:
        mean_ms, most_ms: from publication to release.
        since_event_ms: from event time to release, on average.
        out_of_order: rows that leave behind a newer one that left just before, or not at all.
        accuracy: of the rows that came out of order, the share that was mended, in percent.
        rows: of the stream.
        came_out_of_order: rows that came behind a newer one that came just before.
    """

    name: str
    mean_ms: float
    most_ms: float
    since_event_ms: float
    out_of_order: int
    accuracy: float
    rows: int
    came_out_of_order: int

    @classmethod
    def of(cls, name: str, stream: Arrivals, left_ns: Int64Array, order: Int64Array) -> Outcome:
        """Return what came of a stream.

        Args:
            name: the policy's.
            stream: rows as they arrive.
            left_ns: shape (rows,), when each left.
            order: shape (rows,), the rows in the order in which they left.
        """
        out_of_order = steps_back(stream.event_ns[order])
        wait_ms = (left_ns - stream.arrival_ns) / MS
        return cls(
            name,
            float(wait_ms.mean()),
            float(wait_ms.max()),
            float(((left_ns - stream.event_ns) / MS).mean()),
            out_of_order,
            100 * (1 - out_of_order / stream.out_of_order),
            rows=len(left_ns),
            came_out_of_order=stream.out_of_order,
        )

    def figures(self) -> dict[str, Any]:
        """Return them as plain values."""
        return {
            "mean_ms": self.mean_ms,
            "most_ms": self.most_ms,
            "since_event_ms": self.since_event_ms,
            "out_of_order": self.out_of_order,
            "accuracy": self.accuracy,
        }


def pooled(outcomes: Sequence[Outcome]) -> Outcome:
    """Return what a policy made of several streams together; at least one."""
    rows = sum(one.rows for one in outcomes)
    came = sum(one.came_out_of_order for one in outcomes)
    left = sum(one.out_of_order for one in outcomes)
    return Outcome(
        outcomes[0].name,
        sum(one.mean_ms * one.rows for one in outcomes) / rows,
        max(one.most_ms for one in outcomes),
        sum(one.since_event_ms * one.rows for one in outcomes) / rows,
        left,
        100 * (1 - left / came),
        rows=rows,
        came_out_of_order=came,
    )


def buffered(name: str, policy: Reorder, stream: Arrivals) -> Outcome:
    """Return what a K-slack buffer makes of a stream: by the promises of its `Reordering`.

    A row leaves as soon as the promise has reached it; what is left at the end leaves with the
    last row. That a source does just so is tested.
    """
    at, late = leaves(policy, stream)
    # Rows that leave at one time do so in the order of their event times, a late one behind them.
    order = np.lexsort((np.arange(len(at)), stream.event_ns, late, at))
    return Outcome.of(name, stream, stream.arrival_ns[at], order)


def leaves(policy: Reorder, stream: Arrivals) -> tuple[Int64Array, BoolArray]:
    """Return with which row each one leaves, and which are late; both of shape (rows,)."""
    event_ns = stream.event_ns
    rows = len(event_ns)
    newest_ns = np.maximum.accumulate(event_ns)
    promised_ns = np.maximum.accumulate(policy.begin().promised_ns(event_ns, newest_ns))
    late = np.empty(rows, dtype=np.bool_)
    late[0] = event_ns[0] < START_NS
    late[1:] = event_ns[1:] < promised_ns[:-1]
    at = np.maximum(promised_ns.searchsorted(event_ns), np.arange(rows))
    return np.where(late, np.arange(rows), np.minimum(at, rows - 1)), late


PIECE_ROWS = 65_536


def sequenced(name: str, policy: BySequence, stream: Arrivals) -> Outcome:
    """Return what order by sequence number makes of a stream, whose late rows go on.

    Rows of several sources are put into one order by event time, if the policy merges.
    """
    rows = len(stream.event_ns)
    has_writers = int(stream.source.max()) > 0
    order = SequenceOrder(policy, has_writers=has_writers)
    before_ns = _newest_of_source(stream)
    left_ns = np.empty(rows, dtype=np.int64)
    place = np.empty(rows, dtype=np.int64)
    out = 0
    for start in range(0, rows, PIECE_ROWS):
        piece = slice(start, start + PIECE_ROWS)
        event_ns, arrival_ns = stream.event_ns[piece], stream.arrival_ns[piece]
        row = np.arange(start, start + len(event_ns))
        given = NumberedRows(
            Batch(event_time_ns=event_ns, stimulus_time_ns=arrival_ns, columns={"row": row}),
            stream.source[piece] if has_writers else None,
            stream.number[piece],
            arrival_ns,
            before_ns[piece],
        )
        is_end = start + PIECE_ROWS >= rows
        steps = order.extend(given, until_ns=int(arrival_ns[-1]), is_end=is_end)
        leaving = np.asarray(steps.batch.columns["row"])
        left_ns[leaving] = np.repeat(steps.time_ns, np.diff(steps.leaves))
        place[leaving] = np.arange(out, out + len(leaving))
        out += len(leaving)
    check(out == rows, f"{name}: {out} of {rows} rows left")
    return Outcome.of(name, stream, left_ns, np.argsort(place))


def _newest_of_source(stream: Arrivals) -> Int64Array:
    """Return the newest event time of its source before each row, shape (rows,)."""
    before_ns = np.full(len(stream.event_ns), START_NS, dtype=np.int64)
    for source in range(int(stream.source.max()) + 1):
        rows = np.flatnonzero(stream.source == source)
        before_ns[rows[1:]] = np.maximum.accumulate(stream.event_ns[rows])[:-1]
    return before_ns
