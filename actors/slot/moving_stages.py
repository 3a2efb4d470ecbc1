"""How a slot's loop holds still, gives stages to other slots, and goes on with others.

```
job ── prepare: the new plan
    ── hold ──▶ (loop: no slice, but what comes is taken in) ── give ──▶ (nothing is taken in)
    ── rebind ──▶ listens on new channels ── take_over ──▶ (loop: goes on with its new machines)
```

All of it is done by the loop's own thread, between two slices, as its job's calls ask for.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TypeVar

from slackwater.actors.sinks import SlotSinks
from slackwater.actors.slot.channel_ends import ChannelEnds, Passed
from slackwater.actors.slot.clock_sync import SlotClock
from slackwater.actors.slot.handover import Given, Taken, given, taken
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
"""How long the slice may take that is under way as the slot is to hold still."""
NAP_S = 0.001

_T = TypeVar("_T")


class MovingStages(ABC):
    """What `SlotHost` is made of, and how stages come to it and leave it while it runs."""

    _plan: SlotPlan
    _next_plan: SlotPlan
    _stages: tuple[Stage, ...]
    _folder: str
    _start_ns: int
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
    _is_stopping: bool
    _is_held = False
    _is_given = False  # its machines are others' by now
    _broken: str | None = None  # why it cannot go on

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
        """Take its part of another plan, for `rebind` and `take_over`; it may be large."""
        self._next_plan = plan

    def hold(self) -> str:
        """Begin no slice any more, until `take_over` or `go_on`; return in which state it is."""
        self._in_loop(lambda: setattr(self, "_is_held", True))
        return self._report.state

    def go_on(self) -> None:
        """Go on as if nothing had been: behind `hold`, and before `give`."""
        self._in_loop(lambda: setattr(self, "_is_held", False))

    def break_off(self, why: str) -> None:
        """End as failed: what was given cannot be had back."""
        self._broken = (
            f"slot {self._plan.name!r} cannot go on: its stages were being placed anew, and {why}; "
            "submit the flow again"
        )
        self._waker.wake()

    def passed(self, channels: frozenset[str]) -> dict[str, Passed]:
        """Return what has passed the ends of these channels here."""
        return self._in_loop(lambda: self._ends.passed(channels))

    def give(self, leaving: tuple[str, ...], rewired: frozenset[str]) -> Given:
        """Return the state of the stages that leave; look at `rewired` channels no more."""
        return self._in_loop(lambda: self._give(leaving, rewired))

    def _give(self, leaving: tuple[str, ...], rewired: frozenset[str]) -> Given:
        assert self._slot is not None, "it holds still"
        self._is_given = True
        self._charge_readers(self._slot)
        self._ends.retire(rewired, self._slot.channels)
        return given(self._slot, self._results, self._sinks, leaving)

    def rebind(self, hosts: Mapping[str, str | None], over: frozenset[str]) -> dict[str, str]:
        """Listen on the channels that are new here, all but those whose stream is over."""
        return self._in_loop(lambda: self._ends.bind(self._next_plan.stages, hosts, over=over))

    def take_over(self, order: Taken) -> None:
        """Go on with other stages; a slot that is new, or has ended, begins."""
        is_new = self._thread is None or self._has_ended.is_set()  # now: without stages it ends
        self._in_loop(lambda: self._take_over(order))
        if is_new:
            self._mailbox = Mailbox(self._waker.wake)
            self._has_ended.clear()
            self._run()

    def _take_over(self, order: Taken) -> None:
        plan = self._next_plan
        self._ends.connect(plan.stages, order.endpoints)
        self._slot, self._results, own = taken(
            plan, order, self._slot, self._sinks, wake=self._waker.wake, folder=self._folder
        )
        there = {stage.name for stage in plan.stages}
        self._own_inputs = [one for one in self._own_inputs if one.source in there] + own
        self._plan, self._stages, self._start_ns = plan, plan.stages, order.start_ns
        self._is_held = self._is_given = False

    def _in_loop(self, do: Callable[[], _T]) -> _T:
        if self._thread is None:
            return do()
        try:
            return self._mailbox.call(do, within_s=HOLD_S)
        except TimeoutError:
            raise ClusterError(
                f"slot {self._plan.name!r} did not come to it within {HOLD_S:g} s: a slice of work "
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
            self._mailbox.run_posted()
            if self._is_held:
                (only_calls if self._is_given else self._ends.poller).wait(NAP_S)
        if self._broken is not None:
            raise ClusterError(self._broken)
        assert self._slot is not None
        return self._slot
