"""How long each part of a slot's loop takes, by the clock, while it works at the clock's speed.

```
Slot.step ─┬─ chooses, accounts, delivers
           └─ StageMachine.run ─┬─ of a source ── StageSource.take
                                ├─ of a join
                                └─ of a sink ─▶ SlotHost._do: the user's function
```

Each of these is timed whenever it is called; what is inside another is taken out of it by whoever
reads the totals (`compiled_parts.py`).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from actors.slot.host import SlotHost
from runtime.schedule.slot import Slot
from runtime.schedule.source_at import StageSource
from runtime.schedule.stage import StageMachine

__all__ = ["HANDED", "PREEMPTED", "STAGE", "STEP", "TAKE", "Parts"]

STEP, TAKE, STAGE, HANDED = "step", "take", "stage", "handed"
"""What is timed; a stage's run has its kind behind it: `stage source`, `stage join`, `stage sink`."""
PREEMPTED = "preempted"
"""Calls that took longer than `MOST_NS`: somebody else had the core, so they are not counted."""
MOST_NS = 1_000_000


class Parts:
    """Times the parts of all slots of this process, from when it is made."""

    def __init__(self) -> None:
        self._spent: dict[str, int] = {}
        self._time(Slot, "step", lambda _: STEP)
        self._time(StageSource, "take", lambda _: TAKE)
        self._time(StageMachine, "run", _kind)
        self._time(SlotHost, "_do", lambda _: HANDED)

    def totals(self) -> dict[str, int]:
        """Return {part: nanoseconds within it}, and {"part, calls": how often it was called}."""
        return dict(self._spent)

    def _time(self, owner: type, method: str, name_of: Callable[[Any], str]) -> None:
        """Let a method add what its calls take; results and errors are its own."""
        spent, clock_ns = self._spent, time.perf_counter_ns
        inner: Callable[..., Any] = getattr(owner, method)

        @functools.wraps(inner)
        def timed(instance: Any, *args: Any, **named: Any) -> Any:
            began_ns = clock_ns()
            answer = inner(instance, *args, **named)
            took_ns = clock_ns() - began_ns
            name = name_of(instance) if took_ns <= MOST_NS else PREEMPTED
            spent[name] = spent.get(name, 0) + took_ns
            calls = f"{name}, calls"
            spent[calls] = spent.get(calls, 0) + 1
            return answer

        setattr(owner, method, timed)


def _kind(machine: StageMachine) -> str:
    return f"{STAGE} {machine.stage.kind}"
