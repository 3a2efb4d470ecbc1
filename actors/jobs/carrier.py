"""Carry a job from the start of its slots to its end, in a thread.

```
ends of slots, hosts, cluster, a stop ──▶ JobLife ──▶ stop · ask · fetch · end
                                 stimuli              ▲               │
                                                      └── answers ────┘
```

`runtime/life` decides on each stimulus; this file only performs. A job is looked after even if no
caller waits for it. So its slots do not run on after a failure, its tuner is replaced, and the
output of its functions is shown.
"""

from __future__ import annotations

import atexit
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import ray
from ray.exceptions import RayError

from slackwater.actors.jobs.deaths import death_of, words_of
from slackwater.actors.jobs.periodic_calls import LatestReports
from slackwater.actors.jobs.results import Results
from slackwater.actors.jobs.slot_actors import end_actors, final_reports
from slackwater.actors.jobs.user_output_relay import UserOutputRelay
from slackwater.actors.kernel.process_identity import ProcessState, state_of
from slackwater.actors.nodes.cluster_monitor import ClusterMonitor
from slackwater.actors.nodes.gateway import on_node
from slackwater.actors.nodes.host_monitor import HostMonitor
from slackwater.actors.nodes.placement import NodeInfo, dead_nodes
from slackwater.actors.nodes.time_limits import attempt
from slackwater.actors.slot.report import SlotReport
from slackwater.actors.tuning.supervisor import TunerSupervisor
from slackwater.runtime.errors import ClusterError, SlackwaterError
from slackwater.runtime.life import (
    Action,
    AskForDead,
    Cause,
    CheckCluster,
    ClusterGone,
    ClusterThere,
    CollectFinalReports,
    DeadNodes,
    End,
    FetchResults,
    FinalReportsCollected,
    HomeNode,
    HostSilent,
    JobLife,
    ResultsFetched,
    SlotDied,
    SlotEnded,
    Stimulus,
    StopRequested,
    StopSlots,
    TimeLimits,
    TimePassed,
)
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.relocation import Relocation

__all__ = ["JobCarrier", "home_nodes"]

TIME_LIMITS = TimeLimits()
RECOVERING = TimeLimits(settle_s=0.3)
"""The same for a job that goes on after a failure: its cause is worth less than its time."""
CALL_TIMEOUT_S = 10.0
LOOK_S = 0.2
"""Time between two looks at the hosts, a third of that between two questions (`GOING_ON_S`). The
end of a slot, or a stop, ends the rest."""
REPORT_TIMEOUT_S = 3.0
"""A slot publishes its report within 2 s; a slot that is silent longer keeps its last one."""
STATE_S = 3.0
"""Time for a host to tell the state of a process."""
LEAVE_S = 2.0
"""Time for the thread to leave Ray alone when the process exits with the job still open."""


class JobCarrier:
    """Looks after a running job: `begin` starts its thread. From any thread.

    Args:
        plan: every stage in a slot.
        nodes: {slot: name of its node}.
        actors: {slot: its Ray actor}.
        cluster_monitor: cluster monitor of this process.
        hosts: hosts of the slots.
        tuner: tuner of the job.
        relays_output: whether this process prints what users' functions print in the slots.
        may_go_on: whether actors of slots that have ended stay after a failure.

    Attributes:
        life: the machine that decides; only the thread gives it stimuli.
        reports: {slot: its newest report}.
        results: rows of the collect sinks.
        notes: notes on the job's end.
        over: set when the job has ended, its results are here, and its CPUs are free.
        error: reason why the job failed, once it is over.
        given: last stimuli of the slot that failed the job, as far as known.
        elapsed_s: time from the start of its sources to the end of its last slot, once it is over.
        lock: guards the tuner and the reports, which callers read, too.
    """

    def __init__(
        self,
        plan: Plan,
        nodes: Mapping[str, NodeInfo],
        actors: Mapping[str, Any],
        *,
        cluster_monitor: ClusterMonitor,
        hosts: HostMonitor,
        tuner: TunerSupervisor,
        relays_output: bool,
        may_go_on: bool = False,
    ) -> None:
        self._plan, self._actors, self._may_go_on = plan, actors, may_go_on
        self._cluster_monitor, self._hosts, self._tuner = cluster_monitor, hosts, tuner
        self._homes = home_nodes({slot: nodes[slot] for slot in plan.slot_names})
        self.life = JobLife(plan, self._homes, time_limits=RECOVERING if may_go_on else TIME_LIMITS)
        self.reports: dict[str, SlotReport] = {}
        self.results = Results(plan, actors)
        self.notes: list[str] = []
        self.over = threading.Event()
        self.error: SlackwaterError | None = None
        self.given: list[str] = []
        self.elapsed_s: float | None = None
        self.lock = threading.RLock()
        self._heard = LatestReports(actors, self.reports)
        self._relay = UserOutputRelay(plan, actors) if relays_output else None
        self._silent: set[str] = set()  # ids of nodes that the machine knows to be silent
        self._joins: dict[Any, str] = {}
        self._pids: Mapping[str, int] = {}
        self._start_ns, self._began_s = 0, time.monotonic()  # of the sources, by two clocks
        self._is_unwanted, self._woken = threading.Event(), threading.Event()
        self._is_left = False  # the process exits
        self._posted: deque[tuple[Callable[[], None], threading.Event]] = deque()
        self._thread = threading.Thread(
            target=self._see_it_through, name=f"job {plan.flow}", daemon=True
        )

    def begin(self, *, start_ns: int, began_s: float, pids: Mapping[str, int]) -> None:
        """Look after the job from now on; its slots have been told to start.

        Args:
            start_ns: start of its sources, by the reference's clock.
            began_s: the same by this process's monotonic clock.
            pids: {slot: process id of its worker}, kept up to date by the caller.
        """
        self._pids = pids
        self._start_ns, self._began_s = start_ns, began_s
        self.life.begin(round(began_s * 1e9))
        self._heard.look()
        self._follow(self._actors)
        atexit.register(self._leave)  # runs before Ray's handler, which was first
        self._thread.start()

    def stop(self) -> None:
        """End the job; return when it has ended."""
        self.ask_to_stop()
        self.over.wait()

    def ask_to_stop(self) -> None:
        """Let the job end soon; one that has not begun ends as it begins."""
        self._is_unwanted.set()
        self._woken.set()

    def fail(self, problem: SlackwaterError) -> None:
        """Record that the job has failed before it began; call it instead of `begin`."""
        self.close()
        self.error = problem
        self.over.set()

    @property
    def passed_s(self) -> float:
        """Seconds since its sources began."""
        return max(0.0, time.monotonic() - self._began_s)

    def relocate(self, relocation: Relocation, nodes: Mapping[str, NodeInfo]) -> None:
        """Record that stages have moved; return when the thread knows. Then call `follow`.

        Args:
            relocation: the moves; the actors of new slots are already in the job's.
            nodes: {name of a node: node}.

        Raises:
            ClusterError: the job has ended meanwhile.
        """
        self._run_in_thread(lambda: self._relocate(relocation, nodes))

    def follow(self, slots: Iterable[str]) -> None:
        """Wait for the ends of new slots, now that they run."""
        self._run_in_thread(lambda: self._follow({name: self._actors[name] for name in slots}))

    def _run_in_thread(self, do: Callable[[], None]) -> None:
        done = threading.Event()
        self._posted.append((do, done))
        self._woken.set()
        while not done.wait(LOOK_S):
            if self.over.is_set():
                raise ClusterError(
                    f"job {self._plan.flow!r} has ended meanwhile; submit the flow again with "
                    "this placement"
                )

    def _do_posted(self) -> None:
        while self._posted:
            do, done = self._posted.popleft()
            do()
            done.set()

    def _relocate(self, relocation: Relocation, nodes: Mapping[str, NodeInfo]) -> None:
        plan = relocation.new
        own = {slot: nodes[plan.places[slot].node] for slot in relocation.new_slots}
        homes = home_nodes(own)
        self._homes |= homes
        self.life.moved(plan, homes)
        self._hosts.ask_too(own.values())
        self._joins = {end: slot for end, slot in self._joins.items() if slot not in own}
        with self.lock:
            for slot in relocation.slots:
                self.reports.pop(slot, None)  # its stages may have moved
            self._heard.ask_too({slot: self._actors[slot] for slot in own})
            self._tuner.moved(plan, self._actors)
        self.results.moved(plan)
        if self._relay is not None:
            self._relay.moved(plan, self._actors)

    def _follow(self, actors: Mapping[str, Any]) -> None:
        for name, actor in actors.items():
            end = actor.call.remote("join")
            self._joins[end] = name
            end.future().add_done_callback(lambda _: self._woken.set())

    def refresh(self) -> None:
        """Ask the slots for their reports, for 3 s at most."""
        try:
            self._fetch_reports()
        except OSError as problem:  # the next look ends the job
            self._cluster_monitor.broke(problem)

    def _fetch_reports(self) -> None:
        calls = {self._actors[name].call.remote("report"): name for name in self.life.living}
        deadline_s = time.monotonic() + REPORT_TIMEOUT_S
        done: list[Any] = []
        while len(done) < len(calls) and (left := deadline_s - time.monotonic()) > 0:
            done, _ = ray.wait(list(calls), num_returns=len(calls), timeout=min(left, LOOK_S))
            if self.life.is_ending or self._cluster_monitor.lost is not None:
                break  # some slots may never answer
        with self.lock:
            self._heard.take({ref: calls[ref] for ref in done}, self.life.ended)

    # -- the thread: what there is to hear -------------------------------------------------

    def _see_it_through(self) -> None:
        try:
            while not (self.life.is_over or self._is_left):
                self._rest()
                self._do_posted()
                self._tell(self._news())
                if not self.life.is_ending:
                    self._care()
        except BaseException:  # a fault of ours must not look like a job that runs
            self.error = SlackwaterError(
                f"job {self._plan.flow!r} could not be looked after any more, and was ended; "
                f"this is a fault of Slackwater:\n{traceback.format_exc()}"
            )
            self._end()
        finally:
            atexit.unregister(self._leave)
            self.over.set()

    def _rest(self) -> None:
        due_ns = self.life.due_ns
        left_s = LOOK_S if due_ns is None else (due_ns - time.monotonic_ns()) / 1e9
        self._woken.wait(min(max(left_s, 0.0), LOOK_S))
        self._woken.clear()

    def _leave(self) -> None:
        # The process exits, and Ray with it: a late call would start Ray again.
        self._is_left = True
        self._woken.set()
        self._thread.join(LEAVE_S)

    def _news(self) -> list[Stimulus]:
        """Return the stimuli since the last look; waits for nothing."""
        if not ray.is_initialized():  # any call would start a new cluster
            self._cluster_monitor.lost = (
                "this process closed its connection to Ray while its job ran"
            )
        if (gone := self._cluster_monitor.look()) is not None:
            return [ClusterGone(gone)]
        try:
            news: list[Stimulus] = self._ends()
        except OSError as problem:  # Ray's own, of its socket
            return [ClusterGone(self._cluster_monitor.broke(problem))]
        silent = {node: why for node, why in self._hosts.look().items() if node not in self._silent}
        self._silent.update(silent)
        news += [HostSilent(node, why) for node, why in silent.items()]
        if self._is_unwanted.is_set() and not self.life.is_ending:
            news.append(StopRequested())
        return news or [TimePassed()]

    def _ends(self) -> list[Stimulus]:
        living = self.life.living
        waiting = {ref: name for ref, name in self._joins.items() if name in living}
        done = ray.wait(list(waiting), num_returns=len(waiting), timeout=0)[0] if waiting else []
        return [self._end_of(waiting[ref], ref) for ref in done]

    def _end_of(self, name: str, ref: Any) -> Stimulus:
        try:
            report: SlotReport = ray.get(ref, timeout=CALL_TIMEOUT_S)
        except RayError as problem:
            death = death_of(problem, self._homes[name])
            is_own = death is not None and bool(death.by)
            return SlotDied(name, words_of(problem, death), is_own=is_own)
        with self.lock:
            self.reports[name] = report
        if self._relay is not None:
            self._relay.show_last(name, report.output)
        return _ended(report)

    def _care(self) -> None:
        """Look after the tuner and the slots' reports and output; waits for nothing."""
        try:
            with self.lock:
                self._tuner.look()
                self._heard.look(self.life.ended)
            if self._relay is not None:
                self._relay.look(self.life.ended)
        except OSError as problem:  # the next look reports it
            self._cluster_monitor.broke(problem)

    # -- the thread: what is to be done ----------------------------------------------------

    def _tell(self, news: Iterable[Stimulus]) -> None:
        """Give stimuli to the machine; perform its actions and theirs until none is left."""
        actions: deque[Action] = deque()
        # All stimuli before any action: of two slots that failed, the machine then knows both.
        for stimulus in news:
            actions += self.life.handle(stimulus, time.monotonic_ns())
        while actions:
            for answer in self._perform(actions.popleft()):
                actions += self.life.handle(answer, time.monotonic_ns())

    def _perform(self, action: Action) -> list[Stimulus]:
        """Perform an action; return the stimuli that it causes."""
        try:
            match action:
                case CheckCluster():
                    gone = self._cluster_monitor.check()
                    return [ClusterThere() if gone is None else ClusterGone(gone)]
                case AskForDead(node_ids, within_s, slots):
                    dead, states = _known_dead(node_ids, within_s), self._states_of(slots)
                    still = [slot for slot, state in states.items() if not state.is_running]
                    texts = {slot: state.text for slot, state in states.items()}
                    return [DeadNodes(dead, texts, tuple(still))]
                case StopSlots(slots, failure):
                    for name in slots:
                        self._actors[name].call.remote("stop", failure)
                case CollectFinalReports(slots, failure, within_s):
                    return self._final_reports(slots, failure, within_s)
                case FetchResults(sinks):
                    with self.lock:
                        self._tuner.finish()
                    self.notes += self.results.keep(sinks)
                    return [ResultsFetched()]
                case End(cause=cause):
                    self.error = None if cause is None else self._error(cause)
                    self._end()
        except OSError as problem:
            return [ClusterGone(self._cluster_monitor.broke(problem))]
        return []

    def _states_of(self, slots: Iterable[str]) -> dict[str, ProcessState]:
        """Return {slot: state of its process}, of those whose host answers."""
        here: Any = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
        states: dict[str, ProcessState] = {}
        for slot in slots:
            home, pid = self._homes[slot], self._pids.get(slot)
            if pid is None:
                continue
            if home.ip == here:
                states[slot] = state_of(pid)
                continue
            with suppress(RayError):  # its host is gone, or has no core for us
                states[slot] = ray.get(
                    on_node(state_of, pid, node_id=home.node_id), timeout=STATE_S
                )
        return states

    def _error(self, cause: Cause) -> SlackwaterError:
        reports = [self.reports[slot] for slot in cause.slots[:1] if slot in self.reports]
        self.given = [line for report in reports for line in report.recent]
        return cause.error(self.life.heard, self.given)

    def _final_reports(self, slots: Sequence[str], failure: str, within_s: float) -> list[Stimulus]:
        def keep(ended: Collection[str]) -> None:
            sinks = self.life.sinks_in([*self.life.ended, *ended])
            self.notes += self.results.keep(sinks)

        if not ray.is_initialized():
            return [FinalReportsCollected()]
        living = {name: self._actors[name] for name in slots}
        heard = final_reports(living, failure=failure, within_s=within_s, then=keep)
        with self.lock:
            self.reports.update(heard)
        return [*map(_ended, heard.values()), FinalReportsCollected()]

    def _end(self) -> None:
        reports = [self.reports[name] for name in self.life.ended]
        ends = [r.ended_ns for r in reports if r.ended_ns is not None]
        self.elapsed_s = max(0, max(ends) - self._start_ns) / 1e9 if ends else self.passed_s
        self.close()
        if ray.is_initialized():
            stays = self.life.ended if self._may_go_on and self.error is not None else ()
            end_actors({slot: own for slot, own in self._actors.items() if slot not in stays})

    def close(self) -> None:
        """Stop watching, and end the tuner."""
        self._hosts.close()
        self._cluster_monitor.close()
        attempt(CALL_TIMEOUT_S, self._tuner.end)


def home_nodes(nodes: Mapping[str, NodeInfo]) -> dict[str, HomeNode]:
    """Return {slot: its node} as the machine of the job's life knows it."""
    return {slot: HomeNode(node.node_id, node.name, node.ip) for slot, node in nodes.items()}


def _ended(report: SlotReport) -> SlotEnded:
    return SlotEnded(report.slot, report.state, report.error, report.error_type, tuple(report.lost))


def _known_dead(node_ids: Collection[str], within_s: float) -> dict[str, str]:
    try:
        return dead_nodes(node_ids, within_s=within_s)
    except ClusterError:  # without its head no node knows
        return {}
