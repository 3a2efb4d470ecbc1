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
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actors.channel import ChannelKeys
from actors.hosts import HostWatch
from actors.obituary import obituary, silent_peers
from actors.own_errors import own_error
from actors.placement import NodeInfo, dead_nodes
from actors.results import Results
from actors.slot import SlotActor
from actors.slot_report import SlotReport
from actors.tuner_care import TunerCare
from runtime import errors
from runtime.config import Limits, Tuning
from runtime.errors import ClusterError, SlackwaterError, WorkerDied
from runtime.flow.plan import Plan, collect_sinks
from runtime.measure.assemble import job_report
from runtime.measure.report import JobReport

START_TIMEOUT_S = 60.0
CALL_TIMEOUT_S = 10.0
LOOK_S = 0.25
"""How long to wait for the end of a slot before the hosts are looked at again."""
REPORT_TIMEOUT_S = 3.0
"""A slot publishes its report within 2 s; one that is silent longer keeps its last one."""
SETTLE_S = 2.0
"""After the first failure, how long to wait for its cause: a slot often notices that its peer
is gone before Ray says which worker died."""
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
        clock_shifts: for tests, {node: by how many ns its slots take its clock to be ahead}.

    Attributes:
        pids: {slot: process id of its worker, on its node}; empty before the start.
        tuner: who sets its slacks.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        nodes: Mapping[str, NodeInfo],
        limits: Limits | None = None,
        notes: Sequence[str] = (),
        tuning: Tuning | None = None,
        folder: str | None = None,
        clock_shifts: Mapping[str, int] | None = None,
    ) -> None:
        self.pids: dict[str, int] = {}
        self._plan = plan
        self._nodes = dict(nodes)
        self._hosts = HostWatch(nodes.values())
        self.tuner = TunerCare(plan, tuning, folder=folder)
        self._notes = list(notes)
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
            "limits": limits,
            "is_sampled": tuning is not None,
            "deadline_ns": plan.deadline_ns,
        }
        actor: Any = ray.remote(SlotActor)
        self._actors: dict[str, Any] = {
            name: actor.options(
                num_cpus=1,
                max_restarts=0,
                max_concurrency=6,
                scheduling_strategy=NodeAffinitySchedulingStrategy(nodes[name].node_id, soft=False),
            ).remote(
                name,
                plan.stages_of(name),
                host=nodes[name].ip,
                clock_shift_ns=(clock_shifts or {}).get(nodes[name].name, 0),
                **settings,
            )
            for name in plan.slot_names
        }
        self._results = Results(plan, self._actors)

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
        self._set_clocks({name: one.clock for name, one in known.items()})
        # By the reference's clock, which ours need not be.
        self._start_ns = max(self._on_all("connect", endpoints)) + LEAD_NS
        self._began_s = time.monotonic() + LEAD_NS / 1e9
        self._on_all("start", self._start_ns)
        self.tuner.start(self._actors)
        self._joins = {actor.call.remote("join"): name for name, actor in self._actors.items()}

    def _set_clocks(self, clocks: Mapping[str, str | None]) -> None:
        """Let the slots whose clock (by its identity) is not the first slot's follow that one."""
        first, *rest = self._plan.slot_names
        others = [name for name in rest if clocks[name] is None or clocks[name] != clocks[first]]
        if others:
            (endpoint,) = self._on_all("serve_clock", slots=[first])
            self._on_all("follow_clock", endpoint, slots=others)

    def give_up(self) -> None:
        """End the actors of a job that has not started; they may have files in the temp folder.

        From any thread: a `start` that still waits for them then raises.
        """
        try:
            stops = [actor.call.remote("stop") for actor in self._actors.values()]
            ray.wait(stops, num_returns=len(stops), timeout=SETTLE_S)
        finally:
            self._end_actors()

    def _on_all(
        self,
        method: str,
        *args: Any,
        slots: Iterable[str] | None = None,
        timeout_s: float = START_TIMEOUT_S,
    ) -> list[Any]:
        chosen = self._actors if slots is None else slots
        calls = [self._actors[name].call.remote(method, *args) for name in chosen]
        try:
            return ray.get(calls, timeout=timeout_s)
        except GetTimeoutError as problem:
            raise ClusterError(
                f"job {self._plan.flow!r}: not all of its {len(calls)} slots answered {method!r} "
                f"within {timeout_s:.0f} s; the nodes may be short of free CPUs (one per slot) "
                "or of memory: see `ray status`"
            ) from problem
        except RayError as problem:
            raise own_error(problem) from problem

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
        if self._is_over:
            return
        self._take_ends(timeout_s)
        self._bury(self._hosts.look())
        self.tuner.look()
        if self._deaths or self._failed():
            self._find_cause()
            self.stop()
        elif not self._living:
            self._finish()

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
            self._ended[name] = self._reports[name] = ray.get(ref)
        except RayError as problem:
            self._deaths[name] = str(problem).strip().splitlines()[0].rstrip(".")

    def _failed(self) -> list[SlotReport]:
        return [report for report in self._ended.values() if report.error is not None]

    def _bury(self, lost: Mapping[str, str]) -> None:
        """Take slots on these nodes for dead, {node id: what is wrong with it}."""
        self._lost.update(lost)
        for name in self._living:
            reason = lost.get(self._nodes[name].node_id)
            if reason is not None:
                self._deaths[name] = reason

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
        self._bury(dead_nodes({node.node_id for node in self._nodes.values()}))
        self._bury({self._nodes[slot].node_id: reason for slot, reason in silent.items()})
        if self._deaths:
            self._error = WorkerDied(
                obituary(self._plan, self._deaths, self._nodes, lost=self._lost)
            )
        else:
            self._error = WorkerDied(self._failed()[0].error)

    def _has_root_cause(self) -> bool:
        own = any(report.error_type != "WorkerDied" for report in self._failed())
        return own or bool(self._deaths)

    # -- what it says ----------------------------------------------------------------------

    def report(self) -> JobReport:
        """Return the report as it stands."""
        status = self.status
        if status == "running":
            self._fetch_reports()
        elapsed_s = self._passed_s() if self._elapsed_s is None else self._elapsed_s
        parts = [self._reports[name] for name in self._plan.slot_names if name in self._reports]
        return job_report(
            self._plan,
            state=status,
            host="ray",
            nodes=list(dict.fromkeys(name.split("/")[0] for name in self._plan.slot_names)),
            elapsed_s=elapsed_s,
            stages=[stage for part in parts for stage in part.stages],
            channels=[channel for part in parts for channel in part.channels],
            sinks=[sink for part in parts for sink in part.sinks],
            error=None if self._error is None else str(self._error),
            notes=self._notes,
            clocks={part.slot: part.clock for part in parts if part.clock is not None},
            refused_peers=sum(part.refused_peers for part in parts),
            tuning=self.tuner.fresh_report(),
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
            if self._deaths or self._failed():  # to be acted on before anything else
                break
        for ref in done:
            if calls[ref] in self._ended:
                continue
            try:
                self._reports[calls[ref]] = ray.get(ref)
            except RayError:
                continue  # _look names the dead; its last report stands

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
        """End the job now; the sinks keep the whole batches that they have.

        A slot that does not answer (a user's function that hangs) is killed after 10 s, after 1 s
        on a host that does not answer either. A sink that cannot be finished fails the job.
        """
        if self._is_over:
            return
        for name in self._living:
            self._actors[name].call.remote("stop")
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
        ends = [own.ended_ns for own in self._ended.values() if own.ended_ns is not None]
        self._elapsed_s = max(0, max(ends) - self._start_ns) / 1e9 if ends else self._passed_s()
        slots = [one for one in self._ended if self._nodes[one].node_id not in self._lost]
        there = [sink for sink in collect_sinks(self._plan) if self._plan.slots[sink] in slots]
        self._notes += self._results.keep(there)
        self._is_over = True
        self._end_actors()

    def _end_actors(self) -> None:
        self._hosts.close()
        self.tuner.end()
        for actor in self._actors.values():
            ray.kill(actor, no_restart=True)
