"""Signals that end a run, as exceptions. Light: imported before all else.

```
KeyboardInterrupt ◀── CtrlC ◀── Terminated ──▶ SystemExit
```
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["INTERRUPTS", "CtrlC", "Terminated"]


class CtrlC(KeyboardInterrupt):
    """Ctrl-C, told apart from a KeyboardInterrupt that a user's code raises."""


class Terminated(CtrlC, SystemExit):
    """Signal that ends the process: uncaught, with 128 + its number, without a traceback.

    Attributes:
        status: exit code of the process.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = self.status = 128 + number


class Interrupts:
    """Interrupts of this process.

    Attributes:
        are_told_apart: tells whether Ctrl-C raises `CtrlC` now, and no plain KeyboardInterrupt.
    """

    def __init__(self) -> None:
        self.are_told_apart: Callable[[], bool] = lambda: False


INTERRUPTS = Interrupts()
