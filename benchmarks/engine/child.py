"""An object in a process of its own, whose methods are called over a pipe.

```
parent ──(method, arguments)──▶ child: what `make` made
       ◀──────── answer ────────
```
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.frame import check

__all__ = ["Child"]


class Child:
    """The parent's end.

    Args:
        make: makes the object, there; of a module, so that it can be found there.
        args: of it.
        within_s: how long an answer may take; None: as long as it likes.
    """

    def __init__(
        self, make: Callable[..., object], *args: Any, within_s: float | None = None
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._within_s = within_s
        self._process = context.Process(target=_serve, args=(theirs, make, args), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def pid(self) -> int:
        """Return its process id."""
        assert self._process.pid is not None
        return self._process.pid

    def ask(self, method: str, *args: Any, **named: Any) -> None:
        """Begin a call; `answer` has what it returns."""
        self._pipe.send((method, args, named))

    def answer(self) -> Any:
        """Return what the call returned, or raise what it raised."""
        if self._within_s is not None:
            check(self._pipe.poll(self._within_s), f"process {self.pid} does not answer")
        is_fine, answer = self._pipe.recv()
        if not is_fine:
            raise answer
        return answer

    def call(self, method: str, *args: Any, **named: Any) -> Any:
        """Call a method of the object."""
        self.ask(method, *args, **named)
        return self.answer()

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.terminate()
        self._process.join()


def _serve(pipe: Connection, make: Callable[..., object], args: tuple[Any, ...]) -> None:
    made = make(*args)
    while True:
        try:
            method, given, named = pipe.recv()
        except EOFError:
            return
        try:
            answer = getattr(made, method)(*given, **named)
        except Exception as problem:  # to be raised in the parent
            pipe.send((False, problem))
        else:
            pipe.send((True, answer))
