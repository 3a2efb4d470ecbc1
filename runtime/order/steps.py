"""Steps of a reordering that holds rows by time: the moments at which rows leave.

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
"""Words for counts: rows with a number that had come before; numbers given up; late rows passed on;
late rows dropped; new numberings of a writer."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps in order of time; arrays have shape (steps,) unless they say otherwise.

    Attributes:
        batch: rows that leave, in the order of leaving.
        time_ns: the time of each step, by the arrivals, never decreasing.
        row_of: the last row of this piece that was read, −1 before the first.
        leaves: shape (steps + 1,): at step n rows leaves[n] to leaves[n + 1] of the batch leave.
        promised_ns: promise of each step: from there on no older row leaves, except late rows.
        counts: {one of COUNTED: how many up to each step}, without those that are zero throughout.
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
    """Counts by step, collected before they are summed."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._added: dict[str, Int64Array] = {}

    def add(self, word: str, steps: Any, amounts: Any = None) -> None:
        """Count at each of these steps, once or by `amounts`."""
        at = np.asarray(steps, dtype=np.int64)
        if not len(at):
            return
        counts = self._added.setdefault(word, np.zeros(self._steps, dtype=np.int64))
        np.add.at(counts, at, 1 if amounts is None else np.asarray(amounts, dtype=np.int64))

    def totals(self) -> dict[str, Int64Array]:
        """Return {word: how many up to each step}."""
        return {word: np.cumsum(added) for word, added in self._added.items()}
