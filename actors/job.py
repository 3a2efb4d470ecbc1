"""One job on a Ray cluster: slots as actors on their nodes, watched until the end.

```
identify ─▶ bind ─▶ connect ─▶ start ─▶ join ─┬─▶ all done             ─▶ finish: results
                                              ├─▶ one failed or died:  ─▶ are fetched, actors
                                              │   stop the rest           end, their CPUs are
                                              └─▶ stop()               ─▶ free
```
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import ray
from ray.exceptions import GetTimeoutError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from actors.channel import ChannelKeys
from actors.slot import SlotActor, SlotReport
from runtime import errors
from runtime.config import Limits
from runtime.errors import ClusterError, SlackwaterError, WorkerDied
from runtime.flow.plan import Plan
from runtime.flow.steps import SinkStep
from runtime.measure.assemble import job_report
from runtime.measure.report import JobReport

START_TIMEOUT_S = 60.0
CALL_TIMEOUT_S = 10.0
SETTLE_S = 5.0
"""After the first failure, how long to wait for its cause: a slot often notices that its peer
is gone before Ray says which worker died."""
LEAD_NS = 300_000_000
"""Sources begin this long after the order to start. By then every slot has the order, has met
its peers, and has opened its inputs; what that takes is not in the first events' latency."""


class RayJob:
    """A submitted flow. Use it from one thread.

    Args:
        plan: every stage in a slot.
        node_ids: {slot: Ray node id}.
        hosts: {slot: address to listen on}.
        notes: what the report must say about these nodes.

    Attributes:
        pids: {slot: process id of its worker, on its node}.

    Raises:
        ClusterError: the actors did not start in time.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        node_ids: Mapping[str, str],
        hosts: Mapping[str, str],
        limits: Limits | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self._plan = plan
        self._notes = list(notes)
        self._reports: dict[str, SlotReport] = {}
        self._ended: dict[str, SlotReport] = {}
        self._deaths: dict[str, str] = {}
        self._collected: dict[str, bytes] = {}  # {collect sink: its rows, once the job has ended}
        self._error: SlackwaterError | None = None
        self._is_over = False
        self._elapsed_s: float | None = None
        self._start_ns = time.time_ns()
        settings = {"keys": ChannelKeys.generate(), "folder": os.getcwd(), "limits": limits}
        actor: Any = ray.remote(SlotActor)
        self._actors: dict[str, Any] = {
            name: actor.options(
                num_cpus=1,
                max_restarts=0,
                max_concurrency=4,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node_ids[name], soft=False),
            ).remote(name, plan.stages_of(name), host=hosts[name], **settings)
            for name in plan.slot_names
        }
        try:
            self._start()
        except BaseException:  # Ctrl-C too: no actor may stay
            self._give_up()
            raise

    def _start(self) -> None:
        known = dict(zip(self._actors, self._on_all("identify"), strict=True))
        self.pids = {name: pid for name, (pid, _) in known.items()}
        hosts = {stage: known[slot][1] for stage, slot in self._plan.slots.items()}
        endpoints: dict[str, str] = {}
        for bound in self._on_all("bind", hosts):
            endpoints.update(bound)
        self._on_all("connect", endpoints)
        self._start_ns = time.time_ns() + LEAD_NS
        self._on_all("start", self._start_ns)
        self._joins = {actor.call.remote("join"): name for name, actor in self._actors.items()}

    def _give_up(self) -> None:
        """End the actors of a job that did not start; they may have files in the temp folder."""
        try:
            stops = [actor.call.remote("stop") for actor in self._actors.values()]
            ray.wait(stops, num_returns=len(stops), timeout=SETTLE_S)
        finally:
            self._end_actors()

    def _on_all(self, method: str, *args: Any, timeout_s: float = START_TIMEOUT_S) -> list[Any]:
        calls = [actor.call.remote(method, *args) for actor in self._actors.values()]
        try:
            return ray.get(calls, timeout=timeout_s)
        except GetTimeoutError as problem:
            raise ClusterError(
                f"job {self._plan.flow!r}: not all of its {len(calls)} slots answered {method!r} "
                f"within {timeout_s:.0f} s; the nodes may be short of free CPUs (one per slot) "
                "or of memory: see `ray status`"
            ) from problem
        except RayError as problem:
            raise _own_error(problem) from problem

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
        self._look(timeout_s)
        if self._error is not None:
            raise self._error
        return self._is_over

    def _look(self, timeout_s: float) -> None:
        if self._is_over:
            return
        self._take_ends(timeout_s)
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
        elif self._deaths:
            self._error = WorkerDied(self._obituary())
        else:
            self._error = WorkerDied(self._failed()[0].error)

    def _has_root_cause(self) -> bool:
        own = any(report.error_type != "WorkerDied" for report in self._failed())
        return own or bool(self._deaths)

    def _obituary(self) -> str:
        lines = []
        for name, reason in self._deaths.items():
            stages = ", ".join(stage.name for stage in self._plan.stages_of(name))
            lines.append(f"the worker of slot {name!r} (stages: {stages}) died: {reason}")
        return (
            "; ".join(lines) + ". The job was stopped; sinks hold whole batches only. If it was "
            "short of memory or killed by hand, mend that, and submit the flow again"
        )

    # -- what it says ----------------------------------------------------------------------

    def report(self) -> JobReport:
        """Return the report as it stands."""
        status = self.status
        if status == "running":
            self._fetch_reports()
        elapsed_s = self._elapsed_s or max(0, time.time_ns() - self._start_ns) / 1e9
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
        )

    def _fetch_reports(self) -> None:
        calls = {self._actors[name].call.remote("report"): name for name in self._living}
        done, _ = ray.wait(list(calls), num_returns=len(calls), timeout=CALL_TIMEOUT_S)
        for ref in done:
            try:
                self._reports[calls[ref]] = ray.get(ref)
            except RayError:
                continue  # _look names the dead; its last report stands

    def collected(self, sink: str) -> pa.Table:
        """Return what a collect sink has gathered.

        Raises:
            WorkerDied: it is gone with its worker.
        """
        data = self._collected.get(sink)
        if data is None and not self._is_over:
            data = self._fetch_collected(sink)
        if data is None:
            raise WorkerDied(
                f"the results of sink {sink!r} are gone with the worker of slot "
                f"{self._plan.slots[sink]!r}; write them to a file sink where they must outlive it"
            )
        with pa.ipc.open_stream(data) as stream:
            return stream.read_all()

    def _fetch_collected(self, sink: str) -> bytes | None:
        call = self._actors[self._plan.slots[sink]].call.remote("collected", sink)
        try:
            return ray.get(call, timeout=START_TIMEOUT_S)  # type: ignore[no-any-return]
        except RayError:
            return None

    # -- ending ----------------------------------------------------------------------------

    def stop(self) -> None:
        """End the job now; the sinks keep the whole batches that they have.

        A slot that does not answer (a user's function that hangs) is killed after 10 s. A sink
        that cannot be finished fails the job.
        """
        if self._is_over:
            return
        for name in self._living:
            self._actors[name].call.remote("stop")
        deadline_s = time.monotonic() + CALL_TIMEOUT_S
        while self._living and (left := deadline_s - time.monotonic()) > 0:
            self._take_ends(left)
        if self._error is None and self._failed():
            self._find_cause()
        self._finish()

    def _finish(self) -> None:
        """Fetch what the collect sinks hold, and let the actors and their CPUs go."""
        ends = [own.ended_ns for own in self._ended.values() if own.ended_ns is not None]
        self._elapsed_s = max(0, max(ends, default=time.time_ns()) - self._start_ns) / 1e9
        for stage in self._plan.stages:
            is_collect = isinstance(stage.step, SinkStep) and stage.step.sink.kind == "collect"
            if is_collect and self._plan.slots[stage.name] in self._ended:
                data = self._fetch_collected(stage.name)
                if data is not None:
                    self._collected[stage.name] = data
        self._is_over = True
        self._end_actors()

    def _end_actors(self) -> None:
        for actor in self._actors.values():
            ray.kill(actor, no_restart=True)


def _own_error(problem: RayError) -> SlackwaterError:
    """Return the error of our tree inside a Ray error, or one that tells what Ray said."""
    cause = getattr(problem, "cause", None)
    if isinstance(cause, SlackwaterError):
        return type(cause)(str(cause))
    unknown = re.search(r"No module named '([^']+)'", str(problem))
    if unknown:
        return ClusterError(
            f"a worker cannot import {unknown[1]!r}, from which a function or an input of the flow "
            "comes; install it on the nodes, or put it beside the program or in its working folder"
        )
    return WorkerDied(f"a worker failed to start: {problem}")
