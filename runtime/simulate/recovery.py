"""Recovery of a simulated job: checkpoints at intervals, and attempts after failures.

```
every interval ─▶ checkpoint        a failure ─▶ Attempts ─▶ wait, restart ─▶ all slots are new
all slots are finished, a sink holds rows ─▶ one checkpoint more
a stop by the user ─▶ a last checkpoint ─▶ its rows are written ─▶ the stop
```
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from slackwater.runtime.errors import SettingError
from slackwater.runtime.life import Cause
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.recovery.attempts import Again, Attempts
from slackwater.runtime.simulate.marks import DELAY_NS, SimulatedMarks

__all__ = ["Checkpoints", "SimulatedRecovery"]

RESTART_NS = 200_000_000
"""Time to load a checkpoint, and to let all slots go on."""
STOP_NS = 10 * NS_PER_SECOND
"""Longest wait of a user's stop for its last checkpoint."""


@dataclass(frozen=True, kw_only=True)
class Checkpoints:
    """Checkpoints of a simulated job, which recovers from them.

    Attributes:
        every_ns: interval between two, at least 1.
        holds: sinks that hold rows until the checkpoint that contains them is complete.
        is_repeatable: whether the flow gives the same rows in the same order each time.
        delay_ns: longest time of a word to a slot, or of a slot's part to where it is kept.
    """

    every_ns: int
    holds: frozenset[str] = frozenset()
    is_repeatable: bool = False
    delay_ns: int = DELAY_NS

    def __post_init__(self) -> None:
        for name in ("every_ns", "delay_ns"):
            if getattr(self, name) < 1:
                raise SettingError(f"Checkpoints: {name}={getattr(self, name)} must be 1 or more")


class World(Protocol):
    """Simulator, as recovery sees it."""

    now_ns: int
    marks: SimulatedMarks

    def at(self, at_ns: int, happen: Callable[[], None]) -> None:
        """Schedule a call at a virtual time, in this attempt."""
        ...

    @property
    def is_ending(self) -> bool:
        """Whether the attempt is ending, or has ended."""
        ...

    @property
    def slices(self) -> int:
        """Number of slices so far."""
        ...

    @property
    def awaits_checkpoint(self) -> bool:
        """Whether all slots that live are finished, and a sink of one holds rows."""
        ...

    def stop_now(self) -> None:
        """Stop the job without a further checkpoint."""
        ...


class SimulatedRecovery:
    """Takes the checkpoints of a simulated job, and decides what follows a failure.

    Args:
        checkpoints: interval, and what the flow's sinks do.
        world: simulator that runs the job.

    Attributes:
        attempts: decides what follows.
        due_ns: time of the next checkpoint; None if none follows.
    """

    def __init__(self, checkpoints: Checkpoints, world: World) -> None:
        self._checkpoints, self._world = checkpoints, world
        self.attempts = Attempts(world.now_ns, is_repeatable=checkpoints.is_repeatable)
        self.due_ns: int | None = None
        self._slices = 0  # of the last checkpoint that was complete
        self._slices_at = 0  # of the last one that was begun
        self._last: int | None = None  # number of the checkpoint that a stop waits for

    def begin(self) -> None:
        """Begin an attempt."""
        self.due_ns = self._world.now_ns + self._checkpoints.every_ns

    def tick(self) -> None:
        """Take the checkpoint that is due, unless one is under way or no slot worked."""
        world = self._world
        self.due_ns = world.now_ns + self._checkpoints.every_ns
        if not world.marks.is_under_way and not world.is_ending and world.slices != self._slices:
            self._take()

    def complete(self, number: int) -> None:
        """Take note that a checkpoint is complete."""
        self._slices = self._slices_at
        self.attempts.complete(number)

    def look(self) -> None:
        """Take one checkpoint more if all sources have ended, and rows wait for it."""
        world = self._world
        if world.awaits_checkpoint and not world.marks.is_under_way and not world.is_ending:
            self._take()

    def stop(self) -> None:
        """Stop the job as its user says: after a last checkpoint, if sinks hold rows."""
        world = self._world
        self.attempts.stop()
        if not self._checkpoints.holds or world.is_ending or self._last is not None:
            world.stop_now()
            return
        self._last = self._take()
        world.at(world.now_ns + STOP_NS, world.stop_now)

    def released(self, number: int) -> None:
        """Take note that all slots have released what a checkpoint contains."""
        if self._last is not None and number >= self._last:
            self._world.stop_now()

    def failed(self, cause: Cause, failed_ns: int) -> Again | Cause:
        """Return what follows a failed attempt, with the time that a restart takes."""
        self.due_ns = None
        answer = self.attempts.failed(cause, failed_ns)
        if isinstance(answer, Again):
            return answer._replace(after_ns=answer.after_ns + RESTART_NS)
        return answer

    def _take(self) -> int:
        self._slices_at = self._world.slices
        return self._world.marks.take()
