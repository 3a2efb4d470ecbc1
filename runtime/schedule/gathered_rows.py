"""Rows of a backlog's source that wait until each replica gets enough in one message.

```
slice        6,500 rows   6,500 rows   6,500 rows …   a filter leaves a tenth of each
to 64 parts  ·            ·            300 rows each  one frame a replica, not three
```

A frame costs both ends some 30 µs, as much as 1,000 rows. So with 64 replicas most of what a row of
a short slice costs is its frame. Existing data is due by no clock: until its rows leave, a source
is where it was before, as in one longer slice.
"""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.runtime.config import Limits
from slackwater.runtime.model import NO_PROGRESS, Batch, Message
from slackwater.runtime.model.batch import concat_batches
from slackwater.runtime.model.state import Fields
from slackwater.runtime.plan.plan import Channel

__all__ = ["PART_ROWS", "GatheredRows"]

PART_ROWS = 1_024
"""Rows for each replica from which on a message leaves at once."""


class GatheredRows:
    """Rows of a source that are not sent yet, with their last promise.

    Args:
        least_rows: rows from which on they leave; with 0 none waits.
        longest_ns: longest wait of a row until the next slice that hands rows over.
    """

    STATE = Fields("_batches", "_progress", "_since_ns")

    def __init__(self, least_rows: int, longest_ns: int) -> None:
        self._least_rows, self._longest_ns = least_rows, longest_ns
        self._batches: list[Batch] = []
        self._progress = NO_PROGRESS
        self._since_ns: int | None = None  # None if nothing waits

    @classmethod
    def of(
        cls, outputs: Sequence[Channel], limits: Limits, *, has_deadline: bool, is_sampled: bool
    ) -> GatheredRows:
        """Return the gathered rows of a backlog's source.

        None wait where a deadline or a sample counts, nor where rows leave beside the results or
        may come late. There are never more than a slice may have.

        Args:
            outputs: output channels of the source.
            limits: limits of the job.
            has_deadline: whether its flow has one.
            is_sampled: whether its slot takes samples.
        """
        has_others = any(
            channel.may_be_late
            or channel.late is not None
            or channel.diverted is not None
            or "arrivals" in channel.row_fields
            for channel in outputs
        )
        least_rows = 0
        if not (has_deadline or is_sampled or has_others):
            parts = sum(channel.owned is not None for channel in outputs)
            least_rows = min(parts * PART_ROWS, limits.max_slice_rows)
        return cls(least_rows, limits.longest_slice_ns)

    def add(self, message: Message, now_ns: int) -> Message | None:
        """Add the rows of a slice; return all rows that leave, or None."""
        since_ns = self._since_ns
        if message.batch is not None:
            self._batches.append(message.batch)
        self._progress = message.progress
        if since_ns is None:
            since_ns = self._since_ns = now_ns
        is_due = message.progress.is_end or now_ns - since_ns >= self._longest_ns
        if is_due or sum(map(len, self._batches)) >= self._least_rows:
            return self.take()
        return None

    def take(self) -> Message | None:
        """Return the rows that wait, with the last promise; None if nothing waits."""
        if self._since_ns is None:
            return None
        batch = concat_batches(self._batches) if self._batches else None
        self._batches, self._since_ns = [], None
        return Message(batch, self._progress)
