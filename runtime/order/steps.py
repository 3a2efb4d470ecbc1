"""What a reordering that holds by time has made of some rows: steps, at which rows leave.

```
clock      10   20   30        36   40       a step for each row read, and for each wait that ends
row         0    1    2         -    3
leaves      0    1    -         2    3       row 2 waited for a number that was given up at 35
promised   t0   t1   t1        t2   t3
```
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from slackwater.runtime.model import Batch, Int64Array

DUPLICATE, GIVEN_UP, LATE, LATE_DROPPED, RENUMBERED = (
    "duplicates",
    "given_up",
    "late",
    "late_dropped",
    "renumbered",
)
COUNTED = (DUPLICATE, GIVEN_UP, LATE, LATE_DROPPED, RENUMBERED)
"""What is counted: rows whose number had come before; numbers that were given up; late rows that
went on, and that did not; how often a writer's numbers began anew."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps in the order of time; every array has shape (steps,) unless it says otherwise.

    Attributes:
        batch: rows that leave, in the order of leaving.
        time_ns: when each step is, by the arrivals; never back.
        row_of: the row of this piece that was read last, −1 before the first.
        leaves: shape (steps + 1,): at step n rows leaves[n] to leaves[n + 1] of the batch leave.
        promised_ns: from each step on nothing older leaves, but what is late.
        counts: {one of COUNTED: how many up to each step}; what there is none of is left out.
    """

    batch: Batch
    time_ns: Int64Array
    row_of: Int64Array
    leaves: Int64Array
    promised_ns: Int64Array
    counts: dict[str, Int64Array]

    def __len__(self) -> int:
        return len(self.time_ns)


class StepTally:
    """Counts of steps, collected before they are summed up."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._added: dict[str, Int64Array] = {}

    def add(self, word: str, steps: Any, amounts: Any = None) -> None:
        """Count one, or so many, at each of these steps."""
        at = np.asarray(steps, dtype=np.int64)
        if not len(at):
            return
        kept = self._added.setdefault(word, np.zeros(self._steps, dtype=np.int64))
        np.add.at(kept, at, 1 if amounts is None else np.asarray(amounts, dtype=np.int64))

    def totals(self) -> dict[str, Int64Array]:
        """Return {word: how many up to each step}."""
        return {word: np.cumsum(added) for word, added in self._added.items()}
