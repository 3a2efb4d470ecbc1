"""Pass calls of other threads to a slot's loop, which runs them between two slices.

Only the loop touches the slot. So the slot needs no lock, and no slice sees a change.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from slackwater.runtime.errors import SettingError
from slackwater.runtime.shown import in_words

_T = TypeVar("_T")


class Mailbox:
    """A queue of calls; the loop checks `waiting`, and runs them (`run_posted`).

    Args:
        wake: ends the loop's wait; from any thread.

    Attributes:
        waiting: calls that are to be run.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self.waiting: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._refused: list[str] = []
        self._lock = threading.Lock()
        self._is_closed = False

    def call(self, do: Callable[[], _T], *, within_s: float) -> _T:
        """Return the result of `do`, run by the loop, or here if it has ended.

        Raises:
            TimeoutError: the loop did not run it in time, and never will.
        """
        answer = self.post(do)
        try:
            return answer.result(within_s)
        except TimeoutError:
            if answer.cancel():
                raise
            return answer.result()  # it is running now

    def post(self, do: Callable[[], _T]) -> Future[_T]:
        """Let the loop run `do` soon; return its future.

        It runs here once the loop has ended.
        """
        answer: Future[_T] = Future()
        with self._lock:
            self.waiting.append((do, answer))
            if self._is_closed:
                self.run_posted()
                return answer
        self._wake()
        return answer

    def attempt(self, do: Callable[[], None]) -> None:
        """Let the loop run `do` soon, without a wait; a SettingError is kept for `take_refused`."""

        def carry_out() -> None:
            try:
                do()
            except SettingError as problem:
                self._refused.append(in_words(problem))

        self.post(carry_out)

    def take_refused(self) -> list[str]:
        """Return the errors of `attempt` since the last call. Only the loop calls this."""
        refused, self._refused = self._refused, []
        return refused

    def run_posted(self) -> None:
        """Run all posted calls. Only the loop calls this."""
        while self.waiting:
            do, answer = self.waiting.popleft()
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                answer.set_result(do())
            except Exception as problem:
                answer.set_exception(problem)

    def close(self) -> None:
        """Let later calls run in their own threads: the loop ends, and calls this."""
        with self._lock:
            self._is_closed = True
            self.run_posted()
