"""Run one job on a Ray cluster: its slots are actors on their nodes.

```
identify ─▶ bind ─▶ clocks ─▶ connect ─▶ start ─▶ JobCarrier, to its end: results are fetched,
                                                  actors end, and CPUs are free
```

This file starts a job, and reports on it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from slackwater.actors.jobs.carrier import JobCarrier, home_nodes
from slackwater.actors.jobs.replacing import Replacing, RunningJob
from slackwater.actors.jobs.slot_actors import ask_all, end_actors, make_actors, set_clocks
from slackwater.actors.nodes.cluster_monitor import own_cluster_monitor
from slackwater.actors.nodes.host_monitor import HostMonitor
from slackwater.actors.nodes.placement import NodeInfo, check_room, list_nodes
from slackwater.actors.sinks.run_fingerprints import sink_runs, slots_with_inputs
from slackwater.actors.slot.report import SlotIdentity, put_together
from slackwater.actors.tuning.supervisor import TunerSupervisor
from slackwater.actors.wire.channel import ChannelKeys
from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.measure.replaced import Replaced
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.measure.tuning import TuningReport
from slackwater.runtime.placement.moved import moved_plan
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.slots import SlotPlace, slots_of_nodes

START_TIMEOUT_S = 60.0
LEAD_NS = 300_000_000
"""Sources begin this long after the order to start. By then every slot has the order, has met its
peers, and has opened its inputs. So none of that delays the first events."""


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

    Attributes:
        pids: {slot: process id of its worker, on its node}; empty before the start.
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
    ) -> None:
        self._job_id = job_id or plan.flow
        self.pids: dict[str, int] = {}
        self._plan, self._homes = plan, home_nodes(nodes)
        self._hosts = HostMonitor(nodes.values())
        self._cluster_monitor = own_cluster_monitor()
        self.tuner = TunerSupervisor(plan, folder=folder)
        self._notes = list(notes)
        self._settings: dict[str, Any] = {
            "shifts": clock_shifts or {},
            "keys": ChannelKeys.generate(),
            "folder": os.getcwd() if folder is None else folder,
        }
        self._replacing: Replacing | None = None
        self._actors = make_actors(plan, nodes, **self._settings)
        self._carrier = JobCarrier(
            plan,
            nodes,
            self._actors,
            cluster_monitor=self._cluster_monitor,
            hosts=self._hosts,
            tuner=self.tuner,
            relays_output=relays_output,
        )

    def start(self) -> RayJob:
        """Start the slots and let the sources run; return this job.

        Raises:
            SlackwaterError: the start failed (a sink that cannot be opened, too little room, a
                worker that died). No actor is left then.
        """
        try:
            self._hosts.begin()
            self._start()
        except BaseException:  # Ctrl-C too: no actor may remain
            self.give_up()
            raise
        return self

    def _start(self) -> None:
        known = dict(zip(self._actors, self._on_all("identify"), strict=True))
        self.pids = {name: identity.pid for name, identity in known.items()}
        hosts = {stage: known[slot].host for stage, slot in self._plan.slots.items()}
        endpoints: dict[str, str] = {}
        for bound in self._on_all("bind", hosts):
            endpoints.update(bound)
        set_clocks(known, self._on_all)
        # The times below are the reference's, not this process's.
        inputs = self._on_all("fingerprints", slots=slots_with_inputs(self._plan))
        runs = sink_runs(self._plan, self._job_id, inputs)
        start_ns = max(self._on_all("connect", endpoints, runs)) + LEAD_NS
        began_s = time.monotonic() + LEAD_NS / 1e9
        self._on_all("start", start_ns)
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
        made = make_actors(plan, nodes, **self._settings)
        actors = {**self._actors, **made}
        try:
            ask = partial(self._ask, actors, plan=plan)
            identities = dict(zip(made, ask("identify", slots=made), strict=True))
            set_clocks({**known, **identities}, ask, only=made)
        except BaseException:
            end_actors(made)
            raise
        return {slot: (made[slot], identities[slot]) for slot in made}

    def give_up(self) -> None:
        """End the actors of a job that has not started, and their temp files.

        From any thread: a `start` that waits for them then raises.
        """
        self._carrier.close()
        end_actors(self._actors, stopped="the job was given up before it had started")

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
        return ask_all(
            {name: actors[name] for name in slots},
            method,
            *args,
            plan=plan or self._plan,
            homes=self._homes,
            cluster_monitor=self._cluster_monitor,
            timeout_s=timeout_s,
        )

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
        """Ask the slots for their reports, for 3 s at most; return the job's report."""
        if not self._carrier.over.is_set():
            self._carrier.refresh()
        with self._carrier.lock:
            tuning = self.tuner.report(is_fresh=self._cluster_monitor.lost is None)
        return self._put_together(tuning)

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

    def stop(self) -> None:
        """End the job now; return when it has ended. The sinks publish all their rows.

        A slot that does not answer (a user's function that hangs) is killed after 10 s. If its host
        does not answer either, the slot is killed at once. A sink that cannot be finished fails the
        job, and so does a worker that dies before its end.
        """
        self._carrier.stop()
