"""What a stage that sheds will drop, and what latency that leaves: before the flow runs.

```
level     what waits for the stage + what events take elsewhere
          0 ──────── low·f·bound ──────── f·bound ──────── bound
share     0                                dropped: what is too much, and what waits above f·bound
```

The rule is that of the detector (`runtime/shedding/detector.py`), in subintervals, with load and
costs known: what it has to find out first, and the random in what is dropped, are left out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slackwater.runtime.foresight.excess import cumulative_excess
from slackwater.runtime.foresight.query_graph import FloatArray

__all__ = ["ShedCourse", "ShedRule", "shed_course"]

LOOKS = 64
"""Looks at the load in as long as the bound, as the operator has it."""
MOST_STEPS = 200_000
"""Looks in all; with more subintervals and shorter bounds they are fewer."""


@dataclass(frozen=True, kw_only=True)
class ShedRule:
    """When a stage sheds.

    Attributes:
        bound_s: on the latency of the flow, > 0.
        f: the share of it at which shedding starts.
        low: the share of that at which it stops.
        drains: whether what waits above f is worked off.
        most: of what can be dropped, the share that is at most: some windows are never touched.
    """

    bound_s: float
    f: float
    low: float
    drains: bool = True
    most: float = 1.0


@dataclass(frozen=True, eq=False, kw_only=True)
class ShedCourse:
    """What is dropped over time.

    Attributes:
        width_s: length of a subinterval.
        share: shape (d,), of the stage's work that can be dropped, what is.
        level_s: shape (d,), the latency that this leaves.
        events: shape (d,), what comes, in any unit.
    """

    width_s: float
    share: FloatArray
    level_s: FloatArray
    events: FloatArray

    @property
    def worst_s(self) -> float:
        """The worst latency that shedding leaves."""
        return float(self.level_s.max(initial=0.0))

    @property
    def from_s(self) -> float | None:
        """When it begins; None: nothing is dropped."""
        at = np.flatnonzero(self.share > 0)
        return float(at[0] * self.width_s) if len(at) else None

    @property
    def dropped(self) -> float:
        """The share that is dropped of all that comes."""
        return _mean(self.share, self.events)

    @property
    def dropped_since(self) -> float:
        """The share that is dropped of what comes from the begin of shedding on."""
        began = np.flatnonzero(self.share > 0)
        return _mean(self.share[began[0] :], self.events[began[0] :]) if len(began) else 0.0


def shed_course(
    own_s: FloatArray,
    *,
    others_s: FloatArray,
    saved: float,
    elsewhere_s: FloatArray,
    rule: ShedRule,
    capacity: float,
    width_s: float,
) -> ShedCourse:
    """Return what is dropped, and what latency that leaves.

    Args:
        own_s: shape (d,), CPU seconds of the stage in each subinterval, nothing dropped.
        others_s: likewise of all else on its node.
        saved: of the stage's work, the share that is not done where all is dropped, 0 to 1.
        elsewhere_s: shape (d,), what latency would be if this stage took no time.
        rule: when it sheds.
        capacity: of the node, CPU seconds a second.
        width_s: length of a subinterval.

    Source: [espice] §3.4, with what `OverloadDetector` does otherwise.
    """
    d = len(own_s)
    parts = int(np.clip(np.ceil(LOOKS * width_s / rule.bound_s), 1, max(MOST_STEPS // d, 1)))
    step_s = width_s / parts
    own, others = (np.repeat(one / parts, parts) for one in (own_s, others_s))
    apart_s = cumulative_excess(others[None, :], np.array([capacity]), width_s=step_s)[0]
    each = zip(own.tolist(), others.tolist(), apart_s.tolist(), strict=True)
    share, level_s = np.zeros(len(own)), np.zeros(len(own))
    start_s, room_s = rule.f * rule.bound_s, capacity * step_s
    backlog_s, is_on = 0.0, False
    for p, (mine, theirs, apart) in enumerate(each):
        elsewhere = float(elsewhere_s[p // parts])
        waiting = max(backlog_s - apart, 0.0) / capacity
        # What is lost elsewhere is lost; then the stage's own queue is kept within the bound.
        level = waiting + (0.0 if elsewhere > rule.bound_s else elsewhere)
        is_on = level > (rule.low * start_s if is_on else start_s)
        if is_on and mine > 0:
            over = min(max(level - start_s, 0.0), waiting) if rule.drains else 0.0
            worked_off = min(over / rule.bound_s, 1.0) * room_s
            needed = mine + theirs - room_s + worked_off
            # Where nothing is saved all goes all the same: the operator does all that it can.
            if needed > 0:
                share[p] = rule.most if needed > saved * mine else needed / (saved * mine)
        share[p] = min(share[p], rule.most)
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
