"""Signals that end a run, as exceptions. Light: imported before all else.

```
KeyboardInterrupt ◀── CtrlC ◀── Terminated ──▶ SystemExit
```
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["INTERRUPTS", "CtrlC", "Terminated", "for_user"]


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


def for_user(problem: BaseException) -> BaseException:
    """Return an exception; in place of Ctrl-C a plain KeyboardInterrupt.

    Python exits with 130, and dies of SIGINT, only for exactly that class.
    """
    if type(problem) is not CtrlC:
        return problem
    return KeyboardInterrupt(*problem.args).with_traceback(problem.__traceback__)


class Interrupts:
    """Interrupts of this process.

    Attributes:
        are_distinct: tells whether Ctrl-C raises `CtrlC` now, and no plain KeyboardInterrupt.
    """

    def __init__(self) -> None:
        self.are_distinct: Callable[[], bool] = lambda: False


INTERRUPTS = Interrupts()
