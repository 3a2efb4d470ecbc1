"""Gather lines that users' functions print in a slot: named by step, bounded, counted.

```
print(…) in a function ─▶ Spoken (sys.stdout) ─▶ UserOutput ─┬─▶ the worker's log
                                                  [step] line └─▶ take(): the driver's terminal
```

Output is passed through unchanged while no step's code runs (from Ray, or from us).
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TextIO

from slackwater.runtime.model.whose_code import RUNNING
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.steps import SourceStep

__all__ = ["OutputLine", "UserOutput", "runs_users_code"]

MOST_LINES = 100
"""Lines of one slot that are shown for one second; further ones are counted."""
MOST_LOGGED = 10_000
"""The same in the worker's log, which fills a disk."""
MOST_CHARS = 2_000
"""Characters of one line; the rest is cut."""
MOST_HELD = 2_000
"""Lines that wait for a driver to take them; beyond, the oldest are dropped and counted."""
CUT_S = 1.0
"""After this wait the second of the cut lines is over, and their number can be reported."""


class OutputLine(NamedTuple):
    """A line that a step's code has printed, after the step's name."""

    is_error: bool
    """Whether the line was for stderr."""
    text: str
    is_result: bool = False
    """Whether a sink shows the line, which then is for the driver's stdout."""


def runs_users_code(stage: Stage) -> bool:
    """Whether a stage calls users' functions, or has a custom input or output."""
    step = stage.step
    if isinstance(step, SourceStep) and not step.source.traits.reads_inline:
        return True
    return any(link.traits.runs_users_code for link in (step, *stage.chain))


class UserOutput:
    """Gathers printed text, line by line. Any thread may print.

    Args:
        log: called with each line as it comes: (for stderr?, text).
        clock_s: seconds; the bounds hold for each whole second.
    """

    def __init__(
        self, log: Callable[[bool, str], None], *, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._log, self._clock_s = log, clock_s
        self._lock = threading.RLock()  # a signal's handler may print during a print
        self._changed = threading.Condition(self._lock)
        self._is_over = False
        self._begun: dict[tuple[str, bool, int], str] = {}  # unfinished, by step, stream, thread
        self._lines: deque[OutputLine] = deque()
        self._second = -1
        self._printed = 0  # lines in this second
        self._not_shown: dict[str, int] = {}  # {step: lines}
        self._not_logged: dict[str, int] = {}
        self._gone = 0  # lines that were not taken in time

    def write(self, step: str, text: str, *, is_error: bool) -> None:
        """Take printed text of a step's code, whole lines or not."""
        with self._lock:
            key = (step, is_error, threading.get_ident())
            *lines, begun = (self._begun.pop(key, "") + text).split("\n")
            for line in lines:
                self._say(step, line, is_error=is_error)
            if len(begun) > MOST_CHARS:
                self._say(step, begun, is_error=is_error)
            elif begun:
                self._begun[key] = begun

    def show(self, text: str) -> None:
        """Take a line that a sink shows; the sink bounds its lines."""
        with self._lock:
            self._log(False, text)
            self._keep(OutputLine(False, text, is_result=True))

    def wait(self, within_s: float) -> None:
        """Return when a line is there, after the last `take`, or after `within_s`."""
        with self._changed:
            within_s = min(within_s, CUT_S) if self._not_shown else within_s
            self._changed.wait_for(lambda: self._lines or self._is_over, within_s)
            self._is_over = False  # a slot that has ended may be given stages, and run again

    def take(self, *, is_last: bool = False) -> list[OutputLine]:
        """Return the lines since the last call; with `is_last`, unfinished lines, too."""
        with self._changed:
            if is_last:
                self._is_over = True
                self._changed.notify_all()
                for (step, is_error, _), begun in self._begun.items():
                    self._say(step, begun, is_error=is_error)
                self._begun.clear()
            if is_last or int(self._clock_s()) != self._second:
                self._say_what_was_cut()
            lines = list(self._lines)
            if self._gone:
                notice = f"[slackwater] {self._gone:,} lines before this were not shown in time"
                lines.insert(0, OutputLine(True, notice))
            self._lines.clear()
            self._gone = 0
            return lines

    def _say(self, step: str, line: str, *, is_error: bool) -> None:
        second = int(self._clock_s())
        if second != self._second:
            self._say_what_was_cut()
            self._second, self._printed = second, 0
        self._printed += 1
        if len(line) > MOST_CHARS:
            line = f"{line[:MOST_CHARS]} … ({len(line) - MOST_CHARS:,} characters more)"
        output_line = OutputLine(is_error, f"[{step}] {line}")
        if self._printed <= MOST_LOGGED:
            self._log(is_error, output_line.text)
        else:
            self._not_logged[step] = self._not_logged.get(step, 0) + 1
        if self._printed <= MOST_LINES:
            self._keep(output_line)
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
        if len(self._lines) == MOST_HELD:
            self._lines.popleft()
            self._gone += 1
        self._lines.append(line)
        self._changed.notify_all()

    @classmethod
    def install(cls) -> UserOutput:
        """Pass the prints of steps' code in this process through a new `UserOutput`."""
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
    """Yield the handlers of the root (`basicConfig`) and of all other loggers.

    A user's module was imported before us, and may have set some.
    """
    yield from logging.getLogger().handlers
    for logger in list(logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):  # else a placeholder in the tree
            yield from logger.handlers


def _notice(step: str, lines: int, most: int) -> str:
    return f"[{step}] … {lines:,} more lines of one second are not here; at most {most:,} are"


class StepAwareStream:
    """A text stream that knows which step's code prints; else it is the old stream."""

    def __init__(self, old: TextIO, output: UserOutput, *, is_error: bool) -> None:
        self._old, self._output, self._is_error = old, output, is_error

    def write(self, text: str) -> int:
        """Write as the running step, or to the old stream."""
        step = RUNNING.get()
        if step is None:
            return self._old.write(text)
        self._output.write(step, text, is_error=self._is_error)
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Write the lines one by one."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._old, name)
