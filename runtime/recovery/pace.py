"""Pace of checkpoints: the next begins once they cost a small part of the time.

```
           cost 54 ms            cost 36 ms
cut 1 ─────────────────▶ cut 2 ─────────────▶ cut 3      54 / 2.7 % = 2 s; a slot that gets half of
        at least 2 s             1.3 s                   a core has half of the time, so 4 s
```
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["MOST_COST", "PAYING", "Cost", "Pace"]

MOST_COST = 0.03
"""CPU time that checkpoints may add to all else that a process does."""
PAYING = 0.9 * MOST_COST
"""Part of its time that pays for checkpoints: the interval gives way to that. That is less, since
checkpoints take a part of the time themselves, and some costs are not seen, such as cold caches."""
LEAST_SHARE = 0.2
"""Least part of the time in which a core is expected: a shortage may be over soon."""


class Cost(NamedTuple):
    """Cost of a checkpoint in a process.

    Attributes:
        cpu_ns: CPU time that all its threads took for it.
        had_ns: time since the checkpoint before, without the time in which it waited for a core.
        since_ns: all the time since then.
    """

    cpu_ns: int
    had_ns: int
    since_ns: int


class Pace:
    """Pace keeps account of what checkpoints cost each process.

    What the time since the checkpoint before has not paid is added to the next one. Time that paid
    for more than the cost is not saved up.

    Args:
        every_ns: interval that the user wants.

    Attributes:
        interval_ns: time from the beginning of a checkpoint to that of the next.
    """

    def __init__(self, every_ns: int) -> None:
        self._every_ns = every_ns
        self._owed_ns: dict[str, float] = {}
        self.interval_ns = every_ns

    def took(self, costs: Mapping[str, Cost]) -> None:
        """Take note of what a checkpoint has cost.

        Args:
            costs: cost in each process, by name; those that are not here have ended.
        """
        longest_ns: float = self._every_ns
        owed_ns = {}
        for name, cost in costs.items():
            left_ns = self._owed_ns.get(name, 0.0) - cost.had_ns * PAYING
            owed_ns[name] = max(left_ns, 0.0) + cost.cpu_ns
            share = cost.had_ns / cost.since_ns if cost.since_ns > 0 else 1.0
            share = min(max(share, LEAST_SHARE), 1.0)
            longest_ns = max(longest_ns, owed_ns[name] / PAYING / share)
        self._owed_ns, self.interval_ns = owed_ns, round(longest_ns)
