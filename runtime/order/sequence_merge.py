"""Merge of one source's writers, each in order, into one order of event time.

```
promised   5    9    9    12
came       5    11   9    10      9 is as old as may be, 10 was promised away: late no, yes
leaves     5         9    11 …    once no older row can come
```
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import Batch, Int64Array, concat_batches
from slackwater.runtime.model.state import Fields
from slackwater.runtime.order.sequence_pool import Leaving
from slackwater.runtime.order.steps import StepTally


class SequenceMerge:
    """Merge that holds rows until their source has promised no older one.

    Source: the synchronizing component of [thesis] §3.2.2. Differs: it waits for all writers that
    are not silent at once, by their promises, rather than for one after the other.

    Args:
        passes_late: whether rows older than the promise leave at once; else they are dropped. Both
            are counted.
    """

    STATE = Fields("_held", "_writers")

    def __init__(self, *, passes_late: bool) -> None:
        self._passes_late = passes_late
        self._held: Batch | None = None  # in the order in which rows came
        self._writers = np.empty(0, dtype=np.int64)

    @property
    def rows(self) -> int:
        """Number of rows held."""
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
        """Return the rows that may leave by now, each at the step that releases it.

        Args:
            leaving: rows in the order of each writer.
            promised_ns: shape (steps,), the promise from each step on.
            before_ns: the promise before.
            tally: the counts, for late rows.
            is_end: whether no row will follow: then all leave.
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
        order = np.lexsort((batch.event_time_ns, leaves_at))  # stable: ties in order of arrival
        gone = order[: leaves_at[order].searchsorted(steps)]
        stays = np.ones(len(at), dtype=np.bool_)
        stays[gone] = False
        kept = stays.nonzero()[0]
        self._held = batch.take(kept) if len(kept) else None
        self._writers = writers[kept]
        none = np.empty(0, dtype=np.int64)
        return Leaving(batch.take(gone), none, writers[gone], leaves_at[gone])
