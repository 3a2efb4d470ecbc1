"""Own the handlers of signals that end a run: Ctrl-C, SIGTERM and SIGHUP.

```
signal ─▶ the first ──▶ noted; raised, if the present work must break off
       └▶ the second ─▶ ends the process at once; in a script it breaks off a simulated job
```

The command line handles all three from its first line on. In a process of the user's, a cluster
handles SIGTERM and SIGHUP while it is open, and a simulated job all three while it runs; signals
that the process handles itself, or ignores, stay as they are.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from slackwater.runtime.interrupts import INTERRUPTS, CtrlC, Terminated, for_user

__all__ = ["END_SIGNALS", "FROM_OUTSIDE", "EndSignals"]

FROM_OUTSIDE = (signal.SIGTERM, signal.SIGHUP)
"""Sent by systemd, Docker and Kubernetes, and by a terminal that closes."""
_SHOW_CURSOR = "\x1b[?25h"


class EndSignals:
    """Handler of the signals that end a run.

    Args:
        leave: ends the process at once, with an exit code.

    Attributes:
        number: number of the first signal that came; None if none did.
        last_words: is called before the process ends at once.
    """

    def __init__(self, leave: Callable[[int], object] = os._exit) -> None:
        self.number: int | None = None
        self.last_words: Callable[[], object] = _nothing
        self._leave = leave
        self._hear: Callable[[], bool] = _breaks
        self._breaks_off = self._is_command = False
        self._holders: dict[int, int] = {}  # contexts that hold each signal
        self._earlier: dict[int, Any] = {}  # handler before the first of them

    def __call__(self, number: int, frame: FrameType | None = None) -> None:
        """Take a signal."""
        del frame
        is_first = self.number is None
        self.number = self.number or number
        if is_first:
            if self._hear():
                raise self.problem()
        elif self._breaks_off and not self._is_command:
            raise self.problem()
        else:
            self._end_now(number)

    def problem(self) -> CtrlC:
        """Return the exception of the signal that came first; uncaught, it ends a command."""
        assert self.number is not None, "a signal has come"
        is_exit = self._is_command or self.number in FROM_OUTSIDE
        return Terminated(self.number) if is_exit else CtrlC()

    def named(self, problem: BaseException | None) -> BaseException | None:
        """Return an exception; in place of a KeyboardInterrupt of Ray's, that of our signal.

        Ray breaks off a call where a handler raises, and raises its own.
        """
        is_plain = isinstance(problem, KeyboardInterrupt) and not isinstance(problem, CtrlC)
        return self.problem() if is_plain and self.number is not None else problem

    def check(self) -> None:
        """Raise the signal that has come, if any.

        Python drops an exception that a handler raises while an object is finalized.

        Raises:
            CtrlC: a signal has come.
        """
        if self.number is not None:
            raise self.problem()

    def acted_on(self) -> None:
        """Forget the signal that has come: its work is done, and no error follows."""
        self.number = None

    def handles(self, number: int) -> bool:
        """Return whether this object handles a signal."""
        return signal.getsignal(number) is self

    def begin_command(self) -> dict[int, Any]:
        """Note these signals from now on, for a command; return earlier handlers.

        A background process of a shell script ignores Ctrl-C, and its slots would outlive the
        script; so Ctrl-C counts there, too. `nohup` ignores SIGHUP, which stays ignored.
        """
        self.number, self._is_command, self._hear = None, True, _goes_on
        counts = [n for n in FROM_OUTSIDE if signal.getsignal(n) is not signal.SIG_IGN]
        numbers = (signal.SIGINT, *counts)
        before: dict[int, Any] = {number: signal.signal(number, self) for number in numbers}
        self._holders.update(dict.fromkeys(before, 1))
        return before

    @contextmanager
    def command(self) -> Iterator[None]:
        """Note these signals while a command runs, unless its process does already.

        Raises:
            CtrlC: a signal came, and the command has not acted on it.
        """
        if self._is_command:
            yield
            self.check()
        else:
            before = self.begin_command()
            try:
                yield
                self.check()
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)
                self._holders.clear()
                self.number, self._is_command, self._hear = None, False, _breaks

    @contextmanager
    def caught(self, numbers: Iterable[int]) -> Iterator[None]:
        """Handle those of these signals that have Python's own handler.

        Contexts may end in any order: the last that holds a signal restores its handler. A signal
        that came is forgotten once no context holds it. Other threads get no signals, so there
        nothing changes. A notebook's kernel ends by SIGTERM alone, so this is left to it.

        Raises:
            KeyboardInterrupt: Ctrl-C ended the body; exactly this class, without which Python
                prints our name and exits with 1.
        """
        held: list[int] = []
        if threading.current_thread() is threading.main_thread():
            held = [number for number in numbers if self._hold(number)]
        try:
            yield
        except CtrlC as problem:
            raise for_user(problem) from None
        finally:
            for number in held:
                self._release(number)
            if self.number not in self._holders:
                self.number = None

    def _hold(self, number: int) -> bool:
        """Handle a signal, unless the process does; return whether this object handles it."""
        handler = signal.getsignal(number)
        if handler in (signal.SIG_DFL, signal.default_int_handler):
            if number in FROM_OUTSIDE and "ipykernel" in sys.modules:
                return False
            signal.signal(number, self)
            self._earlier.setdefault(number, handler)
        elif handler is not self:
            return False
        self._holders[number] = self._holders.get(number, 0) + 1
        return True

    def _release(self, number: int) -> None:
        if number not in self._holders:  # the command has ended
            return
        self._holders[number] -= 1
        if not self._holders[number]:
            del self._holders[number]
            earlier = self._earlier.pop(number)
            if signal.getsignal(number) is self:  # the user's code may have its own by now
                signal.signal(number, earlier)

    @contextmanager
    def heard_by(self, hear: Callable[[], bool], *, breaks_off: bool = False) -> Iterator[None]:
        """Let the first signal call `hear`, and raise if that returns True.

        Args:
            hear: returns whether the present work must break off; called in a signal handler.
            breaks_off: whether later signals raise, rather than end the process of a user.

        Raises:
            CtrlC: a signal came, and the body ended without an error.
        """
        if not self._holders or threading.current_thread() is not threading.main_thread():
            yield
            return
        before, came_before = (self._hear, self._breaks_off), self.number is not None
        self._hear, self._breaks_off = hear, breaks_off
        try:
            yield
        finally:
            self._hear, self._breaks_off = before
        if not came_before:
            self.check()

    def noted(self) -> Any:
        """Keep a signal until the body of this context has ended, and raise it then."""
        return self.heard_by(_goes_on)

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Raise a signal as it comes; one that has come before is raised at once.

        Raises:
            CtrlC: a signal came.
        """
        with self.heard_by(_breaks):
            if self._holders:
                self.check()
            try:
                yield
            except KeyboardInterrupt as problem:
                if (named := self.named(problem)) is not problem and named is not None:
                    raise named from None
                raise

    def _end_now(self, number: int) -> None:
        with suppress(Exception):  # the stream may be in the midst of a write
            self.last_words()
        with suppress(Exception):
            if sys.stderr.isatty():  # a progress view hides it
                sys.stderr.write(_SHOW_CURSOR)
            sys.stderr.flush()
        self._leave(128 + number)


def _goes_on() -> bool:
    return False


def _breaks() -> bool:
    return True


def _nothing() -> None:
    """Say nothing."""


END_SIGNALS = EndSignals()
INTERRUPTS.are_distinct = lambda: END_SIGNALS.handles(signal.SIGINT)
