"""Second host: the same slots in virtual time, one seed, one thread.

The work of a Ray cluster in real time (deliver, grant, run the next slice, write results) happens
here at times that the models give. `runtime/simulate/life.py` has the end of a job, and its faults.
Equal seeds give equal runs.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from slackwater.runtime.control.commands import Command, SetRelease
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.control.loop import Decider
from slackwater.runtime.errors import JobStopped, SlackwaterError
from slackwater.runtime.interrupts import CtrlC
from slackwater.runtime.life import Cause, StopRequested
from slackwater.runtime.measure.assemble import job_report
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import Batch, Message
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.model.whose_code import RUNNING
from slackwater.runtime.plan.plan import Channel, Plan
from slackwater.runtime.plan.relocation import Relocation
from slackwater.runtime.plan.slot_plan import slot_plan
from slackwater.runtime.recovery.attempts import Again
from slackwater.runtime.recovery.checkpoint import SlotPart, restore_part
from slackwater.runtime.schedule import (
    Egress,
    Grant,
    LoggedSlot,
    Send,
    SinkPort,
    Slice,
    Slot,
    SlotResults,
    carry_out,
    make_slot,
    rest_of,
)
from slackwater.runtime.schedule.results import SinkAction
from slackwater.runtime.simulate.faults import Fault, UserStops, check_faults
from slackwater.runtime.simulate.life import SimulatedLife
from slackwater.runtime.simulate.marks import DELAY_NS, SimulatedMarks
from slackwater.runtime.simulate.models import CostModel, LinkModel, MeasuredCost, TunerModel
from slackwater.runtime.simulate.passed_results import Egressed, PassedResults
from slackwater.runtime.simulate.recovery import Checkpoints, SimulatedRecovery
from slackwater.runtime.simulate.replacing import SimulatedReplacing, relocated
from slackwater.runtime.simulate.ways import Ways

if TYPE_CHECKING:
    from slackwater.runtime.simulate.tuner import SimulatedTuner
    from slackwater.runtime.tune import MakeEstimator

GIVE_UP_POLLS = 10_000
"""Polls in a row, without other work, of a source that has no rows and no time for its next one;
then the run is stalled."""


class Simulation:
    """Run of a plan in virtual time.

    Args:
        plan: every stage in a slot.
        egress: its sinks; or a function that takes results, if no more is to be done.
        seed: seed of random draws.
        cost: model of the costs of work.
        link: delays and capacities of links.
        start_ns: virtual time of the start.
        policy: sets the rules of the plan's tuned gates; of several the first prevails; None
            if rules stay.
        tuner: model of the policy's distance and deaths; None if samples take no time.
        estimator: maker of the live estimate of a plan that has a prediction; None if a run has
            no estimate.
        faults: faults and their times.
        checkpoints: when the job takes checkpoints, from which it recovers; None if a failure ends
            it. Then `egress` is asked again in each attempt what it has.
        weighs: whether reports have the bytes that each channel carried, and `keyed` has rows.

    Attributes:
        replacing: moves stages during the run; add moves before it.
        requested_stop: ends the run as stopped by its user.
        strikes: moments at which faults hit a slot that worked: at a "mark", "commit", "move",
            "recovery", or at "work" between them.
    """

    def __init__(  # noqa: PLR0913 - each by name
        self,
        plan: Plan,
        *,
        egress: Egressed | SinkPort,
        seed: int = 0,
        cost: CostModel | MeasuredCost | None = None,
        link: LinkModel | None = None,
        start_ns: int = 0,
        policy: Decider | Sequence[Decider] | None = None,
        tuner: TunerModel | None = None,
        estimator: MakeEstimator | None = None,
        faults: Sequence[Fault] = (),
        checkpoints: Checkpoints | None = None,
        weighs: bool = False,
    ) -> None:
        check_faults(plan, tuple(faults))
        self._first_plan = self._plan = plan
        self._seed, self._weighs, self._faults = seed, weighs, faults
        self._holds = frozenset[str]() if checkpoints is None else checkpoints.holds
        self._sinks = egress if not callable(egress) else PassedResults(egress)
        self._rng = np.random.default_rng(seed)
        self._cost, self._link = (cost or CostModel()).for_stages(plan.stages), link or LinkModel()
        self.now_ns = self._start_ns = start_ns
        is_sampled = policy is not None or plan.is_sampled
        self._sampled_ns = plan.interval_ns if is_sampled else None
        self._slots = {name: self._new_slot(name) for name in plan.slot_names}
        self._results = {name: self._new_results(name) for name in plan.slot_names}
        self._tuner: SimulatedTuner | None = None
        if is_sampled:
            deciders = [policy] if not isinstance(policy, Sequence) else policy
            from slackwater.runtime.simulate.tuner import SimulatedTuner  # noqa: PLC0415 (30 ms, for some)

            self._tuner = SimulatedTuner(
                FlowGraph.of(plan),
                [decider for decider in deciders if decider is not None],
                self,
                expected=plan.expected,
                estimator=estimator,
                model=tuner or TunerModel(),
                rng=np.random.default_rng([seed, 2]),  # its own, so that other draws stay equal
            )
        self._events: list[tuple[int, int, int | None, Callable[[], None]]] = []
        self._order, self._attempt = 0, 0  # what is scheduled in an attempt ends with it
        self._life_rng = np.random.default_rng([seed, 1])
        self._from: int | None = None  # number of the checkpoint that the attempt goes on from
        self._is_over = self._is_between = False  # between two attempts
        self._late_faults: list[Fault] = []  # of slots that are yet to begin
        self.slices = 0
        self.strikes: list[str] = []
        self._fresh()
        self.replacing, self.requested_stop = SimulatedReplacing(plan, self), RequestedStop()
        delay_ns = DELAY_NS if checkpoints is None else checkpoints.delay_ns
        marks_rng = np.random.default_rng([seed, 3])
        self.marks = SimulatedMarks(self, marks_rng, delay_ns=delay_ns)
        self.recovery = None if checkpoints is None else SimulatedRecovery(checkpoints, self)

    def _fresh(self) -> None:
        """Make what each attempt has of its own, beside slots and results."""
        self._busy: set[str] = set()
        self._wakes: dict[str, int] = {}  # {slot: time of its pending wake}
        self._ways = Ways(self._plan, self._link, self, self._rng)
        self._idle_polls = 0
        self._carried: set[str] = set()  # channels whose end of stream has arrived
        self._life = SimulatedLife(self._plan, self, close=self._end_sinks, rng=self._life_rng)

    def _new_slot(self, name: str) -> Slot:
        part = replace(
            slot_plan(self._plan, name), interval_ns=self._sampled_ns, weighs=self._weighs
        )
        return make_slot(part, start_ns=self._start_ns)

    @property
    def samples(self) -> list[StageSample]:
        """Samples of all stages and intervals; empty without a policy."""
        return [] if self._tuner is None else self._tuner.samples

    @property
    def settings(self) -> list[tuple[int, SetRelease]]:
        """Rules wanted by the policy: (interval, rule)."""
        return [] if self._tuner is None else self._tuner.settings

    @property
    def keyed(self) -> list[tuple[Channel, Batch]]:
        """Rows sent to replicas, if the run weighs."""
        return [sent for slot in self._slots.values() for sent in slot.keyed]

    def restart(self, carry: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Replace every slot by a new one, from its snapshot passed through `carry`."""
        for name, old in self._slots.items():
            state = carry(old.snapshot())
            old.close()
            self._slots[name] = self._new_slot(name)
            self._slots[name].restore(state)
            snapshot = carry(save(self._results[name]))
            self._results[name] = self._new_results(name)
            restore(self._results[name], snapshot)

    def _new_results(self, slot: str) -> SlotResults:
        return SlotResults.of(replace(slot_plan(self._plan, slot), holds=self._holds))

    def run(self, *, until_ns: int | None = None) -> JobReport:
        """Run to the end, or until a virtual time, and report. With checkpoints, it recovers.

        Raises:
            SlackwaterError: the cause of a failed job.
            JobStopped: no stage can go on; says which waits for which.
        """
        began_ns = self.now_ns
        committed = self._sinks.begin()
        for fault in self._faults:
            self.keep_at(began_ns + fault.at_ns, partial(self._strike, fault))
        self.replacing.begin()
        try:
            self._begin(committed)
            while self._events and not self._is_over:
                at_ns, _, attempt, happen = self._events[0]
                if self.recovery is not None and (self.recovery.due_ns or at_ns) < at_ns:
                    self._tick(self.recovery)
                    continue
                heapq.heappop(self._events)
                if attempt not in (None, self._attempt):
                    continue
                if until_ns is not None and at_ns > until_ns:
                    break
                self.now_ns = max(self.now_ns, at_ns)
                self.requested_stop.tell(self._stop)
                happen()
                self._look()
            if not self._is_over and until_ns is None:
                raise JobStopped(why_stalled(self._plan.flow, self._slots.values(), self.now_ns))
        finally:
            for slot in self._slots.values():
                slot.close()
        if self._life.error is not None:
            raise self._life.error
        return self.report()

    def report(self, *, error: str | None = None) -> JobReport:
        """Return the report so far; `error` is the cause of a failure."""
        stages, channels = [], []
        for name, slot in self._slots.items():
            own, carried = slot.reports(self.now_ns)
            for stage in own:
                stage.slot, stage.node = name, self._plan.places[name].node
            stages += own
            channels += carried
        reports = [sink for results in self._results.values() for sink in results.reports()]
        sinks = {sink.name: sink for sink in reports}
        for sink in sinks.values():
            sink.node = self._plan.places[self._plan.slots[sink.name]].node
        if self._life.error is not None and not self._is_between:
            error = str(self._life.error)
        status = "running" if self._is_between else self._life.machine.status
        last_ns = self._life.ended_ns if self._is_over else None
        tuner = self._tuner
        report = job_report(
            self._plan,
            state=status if error is None else "failed",
            error=error,
            host="simulator",
            nodes=self._plan.nodes,
            elapsed_s=((self.now_ns if last_ns is None else last_ns) - self._start_ns) / 1e9,
            stages=stages,
            channels=channels,
            sinks=[sinks[s.name] for s in self._plan.stages if s.kind == "sink"],
            notes=[
                f"simulated with seed {self._seed}: times are virtual, costs and delays those of "
                "the models",
                *[note for slot in self._slots.values() for note in slot.close_problems],
            ],
            tuning=None if tuner is None else tuner.report(),
            prediction=None
            if self._tuner is None
            else self._tuner.prediction(is_last=self._is_over),
        )
        report.replaced = list(self.replacing.done)
        if self.recovery is not None:
            report.recoveries = list(self.recovery.attempts.recoveries)
        if report.state == "failed":
            report.job_events, report.slot_events = self._life.machine.heard, self._life.given
        return report

    # -- attempts --------------------------------------------------------------------------------

    def _begin(self, committed: Mapping[str, int]) -> None:
        """Begin an attempt: sinks get what was held for them, and slots work."""
        self._life.begin()
        for name, results in self._results.items():
            try:
                results.resumes(committed, recovers=self._attempt > 0)
                if self._from is not None:
                    self._do(name, results.complete(self._from))
            except SlackwaterError as problem:
                self._life.fail(name, problem)
        if self.recovery is not None:
            self.recovery.begin()
        if self._tuner is not None and not self._attempt:
            self._tuner.begin()
        for name in self._slots:
            self._try(name)
        self._look()

    def _look(self) -> None:
        """End the job if its attempt has ended, unless another is to follow."""
        life = self._life
        if self._is_over or self._is_between or not life.machine.is_over:
            return
        answer: Again | Cause | None = None
        if self.recovery is not None and (cause := life.machine.cause) is not None:
            failed_ns = life.machine.failed_ns
            assert failed_ns is not None, "the attempt has failed"
            answer = self.recovery.failed(cause, failed_ns)
        if isinstance(answer, Again):
            self._attempt += 1
            self._is_between = True
            self.replacing.fail()
            self.at(self.now_ns + answer.after_ns, partial(self._go_again, answer.checkpoint))
            return
        if answer is not None and answer != life.machine.cause:
            life.error = answer.error(life.machine.heard, life.given)
        self._is_over = True

    def _tick(self, recovery: SimulatedRecovery) -> None:
        assert recovery.due_ns is not None, "a checkpoint is due"
        self.now_ns = max(self.now_ns, recovery.due_ns)
        recovery.tick()

    def _go_again(self, number: int | None) -> None:
        """Begin another attempt, in new slots, from a checkpoint or from the start."""
        assert self.recovery is not None, "else a failure ends the job"
        restored = None if number is None else self.marks.taken[number]
        self._plan = self._first_plan if restored is None else restored.plan
        for slot in self._slots.values():
            slot.close()
        self._slots = {name: self._new_slot(name) for name in self._plan.slot_names}
        self._results = {name: self._new_results(name) for name in self._plan.slot_names}
        self._fresh()
        self.marks.begin_again()
        self._from, self._is_between = None, False
        if restored is not None:
            self.go_on_from(restored.parts, self.now_ns)
        if self._tuner is not None:
            self._tuner.moved(FlowGraph.of(self._plan))
        self.replacing.go_on(self._plan)
        self._begin(self._sinks.begin())
        self.recovery.attempts.works(self.now_ns)
        faults, self._late_faults = self._late_faults, []
        for fault in faults:
            self._hit(fault, "recovery")

    def _strike(self, fault: Fault) -> None:
        if isinstance(fault, UserStops):
            self._stop()
        elif self._is_between:
            self._late_faults.append(fault)
        else:
            self._hit(fault, self._moment)

    @property
    def _moment(self) -> str:
        if self.replacing.is_moving:
            return "move"
        if self.marks.is_under_way:
            return "commit" if self.marks.is_complete else "mark"
        return "work"

    def _hit(self, fault: Fault, moment: str) -> None:
        slot = getattr(fault, "slot", getattr(fault, "node", None))
        if slot is not None and slot not in self._slots:
            return  # stages have moved, and no such slot is left
        if slot is None or self._life.may_work(slot):
            self.strikes.append(moment)
        self._life.strike(fault)

    def _stop(self) -> None:
        """Stop the job, as its user says."""
        if self.recovery is None:
            self.stop_now()
        elif self._is_between:  # what has failed stays so
            self._is_over, self._is_between = True, False
        else:
            self.recovery.stop()

    def stop_now(self) -> None:
        """Stop the job without a further checkpoint."""
        self._life.tell(StopRequested())

    def is_busy(self, slot: str) -> bool:
        """Whether a slot is in the middle of a slice."""
        return slot in self._busy

    def logs(self) -> dict[str, dict[str, Any]]:
        """Return the stimulus log of each slot; empty without `Limits.log`."""
        slots = self._slots.items()
        return {name: slot.log() for name, slot in slots if isinstance(slot, LoggedSlot)}

    def recent(self, slot: str) -> list[str]:
        """Return the last stimuli of a slot as text."""
        return self._slots[slot].recent()

    def has_carried_all(self, channel: Channel) -> bool:
        """Whether the end of a channel's stream has been delivered."""
        return channel.name in self._carried

    def keep_at(self, at_ns: int, happen: Callable[[], None]) -> None:
        """Schedule a call at a virtual time, in this attempt or in a later one."""
        self._order += 1
        heapq.heappush(self._events, (at_ns, self._order, None, happen))

    def at(self, at_ns: int, happen: Callable[[], None]) -> None:
        """Schedule a call in this attempt, after earlier calls for that time."""
        self._order += 1
        heapq.heappush(self._events, (at_ns, self._order, self._attempt, happen))

    def _try(self, name: str) -> None:
        """Run a free slot's next slice, or wake it when a source is due."""
        if name in self._busy or not self._life.may_work(name) or self.replacing.holds(name):
            return
        slot = self._slots[name]
        while True:
            try:
                if self._results[name].due_ns is not None:  # checked before each slice
                    self._do(name, self._results[name].due(self.now_ns))
                self._cost.begin()
                self.requested_stop.is_stepping = True
                done = slot.step(self.now_ns)
                self.requested_stop.is_stepping = False
            except (SlackwaterError, CtrlC) as problem:
                self.requested_stop.broke(self._life, name, problem)
                return
            if done is None:
                self._sleep(name, slot)
                return
            if not done.has_read:
                self._idle_polls = 0
                self.slices += 1
            took_ns = self._cost.slice_ns(done, self._rng, now_ns=self.now_ns)
            slot.charge(done, took_ns)
            if took_ns:  # reading takes no time, unless it is measured
                break
        self._busy.add(name)
        self.at(self.now_ns + took_ns, lambda: self._complete(name, done))

    def _sleep(self, name: str, slot: Slot) -> None:
        if slot.is_finished:
            self._life.rest(name, is_finished=not self._results[name].awaits)
            self._look_at_end(name)
            return
        rest = rest_of(slot, self._results[name], self.now_ns, sinks_ns=lambda: self.now_ns)
        self._idle_polls += rest.is_guess
        if self._idle_polls > GIVE_UP_POLLS:
            raise JobStopped(why_stalled(self._plan.flow, self._slots.values(), self.now_ns))
        wake_ns = rest.until_ns
        if wake_ns is None:
            return  # blocked on credit, which needs no wake
        pending = self._wakes.get(name)
        if pending is None or pending > wake_ns or pending <= self.now_ns:
            self._wakes[name] = wake_ns
            self.at(wake_ns, lambda: self._try(name))

    def _complete(self, name: str, done: Slice) -> None:
        self._busy.discard(name)
        if not self._life.may_work(name):  # the slot is gone, and its slice with it
            self.replacing.look()
            return
        try:
            for action in done.actions:
                self._perform(action)
        except SlackwaterError as problem:  # raised by a sink
            self._life.fail(name, problem)
            return
        self.marks.slice_over(name)
        self._life.rest(name, is_finished=self._has_finished(name))
        self.replacing.look()
        self._try(name)

    def _has_finished(self, name: str) -> bool:
        return self._slots[name].is_finished and not self._results[name].awaits

    def _look_at_end(self, name: str) -> None:
        if self.recovery is not None and self._results[name].awaits:
            self.recovery.look()

    def _perform(self, action: Any) -> None:
        match action:
            case Send(channel, message):
                target = self._plan.slots[channel.target]
                message = self._ways.through_wire(channel, message)
                self.replacing.left(channel.name)
                self._ways.send(channel, message, self._delivery(target, channel.name, message))
            case Grant(channel, rows):
                source = self._plan.slots[channel.source]
                self.replacing.left(channel.name)
                self._ways.give_back(channel, lambda: self._credit(source, channel.name, rows))
            case Egress(stage):
                slot = self._plan.slots[stage]
                self._do(slot, self._results[slot].leaves(action))

    def _do(self, slot: str, actions: list[SinkAction]) -> str:
        return carry_out(actions, self._results[slot], self._sinks, lambda: self.now_ns)

    def _end_sinks(self, slot: str, state: str, failure: str | None) -> str:
        return self._do(slot, self._results[slot].ends(state, failure))

    def abandon(self, error: str) -> None:
        """End the sinks of slots that hang, or of a run that broke off."""
        for slot in self._slots:
            self._end_sinks(slot, "failed", error)

    def _delivery(self, target: str, channel: str, message: Message) -> Callable[[], None]:
        sent_ns = self.now_ns

        def deliver() -> None:
            if not self._life.may_work(target):
                self.replacing.arrived(channel)
                return  # the message is lost with its reader
            if message.progress.is_end:
                self._carried.add(channel)
            self.marks.between_slices(target, partial(give, self.now_ns), waits=False)
            self._try(target)

        def give(came_ns: int) -> None:
            self._slots[target].deliver(channel, message, came_ns, link_ns=came_ns - sent_ns)
            self.replacing.arrived(channel)
            self.marks.look(target)

        return deliver

    def _credit(self, slot: str, channel: str, rows: int) -> None:
        self._slots[slot].credit(channel, rows)
        self.replacing.arrived(channel)
        self._try(slot)

    # -- for checkpoints -------------------------------------------------------------------------

    def slot(self, name: str) -> tuple[Slot, SlotResults]:
        """Return the machines of a slot."""
        return self._slots[name], self._results[name]

    @property
    def plan(self) -> Plan:
        """Present plan of the job."""
        return self._plan

    @property
    def is_ending(self) -> bool:
        """Whether the attempt is ending, or has ended."""
        return self._life.machine.is_ending

    @property
    def awaits_checkpoint(self) -> bool:
        """Whether all slots that live are finished, and a sink of one holds rows."""
        living = [name for name in self._slots if self._life.may_work(name)]
        return all(self._slots[name].is_finished for name in living) and any(
            self._results[name].awaits for name in living
        )

    def may_cut(self, slot: str) -> bool:
        """Whether a slot works, or has ended well."""
        return self._life.may_work(slot) or self._life.has_ended(slot)

    def checkpoint_is_complete(self, number: int) -> None:
        """Take note that a checkpoint is complete."""
        if self.recovery is not None:
            self.recovery.complete(number)

    def release(self, slot: str, number: int) -> None:
        """Tell a slot's inputs of a complete checkpoint; let its sinks have what that contains."""
        if not self._life.may_work(slot):
            return
        try:
            self._slots[slot].complete(number)  # inputs first, as on Ray
            self._do(slot, self._results[slot].complete(number))
        except SlackwaterError as problem:
            self._life.fail(slot, problem)
            return
        self.at(self.now_ns, partial(self._try, slot))  # not here: a slice may be at its end

    def all_released(self, number: int) -> None:
        """Take note that all slots have released what a checkpoint contains."""
        if self.recovery is not None:
            self.recovery.released(number)
            self.recovery.look()

    def send_mark(self, channel: Channel, arrive: Callable[[], None]) -> None:
        """Carry a mark on a channel, after all that was sent there."""
        self.replacing.left(channel.name)

        def came() -> None:
            arrive()
            self.replacing.arrived(channel.name)

        self._ways.send_mark(channel, self.now_ns, came)

    def go_on_from(self, parts: Mapping[str, SlotPart], at_ns: int) -> None:
        """Let all slots go on from a checkpoint, before the run begins.

        Args:
            parts: parts of the checkpoint, by slot.
            at_ns: virtual time at which they go on.
        """
        self.now_ns = at_ns
        for name, part in parts.items():
            restore_part(part, *self.slot(name), self.now_ns)
            self._from = part.number
            self._carried.update(part.state["stream"]["ended"])

    # -- for the tuner ---------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """Number of scheduled calls."""
        return len(self._events)

    def answers(self, slot: str) -> bool:
        """Whether a slot answers questions and commands."""
        return slot in self._slots and self._life.answers(slot)

    def samples_of(self, slot: str) -> list[StageSample]:
        """Return each sample of a slot's past intervals once."""
        return self._slots[slot].samples(self.now_ns)

    def apply(self, slot: str, command: Command, number: tuple[int, int]) -> None:
        """Apply a command to a slot; its stage may have moved since it was sent."""
        slot = self._plan.slots.get(command.subject.name, slot)
        self._slots[slot].apply(command, number=number)
        self._try(slot)

    # -- for re-placements -------------------------------------------------------------------------

    def why_still(self, slot: str) -> str | None:
        """Return why a slot no longer works; None if it works."""
        return self._life.why_still(slot)

    def has_ended(self, slot: str) -> bool:
        """Whether a slot has ended, with all its stages finished."""
        return self._life.has_ended(slot)

    def relocate(self, relocation: Relocation) -> int:
        """Move stages between slots that hold still; return the bytes of state moved."""
        self._plan = relocation.new
        size, finished = relocated(
            relocation, self._slots, self._results, self._new_slot, self._new_results
        )
        self._carried |= finished
        self._life.moved(relocation.new)
        self.marks.give_up()
        self._ways.moved(relocation.new)
        if self._tuner is not None:
            self._tuner.moved(FlowGraph.of(relocation.new))
        return size

    def wake(self, slots: Sequence[str]) -> None:
        """Wake slots."""
        for name in slots:
            if name in self._slots:  # else a new slot that was not made
                self._try(name)


def why_stalled(flow: str, slots: Iterable[Slot], now_ns: int) -> str:
    """Return why a flow's run in these slots cannot go on, with a hint."""
    waits = [
        f"{stage.name} waits for {', '.join(stage.waiting_for)}"
        for slot in slots
        for stage in slot.reports(now_ns)[0]
        if stage.waiting_for
    ]
    return (
        f"flow {flow!r} cannot go on: no source has anything more and none has "
        f"ended ({'; '.join(waits) or 'no gate waits'}); let the sources end, or stop the job: "
        "submit(flow, faults=[sw.testing.UserStops(at_ns=5_000_000_000)])"
    )


class RequestedStop:
    """Remembers a request to stop until the run looks; safe in signal handlers.

    Attributes:
        is_stepping: whether a slot runs its `step` now, and no sink writes.
    """

    def __init__(self) -> None:
        self.is_stepping = self._is_requested = self._has_broken = False

    def ask(self) -> None:
        """Stop the job, once the current slice is over."""
        self._is_requested = True

    def interrupt(self) -> bool:
        """Stop the job; return whether to interrupt a step's user code, which runs now.

        A sink is not interrupted: readers see whole parts of its output.
        """
        self.ask()
        self._has_broken = self.is_stepping and RUNNING.get() is not None
        return self._has_broken

    def tell(self, stop: Callable[[], None]) -> None:
        """Call `stop` if a stop was asked for."""
        if self._is_requested:
            self._is_requested = self._has_broken = False
            stop()

    def broke(self, life: SimulatedLife, slot: str, problem: BaseException) -> None:
        """End a slot whose slice broke off: as failed, or, if interrupted, as stopped.

        Raises:
            BaseException: `problem` is not an error of ours, and the slice was not interrupted.
        """
        if self._has_broken:  # user code may have turned the interrupt into any error
            self._has_broken = False
            self.tell(partial(life.tell, StopRequested()))
            life.leave_slice(slot)
        elif isinstance(problem, SlackwaterError):
            life.fail(slot, problem)
        else:
            raise problem
        self.is_stepping = False
