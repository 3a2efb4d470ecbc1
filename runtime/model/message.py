"""Message on a channel: perhaps some rows, always a promise."""

from __future__ import annotations

from typing import NamedTuple

from slackwater.runtime.model.batch import Batch
from slackwater.runtime.model.times import END_NS, START_NS


class ReadTag(NamedTuple):
    """Tag of the read of a shared gate that a message is part of.

    A read goes to a replica in one message or several: of each port, or cut in two because a
    frame would have been too long. It is whole once they have `rows` rows together.
    """

    number: int
    """Of the read, from 1 on; each replica gets something of every read."""
    rows: int
    """Of this read, to this replica, over all its messages."""
    late: int
    """How many rows of this message, its first ones, came late."""
    watermark_ns: int
    """Of the read: no row older than this will be released again, late ones apart."""


class Arrived(NamedTuple):
    """Promise of arrivals: how far they have come."""

    ns: int
    """Every row that arrived before this has been sent; at the end that of the last row."""
    stimulus_ns: int
    """When that reached us: what it sets free, such as a window, is timed by it."""
    since_ns: int = START_NS
    """When the first row arrived of the source that was heard last: each had been heard by then."""


class Message:
    """Rows, or none, and a promise of what may follow. Treat it as frozen.

    Attributes:
        batch: the rows, or None.
        rows: how many rows it carries.
        promise_ns: the channel sends nothing older than this in any later message; END_NS
            is the end of the stream. Never runs backwards. (merge_ts of [ssg] Def. 2.1.)
            Only a writer that was idle may send something older all the same: it is late.
        promise_stimulus_ns: when the stimulus of the promise reached us, so that what
            the promise sets free (a window, a held row) can be timed.
        tag: from a shared gate to its replicas: which read this is of; else None.
        arrived: how far arrivals have come on this channel, this message included; None: no
            further than was said before. Only channels say it that lead to a step which uses
            arrivals (`Channel.tells_arrivals`).
    """

    __slots__ = ("arrived", "batch", "promise_ns", "promise_stimulus_ns", "rows", "tag")

    def __init__(
        self,
        batch: Batch | None,
        promise_ns: int,
        promise_stimulus_ns: int,
        tag: ReadTag | None = None,
        arrived: Arrived | None = None,
    ) -> None:
        self.batch = batch
        self.rows = 0 if batch is None else len(batch.event_time_ns)
        self.promise_ns = promise_ns
        self.promise_stimulus_ns = promise_stimulus_ns
        self.tag = tag
        self.arrived = arrived

    @property
    def is_end(self) -> bool:
        """Whether the stream ends with this message."""
        return self.promise_ns == END_NS

    def with_batch(self, batch: Batch | None) -> Message:
        """Return a message of other rows that says the same."""
        if batch is self.batch:
            return self
        told = self.promise_ns, self.promise_stimulus_ns
        return Message(batch, *told, self.tag, self.arrived)

    def split(self, rows: int, known: tuple[int, int]) -> tuple[Message, Message]:
        """Return two messages, of so many rows and of the rest.

        Args:
            rows: of the first, at least 1 and less than all.
            known: (promise, its stimulus) of the message before: the new ones hold only once
                all rows are there.
        """
        assert self.batch is not None
        tag = self.tag
        marks = (tag, tag)
        if tag is not None:
            first = min(tag.late, rows)
            marks = tag._replace(late=first), tag._replace(late=tag.late - first)
        rest = self.batch.slice(rows, self.rows)
        return (
            Message(self.batch.slice(0, rows), *known, marks[0]),
            Message(rest, self.promise_ns, self.promise_stimulus_ns, marks[1], self.arrived),
        )

    def __repr__(self) -> str:
        return f"Message({self.rows} rows, promise={self.promise_ns})"
