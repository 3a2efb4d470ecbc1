"""Let a slot's loop cut its streams for a checkpoint, and give its part.

```
job ── part(n) ──▶ (loop: mark n, unless it has come on a channel) ··· the last mark ──▶ part
```

The cut is the loop's, and what is saved in steps after it; files are written in the thread of the
job's call.
"""

from __future__ import annotations

import threading
import time
from abc import ABC
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from slackwater.actors.checkpoints.part_files import read_part, write_part
from slackwater.actors.checkpoints.refusals import refusals
from slackwater.actors.kernel.occupied import queued_ns
from slackwater.actors.sinks.slot_sinks import SlotSinks
from slackwater.actors.slot.channel_ends import ChannelEnds
from slackwater.actors.slot.loop_mailbox import Mailbox
from slackwater.actors.slot.read_ahead import ReadAheadInput
from slackwater.actors.wire.channel import Waker
from slackwater.runtime.errors import ClusterError, SlackwaterError
from slackwater.runtime.model import Mark
from slackwater.runtime.plan.former_names import SAME_NAMES, FormerNames
from slackwater.runtime.plan.slot_plan import SlotPlan
from slackwater.runtime.recovery.checkpoint import (
    SlotPart,
    granted_by,
    part_of_stages,
    saved_results,
    with_credit,
)
from slackwater.runtime.recovery.manifest import PartEntry
from slackwater.runtime.recovery.pace import Cost
from slackwater.runtime.schedule import Slot, SlotResults

__all__ = ["LONGEST_NS", "CuttingSlot", "SavedPart", "WrittenPart"]

LONGEST_S = 60.0
"""How long a mark may take through the channels; a checkpoint that takes longer is given up."""
LONGEST_NS = int(LONGEST_S * 1e9)
SAVING_NS = 1_000_000
"""Time in which the loop saves more of a cut, between two looks at its channels."""


class _Times(NamedTuple):
    """Clocks of the loop's thread.

    Attributes:
        steady_ns: time of the steady clock.
        cpu_ns: CPU time of the thread.
        queued_ns: how long the thread has waited for a core.
    """

    steady_ns: int
    cpu_ns: int
    queued_ns: int

    @classmethod
    def now(cls) -> _Times:
        """Read the clocks."""
        return cls(time.monotonic_ns(), time.thread_time_ns(), queued_ns())

    def since(self, begun: _Times) -> _Times:
        """Return the time since an earlier reading, by each clock."""
        return _Times(*(end - start for end, start in zip(self, begun, strict=True)))


class _AtCut(NamedTuple):
    """State of a slot's sinks at its cut, and the costs so far.

    Attributes:
        number: number of the checkpoint.
        results: state of the slot's `SlotResults`.
        positions: position of each sink, {sink: position}.
        passed: time since the cut before; none if this is the first.
        longest_ns: longest time, so far, for which the loop stood still for the checkpoint, without
            waits for a core.
        cut_ns: CPU time of the loop at the cut.
        steps_ns: CPU time of the loop for what is saved after the cut, in steps or in slices.
    """

    number: int
    results: dict[str, Any]
    positions: dict[str, bytes]
    passed: _Times
    longest_ns: int = 0
    cut_ns: int = 0
    steps_ns: int = 0

    def cost(self, writing_ns: int) -> Cost:
        """Return the cost in the slot's process, with the CPU time of the writing."""
        cpu_ns = self.cut_ns + self.steps_ns + writing_ns
        had_ns = self.passed.steady_ns - self.passed.queued_ns
        return Cost(cpu_ns, had_ns, self.passed.steady_ns)


class WrittenPart(NamedTuple):
    """Part of a checkpoint that a slot has written.

    Attributes:
        entry: its file, for the manifest.
        granted: credit that the slot had given by its cut, by channel.
        cut_ns: how long the slot's loop stood still for it.
        cost: cost in the slot's process: the cut, what was saved after it, and the writing.
    """

    entry: PartEntry
    granted: dict[str, int]
    cut_ns: int
    cost: Cost


class SavedPart(NamedTuple):
    """State of a slot's stages in a checkpoint, from which it goes on.

    Attributes:
        folder: folder of the checkpoints.
        entries: files of the parts that have its stages; none if the job begins at its start.
        granted: credit that all slots had given by their cuts, by channel.
        names: names in these parts.
        recovers: whether the run goes on after a failure of its own; else it has just begun.
    """

    folder: str
    entries: tuple[PartEntry, ...] = ()
    granted: Mapping[str, int] = MappingProxyType({})
    names: FormerNames = SAME_NAMES
    recovers: bool = False

    def read(self, plan: SlotPlan) -> SlotPart | None:
        """Return the part of a slot; None if the job begins at its start.

        Args:
            plan: the slot's part of the plan.

        Raises:
            CheckpointError: a file is missing or damaged.
        """
        if not self.entries:
            return None
        folder = Path(self.folder)
        parts = [with_credit(read_part(folder, entry), self.granted) for entry in self.entries]
        return part_of_stages(plan.stages, parts, slot=plan.name, names=self.names)


class CuttingSlot(ABC):
    """Base of `SlotHost`: the slot's part of checkpoints."""

    _slot: Slot | None
    _results: SlotResults
    _sinks: SlotSinks
    _ends: ChannelEnds
    _mailbox: Mailbox
    _waker: Waker
    _has_ended: threading.Event

    def __init__(self) -> None:
        self._at_cut: _AtCut | None = None
        self._last_cut: _Times | None = None
        self._own_inputs: list[ReadAheadInput] = []
        self._can_be_cut = True
        self._saved: SlotPart | None = None  # what it goes on from, until its start
        # Complete, and not given yet: the part, or why it cannot be saved.
        self._parts: dict[int, tuple[SlotPart, _AtCut] | SlackwaterError] = {}
        self._has_part = threading.Condition()
        self._complete: deque[int] = deque()  # numbers of checkpoints that are complete

    def write_part(self, number: int, folder: str) -> WrittenPart:
        """Cut the slot for a checkpoint, and write its part once that is complete.

        Raises:
            ClusterError: the mark has not come on all channels in time; the slot goes on.
            CheckpointError: the part, or what it refers to, could not be written.
            OperatorError: state of a user's object is not plain; the slot goes on.
        """
        began_ns = time.thread_time_ns()
        part, cut = self._part_of(number)
        with refusals(f"checkpoint {number}: rows could not be spooled to", Path(folder)):
            for own in self._own_inputs:  # a restore reads rows on from there
                own.sync()
        entry = write_part(Path(folder), part)
        cost = cut.cost(time.thread_time_ns() - began_ns)
        return WrittenPart(entry, granted_by(part), cut.longest_ns, cost)

    def complete(self, number: int) -> None:
        """Let what waited for a checkpoint leave: all its parts are on disk."""
        self._complete.append(number)
        self._waker.wake()

    def _part_of(self, number: int) -> tuple[SlotPart, _AtCut]:
        self._mailbox.call(lambda: self._cut(number), within_s=LONGEST_S)
        with self._has_part:
            self._has_part.wait_for(
                lambda: number in self._parts or self._has_ended.is_set(), LONGEST_S
            )
            if (made := self._parts.pop(number, None)) is not None:
                if isinstance(made, SlackwaterError):
                    raise made
                return made
        raise ClusterError(
            f"checkpoint {number}: its mark did not come on all channels of a slot, within "
            f"{LONGEST_S:g} s or before the slot ended; it is given up"
        )

    def _tell_end(self) -> None:
        """Let who waits for a part know that the loop has ended."""
        with self._has_part:
            self._has_part.notify_all()

    def _cut(self, number: int, channel: str | None = None) -> None:
        slot = self._slot
        assert slot is not None, "its loop has begun"
        if not self._can_be_cut:  # a slice broke off, and what it had taken is lost
            raise ClusterError(
                f"checkpoint {number}: slot {slot.name!r} has ended before it was done; go on from "
                "the checkpoint before"
            )
        begun = _Times.now()
        if number > slot.marked:
            positions = self._sinks.positions()
            results = saved_results(self._results, number)
            passed = begun.since(self._last_cut or begun)
            self._at_cut, self._last_cut = _AtCut(number, results, positions, passed), begun
        cpu_ns = time.thread_time_ns
        if channel is None:
            marks = slot.mark(number, cpu_ns)
        else:
            marks = slot.mark_came(channel, number, cpu_ns)
        self._ends.mark(marks, Mark(number))
        self._charge(number, begun, is_step=False)
        self._save_more(LONGEST_NS if slot.is_finished else 0)  # no loop need go on

    def _mark_came(self, channel: str, mark: Mark) -> None:
        self._cut(mark.number, channel)

    def _save_more(self, most_ns: int = SAVING_NS) -> None:
        """Save more of the cut for a while; give its part once it is complete."""
        slot = self._slot
        if slot is None:
            return
        if slot.is_saving and most_ns:
            number, begun = slot.marked, _Times.now()
            try:
                while slot.is_saving and time.monotonic_ns() - begun.steady_ns < most_ns:
                    slot.save_more()
            except SlackwaterError as problem:  # no state of a user's object may end the job
                slot.give_up_cut()
                self._has_made(number, problem)
            self._charge(number, begun, is_step=True)
        self._take_cut()

    def _charge(self, number: int, begun: _Times, *, is_step: bool) -> None:
        """Charge a checkpoint with what the loop has done since a time."""
        if (at_cut := self._at_cut) is None or at_cut.number != number:
            return
        took = _Times.now().since(begun)
        field = "steps_ns" if is_step else "cut_ns"
        self._at_cut = at_cut._replace(
            longest_ns=max(at_cut.longest_ns, took.steady_ns - took.queued_ns),
            **{field: getattr(at_cut, field) + took.cpu_ns},
        )

    def _take_cut(self) -> None:
        """Give the part of a complete cut to who waits for it."""
        if self._slot is None or (cut := self._slot.take_cut()) is None:
            return
        known, self._at_cut = self._at_cut, None
        assert known is not None and known.number == cut.number, "they are cut together"  # noqa: PT018
        part = SlotPart.of(self._slot.name, cut, known.results, known.positions)
        known = known._replace(steps_ns=known.steps_ns + cut.early_ns)
        self._has_made(cut.number, (part, known))

    def _has_made(self, number: int, made: tuple[SlotPart, _AtCut] | SlackwaterError) -> None:
        with self._has_part:
            self._parts = {number: made}
            self._has_part.notify_all()
