"""Pace of checkpoints: the next begins once they cost a small part of the time.

```
           cost 48 ms            cost 36 ms
cut 1 ─────────────────▶ cut 2 ─────────────▶ cut 3      48 / 2.4 % = 2 s; a slot that gets half of
        at least 2 s             1.5 s                   a core has half of the time, so 4 s
```

A part of the cost may grow with the interval, such as that of rows that a sink holds. It takes the
same share of the time in any interval, and a longer one pays for the rest alone:

```
interval 1 s ─ cost 55 ms      15 ms a second grow, whatever the interval: 1.5 % of the time
         2 s ─ cost 70 ms      40 ms do not, and 2.4 % - 1.5 % pays for these: 4.4 s
```

Where what grows takes most of the 2.4 %, that interval would be very long; beyond that none pays.
Then the rest may cost a third of what grows: a longer interval saves little.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["MOST_COST", "PAYING", "Cost", "Pace"]

MOST_COST = 0.03
"""CPU time that checkpoints may add to all else that a process does."""
PAYING = 0.8 * MOST_COST
"""Part of its time that pays for checkpoints: the interval gives way to that. That is less, since
checkpoints take a part of the time themselves, and some costs are not seen, such as cold caches."""
REST = 1 / 3
"""Cost of what does not grow with the interval, for each of what does, that may stay."""
UNLIKE = 1.5
"""Ratio of two intervals that shows what of a cost grows with them."""
FORGETS = 0.95
"""Share of the part that grows which stays after a checkpoint that does not show it: state
changes, too."""
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


class _Account(NamedTuple):
    """Account of a process.

    Attributes:
        owed_ns: cost of the last checkpoint that does not grow with the interval, and what time
            has not paid for those before.
        grows: cost for each unit of time since the checkpoint before.
        compared: cost with which that of another interval is compared; None if none is known.
    """

    owed_ns: float = 0.0
    grows: float = 0.0
    compared: Cost | None = None

    @property
    def paying(self) -> float:
        """Part of the time that pays for what does not grow."""
        return max(PAYING - self.grows, REST * self.grows)

    def after(self, cost: Cost) -> _Account:
        """Return the account after a checkpoint."""
        if not cost.had_ns:
            return self._replace(owed_ns=self.owed_ns + cost.cpu_ns)
        grows, other, owed_ns = self.grows * FORGETS, self.compared, self.owed_ns
        if other is None:
            other = cost
        elif max(cost.had_ns, other.had_ns) >= UNLIKE * min(cost.had_ns, other.had_ns):
            slope = (cost.cpu_ns - other.cpu_ns) / (cost.had_ns - other.had_ns)
            grows = min(max(slope, 0.0), cost.cpu_ns / cost.had_ns)
            owed_ns -= max(grows - self.grows, 0.0) * other.had_ns
            other = cost
        grows = min(grows, cost.cpu_ns / cost.had_ns)
        own = _Account(0.0, grows, other)
        unpaid_ns = max(owed_ns - cost.had_ns * own.paying, 0.0)
        return own._replace(owed_ns=unpaid_ns + cost.cpu_ns - grows * cost.had_ns)


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
        self._accounts: dict[str, _Account] = {}
        self.interval_ns = every_ns

    def took(self, costs: Mapping[str, Cost]) -> None:
        """Take note of what a checkpoint has cost.

        Args:
            costs: cost in each process, by name; those that are not here have ended.
        """
        longest_ns: float = self._every_ns
        accounts = {}
        for name, cost in costs.items():
            accounts[name] = own = self._accounts.get(name, _Account()).after(cost)
            share = cost.had_ns / cost.since_ns if cost.since_ns > 0 else 1.0
            share = min(max(share, LEAST_SHARE), 1.0)
            longest_ns = max(longest_ns, own.owed_ns / own.paying / share)
        self._accounts, self.interval_ns = accounts, round(longest_ns)
