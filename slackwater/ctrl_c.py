"""Tell Ctrl-C apart from a KeyboardInterrupt that users' code raises.

```
SIGINT ─▶ handler ─┬─ tells the run: it stops after its slice
                   └─ raises CtrlC, if the run says so, and from the second Ctrl-C on
```
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from slackwater.runtime.model.whose_code import RUNNING, CtrlC

__all__ = ["ctrl_c_heard", "tell_ctrl_c_apart"]


class _Handler:
    """Handles SIGINT; `hear` returns whether the present work must break off."""

    def __init__(self, hear: Callable[[], bool]) -> None:
        self._hear, self.has_come = hear, False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        is_first, self.has_come = not self.has_come, True
        if self._hear() or not is_first:
            raise CtrlC


def _is_told_apart() -> bool:
    return isinstance(signal.getsignal(signal.SIGINT), _Handler)


RUNNING.knows_ctrl_c = _is_told_apart


def tell_ctrl_c_apart() -> None:
    """Let Ctrl-C raise `CtrlC` from now on."""
    signal.signal(signal.SIGINT, _Handler(lambda: True))


@contextmanager
def ctrl_c_heard(hear: Callable[[], bool]) -> Iterator[None]:
    """Let the first Ctrl-C call `hear`, and raise `CtrlC` if that returns True.

    A custom handler stays, and other threads are unaffected, since they get no signals.

    Raises:
        CtrlC: Ctrl-C came, and the body ended without an error; or a second one came.
    """
    before = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not (before is signal.default_int_handler or isinstance(before, _Handler)):
        yield
        return
    handler = _Handler(hear)
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if handler.has_come:
        raise CtrlC
