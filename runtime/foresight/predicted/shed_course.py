"""Shedding of a stage, predicted: the events that it drops, and the latency.

```
level     wait for the stage + latency elsewhere
          0 ──────── low·f·bound ──────── f·bound ──────── bound
share     0                                dropped: the excess, and the backlog above f·bound
```

The rule is that of the detector (`runtime/shedding/overload.py`), in subintervals, with known load
and costs: the detector's learning and the randomness of drops are omitted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.foresight.excess import cumulative_excess
from slackwater.runtime.foresight.query_graph import FloatArray
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.shedding.settings import SheddingSettings

__all__ = ["ShedCourse", "shed_course"]

LOOKS = 64
"""Looks at the load during the bound, as the operator does."""
MOST_STEPS = 200_000
"""Most looks in all; many subintervals and short bounds get fewer looks each."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ShedCourse:
    """Course of shedding over time.

    Attributes:
        width_s: length of a subinterval.
        share: shape (d,), dropped share of the stage's droppable work.
        level_s: shape (d,), the latency with shedding.
        events: shape (d,), arriving events, in any unit.
    """

    width_s: float
    share: FloatArray
    level_s: FloatArray
    events: FloatArray

    @property
    def worst_s(self) -> float:
        """Worst latency with shedding."""
        return float(self.level_s.max(initial=0.0))

    @property
    def from_s(self) -> float | None:
        """Start of shedding; None if no event is dropped."""
        at = np.flatnonzero(self.share > 0)
        return float(at[0] * self.width_s) if len(at) else None

    @property
    def dropped(self) -> float:
        """Dropped share of all events."""
        return _mean(self.share, self.events)

    @property
    def dropped_since(self) -> float:
        """Dropped share of the events from the start of shedding on."""
        began = np.flatnonzero(self.share > 0)
        return _mean(self.share[began[0] :], self.events[began[0] :]) if len(began) else 0.0


def shed_course(
    own_s: FloatArray,
    *,
    others_s: FloatArray,
    saved: float,
    elsewhere_s: FloatArray,
    shed: SheddingSettings,
    capacity: float,
    width_s: float,
) -> ShedCourse:
    """Return the course of shedding of a stage.

    Args:
        own_s: shape (d,), CPU seconds of the stage in each subinterval, without drops.
        others_s: shape (d,), CPU seconds of all other work on its node.
        saved: share of the stage's work that is saved if all is dropped, 0 to 1.
        elsewhere_s: shape (d,), latency if this stage took no time.
        shed: settings of its shedding.
        capacity: CPU seconds of work that the node does in a second.
        width_s: length of a subinterval.

    Source: [espice] §3.4, with the changes of `OverloadDetector`.
    """
    d, most = len(own_s), shed.most_dropped
    bound_s = shed.overload.latency_ns / NS_PER_SECOND
    parts = int(np.clip(np.ceil(LOOKS * width_s / bound_s), 1, max(MOST_STEPS // d, 1)))
    step_s = width_s / parts
    own, others = (np.repeat(load_s / parts, parts) for load_s in (own_s, others_s))
    apart_s = cumulative_excess(others[None, :], np.array([capacity]), width_s=step_s)[0]
    each = zip(own.tolist(), others.tolist(), apart_s.tolist(), strict=True)
    share, level_s = np.zeros(len(own)), np.zeros(len(own))
    start_s, room_s = shed.overload.first_f * bound_s, capacity * step_s
    backlog_s, is_on = 0.0, False
    for p, (mine, theirs, apart) in enumerate(each):
        elsewhere = float(elsewhere_s[p // parts])
        waiting = max(backlog_s - apart, 0.0) / capacity
        # If latency elsewhere is above the bound, the stage keeps only its own queue within it.
        level = waiting + (0.0 if elsewhere > bound_s else elsewhere)
        is_on = level > (shed.overload.low * start_s if is_on else start_s)
        if is_on and mine > 0:
            over = min(max(level - start_s, 0.0), waiting) if shed.overload.drain else 0.0
            worked_off = min(over / bound_s, 1.0) * room_s
            needed = mine + theirs - room_s + worked_off
            # If drops save nothing, all is dropped all the same: the operator does all it can.
            if needed > 0:
                share[p] = most if needed > saved * mine else needed / (saved * mine)
        share[p] = min(share[p], most)
        done = mine * (1 - saved * share[p]) + theirs
        backlog_s = max(backlog_s + done - room_s, 0.0)
        level_s[p] = max(backlog_s - apart, 0.0) / capacity + elsewhere
    return ShedCourse(
        width_s=width_s,
        share=share.reshape(d, parts).mean(axis=1),
        level_s=level_s.reshape(d, parts).max(axis=1),
        events=own_s,
    )


def _mean(share: FloatArray, events: FloatArray) -> float:
    total = float(events.sum())
    return float(np.dot(share, events)) / total if total > 0 else 0.0
