"""Attempts at a job: after each failure another follows, or the job ends.

```
attempt ── failed(cause) ──▶ Again(checkpoint, after) ──▶ works ──▶ attempt … complete(n) …
                        └──▶ Cause: the job ends
```

Pure; an attempt is a `JobLife`, which never takes a death back. Both hosts ask here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from slackwater.runtime import errors
from slackwater.runtime.life import Cause
from slackwater.runtime.measure.recovered import Recovery
from slackwater.runtime.model import NS_PER_SECOND

__all__ = ["MOST_ALIKE", "Again", "Attempts"]

MOST_ALIKE = 3
"""Failures alike from one checkpoint that end the job: a fourth would be like them."""
PASSED = 10
"""Checkpoints after which an attempt has passed what failed: the one before lies two intervals
back, and rows may come slower again."""
LONGEST_NS = 30 * NS_PER_SECOND
"""Longest wait before an attempt."""
_FINAL = (
    *(errors.SettingError, errors.FlowError, errors.ClusterError, errors.JobStopped),
    *(errors.RetentionError, errors.InputGone, errors.OutputRefused),
)
"""Errors that no repeat mends."""
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+")

_Signature = tuple[str, tuple[str, ...], str]
"""(kind of error, slots, first line of its text without numbers): rows that follow may differ."""


class Again(NamedTuple):
    """Begin an attempt: new slots, all from one checkpoint.

    Attributes:
        checkpoint: number of the checkpoint; None means the start.
        after_ns: wait before it.
    """

    checkpoint: int | None
    after_ns: int


class Attempts:
    """Machine that decides how a job goes on after a failed attempt.

    Args:
        start_ns: start of the job.
        is_repeatable: whether the same rows come again in the same order, so that an older
            checkpoint may do: a flow that is ready-only, in one order. Sinks of others may have
            rows of the newer checkpoint, which would be decided twice.
        checkpoints: numbers of complete checkpoints to begin with, ascending. The start is tried
            only without any: sources may have dropped their first rows.
        recoveries: recoveries before, of a job that this process takes over.

    Attributes:
        recoveries: recoveries so far, for the report.
    """

    def __init__(
        self,
        start_ns: int,
        *,
        is_repeatable: bool,
        checkpoints: tuple[int, ...] = (),
        recoveries: Iterable[Recovery] = (),
    ) -> None:
        self._start_ns, self._is_repeatable = start_ns, is_repeatable
        self._checkpoints: list[int | None] = [*checkpoints] or [None]
        self._failures = 0  # since the last checkpoint that was complete
        self._alike: Counter[_Signature] = Counter()  # failures from the checkpoint
        self._last: _Signature | None = None  # for which the checkpoint before was tried
        self._since = 0  # checkpoints that were complete since then
        self._is_unwanted = False
        self._failed_ns = start_ns
        self.recoveries = [*recoveries]

    @property
    def checkpoint(self) -> int | None:
        """Number of the checkpoint that the next attempt begins at; None means the start."""
        return self._checkpoints[-1]

    def complete(self, number: int) -> None:
        """Take note that a checkpoint is complete; the count of failures begins again.

        Args:
            number: number of the checkpoint, above all before, also those of failed attempts.
        """
        self._checkpoints = [*(n for n in self._checkpoints[-1:] if n is not None), number]
        self._alike.clear()
        self._failures = 0
        self._since += 1
        if self._since == PASSED:
            self._last = None

    def stop(self) -> None:
        """Take note that the user stops the job: no attempt follows."""
        self._is_unwanted = True

    def takes_over(self, cause: Cause, noticed_ns: int) -> None:
        """Take note that the first attempt follows the end of another process.

        Args:
            cause: the end of that process. It counts as no failure of the job.
            noticed_ns: when it was noticed.
        """
        self._went_back(cause, noticed_ns)

    def lost(self, nodes: Iterable[str]) -> None:
        """Take note of nodes that are lost, by their names: the next attempt omits them."""
        for last in self.recoveries[-1:]:  # none yet, as a coordinator takes a job over
            last.lost_nodes = sorted(nodes)

    def waits(self, room: str | None) -> None:
        """Take note that the next attempt waits for room.

        Args:
            room: room that it waits for, in words; None once that is there.
        """
        for last in self.recoveries[-1:]:
            last.waits = room

    def works(self, now_ns: int) -> None:
        """Take note that the slots of the next attempt work."""
        self.recoveries[-1].gap_s = (now_ns - self._failed_ns) / NS_PER_SECOND

    def failed(self, cause: Cause, failed_ns: int) -> Again | Cause:
        """Return the next attempt, or the cause of the job's end.

        Args:
            cause: cause of the attempt's failure.
            failed_ns: when it was noticed; see `JobLife.failed_ns`.
        """
        if self._is_unwanted or issubclass(getattr(errors, cause.kind, Exception), _FINAL):
            return cause
        first_line = cause.message.partition("\n")[0]
        signature = (cause.kind, cause.slots, _NUMBERS.sub("#", first_line))
        self._alike[signature] += 1
        was_tried = signature == self._last
        if self._alike[signature] >= MOST_ALIKE or (was_tried and not self._since):
            if not self._is_repeatable or was_tried or len(self._checkpoints) == 1:
                return self._ended(cause, was_tried=was_tried)
            self._checkpoints.pop()
            self._alike.clear()
            self._last, self._since = signature, 0
        self._failures += 1
        self._went_back(cause, failed_ns)
        wait_ns = 0 if self._failures == 1 else NS_PER_SECOND << min(self._failures - 2, 10)
        return Again(self.checkpoint, min(wait_ns, LONGEST_NS))

    def _went_back(self, cause: Cause, failed_ns: int) -> None:
        self._failed_ns = failed_ns
        self.recoveries.append(
            Recovery(
                at_s=(failed_ns - self._start_ns) / NS_PER_SECOND,
                cause=f"{cause.kind}: {cause.message}",
                checkpoint=self.checkpoint,
            )
        )

    def _ended(self, cause: Cause, *, was_tried: bool) -> Cause:
        place = "the start" if self.checkpoint is None else f"checkpoint {self.checkpoint:,}"
        tried = "the checkpoint before gave the same" if was_tried else f"{MOST_ALIKE} times"
        return replace(
            cause,
            message=f"{cause.message} (the job did not recover: {tried}, last from {place})",
        )
