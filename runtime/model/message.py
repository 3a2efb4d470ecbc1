"""What travels on a channel: perhaps some rows, always a promise."""

from __future__ import annotations

from runtime.model.batch import Batch
from runtime.model.times import END_NS


class Message:
    """Rows (or none) and the channel's word about what may still follow. Treat it as frozen.

    Attributes:
        batch: the rows, or None.
        rows: how many rows it carries.
        promise_ns: the channel sends nothing older than this in any later message; END_NS
            is the end of the stream. Never runs backwards. (merge_ts of [ssg] Def. 2.1.)
            What comes behind it all the same is late: from a gate with a slack, or of a writer
            that was idle.
        promise_stimulus_ns: when the stimulus behind the promise reached us, so that what
            the promise sets free (a window, a held row) can be timed.
    """

    __slots__ = ("batch", "promise_ns", "promise_stimulus_ns", "rows")

    def __init__(self, batch: Batch | None, promise_ns: int, promise_stimulus_ns: int) -> None:
        self.batch = batch
        self.rows = 0 if batch is None else len(batch.event_time_ns)
        self.promise_ns = promise_ns
        self.promise_stimulus_ns = promise_stimulus_ns

    @property
    def is_end(self) -> bool:
        """Whether the stream ends with this message."""
        return self.promise_ns == END_NS

    def __repr__(self) -> str:
        return f"Message({self.rows} rows, promise={self.promise_ns})"
