"""The writers of one source put in one order of event time, behind the order of each.

```
promised   5    9    9    12
came       5    11   9    10      9 is as old as may be, 10 was promised away: late no, yes
leaves     5         9    11 …    once nothing older can come
```
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import Batch, Int64Array, concat_batches
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.sequence_pool import Leaving
from slackwater.runtime.order.steps import StepTally


class SequenceMerge:
    """Holds rows until their source has promised nothing older.

    Source: the synchronizing component of [thesis] §3.2.2. Differs: it waits for all writers that
    are not silent at once, by their promises, rather than for one after the other.

    Args:
        passes_late: whether rows that are older than what was promised leave at once; otherwise
            they are left out. Both are counted.
    """

    STATE = Fields("_held", "_writers")

    def __init__(self, *, passes_late: bool) -> None:
        self._passes_late = passes_late
        self._held: Batch | None = None  # in the order of their coming
        self._writers = np.empty(0, dtype=np.int64)

    @property
    def rows(self) -> int:
        """How many are held."""
        return len(self._writers)

    def merged(
        self,
        leaving: Leaving,
        promised_ns: Int64Array,
        before_ns: int,
        tally: StepTally,
        *,
        is_end: bool,
    ) -> Leaving:
        """Return what may leave by now, at the step that lets it.

        Args:
            leaving: in the order of each writer.
            promised_ns: shape (steps,), from each step on.
            before_ns: what was promised before.
            tally: where late rows are counted.
            is_end: nothing will follow: all leave.
        """
        floor_ns = np.append(before_ns, promised_ns)[leaving.at]
        leaving.count_late(leaving.batch.event_time_ns < floor_ns, tally, passes=self._passes_late)
        batch, at, writers = leaving.batch, leaving.at, leaving.writers
        is_late = np.zeros(len(at), dtype=np.bool_) if leaving.is_late is None else leaving.is_late
        if self._held is not None:
            held = self.rows
            batch = concat_batches([self._held, batch]) if len(batch) else self._held
            at = np.append(np.zeros(held, dtype=np.int64), at)
            is_late = np.append(np.zeros(held, dtype=np.bool_), is_late)
            writers = np.append(self._writers, writers)
        until = promised_ns.searchsorted(batch.event_time_ns, side="left")
        leaves_at = np.where(is_late, at, np.maximum(at, until))
        steps = len(promised_ns)
        if is_end:
            leaves_at = np.minimum(leaves_at, steps - 1)
        order = np.lexsort((batch.event_time_ns, leaves_at))  # stable: ties as they came
        gone = order[: leaves_at[order].searchsorted(steps)]
        stays = np.ones(len(at), dtype=np.bool_)
        stays[gone] = False
        kept = stays.nonzero()[0]
        self._held = batch.take(kept) if len(kept) else None
        self._writers = writers[kept]
        none = np.empty(0, dtype=np.int64)
        return Leaving(batch.take(gone), none, writers[gone], leaves_at[gone])
