"""What users' functions print and log in a slot: said with the step's name, bounded, counted.

```
print(…) in a function ─▶ Spoken (sys.stdout) ─▶ UserOutput ─┬─▶ the worker's log
                                                  [step] line └─▶ take(): the driver's terminal
```

Who prints while no step's code runs (Ray, our own code) is let through as it is.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TextIO

from slackwater.actors.slot.read_ahead import is_own
from slackwater.runtime.model.whose_code import RUNNING
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.steps import SourceStep

__all__ = ["OutputLine", "UserOutput", "runs_users_code"]

MOST_LINES = 100
"""Of one slot, that are shown of one second; what is more is counted."""
MOST_LOGGED = 10_000
"""The same in the worker's log, which has a disk to fill."""
MOST_CHARS = 2_000
"""Of one line; what is behind it is cut."""
KEPT = 2_000
"""Lines that wait for a driver to take them; beyond, the oldest go, counted."""
CUT_S = 1.0
"""By then the second is over whose lines were cut, and that can be told: no line tells of it."""


class OutputLine(NamedTuple):
    """A line that a step's code has printed, with its name before it."""

    is_error: bool
    """Whether it was for stderr."""
    text: str


def runs_users_code(stage: Stage) -> bool:
    """Whether a stage calls functions of the user's, or has an input or output of their own."""
    step = stage.step
    if isinstance(step, SourceStep) and is_own(step.source.input):
        return True
    return any(one.traits.runs_users_code for one in (step, *stage.chain))


class UserOutput:
    """Gathers what is printed, line by line. Any thread may print.

    Args:
        log: where lines go besides, as they come: (for stderr?, text).
        clock_s: seconds; the bound is by its whole ones.
    """

    def __init__(
        self, log: Callable[[bool, str], None], *, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._log, self._clock_s = log, clock_s
        self._lock = threading.RLock()  # a signal's handler may print in the midst of a print
        self._changed = threading.Condition(self._lock)
        self._is_over = False
        self._begun: dict[tuple[str, bool, int], str] = {}  # lines without an end, by who and where
        self._lines: deque[OutputLine] = deque()
        self._second = -1
        self._said = 0  # lines in this second
        self._not_shown: dict[str, int] = {}  # {step: how many of them}
        self._not_logged: dict[str, int] = {}
        self._gone = 0  # lines that nobody took in time

    def write(self, step: str, text: str, *, is_error: bool) -> None:
        """Take what a step's code has printed, whole lines or not."""
        with self._lock:
            key = (step, is_error, threading.get_ident())
            *lines, begun = (self._begun.pop(key, "") + text).split("\n")
            for line in lines:
                self._say(step, line, is_error=is_error)
            if len(begun) > MOST_CHARS:
                self._say(step, begun, is_error=is_error)
            elif begun:
                self._begun[key] = begun

    def wait(self, within_s: float) -> None:
        """Return when something is there to be taken, when the last has been, or after so long."""
        with self._changed:
            within_s = min(within_s, CUT_S) if self._not_shown else within_s
            self._changed.wait_for(lambda: self._lines or self._is_over, within_s)
            self._is_over = False  # a slot that has ended may be given stages, and begin anew

    def take(self, *, is_last: bool = False) -> list[OutputLine]:
        """Return what has been said since the last time; with `is_last`, half lines, too."""
        with self._changed:
            if is_last:
                self._is_over = True
                self._changed.notify_all()
                for (step, is_error, _), begun in self._begun.items():
                    self._say(step, begun, is_error=is_error)
                self._begun.clear()
            if is_last or int(self._clock_s()) != self._second:
                self._say_what_was_cut()
            taken = list(self._lines)
            if self._gone:
                notice = f"[slackwater] {self._gone:,} lines before this were not shown in time"
                taken.insert(0, OutputLine(True, notice))
            self._lines.clear()
            self._gone = 0
            return taken

    def _say(self, step: str, line: str, *, is_error: bool) -> None:
        second = int(self._clock_s())
        if second != self._second:
            self._say_what_was_cut()
            self._second, self._said = second, 0
        self._said += 1
        if len(line) > MOST_CHARS:
            line = f"{line[:MOST_CHARS]} … ({len(line) - MOST_CHARS:,} characters more)"
        said = OutputLine(is_error, f"[{step}] {line}")
        if self._said <= MOST_LOGGED:
            self._log(*said)
        else:
            self._not_logged[step] = self._not_logged.get(step, 0) + 1
        if self._said <= MOST_LINES:
            self._keep(said)
        else:
            self._not_shown[step] = self._not_shown.get(step, 0) + 1

    def _say_what_was_cut(self) -> None:
        for step, lines in self._not_shown.items():
            self._keep(OutputLine(True, _notice(step, lines, MOST_LINES)))
        for step, lines in self._not_logged.items():
            self._log(True, _notice(step, lines, MOST_LOGGED))
        self._not_shown.clear()
        self._not_logged.clear()

    def _keep(self, line: OutputLine) -> None:
        if len(self._lines) == KEPT:
            self._lines.popleft()
            self._gone += 1
        self._lines.append(line)
        self._changed.notify_all()

    @classmethod
    def install(cls) -> UserOutput:
        """Let what steps' code prints in this process go through a new one."""
        old = {False: sys.stdout, True: sys.stderr}

        def log(is_error: bool, text: str) -> None:
            old[is_error].write(text + "\n")
            old[is_error].flush()

        output = cls(log)
        sys.stdout = StepAwareStream(old[False], output, is_error=False)
        sys.stderr = StepAwareStream(old[True], output, is_error=True)
        for handler in _handlers():
            for is_error, stream in old.items():
                if getattr(handler, "stream", None) is stream:
                    handler.setStream(sys.stderr if is_error else sys.stdout)  # type: ignore[attr-defined]
        return output


def _handlers() -> Iterator[logging.Handler]:
    """Yield those that are there: the user's module was imported before us, and may have some.

    Of the root (`basicConfig`), and of loggers of the module's own.
    """
    yield from logging.getLogger().handlers
    for one in list(logging.root.manager.loggerDict.values()):
        if isinstance(one, logging.Logger):  # else a place in the tree without one
            yield from one.handlers


def _notice(step: str, lines: int, most: int) -> str:
    return f"[{step}] … {lines:,} lines more in one second are not here; at most {most:,} are"


class StepAwareStream:
    """A text stream of the process that knows whose code prints; the rest is the old stream's."""

    def __init__(self, old: TextIO, output: UserOutput, *, is_error: bool) -> None:
        self._old, self._output, self._is_error = old, output, is_error

    def write(self, text: str) -> int:
        """Write as a step, or as ever."""
        step = RUNNING.get()
        if step is None:
            return self._old.write(text)
        self._output.write(step, text, is_error=self._is_error)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._old, name)
