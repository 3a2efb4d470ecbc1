"""End the processes that code in this process has started."""

from __future__ import annotations

import os
from contextlib import suppress

import psutil

__all__ = ["end_descendants"]

_KILLED_S = 2.0
"""How long the system may take to end killed processes."""


def end_descendants() -> int:
    """Kill all descendants of this process, and collect the dead; return how many there were."""
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:  # most have none, and a search takes milliseconds
        return 0
    below = psutil.Process().children(recursive=True)
    for process in below:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(below, timeout=_KILLED_S)
    return len(below)
