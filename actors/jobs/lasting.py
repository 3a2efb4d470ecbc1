"""A job that comes back: attempts, each from the newest checkpoint of those before.

```
attempt 1 ─ checkpoint 1 ─ checkpoint 2 ─ a slot dies
                                │
attempt 2 from checkpoint 2 ◀───┘  processes that live are kept
```

`RayJob` is one attempt. `Attempts` decides what follows a failed one; this file carries it out.
"""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import ray
from ray.exceptions import RayError

from slackwater.actors.checkpoints.folder import (
    commit,
    keep_out_of_git,
    newest,
    next_number,
    prune,
    remove,
    remove_empty,
    remove_newer,
    rename,
    size,
    spool_size,
    take_lock,
)
from slackwater.actors.jobs.end_on_record import end_on_record
from slackwater.actors.jobs.job import Before, RayJob
from slackwater.actors.jobs.slot_actors import JobClock, NotInTime, end_actors
from slackwater.actors.jobs.spares import Spares
from slackwater.actors.nodes.host_monitor import answering as hosts_that_answer
from slackwater.actors.nodes.placement import NodeInfo, list_nodes, new_homes
from slackwater.actors.sinks.run_fingerprints import release
from slackwater.actors.slot.actor import WarmProcess
from slackwater.actors.slot.cutting import SavedPart
from slackwater.actors.tuning.supervisor import TunerSupervisor
from slackwater.runtime.errors import CheckpointError, JobStopped, SlackwaterError, kind_of
from slackwater.runtime.life import Cause
from slackwater.runtime.measure.checkpoints import CheckpointReport
from slackwater.runtime.measure.replaced import Replaced
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.placement.key_shares import key_groups_of, with_groups
from slackwater.runtime.plan.division import partitions_of_plan
from slackwater.runtime.plan.former_names import SAME_NAMES, FormerNames
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.slots import SlotPlace
from slackwater.runtime.plurals import agreeing, count_of
from slackwater.runtime.recovery.attempts import Again, Attempts
from slackwater.runtime.recovery.fingerprint import fingerprint_of
from slackwater.runtime.recovery.manifest import CheckpointFacts, CheckpointManifest
from slackwater.runtime.recovery.pace import Cost, Pace
from slackwater.runtime.schedule.cut import STAYING
from slackwater.runtime.schedule.slot import VERSION

__all__ = [
    "Checkpointing",
    "LastingJob",
    "Predecessor",
    "cause_of_start",
    "remove_if",
    "remove_left",
]

LEAST_S = 0.05
"""Least time from a checkpoint to the next one."""
EXIT_S = 0.1
"""Time for a killed process to end: Ray says that it has before it has."""
LOOK_S = 0.05
"""Time between two looks at whether a checkpoint is wanted before it is due."""
ROOM_S = 0.5
"""Time between two looks for nodes with room, for slots of a lost one."""
LAST_S = 30.0
"""Time for the last checkpoint, as a job is stopped."""


@dataclass(frozen=True)
class Checkpointing:
    """How a job takes checkpoints.

    Attributes:
        every_s: seconds from a checkpoint to the next one.
        folder: folder of the checkpoints, on a path that all nodes reach.
        renamed: steps that were renamed since the newest, {old: new}.
        is_by_default: whether the user has not named the folder: an empty one goes at the end.
    """

    every_s: float
    folder: str
    renamed: Mapping[str, str] = field(default_factory=dict)
    is_by_default: bool = False


class Predecessor(NamedTuple):
    """Coordinator that has ended, and what is known of its job for the next one.

    Attributes:
        cause: the end of that coordinator; None if the job had not started.
        age_ns: time since the start of the job.
        report: last report of the job; None if none is known.
        processes: living processes of the job, and where they are.
    """

    cause: Cause | None = None
    age_ns: int = 0
    report: JobReport | None = None
    processes: Sequence[tuple[Any, WarmProcess]] = ()


class _Newest(NamedTuple):
    """The newest complete checkpoint of this job.

    Attributes:
        number: number of the checkpoint.
        began_s: when it was begun, by the steady clock.
        took_s: seconds until it was complete.
        cut_s: longest time for which a slot's loop stood still for it.
        folder_bytes: size of all checkpoints.
    """

    number: int
    began_s: float
    took_s: float
    cut_s: float
    folder_bytes: int


class _Warm(NamedTuple):
    """Processes that live of what ran before an attempt.

    Attributes:
        actors: {slot: its Ray actor}.
        nodes: nodes of the slots, {slot: its node}.
        lost_nodes: ids of nodes that were lost a moment ago.
    """

    actors: Mapping[str, Any]
    nodes: Mapping[str, NodeInfo]
    lost_nodes: Collection[str] = ()


def cause_of_start(problem: SlackwaterError | RayError) -> Cause:
    """Return the cause of a failed start: silent slots count as dead."""
    if isinstance(problem, RayError | NotInTime):
        return Cause("WorkerDied", str(problem))
    return Cause(kind_of(problem), str(problem))


def remove_if(record_end: Callable[[], bool], folder: Path, flow: str) -> None:
    """Remove the checkpoints of a job that is done, once that is recorded.

    A later run then begins at the start.

    Args:
        record_end: records the end, and returns whether it could.
        folder: folder of the checkpoints, whose lock is ours.
        flow: name of the flow.

    Raises:
        CheckpointError: the system refuses.
    """
    if record_end():
        remove(folder, flow)


def remove_left(checkpoints: Checkpointing, *, job: str, flow: str) -> None:
    """Remove checkpoints that a job left as it was done.

    Its process ended before it had removed them.

    Args:
        checkpoints: settings of the checkpoints, with their folder.
        job: id of the job.
        flow: name of its flow.
    """
    folder = Path(checkpoints.folder)
    with suppress(CheckpointError):  # another job is there by now
        lock, _ = take_lock(folder, job=job, flow=flow, has_ended=end_on_record)
        try:
            remove(folder, flow)
        finally:
            lock.release()


class LastingJob:
    """A job with checkpoints. It is used as a `RayJob` is, from any thread.

    Args:
        plan: every stage in a slot, with the job's settings.
        nodes: {slot: name of its node}.
        checkpoints: how checkpoints are taken.
        lives_on: id of the job if its processes do not end with this one; None if they do.
        predecessor: coordinator that has ended; None if the job has just been submitted.
        record_end: records that the job is done, and returns whether it could. Only then do its
            checkpoints go: a kill before that must not let another process begin again.
        settings: settings of each attempt, as of `RayJob`.

    Attributes:
        goes_on_from: number of the checkpoint of an earlier run that it goes on from; None if it
            begins at its start.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        nodes: Mapping[str, NodeInfo],
        checkpoints: Checkpointing,
        job_id: str,
        lives_on: str | None = None,
        predecessor: Predecessor | None = None,
        record_end: Callable[[], bool] = lambda: True,
        **settings: Any,
    ) -> None:
        self._record_end = record_end
        self._every_s, self._folder = checkpoints.every_s, Path(checkpoints.folder)
        self._plan = replace(plan, has_checkpoints=True, spools_to=checkpoints.folder)
        self._removes_folder = checkpoints.is_by_default
        self._settings = {**settings, "job_id": job_id}
        self._nodes, self._lives_on = dict(nodes), lives_on
        self._spares = Spares(lives_on)
        self._facts = CheckpointFacts(
            flow=plan.flow,
            job=job_id,
            at_ns=0,
            fingerprint=fingerprint_of(plan),
            key_groups=key_groups_of(plan),
            partitions=partitions_of_plan(plan),
            release=release(),
        )
        self._pace = Pace(round(self._every_s * NS_PER_SECOND))
        self._completed_ns = 0  # when the last checkpoint was complete, by the steady clock
        self._known: dict[int, CheckpointManifest] = {}  # the newest complete checkpoints
        self._places_of: dict[int, tuple[Plan, dict[str, NodeInfo]]] = {}
        self.goes_on_from: int | None = None
        self._names = SAME_NAMES  # of the checkpoint of an earlier start
        self._number = 1  # of the next checkpoint
        self._checkpointing = threading.Condition()  # one checkpoint at a time; told of each
        self._is_wanted = threading.Event()
        self._start_ns = 0
        self._clock: JobClock | None = None  # of the last attempt that began
        self._before: JobReport | None = None  # last report of the attempts before
        self._newest: _Newest | None = None
        self._problem: str | None = None  # why the newest checkpoint is not complete
        self._is_unwanted = threading.Event()
        self._over = threading.Event()
        self._error: SlackwaterError | None = None
        self._lock, note = take_lock(
            self._folder, job=job_id, flow=plan.flow, has_ended=end_on_record
        )
        self._notes = [] if note is None else [note]
        if checkpoints.is_by_default:
            keep_out_of_git(self._folder)
        try:
            self._find_newest(checkpoints.renamed)
            now_ns = time.monotonic_ns()
            report = None if predecessor is None else predecessor.report
            self._attempts = Attempts(
                now_ns - (0 if predecessor is None else predecessor.age_ns),
                is_repeatable=not self._plan.held_sinks,
                checkpoints=tuple(sorted(self._known)),
                recoveries=() if report is None else report.recoveries,
            )
            warm = None if predecessor is None else self._take_over(predecessor, now_ns)
            self._attempt = self._attempt_from(self._attempts.checkpoint, warm)
        except BaseException:
            self._lock.release()
            raise

    @property
    def _interval_s(self) -> float:
        return self._pace.interval_ns / NS_PER_SECOND

    def _find_newest(self, renamed: Mapping[str, str]) -> None:
        """Find the newest checkpoint of an earlier run of the flow, if any is there."""
        known = newest(self._folder, self._facts, version=VERSION, renamed=renamed)
        problem = known.why_not(is_repeatable=not self._plan.held_sinks)
        if problem is not None:
            raise CheckpointError(problem)
        self._number = next_number(self._folder)
        self._notes += [refused.reason for refused in known.refused]
        if known.checkpoint is not None:
            self._names = FormerNames.of(self._plan, renamed)
            rename(self._folder, self._plan.flow, self._names.by_former_name)
            self._go_on_from(known.checkpoint)

    def _go_on_from(self, manifest: CheckpointManifest) -> None:
        """Let the first attempt begin at a checkpoint of an earlier run."""
        self.goes_on_from = manifest.number
        self._known[manifest.number] = manifest
        self._plan = with_groups(self._plan, self._names.by_name_now(manifest.facts.key_groups))
        self._facts = replace(self._facts, key_groups=key_groups_of(self._plan))
        self._settings["job_id"] = manifest.facts.job  # its outputs are of that job
        self._notes.append(
            f"goes on from checkpoint {manifest.number} of job {manifest.facts.job!r} in "
            f"{self._folder}; to begin at the start instead, remove that folder"
        )

    def _take_over(self, before: Predecessor, now_ns: int) -> _Warm:
        """Go on with a job that another coordinator looked after; return its processes."""
        self._before = before.report
        if before.cause is not None:
            self._attempts.takes_over(before.cause, now_ns)
        return _Warm(self._spares.take_over(before.processes, self._nodes), self._nodes)

    # -- attempts --------------------------------------------------------------------------

    def start(self) -> LastingJob:
        """Start the first attempt; see `RayJob.start`.

        Spares start with the slots: one that began after them would not be warm if a slot died in
        the first seconds.
        """
        try:
            self._spares.make(self._plan, self._nodes_in_use(self._attempt))
            self._begin()
        except BaseException:
            self._spares.close()
            self._lock.release()
            raise
        if self._attempts.recoveries:  # of a job that was taken over
            self._attempts.works(time.monotonic_ns())
        threading.Thread(target=self._live, name="checkpoints", daemon=True).start()
        return self

    def give_up(self) -> None:
        """End a job that has not started."""
        self._is_unwanted.set()
        self._attempt.give_up()
        self._spares.close()
        self._lock.release()

    def _live(self) -> None:
        try:
            self._see_it_through()
        except Exception as problem:  # a fault of ours must not look like a job that runs
            traceback.print_exc()
            self._error = SlackwaterError(f"the recovery of the job failed: {problem!r}")
            self._attempt.give_up(self._error)
        finally:
            if ray.is_initialized():
                self._spares.close()
            if self._error is not None:
                self._attempt.end_warm()
            with suppress(SlackwaterError):
                if self._error is None and self._attempt.status == "done":
                    self._attempt.await_writers()
                    remove_if(self._record_end, self._folder, self._facts.flow)
            self._lock.release()
            if self._removes_folder:
                remove_empty(self._folder)
            with self._checkpointing:
                self._over.set()
                self._checkpointing.notify_all()

    def _see_it_through(self) -> None:
        """See all attempts through."""
        while True:
            attempt = self._attempt
            self._take_checkpoints(attempt)
            if attempt.cause is None:
                self._error = attempt.error
                return
            decision = self._attempts.failed(attempt.cause, attempt.failed_ns)
            if attempt.has_reports:
                self._before = attempt.latest_report
            while isinstance(decision, Again):
                try:
                    self._go_on(decision)
                    break
                except (SlackwaterError, RayError) as problem:
                    decision = self._attempts.failed(cause_of_start(problem), time.monotonic_ns())
            else:
                self._error = attempt.error
                if decision.text != str(attempt.error):
                    self._error = decision.error([], [])
                return

    def _go_on(self, again: Again) -> None:
        """Start the next attempt."""
        before = self._attempt
        if self._is_unwanted.wait(again.after_ns / NS_PER_SECOND):
            raise JobStopped(
                f"job {self._plan.flow!r} was stopped while it recovered; submit the flow again, "
                "and it goes on from its newest checkpoint"
            )
        if again.checkpoint is not None and again.checkpoint < max(self._known):
            self._go_back_to(again.checkpoint)
        warm = _Warm(before.warm_actors, before.nodes, before.lost_nodes)
        self._attempt = self._attempt_from(again.checkpoint, warm)
        self._begin()
        self._attempts.works(time.monotonic_ns())

    def _go_back_to(self, number: int) -> None:
        """Give up newer checkpoints: outputs are cut to an older one."""
        remove_newer(self._folder, self._plan.flow, number)
        for own in (self._known, self._places_of):
            for newer in [n for n in own if n > number]:
                del own[newer]

    def _begin(self) -> None:
        self._attempt.start()
        self._start_ns, self._clock = self._attempt.start_ns, self._attempt.clock

    def _attempt_from(self, number: int | None, warm: _Warm | None = None) -> RayJob:
        """Return an attempt from a checkpoint; without a number from the start.

        Args:
            number: number of the checkpoint.
            warm: processes of what ran before; None if nothing did.
        """
        state, folder = Before(lives_on=self._lives_on), str(self._folder)
        if number in self._places_of:
            self._plan, self._nodes = self._places_of[number]
        if warm is not None:
            actors, lived = warm.actors, warm.nodes
            self._nodes = {slot: lived.get(slot, node) for slot, node in self._nodes.items()}
            self._nodes = self._homes(warm.lost_nodes)
            parts = {slot: SavedPart(folder, recovers=True) for slot in self._nodes}
            # Others are of slots that the checkpoint has not, or on hosts that were lost since.
            used = {s: own for s, own in actors.items() if self._nodes.get(s) is lived[s]}
            end_actors({slot: own for slot, own in actors.items() if slot not in used})
            used |= self._spares.take({s: n for s, n in self._nodes.items() if s not in used})
            start_ns = None if self._clock is None else self._start_ns
            state = state._replace(
                actors=used,
                parts=parts,
                start_ns=start_ns,
                clock=self._clock,
                hosts_have_answered=True,
            )
        if number is not None:
            known, facts = self._known[number], self._known[number].facts
            names = self._names if number == self.goes_on_from else SAME_NAMES
            parts = {
                slot: SavedPart(
                    folder,
                    known.parts_of(self._plan.stages_of(slot), names),
                    facts.granted,
                    names,
                    recovers=warm is not None,
                )
                for slot in self._nodes
            }
            runs = names.by_name_now(facts.runs)
            state = state._replace(parts=parts, start_ns=facts.start_ns, runs=runs)
        places = {
            slot: replace(place, node=self._nodes[slot].name)
            for slot, place in self._plan.places.items()
            if slot in self._nodes
        }
        self._plan = replace(self._plan, places={**self._plan.places, **places})
        return RayJob(self._plan, nodes=self._nodes, before=state, **self._settings)

    def _homes(self, lost_nodes: Collection[str]) -> dict[str, NodeInfo]:
        """Return {slot: its node}; slots of lost nodes go to others, once these have room.

        All these hosts have answered.

        Args:
            lost_nodes: nodes that were lost a moment ago; Ray may list them for half a minute.
        """
        while True:
            listed = [node for node in list_nodes() if node.node_id not in lost_nodes]
            nodes = {node.node_id: node for node in hosts_that_answer(listed)}
            lost_nodes = ()  # a host may be back by the next look
            lost = [slot for slot, node in self._nodes.items() if node.node_id not in nodes]
            moved = new_homes(lost, list(nodes.values()), warm=self._spares.nodes)
            self._attempts.lost({self._nodes[slot].name for slot in lost})
            if len(moved) == len(lost):
                self._attempts.waits(None)
                self._notes += [
                    f"slot {slot!r} goes on on node {node.name}, as node {self._nodes[slot].name} "
                    "is lost"
                    for slot, node in moved.items()
                ]
                return {**self._nodes, **moved}
            without = len(lost) - len(moved)
            self._attempts.waits(
                f"{count_of(without, 'slot')} of lost nodes {agreeing(without, 'waits', 'wait')} "
                "for a node with a free CPU; stop what holds CPUs, or start a node"
            )
            if self._is_unwanted.wait(ROOM_S):
                raise JobStopped(
                    f"job {self._plan.flow!r} was stopped while it waited for room; submit the "
                    "flow again, and it goes on from its newest checkpoint"
                )

    # -- checkpoints -----------------------------------------------------------------------

    def _take_checkpoints(self, attempt: RayJob) -> None:
        """Take checkpoints of an attempt until it is over."""
        due_s, finished = time.monotonic() + self._interval_s, 0
        while not attempt.over.is_set():
            self._keep_spares(attempt)
            self._wait(attempt, due_s, finished)
            finished = attempt.finished
            began_s = time.monotonic()
            with self._checkpointing:
                self._is_wanted.clear()
                self._try_to_take(attempt)
                self._checkpointing.notify_all()
            due_s = max(began_s + self._interval_s, time.monotonic() + LEAST_S)

    def _keep_spares(self, attempt: RayJob) -> None:
        """Have a spare on each node of an attempt, which watches the slots there."""
        plan, nodes = attempt.plan, self._nodes_in_use(attempt)
        self._spares.make(plan, nodes)
        self._spares.watch(attempt.pids, nodes, plan.limits.lost_ns / NS_PER_SECOND)

    def _nodes_in_use(self, attempt: RayJob) -> dict[str, NodeInfo]:
        """Return {slot: its node}, of slots with stages."""
        return {s: node for s, node in attempt.nodes.items() if attempt.plan.stages_of(s)}

    def _wait(self, attempt: RayJob, due_s: float, finished: int) -> None:
        """Wait until a checkpoint is due or wanted, or more slots have finished."""
        while not self._is_wanted.is_set() and attempt.finished <= finished:
            left_s = due_s - time.monotonic()
            if left_s <= 0 or attempt.over.wait(min(left_s, LOOK_S)):
                return

    def _try_to_take(self, attempt: RayJob) -> None:
        try:
            self._take(attempt)
            self._problem = None
        except (SlackwaterError, OSError) as problem:  # a lock that is gone is of the system
            if attempt.over.is_set():
                time.sleep(EXIT_S)  # slots that were killed as they wrote are gone by then
            else:
                self._problem = str(problem)

    def _take(self, attempt: RayJob) -> None:
        number, self._number, began_ns = self._number, self._number + 1, time.thread_time_ns()
        at_ns, began_s, plan = time.time_ns(), time.monotonic(), attempt.plan
        written = attempt.write_parts(number, str(self._folder))
        granted = {c: rows for own in written.values() for c, rows in own.granted.items()}
        facts = replace(
            self._facts,
            at_ns=at_ns,
            granted=granted,
            start_ns=attempt.start_ns,
            runs=attempt.runs,
        )
        used = {slot: node for slot, node in attempt.nodes.items() if plan.stages_of(slot)}
        entries = [own.entry for slot, own in written.items() if slot in used]
        self._lock.check()
        manifest = commit(self._folder, number, entries, facts)
        newer = sorted(self._known)[-(STAYING - 1) :]
        self._known = {**{n: self._known[n] for n in newer}, number: manifest}
        former_places = {n: self._places_of[n] for n in newer if n in self._places_of}
        self._places_of = {**former_places, number: (plan, used)}
        self._attempts.complete(number)
        attempt.tell_complete(number)
        took_s = time.monotonic() - began_s
        cut_s = max(own.cut_ns for own in written.values()) / NS_PER_SECOND
        prune(self._folder, self._facts.flow)
        self._newest = _Newest(number, began_s, took_s, cut_s, size(self._folder))
        now_ns = time.monotonic_ns()
        since_ns, self._completed_ns = now_ns - (self._completed_ns or now_ns), now_ns
        own_cost = Cost(time.thread_time_ns() - began_ns, since_ns, since_ns)
        self._pace.took({**{s: own.cost for s, own in written.items()}, "": own_cost})

    # -- what it says ----------------------------------------------------------------------

    @property
    def plan(self) -> Plan:
        """The plan as it runs now."""
        return self._attempt.plan

    @property
    def places(self) -> Mapping[str, SlotPlace]:
        """{slot: its place}, of slots in use, or that were."""
        return self._attempt.places

    @property
    def nodes(self) -> Mapping[str, NodeInfo]:
        """Node of each slot, by the slot's name."""
        return self._attempt.nodes

    @property
    def pids(self) -> dict[str, int]:
        """{slot: process id of its worker, on its node}."""
        return self._attempt.pids

    @property
    def tuner(self) -> TunerSupervisor:
        """Supervisor of the tuner of the present attempt."""
        return self._attempt.tuner

    @property
    def status(self) -> str:
        """running, done, stopped or failed, as last seen."""
        if not self._over.is_set():
            return "running"
        return self._attempt.status if self._error is None else "failed"

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end, at most `timeout_s`; return whether the job has ended.

        Raises:
            SlackwaterError: the job failed; names the slot and the reason. All slots are stopped.
        """
        has_ended = self._over.wait(timeout_s)
        if has_ended and self._error is not None:
            raise self._error
        return has_ended

    def report(self) -> JobReport:
        """Return the report of the job; see `RayJob.report`."""
        return self._shown(RayJob.report)

    @property
    def latest_report(self) -> JobReport:
        """The job's report as last heard."""
        return self._shown(lambda attempt: attempt.latest_report)

    def _shown(self, ask: Callable[[RayJob], JobReport]) -> JobReport:
        attempt, before = self._attempt, self._before
        report = ask(attempt)
        if before is not None and not attempt.has_reports:
            # Until the slots that went back count again.
            report = replace(before, elapsed_s=max(before.elapsed_s, report.elapsed_s))
        if not self._over.is_set() and report.state != "running":
            report.state, report.error = "running", None
            report.job_events, report.slot_events = [], []
        elif self._over.is_set() and self._error is not None:
            report.state, report.error = "failed", str(self._error)
        report.recoveries = list(self._attempts.recoveries)
        report.notes = [*self._notes, *report.notes]
        report.checkpoint = self._checkpoint_report()
        return report

    def _checkpoint_report(self) -> CheckpointReport:
        made = CheckpointReport(
            self._every_s, str(self._folder), self._interval_s, problem=self._problem
        )
        if (last := self._newest) is not None:
            made.number, made.took_s, made.cut_s = last.number, last.took_s, last.cut_s
            made.age_s = time.monotonic() - last.began_s
            made.folder_bytes = last.folder_bytes
        with suppress(CheckpointError):  # without the folder the report says the rest
            made.spool_bytes = spool_size(self._folder, self._facts.flow)
        return made

    def collected(self, sink: str) -> pa.Table:
        """Return the rows of a collect sink; see `RayJob.collected`."""
        return self._attempt.collected(sink)

    def collected_stream(self, sink: str) -> bytes:
        """Return the rows of a collect sink as an Arrow IPC stream."""
        return self._attempt.collected_stream(sink)

    @property
    def gathered(self) -> list[str]:
        """Collect sinks whose rows are here, once the job has ended."""
        return self._attempt.gathered

    def replace(self, placement: Mapping[str, str]) -> Replaced:
        """Move stages to other slots; see `RayJob.replace`."""
        with self._checkpointing:
            done = self._attempt.replace(placement)
            self._is_wanted.set()  # those before are of the stages' former slots
            return done

    def stop(self) -> None:
        """End the job now, after a last checkpoint; return when it has ended."""
        self._is_unwanted.set()  # a wait before another attempt ends
        with self._checkpointing:
            self._is_wanted.set()
            self._checkpointing.wait_for(
                lambda: self._over.is_set() or not self._is_wanted.is_set(), LAST_S
            )
        self._attempts.stop()
        while not self._over.wait(LOOK_S):
            self._attempt.ask_to_stop()  # perhaps a later one than a moment ago
