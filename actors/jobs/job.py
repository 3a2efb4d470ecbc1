"""One job on a Ray cluster: slots as actors on their nodes, carried to their end.

```
identify ─▶ bind ─▶ clocks ─▶ connect ─▶ start ─▶ JobCarrier, to its end: results are fetched,
                                                  actors end, and CPUs are free
```

Here a job is started, and says how it goes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from slackwater.actors.jobs.carrier import JobCarrier
from slackwater.actors.jobs.replacing import Replacing, RunningJob
from slackwater.actors.jobs.slot_actors import ask_all, end_actors, make_actors, set_clocks
from slackwater.actors.nodes.cluster_monitor import own_cluster_monitor
from slackwater.actors.nodes.host_monitor import HostMonitor
from slackwater.actors.nodes.placement import NodeInfo, check_room, list_nodes
from slackwater.actors.sinks import sink_runs, slots_with_inputs
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
"""Sources begin this long after the order to start. By then every slot has the order, has met
its peers, and has opened its inputs; what that takes is not in the first events' latency."""


class RayJob:
    """A submitted flow: `start` it. From then on any thread may use it.

    Properties tell what was seen last; `wait` and `report` find out.

    Args:
        plan: every stage in a slot, with the job's settings.
        nodes: {slot: the node it runs on}.
        notes: what the report must say about these nodes.
        folder: what sinks' relative paths are meant from; this process's unless told.
        clock_shifts: for tests, {node: `shift` of its slots' `SlotClock`}.
        echoes: whether this process prints what users' functions print in the slots.
        job_id: its name in the locks and manifests of its output.

    Attributes:
        pids: {slot: process id of its worker, on its node}; empty before the start.
        tuner: who sets its slacks.
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
        self._plan = plan
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
        start_ns = max(self._on_all("connect", endpoints, runs)) + LEAD_NS
        began_s = time.monotonic() + LEAD_NS / 1e9
        self._on_all("start", start_ns)
        self.tuner.start(self._actors)
        self._carrier.begin(start_ns=start_ns, began_s=began_s)
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
        """Let stages go on in other slots, {stage: slot or node}; return what came of it.

        Those that it does not name stay. See `slackwater/jobs.py`.

        Raises:
            FlowError: a stage, slot or node that is not there; a stage that cannot move; or the
                job has ended.
            ClusterError: there is no room for a new slot, or it could not be made.
        """
        assert self._replacing is not None, "the job has started"
        nodes = {node.name: node for node in list_nodes()}
        slots = slots_of_nodes({name: node.cores for name, node in nodes.items()})
        done = self._replacing.place(moved_plan(self.plan, placement, slots), nodes)
        self.pids |= {name: one.pid for name, one in self._replacing.job.known.items()}
        return done

    @property
    def plan(self) -> Plan:
        """Its stages, each in a slot, as it runs now."""
        return self._plan if self._replacing is None else self._replacing.job.plan

    @property
    def places(self) -> Mapping[str, SlotPlace]:
        """{slot: where it is}, of those in use, or that were."""
        return self.plan.places

    def _new_actors(
        self, known: Mapping[str, SlotIdentity], plan: Plan, nodes: Mapping[str, NodeInfo]
    ) -> dict[str, tuple[Any, SlotIdentity]]:
        """Make actors for slots of a plan, {slot: node}, and let them go by the job's clock."""
        check_room({slot: node.node_id for slot, node in nodes.items()})
        made = make_actors(plan, nodes, **self._settings)
        there = {**self._actors, **made}
        try:
            ask = partial(self._ask, there)
            who = dict(zip(made, ask("identify", slots=made), strict=True))
            set_clocks({**known, **who}, ask, only=made)
        except BaseException:
            end_actors(made)
            raise
        return {slot: (made[slot], who[slot]) for slot in made}

    def give_up(self) -> None:
        """End the actors of a job that has not started; they may have files in the temp folder.

        From any thread: a `start` that still waits for them then raises.
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
        timeout_s: float = START_TIMEOUT_S,
    ) -> list[Any]:
        return ask_all(
            [actors[name] for name in slots],
            method,
            *args,
            flow=self._plan.flow,
            cluster_monitor=self._cluster_monitor,
            timeout_s=timeout_s,
        )

    # -- what it says ----------------------------------------------------------------------

    @property
    def status(self) -> str:
        """running, done, stopped or failed, as it was last seen."""
        carrier = self._carrier
        if not carrier.over.is_set():
            return "running"
        return "failed" if carrier.error is not None else carrier.life.status

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end at most so long; return whether it has come.

        Raises:
            SlackwaterError: the job failed; the error says who and why. All slots are stopped.
        """
        has_ended = self._carrier.over.wait(timeout_s)
        if has_ended and self._carrier.error is not None:
            raise self._carrier.error
        return has_ended

    def report(self) -> JobReport:
        """Ask the slots how it goes, for 3 s at most, and return the report as it stands."""
        if not self._carrier.over.is_set():
            self._carrier.refresh()
        with self._carrier.lock:
            tuning = self.tuner.report(is_fresh=self._cluster_monitor.lost is None)
        return self._put_together(tuning)

    @property
    def seen(self) -> JobReport:
        """The report as it was last heard, of a second ago or so; nobody is asked."""
        return self._put_together(self.tuner.report())

    def _put_together(self, tuning: TuningReport | None) -> JobReport:
        status, carrier = self.status, self._carrier  # first: what is read later is no older
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
        """Return what a collect sink has gathered.

        Raises:
            WorkerDied: it is gone with its worker.
            ClusterError: it did not come within a minute.
        """
        with pa.ipc.open_stream(self.collected_stream(sink)) as stream:
            return stream.read_all()

    def collected_stream(self, sink: str) -> bytes:
        """Return the same as an Arrow IPC stream."""
        carrier = self._carrier
        if not carrier.over.is_set():
            try:
                return carrier.results.fetch(sink)
            except SlackwaterError:
                if not carrier.life.is_ending:
                    raise
                carrier.over.wait()  # its slot ended as we asked; if it was kept, it is here
        return carrier.results.of(sink)

    @property
    def gathered(self) -> list[str]:
        """The collect sinks whose rows are here, once the job has ended."""
        return self._carrier.results.kept

    def stop(self) -> None:
        """End the job now; return when it has ended. The sinks publish all that they have.

        A slot that does not answer (a user's function that hangs) is killed after 10 s, one on a
        host that does not answer either at once. A sink that cannot be finished fails the job, and
        so does a worker that dies before it has ended.
        """
        self._carrier.stop()
