"""Step whose user code runs: its function, source or output.

A host looks here when something is printed, and so knows who said it. It follows the thread that
calls; a thread that the user's code has started itself belongs to no step.
"""

from __future__ import annotations

import os
import sysconfig
import threading
from collections.abc import Callable
from contextvars import ContextVar, Token
from types import FrameType

from slackwater.runtime.interrupts import INTERRUPTS, CtrlC
from slackwater.runtime.shown import (
    MOST_SHOWN,
    MOST_TEXT,
    cut,
    frames_of,
    in_words,
    is_of,
    shown,
    trace_of,
)


class Running:
    """The name of the step whose code runs, of each thread.

    Attributes:
        tell: is called as code of another step begins than ran last; None if nothing is.
    """

    def __init__(self) -> None:
        self.tell: Callable[[str], object] | None = None
        self._last_step: str | None = None
        self._name: ContextVar[str | None] = ContextVar("the step whose code runs", default=None)
        self.get, self.reset = self._name.get, self._name.reset

    def set(self, step: str) -> Token[str | None]:
        """Let it be the code of this step, until `reset` of what is returned."""
        if self.tell is not None and step != self._last_step:
            self._last_step = step
            self.tell(step)
        return self._name.set(step)


RUNNING = Running()


def let_ctrl_c_pass(problem: BaseException) -> None:
    """Raise an interrupt again; return if the user's code raised this by itself.

    All of that is caught: `sys.exit()` or a KeyboardInterrupt of the code would end the slot, or
    the user's process, without a word of whose it was. Python gives Ctrl-C to the main thread
    alone; there a plain KeyboardInterrupt may be it, unless a host has told them apart.
    """
    if not is_of(problem, KeyboardInterrupt):
        return
    is_main = threading.current_thread() is threading.main_thread()
    if is_of(problem, CtrlC) or (is_main and not INTERRUPTS.are_distinct()):
        raise problem


def is_ours(thing: object) -> bool:
    """Return whether an object's class is of this package."""
    return type(thing).__module__.partition(".")[0] == "slackwater"


def raised_by_us(problem: BaseException) -> bool:
    """Return whether code of this package raised an exception, and no code that it called."""
    frames = frames_of(problem)
    while frames is not None and frames.tb_next is not None:
        frames = frames.tb_next
    module = frames.tb_frame.f_globals.get("__name__") if frames else None
    return isinstance(module, str) and module.partition(".")[0] == "slackwater"


def raised(problem: BaseException) -> str:
    """Return how an error says what a user's code raised."""
    if is_of(problem, SystemExit):
        return f"raised {shown(problem)}; to end the job, raise an error instead of sys.exit()"
    words = in_words(problem, MOST_SHOWN)
    if not is_of(problem, Exception):
        return f"raised {words}; to end the job, raise an error that is an Exception"
    return f"raised {words}"


def where_raised(problem: BaseException) -> tuple[str, str]:
    """Return the line of a user's code that led to an exception, and its traceback.

    The frame that caught it, which is ours, is left out. A library that the code calls is not where
    a user mends it.
    """
    frames = frames_of(problem)
    own = last = each = frames and frames.tb_next
    while each is not None:
        if not _is_library(each.tb_frame):
            last = each
        each = each.tb_next
    if last is None:
        return "", trace_of(problem, own)
    file = cut(last.tb_frame.f_code.co_filename, MOST_TEXT)
    return f", at {file}, line {last.tb_lineno}", trace_of(problem, own)


_KINDS = ("stdlib", "platstdlib", "purelib", "platlib")
_LIBRARIES = (*(sysconfig.get_path(kind) + os.sep for kind in _KINDS), "<frozen ")


def _is_library(frame: FrameType) -> bool:
    """Return whether a frame is of Python's libraries, of an installed package or of ours."""
    module = frame.f_globals.get("__name__")
    is_ours = isinstance(module, str) and module.partition(".")[0] == "slackwater"
    return is_ours or frame.f_code.co_filename.startswith(_LIBRARIES)
