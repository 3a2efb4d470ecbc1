"""Waiting for something to become true, with an end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")
LOOK_EVERY_S = 0.05  # a report asks each slot, which has other work


def until(look: Callable[[], _T], *, within_s: float, what: str) -> _T:
    """Return the first true thing that `look` returns; fail, naming it, when time is up."""
    pause = threading.Event()
    deadline_s = time.monotonic() + within_s
    while not (found := look()):
        assert time.monotonic() < deadline_s, f"waited {within_s:g} s for {what}"
        pause.wait(LOOK_EVERY_S)
    return found
