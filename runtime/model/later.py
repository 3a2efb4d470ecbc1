"""State that is saved in steps after its cut, while its machine goes on.

```
cut ─▶ step ─ a b ──────▶ step ─ c d ──▶ done      a slot's loop stands still for a step at a time
             └ the machine is about to change c: c is saved now, as it was at the cut
```

A machine with much state has `snapshot_later()` beside `snapshot()`. It returns a `Later`, and from
then on the machine tells it what it is about to change.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

__all__ = ["KEYS_AT_ONCE", "Later"]

KEYS_AT_ONCE = 512
"""Keys that are saved in one step: a fraction of a millisecond."""


class Later(ABC):
    """Part of a saved state that is made in steps.

    Attributes:
        plain: its plain value: whole once it is done, and the same object from the beginning.
        is_done: whether it is whole, or given up.
    """

    plain: Any
    is_done = False

    @abstractmethod
    def step(self, most: int) -> None:
        """Save more.

        Args:
            most: number of keys at most, or so many times a few hundred numbers.
        """

    def finish(self) -> Any:
        """Save all the rest; return the plain value."""
        while not self.is_done:
            self.step(KEYS_AT_ONCE)
        return self.plain

    def give_up(self) -> None:
        """Stop: the state is not needed."""
        self.is_done = True
