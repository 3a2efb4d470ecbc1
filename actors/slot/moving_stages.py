"""Let a slot's loop hold still, give stages away, and go on with others.

```
job ── prepare: the new plan
    ── hold ──▶ (loop: no slice, but takes messages in) ── give ──▶ (takes nothing in)
    ── rebind ──▶ listens on new channels ── take_over ──▶ (loop: goes on with its new machines)
```

The loop's own thread does all of this, between two slices, on calls of its job.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TypeVar

from slackwater.actors.sinks.slot_sinks import SlotSinks
from slackwater.actors.slot.channel_ends import ChannelEnds, Passed
from slackwater.actors.slot.clock_sync import SlotClock
from slackwater.actors.slot.handover import HandOver, TakeOver, hand_over, take_over
from slackwater.actors.slot.loop_mailbox import Mailbox
from slackwater.actors.slot.read_ahead import ReadAheadInput
from slackwater.actors.slot.report import SlotReport
from slackwater.actors.wire.channel import ChannelPoller, Waker
from slackwater.runtime.errors import ClusterError
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.slot_plan import SlotPlan
from slackwater.runtime.schedule import Slot, SlotResults

__all__ = ["MovingStages"]

HOLD_S = 10.0
"""How long the slice under way may take when the slot is to hold still."""
NAP_S = 0.001

_T = TypeVar("_T")


class MovingStages(ABC):
    """Base of `SlotHost`: moves stages in and out while the slot runs."""

    _plan: SlotPlan
    _next_plan: SlotPlan
    _stages: tuple[Stage, ...]
    _folder: str
    _start_ns: int
    _recovers: bool
    _slot: Slot | None
    _results: SlotResults
    _sinks: SlotSinks
    _ends: ChannelEnds
    _own_inputs: list[ReadAheadInput]
    _clock: SlotClock
    _waker: Waker
    _mailbox: Mailbox
    _report: SlotReport
    _thread: threading.Thread | None
    _has_ended: threading.Event
    _wants_report: threading.Event
    _pulse: memoryview[int]  # see `LastWords`
    _is_stopping: bool
    _is_held = False
    _is_given = False  # other slots have its machines
    _broken: str | None = None  # why the slot cannot go on

    @abstractmethod
    def _run(self) -> None:
        """Start the loop."""

    @abstractmethod
    def _publish(self, state: str) -> None:
        """Make a report for other threads."""

    @abstractmethod
    def _charge_readers(self, slot: Slot) -> None:
        """Charge sources for the threads that read their inputs."""

    def prepare(self, plan: SlotPlan) -> None:
        """Take the slot's part of a new plan, for `rebind` and `take_over`."""
        self._next_plan = plan

    def hold(self) -> str:
        """Begin no more slices until `take_over` or `go_on`; return the slot's state."""
        self._in_loop(lambda: setattr(self, "_is_held", True))
        return self._report.state

    def go_on(self) -> None:
        """Go on unchanged: after `hold`, and before `give`."""
        self._in_loop(lambda: setattr(self, "_is_held", False))

    def break_off(self, why: str) -> None:
        """End as failed: given stages cannot be taken back."""
        self._broken = (
            f"slot {self._plan.name!r} cannot go on: its stages were moving, and {why}; "
            "submit the flow again"
        )
        self._waker.wake()

    def passed(self, channels: frozenset[str]) -> dict[str, Passed]:
        """Return the traffic of these channels' ends here."""
        return self._in_loop(lambda: self._ends.passed(channels))

    def give(self, leaving: tuple[str, ...], rewired: frozenset[str]) -> HandOver:
        """Return the state of the leaving stages; stop polling `rewired` channels."""
        return self._in_loop(lambda: self._give(leaving, rewired))

    def _give(self, leaving: tuple[str, ...], rewired: frozenset[str]) -> HandOver:
        assert self._slot is not None, "a slot that holds still has started"
        self._is_given = True
        self._charge_readers(self._slot)
        self._ends.retire(rewired, self._slot.channels)
        return hand_over(self._slot, self._results, self._sinks, leaving)

    def rebind(self, hosts: Mapping[str, str | None], over: frozenset[str]) -> dict[str, str]:
        """Listen on the channels that are new here, except those whose stream has ended."""
        return self._in_loop(lambda: self._ends.bind(self._next_plan.stages, hosts, over=over))

    def take_over(self, order: TakeOver) -> None:
        """Go on with other stages; a new or ended slot starts its loop."""
        is_new = self._thread is None or self._has_ended.is_set()  # now: without stages it ends
        self._in_loop(lambda: self._take_over(order))
        if is_new:
            self._mailbox = Mailbox(self._waker.wake)
            self._has_ended.clear()
            self._run()

    def _take_over(self, order: TakeOver) -> None:
        plan = self._next_plan
        self._ends.connect(plan.stages, order.endpoints)
        self._slot, self._results, own = take_over(
            plan, order, self._slot, self._sinks, wake=self._waker.wake, folder=self._folder
        )
        names = {stage.name for stage in plan.stages}
        self._own_inputs = [i for i in self._own_inputs if i.source in names] + own
        self._plan, self._stages, self._start_ns = plan, plan.stages, order.start_ns
        self._is_held = self._is_given = False
        self._recovers = True  # what an earlier run had is in the results

    def _in_loop(self, do: Callable[[], _T]) -> _T:
        if self._thread is None:
            return do()
        try:
            return self._mailbox.call(do, within_s=HOLD_S)
        except TimeoutError:
            raise ClusterError(
                f"slot {self._plan.name!r} did not answer within {HOLD_S:g} s; a slice of work "
                "takes so long, or hangs"
            ) from None

    def _stand_still(self, slot: Slot) -> Slot:
        """Begin no slice until all is handed over; return the slot to go on with."""
        only_calls = ChannelPoller({}, waker=self._waker)
        while self._is_held and not (self._is_stopping or self._broken):
            if not self._is_given:
                self._ends.take_in(slot, self._clock.now_ns())
                if self._wants_report.is_set():
                    self._publish("running")
            self._pulse[0] += 1
            self._mailbox.run_posted()
            if self._is_held:
                (only_calls if self._is_given else self._ends.poller).wait(NAP_S)
        if self._broken is not None:
            raise ClusterError(self._broken)
        assert self._slot is not None
        return self._slot
