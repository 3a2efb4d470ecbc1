"""Run flows for real: on local nodes, or on an existing Ray cluster.

This is the only place that joins `actors` and `ingest`: it sets Java's environment before Ray
starts, and starts Spark (through RayDP) on the same cluster when asked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from slackwater.chosen_checkpoints import (
    LIVE,
    CheckpointWish,
    Hosts,
    chosen_checkpoints,
    divided_as_before,
)
from slackwater.end_signals import END_SIGNALS, FROM_OUTSIDE
from slackwater.flow_host import FlowHost
from slackwater.jobs import Job
from slackwater.runtime.calls import checked_call
from slackwater.runtime.config import Limits, Tuning
from slackwater.runtime.errors import ClusterError, FlowError
from slackwater.runtime.flow.dataflow import Dataflow
from slackwater.runtime.foresight.chosen.admission import RunningFlow
from slackwater.runtime.model import Duration
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.slots import slots_of_nodes
from slackwater.runtime.plan.steps import SourceStep
from slackwater.submitted import Planned

if TYPE_CHECKING:
    from slackwater.actors.nodes.ray_nodes import RayNodes
    from slackwater.ingest.session import SparkOnRay
    from slackwater.runtime.foresight.shared_cores import SharedCores

Say = Callable[[str], None]

SETTLES_S = 1.5
"""Ray needs about a second to report free CPUs, such as those of the job before."""


class Cluster(FlowHost):
    """Ray cluster to submit flows to. Use it as a context manager.

    Attributes:
        nodes: names of the nodes at the last plan.
        slots: slots of the nodes at the last plan: one for each core.
        detaches: whether `submit` starts detached jobs by default: True on a cluster that is
            not ours.
    """

    def __init__(self, nodes: RayNodes) -> None:
        self._ray, self._until_closed = nodes, ExitStack()
        self._jobs: list[Job] = []  # submitted here
        self.detaches = not nodes.is_simulated
        self._spark: SparkOnRay | None = None
        self._take_over()

    @classmethod
    @checked_call
    def local(cls, nodes: int = 3, *, cores: int = 1, progress: Say | None = None) -> Cluster:
        """Start Ray nodes on this machine: simulated nodes, with one clock and its cores.

        Args:
            nodes: number of nodes, at least 1.
            cores: slots of each node, at least 1: `node-1/1`, `node-1/2` and so on; one alone is
                `node-1`. Only slots with a stage have a process.
            progress: called with a description of each step.

        Raises:
            ClusterError: they did not start.
        """
        from slackwater.actors.nodes.ray_nodes import RayNodes  # noqa: PLC0415 (Ray takes a second to import)
        from slackwater.ingest.java import prepare_java  # noqa: PLC0415

        prepare_java()
        return cls._opened(partial(RayNodes.local, nodes, cores=cores, progress=progress))

    @classmethod
    @checked_call
    def connect(cls, address: str | None = None, *, progress: Say | None = None) -> Cluster:
        """Join an existing Ray cluster, from a host of it or through a proxy.

        Args:
            address: `host:port` of its head, from one of its hosts; None or "auto": RAY_ADDRESS,
                else the one on this host. `ray://host:port` of its client proxy works from
                anywhere, to submit, watch and stop detached jobs and to fetch their results.
            progress: called with a description of each step.

        Raises:
            ClusterError: no cluster answers there, or it refuses our token.
        """
        from slackwater.actors.nodes.ray_nodes import RayNodes  # noqa: PLC0415

        return cls._opened(partial(RayNodes.connect, address, progress=progress))

    @classmethod
    def _opened(cls, open_nodes: Callable[[], RayNodes]) -> Cluster:
        """Return a cluster of these nodes; until its close SIGTERM and SIGHUP raise."""
        with ExitStack() as until_closed:
            until_closed.enter_context(END_SIGNALS.caught(FROM_OUTSIDE))
            opened = cls(open_nodes())
            opened._until_closed = until_closed.pop_all()
        return opened

    def _placed(
        self,
        flow: Dataflow,
        *,
        placement: Mapping[str, str] | None,
        limits: Limits | None,
        tuning: Tuning | None,
    ) -> Plan:
        """Return the plan of a flow on the nodes that are up now.

        Slots whose CPUs are busy are used only if no other slot is left, or if `placement` names
        them.
        """
        self._ray.refresh(settles_s=SETTLES_S)
        self._take_over()
        if not self.nodes:
            raise ClusterError(
                f"no node of the cluster at {self._ray.address} answers "
                f"({'; '.join(self._silent()) or 'Ray lists none'}); see with `ray status` which "
                "are up, or start the cluster again"
            )
        if not self.slots:
            raise ClusterError(
                f"no node of the cluster at {self._ray.address} has a CPU for a slot; start Ray "
                "with --num-cpus of at least 1 on one of them"
            )
        try:
            return super()._placed(flow, placement=placement, limits=limits, tuning=tuning)
        except FlowError as problem:
            without = [
                f"node {n.name} has no CPU for a slot" for n in self._ray.nodes if not n.cores
            ]
            for note in (*self._silent(), *without):
                problem.add_note(f"({note})")
            raise

    def _running(self, *, but: Job | None = None) -> list[RunningFlow]:
        others = [job for job in self._jobs if but is None or job.id != but.id]
        return [job.needs for job in others if job.status == "running"]

    def _machines(self, running: Sequence[RunningFlow]) -> list[SharedCores]:
        from slackwater.runtime.foresight.shared_cores import SharedCores  # noqa: PLC0415 (who predicts)

        if not self._ray.is_simulated:
            return []  # each slot has its own CPU, and the nodes' sizes are not ours
        return [
            SharedCores(
                name="this machine",
                cores=float(os.cpu_count() or 1),
                slots=frozenset(slot.name for slot in self.slots),
                taken=sum(flow.cores for flow in running),
                others=sum(flow.slots for flow in running),
            )
        ]

    def _take_over(self) -> None:
        self.nodes = [node.name for node in self._ray.nodes]
        self.slots = slots_of_nodes({node.name: node.cores for node in self._ray.nodes})
        self._free = self._ray.free

    @checked_call
    def submit(
        self,
        flow: Dataflow,
        *,
        detach: bool | None = None,
        checkpoint: Duration | None = LIVE,
        checkpoint_folder: str | os.PathLike[str] | None = None,
        renamed: Mapping[str, str] | None = None,
        **how: Unpack[Planned],
    ) -> Job:
        """Start a flow; return when its slots run.

        Args:
            flow: the flow; it is checked again here.
            detach: whether the job outlives this process, with a coordinator. If None, True on a
                cluster that is not ours, unless an input of the flow ends with this process (a
                Spark frame).
            checkpoint: time between two checkpoints, from which the job goes on after a failure,
                such as "1s"; None if it takes none, and a failure ends it. "live" is "1s" where a
                source is live and nothing speaks against it; `Job.checkpoints` says what is so.
            checkpoint_folder: folder of the checkpoints, on a path that all nodes reach; if None,
                `.slackwater/<flow>` in the working folder. A later job of the same flow goes on
                from the newest one there, unless the job was done.
            renamed: new names of steps, {old: new}, where a checkpoint has the old ones.
            **how: options of the plan: `placement`, `limits`, `tuning`, `rates`, `sample` and
                `admission`; see `slackwater.submitted.Planned`.

        Raises:
            FlowError: the flow or the placement is wrong, or no slack can keep the deadline, or
                the flow was not admitted.
            SettingError: `tuning` is wrong, or the flow has no deadline for it; `renamed` has
                names that are not those of steps.
            CheckpointError: the newest checkpoint in the folder is of another flow or release, or
                another job takes checkpoints there.
            ClusterError: a node has too few free CPUs, runs other versions than this process, or
                its slots could not be started.
        """
        from slackwater.actors.jobs.detached import new_job_id, submit_detached  # noqa: PLC0415
        from slackwater.actors.jobs.job import RayJob  # noqa: PLC0415
        from slackwater.actors.jobs.lasting import LastingJob  # noqa: PLC0415
        from slackwater.actors.nodes.placement import check_room  # noqa: PLC0415
        from slackwater.actors.nodes.versions import check_nodes  # noqa: PLC0415

        wish = CheckpointWish(checkpoint, checkpoint_folder, renamed)
        plan = self._ready(divided_as_before(flow, wish), how)
        where = {node.name: node for node in self._ray.nodes}
        nodes = {slot: where[plan.places[slot].node] for slot in plan.slot_names}
        notes = self._ray.notes + self._silent()
        is_detached = self._will_detach(plan, detach)
        heads = [node for node in self._ray.nodes if node.is_head] if is_detached else []
        if not self._ray.is_simulated:
            check_nodes([*nodes.values(), *heads])
        job_id = new_job_id(plan.flow)
        hosts = Hosts([*nodes.values(), *heads], are_here=self._ray.is_simulated)
        chosen = chosen_checkpoints(
            flow,
            wish,
            hosts,
            job=None if self._ray.is_client else job_id,
        )
        notes += [chosen.note] if chosen.note else []
        if is_detached:
            head_id = heads[0].node_id if heads else None
            detached = submit_detached(
                plan, nodes=nodes, head_id=head_id, notes=notes, checkpoints=chosen.how
            )
            return self._with_job(Job.detached(detached, plan), chosen.text)
        check_room({slot: node.node_id for slot, node in nodes.items()})
        own: dict[str, Any] = {
            "nodes": nodes,
            "notes": notes,
            "relays_output": True,
            "job_id": job_id,
        }
        if chosen.how is None:
            alone = RayJob(plan, **own)
            return self._with_job(Job.attached(job_id, plan, alone.start()), chosen.text)
        lasting = LastingJob(plan, checkpoints=chosen.how, **own)
        number, text = lasting.goes_on_from, chosen.text
        text += "" if number is None else f"; goes on from checkpoint {number}"
        return self._with_job(Job.attached(job_id, plan, lasting.start()), text)

    def explained(self, flow: Dataflow, **options: Any) -> tuple[str, Plan]:
        """Return what `explain` does, and the plan that it is of."""
        text, plan = super().explained(flow, **options)
        nodes = [node for node in self._ray.nodes if node.name in self.nodes]
        hosts = Hosts(nodes, are_here=self._ray.is_simulated)
        chosen = chosen_checkpoints(flow, CheckpointWish(), hosts, job=None)
        return f"{text}\n\nby default {chosen.text}", plan

    def _with_job(self, job: Job, checkpoints: str) -> Job:
        job.checkpoints = checkpoints
        self._jobs = [other for other in self._jobs if other.status == "running"] + [job]
        return self._here(job)

    def _here(self, job: Job) -> Job:
        """Return a job that knows the load of others on its machine."""
        job.beside = lambda: self._machines(self._running(but=job))
        return job

    def jobs(self) -> list[Job]:
        """Return the detached jobs of this cluster, newest first.

        Ended jobs are included: the newest hundred.
        """
        from slackwater.actors.jobs.detached import DetachedJob, all_records  # noqa: PLC0415

        return [self._here(Job.detached(DetachedJob(record))) for record in all_records()]

    def job(self, wanted: str) -> Job:
        """Return a detached job, whoever submitted it.

        Args:
            wanted: its id, the beginning of its id, or the name of its flow (then the running job,
                else the newest).

        Raises:
            ClusterError: no job matches, or several do.
        """
        from slackwater.actors.jobs.detached import DetachedJob, all_records  # noqa: PLC0415
        from slackwater.actors.jobs.records import find_record  # noqa: PLC0415

        return self._here(Job.detached(DetachedJob(find_record(all_records(), wanted))))

    def spark(self, **settings: Any) -> SparkOnRay:
        """Start Spark on this cluster, once; `.session` is the SparkSession.

        Args:
            settings: settings of `slackwater.ingest.session.SparkOnRay`: executors, cores, memory.

        Raises:
            JavaError: no Java was found.
            IngestError: Spark did not start.
            ClusterError: we are outside the cluster.
        """
        if self._ray.is_client:
            raise ClusterError(
                f"Spark does not start through a client proxy ({self._ray.address}): RayDP needs "
                "its driver on a node of the cluster; run this program there "
                "(`ray job submit -- python flow.py`)"
            )
        if self._spark is None:
            from slackwater.ingest.session import SparkOnRay  # noqa: PLC0415

            self._spark = SparkOnRay("slackwater", **settings)
            self._spark.start()
        return self._spark

    def close(self) -> None:
        """Stop attached jobs, Spark, and local nodes. Idempotent.

        Detached jobs go on. A first SIGTERM or SIGHUP meanwhile is raised at the end.
        """
        with ExitStack() as last_to_first:  # each in turn, even if another raises
            last_to_first.callback(self._until_closed.close)
            last_to_first.enter_context(END_SIGNALS.noted())  # all sinks publish first
            last_to_first.callback(self._ray.close)
            if self._spark is not None:
                last_to_first.callback(self._spark.stop)
            for job in self._jobs:
                last_to_first.callback(job.close)
            self._jobs, self._spark = [], None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        named = END_SIGNALS.named(problem)
        super().__exit__(kind, problem, trace)
        if named is not problem and named is not None:
            raise named from None

    def _will_detach(self, plan: Plan, wish: bool | None) -> bool:
        bound = [
            stage.name
            for stage in plan.stages
            if isinstance(stage.step, SourceStep) and stage.step.source.traits.ends_with_driver
        ]
        detach = self.detaches and not bound if wish is None else wish
        if detach and bound:
            raise FlowError(
                f"source {bound[0]!r} of flow {plan.flow!r} reads rows of Spark or Ray Data, which "
                "end with this process, so the job cannot outlive it; submit with detach=False, or "
                "write the rows to files and read those"
            )
        if self._ray.is_client and not detach:
            raise ClusterError(
                f"a job cannot be attached to a process outside the cluster ({self._ray.address}); "
                "submit it detached, or run this program on a node of the cluster"
            )
        return detach

    def _silent(self) -> list[str]:
        return [
            f"node {node.name} is left out: its raylet on host {node.ip} does not answer"
            for node in self._ray.silent
        ]
