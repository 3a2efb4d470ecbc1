"""End the processes that code in this process has started."""

from __future__ import annotations

import ctypes
import os
import time
from contextlib import suppress

import psutil

__all__ = ["adopt_orphans", "end_descendants"]

_KILLED_S = 2.0
"""How long the system may take to end killed processes."""
_LOOK_S = 0.002
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that none is lost.

    A daemon, as by `fork`, `setsid` and `fork`, would otherwise leave our family. Systems other
    than Linux do nothing.
    """
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_descendants() -> int:
    """Kill all descendants of this process, and collect the dead; return how many there were."""
    killed: set[int] = set()
    give_up_s = time.monotonic() + _KILLED_S
    while _has_children() and time.monotonic() < give_up_s:  # a search takes milliseconds
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                process.kill()
            killed.add(process.pid)
        time.sleep(_LOOK_S)  # for the system to end them, and to hand us their children
    return len(killed)


def _has_children() -> bool:
    """Collect dead children; return whether a child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True
