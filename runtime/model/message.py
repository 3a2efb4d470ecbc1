"""Message on a channel: perhaps some rows, always how far its stream is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

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


class Mark(NamedTuple):
    """Mark on a channel: what was sent before it belongs to the checkpoint."""

    number: int


class Progress(NamedTuple):
    """How far a stream is: what it has had, and what may follow.

    Whether its writer has spoken is seen by it: who has not has promised nothing.
    Source: merge_ts and max_ts of [ssg] Def. 2.1 and 3.1.
    """

    promise_ns: int = START_NS
    """Nothing older follows; END_NS: nothing at all. It never runs back. Only a writer that was
    idle may send something older all the same: it is late."""
    stimulus_ns: int = START_NS
    """When the stimulus of the promise reached us: what it sets free, such as a window or a held
    row, is timed by it."""
    newest_ns: int = START_NS
    """The newest event time that the stream has had, this message included. At the end it counts
    rows that steps before have dropped, too, so that all promises before were at most this."""
    arrived: Arrived | None = None
    """How far arrivals have come; None if no further than was said before. Only channels say it
    that lead to a step which uses arrivals (`Channel.row_fields`)."""

    @property
    def is_end(self) -> bool:
        """Whether nothing follows."""
        return self.promise_ns == END_NS

    def reaching(self, promise_ns: int, stimulus_ns: int) -> Progress:
        """Return the same with another promise, and nothing of arrivals."""
        return Progress(promise_ns, stimulus_ns, self.newest_ns)

    def with_arrived(self, arrived: Arrived | None) -> Progress:
        """Return the same with this of arrivals."""
        if arrived is self.arrived:
            return self
        return Progress(self.promise_ns, self.stimulus_ns, self.newest_ns, arrived)

    @classmethod
    def after(cls, batch: Batch | None, promise_ns: int, stimulus_ns: int = 0) -> Progress:
        """Return how far a stream is whose only rows are these, and that promises this."""
        if batch is None or not len(batch):
            return cls(promise_ns, stimulus_ns)
        return cls(promise_ns, stimulus_ns, int(batch.event_time_ns.max()))

    @classmethod
    def of_plain(cls, saved: Sequence[Any]) -> Progress:
        """Return the one that was saved as a tuple."""
        promise_ns, stimulus_ns, newest_ns, arrived = saved
        arrivals = None if arrived is None else Arrived(*arrived)
        return cls(promise_ns, stimulus_ns, newest_ns, arrivals)


NO_PROGRESS = Progress()
"""Of a stream that has not spoken."""


class Message:
    """Rows, or none, and how far the stream is with them. Treat it as frozen.

    Attributes:
        batch: the rows, or None.
        rows: how many rows it carries.
        progress: progress of its channel, this message included.
        tag: number of the read, from a shared gate to its replicas; else None.
    """

    __slots__ = ("batch", "progress", "rows", "tag")

    def __init__(self, batch: Batch | None, progress: Progress, tag: ReadTag | None = None) -> None:
        self.batch = batch
        self.rows = 0 if batch is None else len(batch.event_time_ns)
        self.progress = progress
        self.tag = tag

    def with_batch(self, batch: Batch | None) -> Message:
        """Return a message of other rows that says the same."""
        if batch is self.batch:
            return self
        return Message(batch, self.progress, self.tag)

    def split(self, rows: int, known: Progress) -> tuple[Message, Message]:
        """Return two messages, of so many rows and of the rest.

        Args:
            rows: number of rows of the first, at least 1 and less than all.
            known: progress of the message before: the new promise holds only once all rows are
                there.
        """
        assert self.batch is not None
        tag = self.tag
        marks = (tag, tag)
        if tag is not None:
            first = min(tag.late, rows)
            marks = tag._replace(late=first), tag._replace(late=tag.late - first)
        begin, rest = self.batch.slice(0, rows), self.batch.slice(rows, self.rows)
        newest_ns = max(known.newest_ns, int(begin.event_time_ns.max()))
        so_far = Progress(known.promise_ns, known.stimulus_ns, newest_ns)
        return Message(begin, so_far, marks[0]), Message(rest, self.progress, marks[1])

    def __repr__(self) -> str:
        return f"Message({self.rows} rows, promise={self.progress.promise_ns})"
