"""Run one job on a Ray cluster: its slots are actors on their nodes.

```
identify ─▶ bind ─▶ clocks ─▶ connect ─▶ start ─▶ JobCarrier, to its end: results are fetched,
                                                  actors end, and CPUs are free
```

This file starts a job, and reports on it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa
import ray
from ray.exceptions import RayError

from slackwater.actors.jobs.carrier import JobCarrier, home_nodes
from slackwater.actors.jobs.ray_errors import take_errors, unwrapped_ray_error
from slackwater.actors.jobs.replacing import Replacing, RunningJob
from slackwater.actors.jobs.slot_actors import (
    JobClock,
    answering,
    answers_to,
    ask_each,
    begin_again,
    end_actors,
    make_actors,
    set_clocks,
)
from slackwater.actors.nodes.cluster_monitor import own_cluster_monitor
from slackwater.actors.nodes.host_monitor import GOING_ON_S, HostMonitor
from slackwater.actors.nodes.placement import NodeInfo, check_room, list_nodes
from slackwater.actors.sinks.run_fingerprints import sink_runs, slots_with_inputs
from slackwater.actors.slot.cutting import SavedPart, WrittenPart
from slackwater.actors.slot.report import SlotIdentity, put_together
from slackwater.actors.tuning.supervisor import TunerSupervisor
from slackwater.actors.wire.channel import ChannelKeys
from slackwater.runtime.errors import ClusterError, JobStopped, SlackwaterError
from slackwater.runtime.life import Cause
from slackwater.runtime.measure.replaced import Replaced
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.measure.tuning import TuningReport
from slackwater.runtime.placement.moved import moved_plan
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.slots import SlotPlace, slots_of_nodes
from slackwater.runtime.sinks.fingerprint import SinkRun

START_TIMEOUT_S = 60.0
PART_S = 90.0
"""Time for all slots to write their parts of a checkpoint."""
WRITERS_S = 10.0
"""Time for slots that were ended to write no more."""
LOOK_S = 0.1
"""Time between two looks at whether the job still runs, while they do."""
LEAD_NS = 300_000_000
"""Sources begin this long after the order to start. By then every slot has the order, has met its
peers, and has opened its inputs. So none of that delays the first events."""


class Before(NamedTuple):
    """State that an attempt of a job takes from earlier ones.

    Attributes:
        actors: actors of slots that are alive and may be used again, by slot.
        parts: part of the checkpoint to go on from, by slot; empty if the job was just submitted.
        start_ns: start of the sources, by the reference's clock.
        clock: clock of the attempt before; None in the first.
        runs: {sink: run that it wrote for}; empty if the job was just submitted.
        hosts_have_answered: whether all hosts have answered a moment ago.
        lives_on: id of a job whose processes do not end with this one; None if they do.
    """

    actors: Mapping[str, Any] = MappingProxyType({})
    parts: Mapping[str, SavedPart] = MappingProxyType({})
    start_ns: int | None = None
    clock: JobClock | None = None
    runs: Mapping[str, SinkRun] = MappingProxyType({})
    hosts_have_answered: bool = False
    lives_on: str | None = None


class RayJob:
    """A submitted flow: `start` it. From then on any thread may use it.

    Properties return what was last seen; `wait` and `report` ask.

    Args:
        plan: every stage in a slot, with the job's settings.
        nodes: {slot: name of its node}.
        notes: notes on these nodes, for the report.
        folder: start of sinks' relative paths; this process's working folder if None.
        clock_shifts: shifts for tests, {node: `shift` of its slots' `SlotClock`}.
        relays_output: whether this process prints what users' functions print in the slots.
        job_id: name of the job in locks and manifests of its output.
        before: state of earlier attempts, of a job that goes on after a failure; None if a failure
            ends it.

    Attributes:
        pids: {slot: process id of its worker, on its node}; empty before the start.
        nodes: {slot: its node}, of slots in use, or that were.
        runs: {sink: run that it writes for}; empty before the start.
        tuner: supervisor of its tuner.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        nodes: Mapping[str, NodeInfo],
        notes: Sequence[str] = (),
        folder: str | None = None,
        clock_shifts: Mapping[str, int | Callable[[], int]] | None = None,
        relays_output: bool = False,
        job_id: str | None = None,
        before: Before | None = None,
    ) -> None:
        self._job_id = job_id or plan.flow
        self.pids: dict[str, int] = {}
        self.start_ns, self.clock = 0, before.clock if before else None
        self.runs: Mapping[str, SinkRun] = {}
        self._unwritten: list[Any] = []  # calls of slots that were not waited for
        self._change_lock = threading.Lock()  # moves and checkpoints
        self._plan, self._homes = plan, home_nodes(nodes)
        self.nodes = dict(nodes)
        self._before, self._may_go_on = before or Before(), before is not None
        self._hosts = HostMonitor(
            nodes.values(),
            every_s=GOING_ON_S if self._may_go_on else None,
            hosts_have_answered=self._before.hosts_have_answered,
        )
        self._cluster_monitor = own_cluster_monitor()
        self.tuner = TunerSupervisor(plan, folder=folder)
        self._notes = list(notes)
        self._settings: dict[str, Any] = {
            "shifts": clock_shifts or {},
            "keys": ChannelKeys.generate(),
            "folder": os.getcwd() if folder is None else folder,
        }
        self._make = partial(make_actors, lives_on=self._before.lives_on)
        self._replacing: Replacing | None = None
        self._warm: dict[str, Any] = {}  # actors that live, of an attempt that did not start
        warm = self._before.actors
        made = self._make(
            plan, {slot: node for slot, node in nodes.items() if slot not in warm}, **self._settings
        )
        self._actors = {slot: warm.get(slot) or made[slot] for slot in nodes}
        self._begun = begin_again(plan, nodes, warm, **self._settings)
        self._carrier = JobCarrier(
            plan,
            nodes,
            self._actors,
            cluster_monitor=self._cluster_monitor,
            hosts=self._hosts,
            tuner=self.tuner,
            relays_output=relays_output,
            may_go_on=self._may_go_on,
        )

    def start(self) -> RayJob:
        """Start the slots and let the sources run; return this job.

        Raises:
            SlackwaterError: the start failed (a sink that cannot be opened, too little room, a
                worker that died). No actor is left then, unless another attempt may use it.
        """
        try:
            self._hosts.begin()
            self._start()
        except SlackwaterError as problem:
            if self._may_go_on and ray.is_initialized():
                lost = self.lost_nodes
                there = {slot for slot, node in self.nodes.items() if node.node_id in lost}
                self._warm = answering(self._actors, lost=there)
                self._carrier.fail(problem)
            else:
                self.give_up(problem)
            raise
        except BaseException:  # Ctrl-C too: no actor may remain
            self.give_up()
            raise
        return self

    def _start(self) -> None:
        answers_to(
            self._begun,
            "again",
            plan=self._plan,
            homes=self._homes,
            cluster_monitor=self._cluster_monitor,
            timeout_s=START_TIMEOUT_S,
            hosts=self._hosts,
        )
        known = dict(zip(self._actors, self._on_all("identify"), strict=True))
        self.pids = {name: identity.pid for name, identity in known.items()}
        hosts = {stage: known[slot].host for stage, slot in self._plan.slots.items()}
        endpoints: dict[str, str] = {}
        for bound in self._on_all("bind", hosts):
            endpoints.update(bound)
        before = self._before
        self.clock = set_clocks(known, self._on_all, before=before.clock)
        # The times below are the reference's, not this process's.
        self.runs = before.runs
        if not self.runs:
            inputs = self._on_all("fingerprints", slots=slots_with_inputs(self._plan))
            self.runs = sink_runs(self._plan, self._job_id, inputs)
        own = {slot: (endpoints, self.runs, before.parts.get(slot)) for slot in self._actors}
        now_ns = max(self._ask_each(self._actors, "connect", own))
        start_ns, began_s = now_ns + LEAD_NS, time.monotonic() + LEAD_NS / 1e9
        if before.start_ns is not None:
            start_ns = before.start_ns
            began_s = time.monotonic() - (now_ns - start_ns) / 1e9
        self._on_all("start", start_ns)
        self.start_ns = start_ns
        self.tuner.start(self._actors)
        self._carrier.begin(start_ns=start_ns, began_s=began_s, pids=self.pids)
        self._replacing = Replacing(
            RunningJob(
                self._plan,
                self._actors,
                known,
                start_ns=start_ns,
                began_s=began_s,
                carrier=self._carrier,
                cluster_monitor=self._cluster_monitor,
                make=partial(self._new_actors, known),
            )
        )

    def replace(self, placement: Mapping[str, str]) -> Replaced:
        """Move stages to other slots, {stage: slot or node}; return the outcome.

        Stages that are not named stay. See `slackwater/jobs.py`.

        Raises:
            FlowError: an unknown stage, slot or node; a stage that cannot move; or the
                job has ended.
            ClusterError: no room for a new slot, or it could not be made.
        """
        assert self._replacing is not None, "the job has started"
        nodes = {node.name: node for node in list_nodes()}
        slots = slots_of_nodes({name: node.cores for name, node in nodes.items()})
        with self._change_lock:
            done = self._replacing.place(moved_plan(self.plan, placement, slots), nodes)
        self.pids |= {name: i.pid for name, i in self._replacing.job.known.items()}
        return done

    @property
    def plan(self) -> Plan:
        """The plan as it runs now: stages, each in a slot."""
        return self._plan if self._replacing is None else self._replacing.job.plan

    @property
    def places(self) -> Mapping[str, SlotPlace]:
        """{slot: its place}, of slots in use, or that were."""
        return self.plan.places

    def _new_actors(
        self, known: Mapping[str, SlotIdentity], plan: Plan, nodes: Mapping[str, NodeInfo]
    ) -> dict[str, tuple[Any, SlotIdentity]]:
        """Make actors for slots of a plan, {slot: node}, on the job's clock."""
        check_room({slot: node.node_id for slot, node in nodes.items()})
        self._homes.update(home_nodes(nodes))
        self.nodes.update(nodes)
        made = self._make(plan, nodes, **self._settings)
        actors = {**self._actors, **made}
        try:
            ask = partial(self._ask, actors, plan=plan)
            identities = dict(zip(made, ask("identify", slots=made), strict=True))
            set_clocks({**known, **identities}, ask, only=made)
        except BaseException:
            end_actors(made)
            raise
        return {slot: (made[slot], identities[slot]) for slot in made}

    def give_up(self, problem: SlackwaterError | None = None) -> None:
        """End the actors of a job that has not started, and their temp files.

        From any thread: a `start` that waits for them then raises.

        Args:
            problem: reason for it; None if the user ends it.
        """
        given_up = f"job {self._plan.flow!r} was given up before it had started"
        self._carrier.fail(problem or JobStopped(f"{given_up}; submit the flow again"))
        end_actors(self._actors, stopped=given_up)

    def _on_all(
        self,
        method: str,
        *args: Any,
        slots: Iterable[str] | None = None,
        timeout_s: float = START_TIMEOUT_S,
    ) -> list[Any]:
        return self._ask(
            self._actors,
            method,
            *args,
            slots=list(self._actors) if slots is None else slots,
            timeout_s=timeout_s,
        )

    def _ask(
        self,
        actors: Mapping[str, Any],
        method: str,
        *args: Any,
        slots: Iterable[str],
        plan: Plan | None = None,
        timeout_s: float = START_TIMEOUT_S,
    ) -> list[Any]:
        own = {name: actors[name] for name in slots}
        arguments = dict.fromkeys(own, args)
        return self._ask_each(own, method, arguments, plan=plan, timeout_s=timeout_s)

    def _ask_each(
        self,
        actors: Mapping[str, Any],
        method: str,
        arguments: Mapping[str, tuple[Any, ...]],
        *,
        plan: Plan | None = None,
        timeout_s: float = START_TIMEOUT_S,
    ) -> list[Any]:
        return ask_each(
            actors,
            method,
            arguments,
            plan=plan or self._plan,
            homes=self._homes,
            cluster_monitor=self._cluster_monitor,
            timeout_s=timeout_s,
            hosts=self._hosts if self._replacing is None else None,  # then its thread looks
        )

    # -- checkpoints -----------------------------------------------------------------------

    def write_parts(self, number: int, folder: str) -> dict[str, WrittenPart]:
        """Let all slots cut their streams and write their parts; return these, by slot.

        Raises:
            ClusterError: not all have written theirs in time, or the job is ending.
            SlackwaterError: a slot could not write its part.
        """
        with self._change_lock:
            calls = [a.call.remote("write_part", number, folder) for a in self._actors.values()]
            try:
                self._await_parts(calls, number)
                return dict(zip(self._actors, ray.get(calls), strict=True))
            except RayError as problem:
                take_errors(calls)
                raise unwrapped_ray_error(problem) from problem
            except ClusterError:
                take_errors(calls)
                raise

    def _await_parts(self, calls: list[Any], number: int) -> None:
        until_s = time.monotonic() + PART_S
        while waiting := ray.wait(calls, num_returns=len(calls), timeout=LOOK_S)[1]:
            if self._carrier.over.is_set() or time.monotonic() > until_s:
                self._unwritten = waiting
                raise ClusterError(
                    f"checkpoint {number} of job {self._plan.flow!r} is given up: {len(waiting)} "
                    "slots have not written their parts; the next is tried at its time"
                )

    def await_writers(self) -> None:
        """Wait until slots that were ended write no more, for some seconds."""
        if self._unwritten and ray.is_initialized():
            ray.wait(self._unwritten, num_returns=len(self._unwritten), timeout=WRITERS_S)

    def tell_complete(self, number: int) -> None:
        """Tell all slots that a checkpoint is complete, without a wait."""
        for actor in self._actors.values():
            actor.call.remote("complete", number)

    @property
    def warm_actors(self) -> dict[str, Any]:
        """Actors whose processes live, by slot: their slots have ended, or were not started."""
        ended = self._carrier.life.ended
        return self._warm or {slot: self._actors[slot] for slot in ended if slot in self._actors}

    def end_warm(self) -> None:
        """End the actors that stayed for another attempt: none will follow."""
        if ray.is_initialized():
            end_actors(self.warm_actors)

    @property
    def lost_nodes(self) -> frozenset[str]:
        """Ids of nodes whose hosts had fallen silent at the last look."""
        return frozenset(self._hosts.lost)

    @property
    def finished(self) -> int:
        """Number of slots that are done, while others run; 0 as the job ends."""
        life = self._carrier.life
        return len(life.ended) if life.living and not life.is_ending else 0

    @property
    def over(self) -> threading.Event:
        """Set when the job has ended, and its results are here."""
        return self._carrier.over

    @property
    def error(self) -> SlackwaterError | None:
        """Error of a job that has failed."""
        return self._carrier.error

    @property
    def failed_ns(self) -> int:
        """When its first failure was noticed, by the steady clock; now if none was."""
        return self._carrier.life.failed_ns or time.monotonic_ns()

    @property
    def cause(self) -> Cause | None:
        """Cause of its failure; None if it has not failed."""
        return self._carrier.life.cause

    # -- what it says ----------------------------------------------------------------------

    @property
    def status(self) -> str:
        """running, done, stopped or failed, as last seen."""
        carrier = self._carrier
        if not carrier.over.is_set():
            return "running"
        return "failed" if carrier.error is not None else carrier.life.status

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end, at most `timeout_s`; return whether the job has ended.

        Raises:
            SlackwaterError: the job failed; names the slot and the reason. All slots are stopped.
        """
        has_ended = self._carrier.over.wait(timeout_s)
        if has_ended and self._carrier.error is not None:
            raise self._carrier.error
        return has_ended

    def report(self) -> JobReport:
        """Ask the slots for their reports, for 3 s at most; return the job's report.

        One that has not begun asks none.
        """
        if self._replacing is not None and not self._carrier.over.is_set():
            self._carrier.refresh()
        with self._carrier.lock:
            tuning = self.tuner.report(is_fresh=self._cluster_monitor.lost is None)
        return self._put_together(tuning)

    @property
    def has_reports(self) -> bool:
        """Whether all its slots have reported what they count."""
        reports, plan = self._carrier.reports, self.plan
        return all(
            slot in reports and reports[slot].stages
            for slot in plan.slot_names
            if plan.stages_of(slot)
        )

    @property
    def latest_report(self) -> JobReport:
        """The job's report as last heard, about a second old; asks no slot."""
        return self._put_together(self.tuner.report())

    def _put_together(self, tuning: TuningReport | None) -> JobReport:
        status, carrier = self.status, self._carrier  # first: later reads are not older
        plan = self.plan
        report = put_together(
            plan,
            [carrier.reports[name] for name in plan.slot_names if name in carrier.reports],
            state=status,
            elapsed_s=carrier.passed_s if carrier.elapsed_s is None else carrier.elapsed_s,
            error=carrier.error,
            notes=[*self._notes, *carrier.notes],
            tuning=tuning,
            prediction=self.tuner.prediction(),
        )
        if self._replacing is not None:
            report.replaced = list(self._replacing.job.done)
        if status == "failed":
            report.job_events, report.slot_events = carrier.life.heard, carrier.given
        return report

    def collected(self, sink: str) -> pa.Table:
        """Return the rows of a collect sink.

        Raises:
            WorkerDied: the rows died with their worker.
            ClusterError: the rows did not come within a minute.
        """
        with pa.ipc.open_stream(self.collected_stream(sink)) as stream:
            return stream.read_all()

    def collected_stream(self, sink: str) -> bytes:
        """Return the rows of a collect sink as an Arrow IPC stream."""
        carrier = self._carrier
        if not carrier.over.is_set():
            try:
                return carrier.results.fetch(sink)
            except SlackwaterError:
                if not carrier.life.is_ending:
                    raise
                carrier.over.wait()  # its slot ended meanwhile; kept rows are here
        return carrier.results.of(sink)

    @property
    def gathered(self) -> list[str]:
        """Collect sinks whose rows are here, once the job has ended."""
        return self._carrier.results.fetched

    def ask_to_stop(self) -> None:
        """Let the job end soon, without a wait; also one whose start is under way."""
        self._carrier.ask_to_stop()

    def stop(self) -> None:
        """End the job now; return when it has ended. The sinks publish all their rows.

        A slot that does not answer (a user's function that hangs) is killed after 10 s. If its host
        does not answer either, the slot is killed at once. A sink that cannot be finished fails the
        job, and so does a worker that dies before its end.
        """
        self._carrier.stop()
