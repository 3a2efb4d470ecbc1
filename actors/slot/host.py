"""Run a slot in real time: one core, one loop around `runtime/schedule/slot.py`.

```
channels ──▶ deliver / credit ──▶ Slot.step ──▶ Send · Grant · Egress ──▶ channels, sinks
                  ▲                                                │
                  └──────── wait (channels, a source's next event) ┘
```

The loop has its own thread; other threads make the control calls (report, stop, join). The loop
runs those that touch the slot between two slices (`actors/slot/loop_mailbox.py`).

The Ray actor is `actors/slot/actor.py`, in few methods: Ray wraps each method of an actor's class,
which would cost the loop.
"""

from __future__ import annotations

import copy
import gc
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import zmq

from slackwater.actors.kernel.occupied import OccupiedClock
from slackwater.actors.sinks.run_fingerprints import input_prints
from slackwater.actors.sinks.slot_sinks import SlotSinks, print_line
from slackwater.actors.slot.channel_ends import ChannelEnds
from slackwater.actors.slot.clock_sync import SlotClock
from slackwater.actors.slot.cutting import LONGEST_NS, CuttingSlot, SavedPart
from slackwater.actors.slot.last_words import PULSE_BYTES
from slackwater.actors.slot.loop_mailbox import Mailbox
from slackwater.actors.slot.moving_stages import MovingStages
from slackwater.actors.slot.peers import look_at_peers, lost_peers
from slackwater.actors.slot.read_ahead import read_ahead
from slackwater.actors.slot.report import News, SlotIdentity, SlotReport, stuck
from slackwater.actors.slot.short_collections import short_collections
from slackwater.actors.slot.slot_samples import SlotSamples
from slackwater.actors.wire.channel import ChannelKeys, Waker
from slackwater.actors.wire.local_sockets import host_identity, remove_abandoned
from slackwater.actors.wire.waiting import sharpen_timers
from slackwater.runtime.control.commands import Command
from slackwater.runtime.errors import (
    OutputRefused,
    SettingError,
    SinkError,
    SlackwaterError,
    kind_of,
)
from slackwater.runtime.measure.report import SinkReport
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.plan.slot_plan import SlotPlan
from slackwater.runtime.recovery.checkpoint import restore_part
from slackwater.runtime.schedule import (
    Action,
    Egress,
    Grant,
    LoggedSlot,
    Send,
    Slot,
    SlotResults,
    carry_out,
    make_slot,
    rest_of,
)
from slackwater.runtime.schedule.results import SinkAction
from slackwater.runtime.shown import MOST_ERROR, MOST_SHOWN, in_words, text_of, trace_of
from slackwater.runtime.sinks.fingerprint import InputPrint, SinkRun
from slackwater.runtime.sinks.output import HasEnded

IDLE_S = 0.2
"""How long to sleep at most: a lost peer need not end a wait."""
ALONE_S = 1.0
"""The same in a slot without channels: any other event ends its wait, or has a time."""
NAP_S = 0.001
"""The same if there was work within `AWAKE_NS`: a core and caches that doze serve more slowly."""
AWAKE_NS = 50_000_000
LOOK_NS = 500_000
"""Time between two polls of the channels among slices: a poll takes as long as a small slice."""
CHARGE_NS = 50_000_000
"""Time between two charges for threads that read inputs: costs belong to their interval."""
PEERS_NS = 100_000_000
"""Time between two checks of the other ends, of a busy slot, too."""
REPORT_S = 2.0


class SlotHost(MovingStages, CuttingSlot):
    """A slot of a job: call `identify`, `bind`, `connect`, `start` and `join`.

    Its process ends with it. All times are the reference's: on another clock, call `follow_clock`
    before `connect`, with the endpoint from `serve_clock` of the reference's slot.
    """

    def __init__(
        self,
        plan: SlotPlan,
        *,
        keys: ChannelKeys,
        host: str = "127.0.0.1",
        folder: str = "",
        clock_shift: int | Callable[[], int] = 0,
        end_on_record: HasEnded = lambda _: False,
        show: Callable[[str], None] = print_line,
        pulse: memoryview[int] | None = None,
    ) -> None:
        CuttingSlot.__init__(self)
        self._pulse = pulse or memoryview(bytearray(PULSE_BYTES)).cast("Q")
        self._most_rest_s = min(ALONE_S, plan.limits.lost_ns / NS_PER_SECOND / 4)
        self._plan, self._name, self._node, self._stages = plan, plan.name, plan.node, plan.stages
        self._keys, self._host, self._folder = keys, host, folder
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._clock = SlotClock(keys=keys, context=self._context, host=host, shift=clock_shift)
        self._sinks, self._end_on_record = SlotSinks(show=show), end_on_record
        self._results = SlotResults.of(plan)
        self._charge_at_ns = 0  # when sources are next charged for their threads
        self._slot: Slot | None = None
        self._start_ns, self._recovers = 0, False
        self._waker = Waker()
        self._ends = ChannelEnds(
            keys=keys,
            context=self._context,
            host=host,
            waker=self._waker,
            came=self._mark_came,
            lost_ns=plan.limits.lost_ns,
        )
        self._receivers, self._senders = self._ends.receivers, self._ends.senders
        self._mailbox = Mailbox(self._waker.wake)
        self._is_stopping = False
        self._failure: str | None = None  # of another slot, which stops this one
        self._also = ""  # problems of sinks that ended because of it
        self._wants_report, self._news = threading.Event(), News()
        self._has_report, self._has_ended = threading.Event(), threading.Event()
        self._report = SlotReport(plan.name, "ready")
        self._thread: threading.Thread | None = None
        # Arrow's first conversion looks for pandas for 150 ms, which must not delay an event.
        pa.array(np.zeros(1))

    # -- control, from other threads -------------------------------------------------------

    def identify(self) -> SlotIdentity:
        """Return the slot's identity, by which slots know what they share."""
        clock = self._clock
        return SlotIdentity(os.getpid(), host_identity(self._host), clock.identity, clock.ahead_ns)

    def keep_clock(self, ahead_ns: int) -> None:
        """Use the clock of the reference's slot, on the same host; before `connect`."""
        self._clock.keep(ahead_ns)

    def serve_clock(self) -> str:
        """Make this slot's clock the reference; return the endpoint where it answers."""
        return self._clock.serve()

    def follow_clock(self, endpoint: str) -> None:
        """Set this slot's clock by the reference's at `endpoint`, and keep it there."""
        self._clock.follow(endpoint)

    def bind(self, hosts: Mapping[str, str | None]) -> dict[str, str]:
        """Listen on every channel from another slot: {channel: endpoint}.

        Args:
            hosts: {stage: identity of the host that it runs on}.
        """
        bound = self._ends.bind(self._stages, hosts)
        if self._is_stopping:
            self._ends.unlink()
        return bound

    def fingerprints(self) -> dict[str, InputPrint]:
        """Return the fingerprints of the inputs that have one, {source: fingerprint}."""
        return input_prints(self._stages)

    def connect(
        self,
        endpoints: Mapping[str, str],
        runs: Mapping[str, SinkRun] | None = None,
        saved: SavedPart | None = None,
    ) -> int:
        """Connect every channel to another slot, and open the sinks.

        Args:
            endpoints: {channel: its receiver's endpoint}.
            runs: {sink: the run that writes there}.
            saved: where the slot goes on from after a failure; None if its job was just submitted.

        Returns:
            The reference's time afterwards.

        Raises:
            CheckpointError: the slot's part of the checkpoint cannot be read.
        """
        self._recovers = saved is not None and saved.recovers
        self._ends.connect(self._stages, endpoints, asks_again=self._recovers)
        self._saved = None if saved is None else saved.read(self._plan)
        at = {} if self._saved is None else self._saved.positions
        try:
            self._sinks.open(
                self._stages,
                folder=self._folder,
                runs=runs or {},
                has_ended=self._end_on_record,
                keeps_positions=self._plan.has_checkpoints,
                at=None if saved is None else at,
            )
        finally:
            if self._is_stopping:
                self._sinks.leave()
        return self._clock.now_ns()

    def start(self, start_ns: int) -> None:
        """Start the loop. Paced sources hand over their first event at `start_ns`.

        A slot that goes on from a checkpoint is given the start of its job.

        Raises:
            SettingError: the part of the checkpoint is of other stages, or of another version.
        """
        self._start_ns = start_ns
        stages = [read_ahead(stage, self._waker.wake, self._plan) for stage in self._stages]
        self._own_inputs = [own for _, own in stages if own is not None]
        opened = replace(self._plan, stages=tuple(stage for stage, _ in stages))
        self._slot = make_slot(opened, start_ns=start_ns)
        if self._saved is not None:
            gc.disable()  # each collection would look at all that is restored so far
            try:
                restore_part(self._saved, self._slot, self._results, self._clock.now_ns())
                self._ends.had_ended(self._slot.ended)
            finally:
                gc.enable()
            self._saved = None
        self._run()

    def leave(self) -> None:
        """Close what an ended slot has: its process goes on with another one."""
        self.stop("its job goes on from a checkpoint")
        if self._thread is not None:
            self._thread.join()
        self._ends.close()
        # Threads that wait at sockets of their own close these: no other thread may.
        threading.Thread(target=self._context.term, daemon=True).start()

    def _run(self) -> None:
        self._report.state, self._report.sinks = "running", self._sink_reports()
        self._thread = threading.Thread(target=self._main, name=f"slot-{self._name}", daemon=True)
        self._thread.start()

    def report(self) -> SlotReport:
        """Return the loop's last counters, at most a slice old."""
        if self._thread is not None and self._thread.is_alive():
            self._has_report.clear()
            self._wants_report.set()
            self._waker.wake()
            if not self._has_report.wait(REPORT_S):
                assert self._slot is not None, "its loop has begun"
                at_work = self._sinks.at_work or self._slot.at_work
                return stuck(self._report, at_work, self._clock.now_ns())
        return self._report

    def news(self, within_s: float) -> SlotReport:
        """Return the counters once the slot has worked since the last call, or after `within_s`."""
        self._news.wait(within_s, over=self._has_ended)
        return self.report()

    def samples(self) -> SlotSamples:
        """Return the stages' samples of the seconds that are over, once.

        Raises:
            TimeoutError: a slice takes long; the samples are kept for the next call.
        """
        return self._mailbox.call(self._take_samples, within_s=REPORT_S)

    def apply(self, command: Command, number: tuple[int, int]) -> None:
        """Let the slot carry out a command between two slices; see `Slot.apply`."""
        self._mailbox.attempt(lambda: self._apply(command, number))

    def _apply(self, command: Command, number: tuple[int, int]) -> None:
        assert self._slot is not None, "the tuner starts after the slots"
        if self._is_given:
            raise SettingError(
                f"stage {command.subject.name!r} was being moved when {command!r} came; "
                "give it again once the move is done"
            )
        self._slot.apply(command, number=number)

    def join(self) -> SlotReport:
        """Wait until the slot is done, stopped or failed; return its last report."""
        self._has_ended.wait()
        return self._report

    def collected(self, sink: str) -> bytes:
        """Return a collect sink's rows as an Arrow IPC stream."""
        return self._sinks.collected(sink).stream()

    def log(self) -> dict[str, Any]:
        """Return the slot's stimulus log; see `LoggedSlot.log`.

        Raises:
            SettingError: the slot keeps no log.
        """
        if not isinstance(slot := self._slot, LoggedSlot):
            raise SettingError(f"slot {self._name!r} keeps no log; submit with Limits(log=…)")
        return self._mailbox.call(slot.log, within_s=REPORT_S)

    def stop(self, failure: str | None = None) -> None:
        """End the loop soon.

        Args:
            failure: reason why the job has failed, after which sinks keep their published parts;
                None if the user ends it, and sinks publish all their rows.
        """
        self._failure = failure
        self._is_stopping = True
        self._waker.wake()
        self._ends.unlink()
        if self._thread is None:
            self._sinks.leave()

    # -- the loop --------------------------------------------------------------------------

    def _main(self) -> None:
        state, error, kind = "failed", None, None
        try:
            with short_collections(), closing(OccupiedClock(self._readers_ns)) as occupied_ns:
                try:
                    state = self._loop(occupied_ns)
                finally:
                    self._pulse[0] = 0
                    self._can_be_cut = state == "done"
            failure = None if state == "done" else self._failure
            self._also = self._end_sinks(state, failure)
        except SlackwaterError as problem:
            error, kind = text_of(problem, MOST_ERROR), kind_of(problem)
        except BaseException as problem:  # a fault of ours, or sys.exit() in a user's function
            error, kind = (
                f"{in_words(problem, MOST_SHOWN)}\n{trace_of(problem, problem.__traceback__)}",
                type(problem).__name__,
            )
        if error is not None:
            state = "failed"
            error = f"{error}{self._end_sinks(state, error)}"
        assert self._slot is not None
        try:
            ended_ns = self._clock.now_ns()
            try:
                self._slot.close()
            finally:
                self._note_untaken(self._slot)
                self._publish(state, error, kind)
            self._report.ended_ns = ended_ns
            if state == "failed":
                self._report.lost = lost_peers(self._ends.all)
        finally:
            remove_abandoned()
            self._mailbox.close()
            self._has_ended.set()
            self._tell_end()

    def _loop(self, occupied_ns: OccupiedClock) -> str:
        slot = self._slot
        assert slot is not None
        poller = self._ends.poller
        if self._is_stopping:
            return "stopped"
        slot.open(self._clock.now_ns())
        self._publish("running")  # in case a sink or the first slice hangs
        self._results.resumes(self._begin_sinks(), recovers=self._recovers)
        if slot.marked:  # it goes on from a checkpoint
            self._do(self._results.complete(slot.marked))
        sharpen_timers()
        # began_ns: of the next slice; no slice is charged for the loop's other work.
        peers_ns, looked_ns, began_ns, worked_ns = 0, 0, 0, self._clock.now_ns()
        was_woken = True
        self._pulse[1] = threading.get_native_id()
        while not self._is_stopping:
            self._pulse[0] += 1
            now_ns = self._clock.now_ns()
            if was_woken or self._waker.is_ready:
                was_woken, looked_ns = False, 0
                slot, before, poller = self._attend(slot), slot, self._ends.poller
                worked_ns = worked_ns if slot is before else now_ns  # a move of stages is news
                continue
            if not 0 <= now_ns - looked_ns <= LOOK_NS:  # below 0 if the clock was set
                self._ends.take_in(slot, now_ns)
                self._save_more()
                if not 0 <= now_ns - peers_ns <= PEERS_NS:
                    look_at_peers(self._name, self._ends.all)
                    peers_ns = now_ns
                if now_ns >= self._charge_at_ns:
                    self._charge_at_ns = now_ns + CHARGE_NS
                    self._charge_readers(slot)
                looked_ns, began_ns = now_ns, occupied_ns.idled()
            if self._results.due_ns is not None:
                self._do(self._results.due(self._sinks.clock_ns()))
                began_ns = occupied_ns.idled()
            done = slot.step(now_ns)
            if done is not None:
                for action in done.actions:
                    self._perform(action)
                ended_ns = occupied_ns()
                slot.charge(done, ended_ns - began_ns)
                began_ns = ended_ns
                if not done.has_read:
                    worked_ns = now_ns
                continue
            if slot.is_finished and self._ends.is_settled and not self._results.awaits:
                self._save_more(LONGEST_NS)
                return "done"
            most_s = NAP_S if now_ns < worked_ns + AWAKE_NS else ALONE_S
            self._news.quiet_since_ns = worked_ns
            was_woken, looked_ns = poller.wait(min(self._rest_s(slot, now_ns), most_s)), 0
            self._news.quiet_since_ns = None
        return "stopped"

    def _begin_sinks(self) -> Mapping[str, int]:
        """Begin the sinks; an output that refuses a new run ends the job at once."""
        try:
            return self._sinks.begin()
        except SinkError as problem:
            if self._recovers:
                raise
            raise OutputRefused(str(problem)) from problem.__cause__

    def _attend(self, slot: Slot) -> Slot:
        """Serve the threads that woke us; return the slot, perhaps a new one."""
        self._waker.clear()  # before we look: a later caller wakes us again
        slot.woken(self._clock.now_ns())
        if self._wants_report.is_set():
            self._publish("running")
        while self._complete:
            number = self._complete.popleft()
            slot.complete(number)  # inputs first: sinks may fail
            self._do(self._results.complete(number))
        if self._mailbox.waiting:
            self._mailbox.run_posted()
            if self._is_held:
                slot = self._stand_still(slot)
                slot.woken(self._clock.now_ns())
        return slot

    def _take_samples(self) -> SlotSamples:
        assert self._slot is not None, "the tuner starts after the slots"
        now_ns = self._clock.now_ns()
        passed_ns = now_ns - self._start_ns
        length_ns = self._plan.interval_ns or NS_PER_SECOND
        left_ns = length_ns - (passed_ns % length_ns if passed_ns > 0 else passed_ns)
        self._charge_readers(self._slot)
        # The slot that takes a given stage counts it.
        samples = [] if self._is_given else self._slot.samples(now_ns)
        return SlotSamples(samples, left_ns, self._mailbox.take_refused())

    def _readers_ns(self) -> int:
        return sum([own.cpu_ns for own in self._own_inputs]) if self._own_inputs else 0

    def _charge_readers(self, slot: Slot) -> None:
        for own in self._own_inputs:
            took_ns = own.cpu_ns - own.charged_ns
            if took_ns > 0 and own.source in slot.stages:  # else the source is moving
                own.charged_ns += took_ns
                slot.charge_reading(own.source, took_ns)

    def _note_untaken(self, slot: Slot) -> None:
        for own in self._own_inputs:
            if (machine := slot.stages.get(own.source)) is not None and machine.source is not None:
                own.untaken = machine.source.untaken

    def _perform(self, action: Action) -> None:
        match action:
            case Send(channel, message):
                self._ends.send(channel, message, self._clock.now_ns())
            case Grant(channel, rows):
                self._ends.grant(channel, rows)
            case Egress():
                if action.is_end:
                    self._publish("running")  # in case the sink hangs as it ends
                self._do(self._results.leaves(action))

    def _end_sinks(self, state: str, failure: str | None) -> str:
        if self._results.open:
            self._publish("running")  # in case one hangs
        return self._do(self._results.ends(state, failure))

    def _do(self, actions: list[SinkAction]) -> str:
        return carry_out(actions, self._results, self._sinks, self._clock.now_ns)

    def _rest_s(self, slot: Slot, looked_ns: int) -> float:
        """Return how long to sleep, if the slot had no work at `looked_ns`."""
        if slot.is_saving:
            return 0.0
        most_s = IDLE_S if self._receivers or self._senders else self._most_rest_s
        rest = rest_of(slot, self._results, looked_ns, sinks_ns=self._sinks.clock_ns)
        until_ns = rest.until_ns
        left_s = most_s if until_ns is None else (until_ns - self._clock.now_ns()) / 1e9
        return min(max(left_s, 0.0), most_s)

    def _publish(self, state: str, error: str | None = None, kind: str | None = None) -> None:
        """Make a report for other threads, which the loop no longer changes."""
        self._wants_report.clear()
        assert self._slot is not None
        self._charge_readers(self._slot)
        stages, channels = self._slot.reports(self._clock.now_ns())
        for stage in stages:
            stage.slot, stage.node = self._name, self._node
        self._ends.tell_carried(channels)
        sinks = self._sink_reports()
        self._report = SlotReport(self._name, state, stages, channels, sinks, error, kind)
        self._report.recent = self._slot.recent()
        self._report.at_ns = self._clock.now_ns()
        self._report.clock = self._clock.report(self._node)
        waits = [own.standstill(is_over=state != "running") for own in self._own_inputs]
        self._report.notes = [wait for wait in waits if wait is not None]
        self._report.notes += self._slot.close_problems
        if self._also:
            self._report.notes.append(f"slot {self._name!r}, as its sinks ended: {self._also}")
        self._report.refused_peers = self._ends.refused_peers + self._clock.refused_peers
        self._has_report.set()

    def _sink_reports(self) -> list[SinkReport]:
        sinks = copy.deepcopy(self._results.reports())
        for sink in sinks:
            sink.node = self._node
            self._sinks.tell(sink)
        return sinks
