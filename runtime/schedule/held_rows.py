"""Rows of a sink that wait for the checkpoint that contains them.

```
add ─▶ … 4 5 │1 6 7 │2 8     cut(1), cut(2): notes of how much belongs to each checkpoint
             └─▶ release(1): 4 5 leave
```

Small batches become one, since a checkpoint pays for each: some 0.2 ms, as for 1,000 rows.
"""

from __future__ import annotations

from slackwater.runtime.model import Batch
from slackwater.runtime.model.batch import concat_batches
from slackwater.runtime.model.state import Fields

__all__ = ["HeldRows"]

TOGETHER = 64
"""Number of small batches that become one."""
SMALL_ROWS = 1_024
"""Rows of a batch that is not small."""


class HeldRows:
    """Batches of one sink, in order, and the end of its stream.

    Attributes:
        has_ended: whether the end of the stream is held, too.
    """

    STATE = Fields("_batches", "has_ended", "_cuts")

    def __init__(self) -> None:
        self._batches: list[Batch] = []
        self.has_ended = False
        self._cuts: list[
            tuple[int, int, bool]
        ] = []  # (number, batches, whether the end), ascending

    @property
    def rows(self) -> int:
        """Number of rows that wait."""
        return sum(map(len, self._batches))

    def add(self, batch: Batch | None, is_end: bool) -> None:
        """Hold rows, and perhaps the end of the stream."""
        if batch is not None:
            self._batches.append(batch)
            self._put_together()
        self.has_ended |= is_end

    def _put_together(self) -> None:
        begin = len(self._batches) - TOGETHER
        if begin < (self._cuts[-1][1] if self._cuts else 0):
            return
        last = self._batches[begin:]
        if all(len(batch) < SMALL_ROWS for batch in last):
            self._batches[begin:] = [concat_batches(last)]

    def cut(self, number: int) -> None:
        """Note that what is held now belongs to a checkpoint."""
        self._cuts.append((number, len(self._batches), self.has_ended))

    def release(self, number: int) -> tuple[list[Batch], bool]:
        """Release what a complete checkpoint contains: batches, and whether the stream ended."""
        past = [cut for cut in self._cuts if cut[0] <= number]
        if not past:
            return [], False
        _, batches, has_ended = past[-1]
        released = self._batches[:batches]
        del self._batches[:batches], self._cuts[: len(past)]
        self._cuts = [(later, own - batches, ended) for later, own, ended in self._cuts]
        self.has_ended &= not has_ended
        return released, has_ended
