"""One job on a Ray cluster: slots as actors on their nodes, watched until the end.

```
identify ─▶ bind ─▶ clocks ─▶ connect ─▶ start ─▶ join ─┬─▶ all done            ─▶ finish: results
                                                        ├─▶ one failed or died: ─▶ are fetched,
                                                        │   stop the rest          actors end, and
                                                        └─▶ stop()              ─▶ CPUs are free
```
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import ray
from ray.exceptions import RayError

from actors.jobs.echo import Echo
from actors.jobs.last_heard import LastHeard
from actors.jobs.obituary import obituary, silent_peers
from actors.jobs.results import Results
from actors.jobs.slot_actors import ask_all, end_actors, last_words, make_actors, set_clocks
from actors.nodes.bounded import attempt
from actors.nodes.hosts import HostWatch
from actors.nodes.lifeline import lost_cluster, own_lifeline
from actors.nodes.placement import NodeInfo, dead_nodes
from actors.sinks import sink_runs, slots_with_inputs
from actors.slot.report import SlotReport, put_together
from actors.tuning.care import TunerCare
from actors.wire.channel import ChannelKeys
from runtime import errors
from runtime.config import Limits, Tuning
from runtime.errors import ClusterError, SlackwaterError, WorkerDied
from runtime.measure.report import JobReport
from runtime.plan.plan import Plan, collect_sinks

START_TIMEOUT_S = 60.0
CALL_TIMEOUT_S = 10.0
LOOK_S = 0.25
"""How long to wait for the end of a slot before the hosts are looked at again."""
REPORT_TIMEOUT_S = 3.0
"""A slot publishes its report within 2 s; one that is silent longer keeps its last one."""
SETTLE_S = 2.0
"""After the first failure, how long to wait for its cause: a slot often notices that its peer
is gone before Ray says which worker died."""
CUT_OFF_S = 3.0
"""What is left to hear of slots whose cluster is gone must come within this."""
LOST_HOST_S = 1.0
"""How long the slots of a host that does not answer are given to stop."""
LEAD_NS = 300_000_000
"""Sources begin this long after the order to start. By then every slot has the order, has met
its peers, and has opened its inputs; what that takes is not in the first events' latency."""


class RayJob:
    """A submitted flow: `start` it. Use it from one thread.

    Args:
        plan: every stage in a slot.
        nodes: {slot: the node it runs on}.
        notes: what the report must say about these nodes.
        tuning: how the slacks are to be set; None: nothing is to be set.
        folder: what sinks' relative paths are meant from; this process's unless told.
        clock_shifts: for tests, {node: `shift` of its slots' `SlotClock`}.
        echoes: whether this process prints what users' functions print in the slots.
        job_id: its name in the locks and manifests of its output.

    Attributes:
        pids: {slot: process id of its worker, on its node}; empty before the start.
        tuner: who sets its slacks.
    """

    def __init__(  # noqa: PLR0913 - each by name, and most of them seldom
        self,
        plan: Plan,
        *,
        nodes: Mapping[str, NodeInfo],
        limits: Limits | None = None,
        notes: Sequence[str] = (),
        tuning: Tuning | None = None,
        folder: str | None = None,
        clock_shifts: Mapping[str, int | Callable[[], int]] | None = None,
        echoes: bool = False,
        job_id: str | None = None,
    ) -> None:
        self._job_id = job_id or plan.flow
        self.pids: dict[str, int] = {}
        self._plan = plan
        self._nodes = dict(nodes)
        self._hosts = HostWatch(nodes.values())
        self._lifeline = own_lifeline()
        self.tuner = TunerCare(plan, tuning, folder=folder)
        self._notes, self._limits = list(notes), limits or Limits()
        self._reports: dict[str, SlotReport] = {}
        self._ended: dict[str, SlotReport] = {}
        self._deaths: dict[str, str] = {}
        self._lost: set[str] = set()  # ids of nodes that do not answer
        self._error: SlackwaterError | None = None
        self._is_over = False
        self._elapsed_s: float | None = None
        self._start_ns, self._began_s = 0, time.monotonic()  # of the sources, by two clocks
        settings = {
            "keys": ChannelKeys.generate(),
            "folder": os.getcwd() if folder is None else folder,
            "limits": self._limits,
            "is_sampled": tuning is not None,
            "deadline_ns": plan.deadline_ns,
        }
        self._actors = make_actors(plan, nodes, shifts=clock_shifts or {}, **settings)
        self._results = Results(plan, self._actors)
        self._heard = LastHeard(self._actors, self._reports)
        self._echo = Echo(plan, self._actors) if echoes else None

    def start(self) -> RayJob:
        """Start the slots and let the sources run; return this job.

        Raises:
            SlackwaterError: what stopped them (a sink that cannot be opened, too little room,
                a worker that died). No actor is left then.
        """
        try:
            self._hosts.begin()
            self._start()
        except BaseException:  # Ctrl-C too: no actor may stay
            self.give_up()
            raise
        return self

    def _start(self) -> None:
        known = dict(zip(self._actors, self._on_all("identify"), strict=True))
        self.pids = {name: one.pid for name, one in known.items()}
        hosts = {stage: known[slot].host for stage, slot in self._plan.slots.items()}
        endpoints: dict[str, str] = {}
        for bound in self._on_all("bind", hosts):
            endpoints.update(bound)
        set_clocks(known, self._on_all)
        # By the reference's clock, which ours need not be.
        inputs = self._on_all("fingerprints", slots=slots_with_inputs(self._plan))
        runs = sink_runs(self._plan, self._job_id, inputs)
        self._start_ns = max(self._on_all("connect", endpoints, runs)) + LEAD_NS
        self._began_s = time.monotonic() + LEAD_NS / 1e9
        self._on_all("start", self._start_ns)
        self.tuner.start(self._actors)
        self._heard.look()
        self._joins = {actor.call.remote("join"): name for name, actor in self._actors.items()}

    def give_up(self) -> None:
        """End the actors of a job that has not started; they may have files in the temp folder.

        From any thread: a `start` that still waits for them then raises.
        """
        self._close()
        end_actors(self._actors, stopped="the job was given up before it had started")

    def _on_all(
        self,
        method: str,
        *args: Any,
        slots: Iterable[str] | None = None,
        timeout_s: float = START_TIMEOUT_S,
    ) -> list[Any]:
        chosen = self._actors if slots is None else slots
        return ask_all(
            [self._actors[name] for name in chosen],
            method,
            *args,
            flow=self._plan.flow,
            lifeline=self._lifeline,
            timeout_s=timeout_s,
        )

    # -- watching --------------------------------------------------------------------------

    @property
    def status(self) -> str:
        """running, done, stopped or failed."""
        self._look(0)
        if self._error is not None:
            return "failed"
        if not self._is_over:
            return "running"
        states = [report.state for report in self._ended.values()]
        return "done" if states == ["done"] * len(self._actors) else "stopped"

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end at most so long; return whether it has come.

        Raises:
            SlackwaterError: the job failed; the error says who and why. All slots are stopped.
        """
        deadline_s = time.monotonic() + timeout_s
        self._look(min(timeout_s, LOOK_S))
        while not self._is_over and (left := deadline_s - time.monotonic()) > 0:
            self._look(min(left, LOOK_S))
        if self._error is not None:
            raise self._error
        return self._is_over

    def _look(self, timeout_s: float) -> None:
        self._unless_gone(lambda: self._go_on(timeout_s))

    def _unless_gone(self, act: Callable[[], object]) -> None:
        """Do what needs Ray, unless the cluster is gone, or goes in the midst of it."""
        if self._is_over:
            return
        try:
            if self._lifeline.look() is None:
                act()
        except OSError as problem:  # Ray's own, of its socket
            self._lifeline.broke(problem)
        if (gone := self._lifeline.lost) is not None and not self._is_over:
            self._end_without_ray(gone)

    def _go_on(self, timeout_s: float) -> None:
        self._take_ends(timeout_s)
        self._bury(self._hosts.look())
        if self._deaths and self._lifeline.check() is not None:
            return
        self.tuner.look()
        self._heard.look(self._ended)
        if self._echo is not None:
            self._echo.look(self._ended)
        if self._deaths or self._failed():
            self._find_cause()
            self._stop(str(self._error))
        elif not self._living:
            self._finish()

    def _end_without_ray(self, gone: str) -> None:
        """End a job whose cluster is gone: nothing may be asked that waits for an answer."""
        self._error = ClusterError(f"job {self._plan.flow!r} has failed: {lost_cluster(gone)}")
        living = {name: self._actors[name] for name in self._living}
        heard = last_words(
            living, failure=str(self._error), within_s=CUT_OFF_S, then=self._keep_results
        )
        self._ended.update(heard)
        self._reports.update(heard)
        self._end()

    @property
    def _living(self) -> list[str]:
        return [n for n in self._actors if n not in self._ended and n not in self._deaths]

    def _take_ends(self, timeout_s: float) -> None:
        """Wait until a slot ends, at most so long; take note of all that have."""
        waiting = [ref for ref, name in self._joins.items() if name in self._living]
        if waiting and ray.wait(waiting, num_returns=1, timeout=timeout_s)[0]:
            for ref in ray.wait(waiting, num_returns=len(waiting), timeout=0)[0]:
                self._take_end(self._joins[ref], ref)

    def _take_end(self, name: str, ref: Any) -> None:
        try:
            self._ended[name] = self._reports[name] = ray.get(ref, timeout=CALL_TIMEOUT_S)
            if self._echo is not None:
                self._echo.show_last(name, self._ended[name].said)
        except RayError as problem:
            self._deaths[name] = str(problem).strip().splitlines()[0].rstrip(".")

    def _failed(self) -> list[SlotReport]:
        return [report for report in self._ended.values() if report.error is not None]

    def _bury(self, lost: Mapping[str, str]) -> None:
        """Take slots on these nodes for dead, {node id: what is wrong with it}."""
        self._lost.update(lost)
        on = {name: self._nodes[name].node_id for name in self._living}
        self._deaths |= {name: lost[node] for name, node in on.items() if node in lost}

    def _find_cause(self) -> None:
        deadline_s = time.monotonic() + SETTLE_S
        while not self._has_root_cause() and (left := deadline_s - time.monotonic()) > 0:
            if not self._living:
                break
            self._take_ends(left)
        own = [report for report in self._failed() if report.error_type != "WorkerDied"]
        if own:
            kind = getattr(errors, own[0].error_type or "", SlackwaterError)
            self._error = kind(own[0].error)
            return
        silent = silent_peers(self._plan, self._failed(), self._living, self._nodes)
        with suppress(ClusterError):  # without its head nobody knows
            ids = {node.node_id for node in self._nodes.values()}
            self._bury(dead_nodes(ids, within_s=SETTLE_S))
        self._bury({self._nodes[slot].node_id: reason for slot, reason in silent.items()})
        said = obituary(self._plan, self._deaths, self._nodes, lost=self._lost)
        self._error = WorkerDied(said if self._deaths else self._failed()[0].error)

    def _has_root_cause(self) -> bool:
        own = any(report.error_type != "WorkerDied" for report in self._failed())
        return own or bool(self._deaths)

    # -- what it says ----------------------------------------------------------------------

    def report(self) -> JobReport:
        """Return the report as it stands."""
        status = self.status
        if status == "running":
            try:
                self._fetch_reports()
            except OSError as problem:  # the next look ends the job
                self._lifeline.broke(problem)
        return put_together(
            self._plan,
            [self._reports[name] for name in self._plan.slot_names if name in self._reports],
            state=status,
            elapsed_s=self._passed_s() if self._elapsed_s is None else self._elapsed_s,
            error=self._error,
            notes=self._notes,
            limits=self._limits,
            tuning=self.tuner.report(is_fresh=self._lifeline.lost is None),
        )

    def _passed_s(self) -> float:
        return max(0.0, time.monotonic() - self._began_s)

    def _fetch_reports(self) -> None:
        calls = {self._actors[name].call.remote("report"): name for name in self._living}
        deadline_s = time.monotonic() + REPORT_TIMEOUT_S
        done: list[Any] = []
        while len(done) < len(calls) and (left := deadline_s - time.monotonic()) > 0:
            done, _ = ray.wait(list(calls), num_returns=len(calls), timeout=min(left, LOOK_S))
            self._take_ends(0)
            self._bury(self._hosts.look())
            if self._deaths or self._failed() or self._lifeline.look() is not None:
                break  # to be acted on before anything else
        self._heard.take({ref: calls[ref] for ref in done}, self._ended)

    def collected(self, sink: str) -> pa.Table:
        """Return what a collect sink has gathered.

        Raises:
            WorkerDied: it is gone with its worker.
            ClusterError: it did not come within a minute.
        """
        with pa.ipc.open_stream(self.collected_stream(sink)) as stream:
            return stream.read_all()

    def collected_stream(self, sink: str) -> bytes:
        """Return the same as an Arrow IPC stream."""
        return self._results.of(sink) if self._is_over else self._results.fetch(sink)

    @property
    def gathered(self) -> list[str]:
        """The collect sinks whose rows are here, once the job has ended."""
        return self._results.kept

    # -- ending ----------------------------------------------------------------------------

    def stop(self) -> None:
        """End the job now; the sinks publish the whole batches that they have.

        A slot that does not answer (a user's function that hangs) is killed after 10 s, after 1 s
        on a host that does not answer either. A sink that cannot be finished fails the job.
        """
        self._unless_gone(lambda: self._stop(None))

    def _stop(self, failure: str | None) -> None:
        if self._lifeline.check() is not None:
            return
        for name in self._living:
            self._actors[name].call.remote("stop", failure)
        began_s = time.monotonic()
        while living := self._living:
            hopeless = all(self._nodes[name].node_id in self._lost for name in living)
            limit_s = LOST_HOST_S if hopeless else CALL_TIMEOUT_S
            if (left := began_s + limit_s - time.monotonic()) <= 0:
                break
            self._take_ends(min(left, LOOK_S))
        if self._error is None and self._failed():
            self._find_cause()
        self._finish()

    def _finish(self) -> None:
        """Fetch what the collect sinks hold, and let the actors and their CPUs go."""
        self.tuner.finish()
        self._keep_results(self._ended)
        self._end()

    def _end(self) -> None:
        ends = [own.ended_ns for own in self._ended.values() if own.ended_ns is not None]
        self._elapsed_s = max(0, max(ends) - self._start_ns) / 1e9 if ends else self._passed_s()
        self._is_over = True
        self._close()
        end_actors(self._actors)

    def _keep_results(self, ended: Collection[str]) -> None:
        slots = [one for one in ended if self._nodes[one].node_id not in self._lost]
        there = [sink for sink in collect_sinks(self._plan) if self._plan.slots[sink] in slots]
        self._notes += self._results.keep(there)

    def _close(self) -> None:
        self._hosts.close()
        self._lifeline.close()
        attempt(CALL_TIMEOUT_S, self.tuner.end)
