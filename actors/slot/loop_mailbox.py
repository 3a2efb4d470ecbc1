"""What other threads ask of a slot's loop: done by its own thread, between two slices.

The loop alone touches the slot; so nothing in there needs a lock, and no slice sees a change.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from slackwater.runtime.errors import SettingError

_T = TypeVar("_T")


class Mailbox:
    """A queue of calls; the loop looks at `waiting`, and runs them (`run_posted`).

    Args:
        wake: ends the loop's wait; from any thread.

    Attributes:
        waiting: true while something is to be done.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self.waiting: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._refused: list[str] = []
        self._lock = threading.Lock()
        self._is_closed = False

    def call(self, do: Callable[[], _T], *, within_s: float) -> _T:
        """Return what `do` gives when the loop has called it; once it has ended, call it here.

        Raises:
            TimeoutError: the loop did not come to it in time, and will not do it any more.
        """
        answer = self.post(do)
        try:
            return answer.result(within_s)
        except TimeoutError:
            if answer.cancel():
                raise
            return answer.result()  # it is being done now

    def post(self, do: Callable[[], _T]) -> Future[_T]:
        """Let the loop call `do` soon; return its answer to be. Once it has ended, call it here."""
        answer: Future[_T] = Future()
        with self._lock:
            self.waiting.append((do, answer))
            if self._is_closed:
                self.run_posted()
                return answer
        self._wake()
        return answer

    def attempt(self, do: Callable[[], None]) -> None:
        """Let the loop call `do` soon; nobody waits, and why it may refuse is kept to be taken."""

        def carry_out() -> None:
            try:
                do()
            except SettingError as problem:
                self._refused.append(f"{type(problem).__name__}: {problem}")

        self.post(carry_out)

    def take_refused(self) -> list[str]:
        """Return why what was attempted was refused since the last time. The loop calls this."""
        taken, self._refused = self._refused, []
        return taken

    def run_posted(self) -> None:
        """Do all that was asked. The loop calls this."""
        while self.waiting:
            do, answer = self.waiting.popleft()
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                answer.set_result(do())
            except Exception as problem:
                answer.set_exception(problem)

    def close(self) -> None:
        """The loop has ended, and calls this; what is asked from now on needs nobody."""
        with self._lock:
            self._is_closed = True
            self.run_posted()
