"""Forecast of a gate's next second, if its writers go on as they did.

```
event time      newest ───────────────╮ moves at `speed`
                  │  slack            │
                bound = max(frontier, newest − slack)   older rows have left
                  │
                frontier ── its distance to the newest grows by `slope`
clock           now                   now + 1 s
```

A row waits from its arrival, when it was the newest, until the bound reaches it. Rows that the
bound of slack reaches before the frontier does are slack-ready. Source: [ssg] Def. 2.1 and 3.1.
Differs: the paper's models have to find this forecast in the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

STEPS = 4
"""Parts of the second that are computed one by one."""


FOREVER_S = 1e6
"""Seconds that an infinite slack counts as."""


STEADY_S = 2
"""Seconds over which a rise is measured: over a single one it is chance."""


def mean_rise(took: Sequence[float]) -> float:
    """Return the mean rise a second over the last `STEADY_S`; 0 if it fell.

    Args:
        took: times of the seconds, the newest last.
    """
    recent = took[-STEADY_S - 1 :]
    return max((recent[-1] - recent[0]) / max(len(recent) - 1, 1), 0.0)


@dataclass(frozen=True)
class GateStates:
    """States of gates at the end of a second; arrays of one shape.

    Attributes:
        skew_s: newest − frontier, ≥ 0, in event time.
        slope: growth of the skew per second of the clock.
        speed: growth of the newest per second of the clock, event time, > 0.
        held_s: wait of the oldest row, by the clock.
        held: number of held rows.
    """

    skew_s: FloatArray
    slope: FloatArray
    speed: FloatArray
    held_s: FloatArray
    held: FloatArray


def next_second(gates: GateStates, slack_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the longest wait (s, by the clock) and the number of slack-ready rows.

    The wait includes rows that are still held at the end of the second: they will wait at least
    that long. So the wait grows with the slack, and the number of slack-ready rows falls.

    Args:
        gates: states of the gates.
        slack_s: slack in event time, in the next second; broadcasts with the states.
    """
    skew_s, slope, speed = gates.skew_s, gates.slope, gates.speed
    oldest_s = np.minimum(gates.held_s * speed, skew_s)  # below newest, in event time
    density = gates.held / np.maximum(oldest_s, 0.02 * speed)  # rows a second of event time
    slack_s = np.clip(slack_s, 0.0, FOREVER_S)
    shape = np.broadcast_shapes(skew_s.shape, slack_s.shape)
    held_from = np.broadcast_to(-oldest_s, shape)  # event time, the newest now being 0
    # early_s: event time whose rows are slack-ready
    longest_s, early_s = np.zeros(shape), np.zeros(shape)
    before = _At(np.zeros_like(skew_s), skew_s, np.asarray(skew_s - slack_s))
    for step in range(STEPS + 1):
        newest = speed * step / STEPS
        ahead_s = np.maximum(skew_s + slope * step / STEPS, 0.0)
        after = _At(newest, ahead_s, ahead_s - slack_s)
        bound = newest - np.minimum(ahead_s, slack_s)
        # Rows that the bound reached since the last step waited at least until then.
        waited_s = np.where(bound > held_from, before.newest - held_from, 0.0)
        longest_s = np.maximum(longest_s, waited_s)
        early_s += np.where(bound > held_from, _early_s(before, after, held_from), 0.0)
        held_from = np.maximum(held_from, bound)
        longest_s = np.maximum(longest_s, newest - held_from)
        before = after
    return longest_s / speed, early_s * density


@dataclass(frozen=True)
class _At:
    newest: FloatArray
    ahead_s: FloatArray  # newest − frontier
    excess_s: FloatArray  # ahead_s − slack


def _early_s(before: _At, after: _At, held_from: FloatArray) -> FloatArray:
    """Return the event time that the slack's bound reached ahead of the frontier."""
    change_s = after.excess_s - before.excess_s
    share = np.clip(-before.excess_s / np.where(change_s == 0.0, 1.0, change_s), 0.0, 1.0)
    newest = before.newest + share * (after.newest - before.newest)  # where the two cross
    crossing = newest - before.ahead_s - share * (after.ahead_s - before.ahead_s)
    begin = np.where(before.excess_s > 0, held_from, np.maximum(held_from, crossing))
    slack_bound = after.newest - after.ahead_s + after.excess_s
    end = np.where(after.excess_s > 0, slack_bound, crossing)
    is_ahead = (before.excess_s > 0) | (after.excess_s > 0)
    return np.where(is_ahead, np.maximum(end - begin, 0.0), 0.0)
