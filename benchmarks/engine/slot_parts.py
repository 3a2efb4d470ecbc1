"""How long each part of a slot's loop takes, by the clock, while it works at the clock's speed.

```
Slot.step ─┬─ chooses, accounts, delivers
           ├─ leave_out, of a source ── SourceNode.leave_out
           └─ StageMachine.work ┬─ of a source ── SourceNode.work
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
from types import ModuleType
from typing import Any

from slackwater.actors.sinks.memory import CallbackSink
from slackwater.actors.slot.host import SlotHost
from slackwater.actors.wire.waiting import ChannelPoller
from slackwater.runtime.schedule import left_out
from slackwater.runtime.schedule.actions import Work
from slackwater.runtime.schedule.slot import Slot
from slackwater.runtime.schedule.source_node import SourceNode
from slackwater.runtime.schedule.stage import StageMachine

__all__ = ["AWAKE", "HANDED", "REACHED", "STAGE", "STEP", "TAKE", "WITH_ROWS", "Parts"]

STEP, TAKE, STAGE, HANDED = "step", "take", "stage", "handed"
"""What is timed. A stage's run has its kind behind it: `stage source`, `join` or `sink`."""
REACHED, AWAKE = "reached", "awake"
"""Until the user's function is called: since HANDED began, since the loop woke."""
WITH_ROWS = " with rows"
"""Behind the name of a call that gave rows."""
PREEMPTED = "preempted"
"""Calls that took longer than `MOST_NS`: somebody else had the core, so they are not counted."""
MOST_NS = 1_000_000


class Parts:
    """Times the parts of all slots of this process, from when it is made."""

    def __init__(self) -> None:
        self._spent: dict[str, int] = {}
        self._handed_ns = self._woke_ns = 0
        self._time(
            Slot, "step", lambda _, done: _named(STEP, done is not None and done.results > 0)
        )
        self._time(SourceNode, "work", lambda _, handed: _named(TAKE, handed.rows is not None))
        self._time(SourceNode, "leave_out", lambda *_: TAKE)
        self._time(StageMachine, "work", _kind)
        self._time(left_out, "leave_out", lambda *_: f"{STAGE} source")
        self._time(SlotHost, "_do", lambda *_: HANDED)
        self._note_when_handed()

    def totals(self) -> dict[str, int]:
        """Return {part: nanoseconds within it}, and {"part, calls": how often it was called}."""
        return dict(self._spent)

    def _time(
        self, owner: type | ModuleType, method: str, name_of: Callable[[Any, Any], str]
    ) -> None:
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
        """Count until rows are handed to the user's function."""
        hands_over, writes, waits = SlotHost._do, CallbackSink.write, ChannelPoller.wait

        def do(host: SlotHost, *args: Any) -> str:
            self._handed_ns = time.perf_counter_ns()
            return hands_over(host, *args)

        def write(sink: CallbackSink, *args: Any, **named: Any) -> None:
            now_ns = time.perf_counter_ns()
            self._add(REACHED, now_ns - self._handed_ns)
            self._add(AWAKE, now_ns - self._woke_ns)
            writes(sink, *args, **named)

        def wait(poller: ChannelPoller, timeout_s: float) -> bool:
            was_woken = waits(poller, timeout_s)
            self._woke_ns = time.perf_counter_ns()
            return was_woken

        setattr(SlotHost, "_do", do)  # noqa: B010  the class is another's
        setattr(CallbackSink, "write", write)  # noqa: B010
        setattr(ChannelPoller, "wait", wait)  # noqa: B010

    def _add(self, name: str, took_ns: int) -> None:
        spent = self._spent
        if took_ns > MOST_NS:
            name = PREEMPTED
        spent[name] = spent.get(name, 0) + took_ns
        calls = f"{name}, calls"
        spent[calls] = spent.get(calls, 0) + 1


def _kind(machine: StageMachine, work: Work) -> str:
    return _named(f"{STAGE} {machine.stage.kind}", work.results > 0)


def _named(name: str, has_rows: bool) -> str:
    return f"{name}{WITH_ROWS}" if has_rows else name
