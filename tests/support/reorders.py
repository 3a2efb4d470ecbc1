"""A way to put rows in order that is none of ours: it waits as long as it had to wait before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slackwater.runtime.model import Batch, Int64Array
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.order.reorder import Reordering
from slackwater.runtime.order.sorting import SortBuffer

HOUR_NS = 3_600 * 10**9


@dataclass(frozen=True)
class Widening:
    """Sorts within the largest disorder seen, at least `first_ns`; what is behind is late."""

    first_ns: int
    longest_ns: int = HOUR_NS
    refuses = False
    sorts = True
    may_mix = False
    passes_late = False

    @property
    def text(self) -> str:
        return f"sorted within what was seen, {self.first_ns} ns at least"

    def begin(self) -> Reordering:
        return Widened(self.first_ns)


class Widened:
    def __init__(self, first_ns: int) -> None:
        self._within_ns = first_ns
        self._held = SortBuffer()

    def promised_ns(self, event_time_ns: Int64Array, newest_ns: Int64Array) -> Int64Array:
        within_ns = np.maximum(
            np.maximum.accumulate(newest_ns - event_time_ns), np.int64(self._within_ns)
        )
        self._within_ns = int(within_ns[-1])
        promised_ns: Int64Array = newest_ns - within_ns
        return promised_ns

    def put(self, rows: Batch, promised_ns: int) -> Batch | None:
        self._held.add(rows)
        return self._held.release(promised_ns)

    def rest(self) -> Batch | None:
        return self._held.release()

    def snapshot(self) -> Any:
        return {"within_ns": self._within_ns, "held": save(self._held)}

    def restore(self, state: Any) -> None:
        self._within_ns = state["within_ns"]
        restore(self._held, state["held"])
