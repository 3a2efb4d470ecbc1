"""Results at the sinks of a slot: actions on them, and when they left.

```
Egress ──▶ SlotResults ──▶ Write ── wrote ──▶ latency, and when it must be published
  its last one ─────────▶ Close: a sink settles at its own end of stream, whatever still runs
time ───────────────────▶ Publish ── published
the slot's end ─────────▶ Close or Abort, of the sinks that are still open
```

Pure, and the same in both hosts; a host has the sinks themselves (`SinkPort`) and the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.measure.assemble import SinkMeter
from slackwater.runtime.measure.report import SinkReport
from slackwater.runtime.model import Batch
from slackwater.runtime.model.state import Fields
from slackwater.runtime.schedule.actions import Egress, Rest
from slackwater.runtime.schedule.slot import Slot

__all__ = [
    "Abort",
    "Close",
    "Publish",
    "SinkAction",
    "SinkPort",
    "SlotResults",
    "Write",
    "Written",
    "carry_out",
    "rest_of",
]


class Write(NamedTuple):
    """Write results at a sink; answered by `wrote`."""

    sink: str
    batch: Batch


@dataclass(frozen=True, slots=True)
class Publish:
    """Let readers see what has waited for long enough; answered by `published`."""

    sink: str


@dataclass(frozen=True, slots=True)
class Close:
    """Finish a sink: its stream has ended ("done"), or its user wants the end ("stopped")."""

    sink: str
    state: str


@dataclass(frozen=True, slots=True)
class Abort:
    """Finish a sink after a failure: what is published stays."""

    sink: str
    error: str


SinkAction: TypeAlias = Write | Publish | Close | Abort


class Written(NamedTuple):
    """Result of a `Write`."""

    skipped: int = 0
    """How many of its first rows had left in an earlier run."""
    due_ns: int | None = None
    """When rows that wait must be published, by the sinks' clock; None: at no time."""


class SinkPort(Protocol):
    """The sinks of a host, as their machine has them done."""

    def write(self, sink: str, batch: Batch) -> Written:
        """Write results. They have left the flow when this returns.

        Raises:
            SlackwaterError: they could not be written.
        """
        ...

    def publish(self, sink: str) -> int | None:
        """Publish what is due; return when there is something again."""
        ...

    def close(self, sink: str, state: str) -> None:
        """Finish a sink. A SlackwaterError means that it could not be finished."""
        ...

    def abort(self, sink: str, error: str) -> None:
        """Finish a sink after a failure; what that raises is told beside the failure."""
        ...


class SlotResults:
    """Decides what is done at the sinks of one slot.

    Args:
        sinks: of the slot.
        deadline_ns: of the flow; None: it has none.
    """

    STATE = Fields("_meters", "_open", "_dues")

    def __init__(self, sinks: Iterable[str], *, deadline_ns: int | None = None) -> None:
        self._meters = {one: SinkMeter(one, "", deadline_ns=deadline_ns) for one in sinks}
        self._open = dict.fromkeys(self._meters)  # in order
        self._dues: dict[str, int] = {}  # {open sink: when it must publish}
        self.due_ns: int | None = None
        """When `due` has something to do, if nothing is written; None: at no time."""

    @property
    def open(self) -> tuple[str, ...]:
        """The sinks that have not been closed or aborted."""
        return tuple(self._open)

    def leaves(self, egress: Egress) -> list[SinkAction]:
        """Return what to do with what leaves."""
        done: list[SinkAction] = []
        if egress.batch is not None:
            done.append(Write(egress.stage, egress.batch))
        if egress.is_end:
            done += self._settle([egress.stage], "done")
        return done

    def wrote(self, write: Write, written: Written, egress_ns: int) -> None:
        """Take note that results had left at this time."""
        self._meters[write.sink].add(write.batch, egress_ns, skipped=written.skipped)
        if written.due_ns is not None or self._dues:
            self.published(write.sink, written.due_ns)

    def due(self, now_ns: int) -> list[SinkAction]:
        """Return what must be published by now, by the sinks' clock."""
        if self.due_ns is None or now_ns < self.due_ns:
            return []
        return [Publish(sink) for sink, at_ns in self._dues.items() if at_ns <= now_ns]

    def published(self, sink: str, due_ns: int | None) -> None:
        """Take note of when a sink must publish next."""
        self._dues.pop(sink, None)
        if due_ns is not None and sink in self._open:
            self._dues[sink] = due_ns
        self.due_ns = min(self._dues.values(), default=None)

    def ends(self, state: str, failure: str | None = None) -> list[SinkAction]:
        """The slot ends: return how its sinks do that still are open.

        Args:
            state: "done", "stopped" or "failed".
            failure: why the slot or the job has failed; None: neither has.
        """
        return self._settle(list(self._open), state, failure)

    def _settle(self, sinks: list[str], state: str, failure: str | None = None) -> list[SinkAction]:
        there = [sink for sink in sinks if sink in self._open]
        if failure is None:
            return [Close(sink, state) for sink in there]
        return [Abort(sink, failure) for sink in there]

    def settled(self, sink: str) -> None:
        """Take note that a sink is closed or aborted."""
        self._open.pop(sink, None)
        self.published(sink, None)

    def reports(self) -> list[SinkReport]:
        """Return the sinks' reports as they stand; they go on to be counted in."""
        return [meter.report for meter in self._meters.values()]

    def after_restore(self) -> None:
        """Find when the first sink is due."""
        self.due_ns = min(self._dues.values(), default=None)


def rest_of(slot: Slot, results: SlotResults, now_ns: int, *, sinks_ns: Callable[[], int]) -> Rest:
    """Return how long a slot without work may sleep; its sinks may be due before.

    Args:
        slot: the slot.
        results: of its sinks.
        now_ns: by the slot's clock.
        sinks_ns: the sinks' clock, which is not read if none will be due.
    """
    rest = slot.rest(now_ns)
    if results.due_ns is None:
        return rest
    due_ns = now_ns + max(results.due_ns - sinks_ns(), 0)
    if rest.until_ns is not None and rest.until_ns <= due_ns:
        return rest
    return Rest(due_ns, is_guess=False)


def carry_out(
    actions: Iterable[SinkAction],
    results: SlotResults,
    sinks: SinkPort,
    clock_ns: Callable[[], int],
) -> str:
    """Carry out actions at a host's sinks, and tell their machine the results.

    Args:
        actions: of `results`.
        results: the machine.
        sinks: the host's.
        clock_ns: of egress.

    Returns:
        What went wrong after a failure, to be told with it; "" if nothing did.

    Raises:
        SlackwaterError: a sink could not write, publish or close. It is still open: the slot ends
            as failed, and aborts it.
    """
    problems = ""
    for action in actions:
        match action:
            case Write(sink, batch):
                written = sinks.write(sink, batch)
                results.wrote(action, written, clock_ns())
            case Publish(sink):
                results.published(sink, sinks.publish(sink))
            case Close(sink, state):
                sinks.close(sink, state)
                results.settled(sink)
            case Abort(sink, error):
                results.settled(sink)
                problems += _aborted(sinks, sink, error)
    return problems


def _aborted(sinks: SinkPort, sink: str, error: str) -> str:
    try:
        sinks.abort(sink, error)
    except SlackwaterError as problem:
        return f"\nand then: {problem}"
    except BaseException as problem:  # sys.exit() in at_end: the slot must end nevertheless
        return f"\nand then: sink {sink!r}: {problem!r}"
    return ""
