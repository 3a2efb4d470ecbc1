"""How long each part of a slot's loop takes, by the clock, while it works at the clock's speed.

```
Slot.step ─┬─ chooses, accounts, delivers
           └─ StageMachine.run ─┬─ of a source ── StageSource.take
                                ├─ of a join
                                └─ of a sink ─▶ SlotHost._do ─▶ CallbackSink.write
```

Each of these is timed whenever it is called; what is inside another is taken out of it by whoever
reads the totals (`compiled_parts.py`).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from actors.sinks.memory import CallbackSink
from actors.slot.host import SlotHost
from runtime.schedule.slot import Slot
from runtime.schedule.source_at import StageSource
from runtime.schedule.stage import StageMachine

__all__ = ["HANDED", "PREEMPTED", "REACHED", "STAGE", "STEP", "TAKE", "WITH_ROWS", "Parts"]

STEP, TAKE, STAGE, HANDED, REACHED = "step", "take", "stage", "handed", "reached"
"""What is timed. A stage's run has its kind behind it: `stage source`, `stage join`, `stage sink`.
REACHED is the beginning of HANDED, until the user's function is called."""
WITH_ROWS = " with rows"
"""Behind the name of a stage that gave rows."""
PREEMPTED = "preempted"
"""Calls that took longer than `MOST_NS`: somebody else had the core, so they are not counted."""
MOST_NS = 1_000_000


class Parts:
    """Times the parts of all slots of this process, from when it is made."""

    def __init__(self) -> None:
        self._spent: dict[str, int] = {}
        self._handed_ns = 0
        self._time(Slot, "step", lambda *_: STEP)
        self._time(StageSource, "take", lambda *_: TAKE)
        self._time(StageMachine, "run", _kind)
        self._time(SlotHost, "_do", lambda *_: HANDED)
        self._note_when_handed()

    def totals(self) -> dict[str, int]:
        """Return {part: nanoseconds within it}, and {"part, calls": how often it was called}."""
        return dict(self._spent)

    def _time(self, owner: type, method: str, name_of: Callable[[Any, Any], str]) -> None:
        """Let a method add what its calls take; results and errors are its own."""
        inner: Callable[..., Any] = getattr(owner, method)
        clock_ns = time.perf_counter_ns

        @functools.wraps(inner)
        def timed(instance: Any, *args: Any, **named: Any) -> Any:
            began_ns = clock_ns()
            answer = inner(instance, *args, **named)
            took_ns = clock_ns() - began_ns
            self._add(name_of(instance, answer), took_ns)
            return answer

        setattr(owner, method, timed)

    def _note_when_handed(self) -> None:
        """Count from the beginning of `_do` until rows are handed to the user's function."""
        hands_over, writes = SlotHost._do, CallbackSink.write

        def do(host: SlotHost, *args: Any) -> str:
            self._handed_ns = time.perf_counter_ns()
            return hands_over(host, *args)

        def write(sink: CallbackSink, *args: Any, **named: Any) -> None:
            self._add(REACHED, time.perf_counter_ns() - self._handed_ns)
            writes(sink, *args, **named)

        setattr(SlotHost, "_do", do)  # noqa: B010  the class is another's
        setattr(CallbackSink, "write", write)  # noqa: B010

    def _add(self, name: str, took_ns: int) -> None:
        spent = self._spent
        if took_ns > MOST_NS:
            name = PREEMPTED
        spent[name] = spent.get(name, 0) + took_ns
        calls = f"{name}, calls"
        spent[calls] = spent.get(calls, 0) + 1


def _kind(machine: StageMachine, answer: Any) -> str:
    message = answer[0]
    name = f"{STAGE} {machine.stage.kind}"
    return f"{name}{WITH_ROWS}" if message is not None and message.batch is not None else name
