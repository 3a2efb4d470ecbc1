"""Whose code runs: the step whose function, source or output of the user's is being called.

A host looks here when something is printed, and so knows who said it. It follows the thread that
calls; a thread that the user's code has started itself belongs to nobody.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextvars import ContextVar, Token


class Running:
    """The name of the step whose code runs, of each thread.

    Attributes:
        tell: is called as code of another step begins than ran last; None: not told.
    """

    def __init__(self) -> None:
        self.tell: Callable[[str], object] | None = None
        self._told: str | None = None
        self._name: ContextVar[str | None] = ContextVar("the step whose code runs", default=None)
        self.get, self.reset = self._name.get, self._name.reset

    def set(self, step: str) -> Token[str | None]:
        """Let it be the code of this step, until `reset` of what is returned."""
        if self.tell is not None and step != self._told:
            self._told = step
            self.tell(step)
        return self._name.set(step)


RUNNING = Running()

USERS_FAULTS = (Exception, SystemExit)
"""What is caught of a user's code. `sys.exit()` in it would end the slot, or the user's process,
without a word of whose it was; Ctrl-C is not the code's, and goes its way."""


def raised(problem: BaseException) -> str:
    """Return how an error says what a user's code raised."""
    if isinstance(problem, SystemExit):
        return f"raised {problem!r}; to end the job, raise an error instead of sys.exit()"
    return f"raised {type(problem).__name__}: {problem}"


def where_raised(problem: BaseException) -> tuple[str, str]:
    """Return where a user's code raised, as ", at file, line 3", and its own traceback.

    The frame that caught it, which is ours, is left out.
    """
    own = problem.__traceback__ and problem.__traceback__.tb_next
    frames = traceback.extract_tb(own)
    at = f", at {frames[-1].filename}, line {frames[-1].lineno}" if frames else ""
    lines = traceback.format_exception(type(problem), problem, own)
    return at, "".join(lines).rstrip()
