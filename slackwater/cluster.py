"""Where flows run: local nodes, an existing Ray cluster, or the simulator.

The one place that joins `actors` and `ingest`: it starts Java's settings before Ray, and Spark
(through RayDP) on the same cluster when asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from runtime.config import Limits
from runtime.flow.dataflow import Dataflow
from runtime.flow.place import place
from runtime.flow.plan import Plan, plan_stages
from runtime.simulate import CostModel, LinkModel
from slackwater.jobs import Job, SimulatedJob

if TYPE_CHECKING:
    from actors.nodes import RayNodes
    from ingest.session import SparkOnRay

Say = Callable[[str], None]


class _Nodes(ABC):
    """Named nodes that flows are placed on; a context manager that closes what they hold.

    Attributes:
        nodes: their names.
    """

    nodes: list[str]

    def plan(self, flow: Dataflow, *, placement: Mapping[str, str] | None = None) -> Plan:
        """Return the stages of a flow and the node of each, without running it."""
        return place(flow.name, plan_stages(flow), self.nodes, placement=placement)

    def explain(self, flow: Dataflow, *, placement: Mapping[str, str] | None = None) -> str:
        """Return the flow's graph and where each stage will run."""
        plan = self.plan(flow, placement=placement)
        width = max(len(stage.name) for stage in plan.stages)
        lines = [f"  {s.name:<{width}}  {plan.slots[s.name]}" for s in plan.stages]
        return "\n".join([flow.explain(), "", "placement", *lines])

    @abstractmethod
    def close(self) -> None:
        """Let go of everything. Safe to call twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Cluster(_Nodes):
    """A Ray cluster to submit flows to. Use it as a context manager, from one thread.

    Attributes:
        nodes: their names.
    """

    def __init__(self, nodes: RayNodes) -> None:
        self._ray = nodes
        self._jobs: list[Job] = []
        self._spark: SparkOnRay | None = None
        self.nodes = [node.name for node in nodes.nodes]

    @classmethod
    def local(cls, nodes: int = 3, *, progress: Say | None = None) -> Cluster:
        """Start Ray nodes on this machine: simulated nodes, with one clock and its cores.

        Args:
            nodes: how many, at least 1.
            progress: told, in a few words, what is being started.

        Raises:
            ClusterError: they did not start.
        """
        from actors.nodes import RayNodes  # noqa: PLC0415 (Ray takes a second to import)
        from ingest.java import prepare_java  # noqa: PLC0415

        prepare_java()
        return cls(RayNodes.local(nodes, progress=progress))

    @classmethod
    def connect(cls, address: str | None = None, *, progress: Say | None = None) -> Cluster:
        """Join an existing Ray cluster, from one of its hosts.

        Args:
            address: `host:port` of its head, or "auto" for the one on this host.
            progress: told, in a few words, what is going on.

        Raises:
            ClusterError: nobody answers there, or it refuses us.
        """
        from actors.nodes import RayNodes  # noqa: PLC0415

        return cls(RayNodes.connect(address, progress=progress))

    def submit(
        self,
        flow: Dataflow,
        *,
        placement: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> Job:
        """Start a flow.

        Args:
            flow: checked here once more.
            placement: {stage: node} for some stages, or {"*": node} for all.
            limits: what bounds memory and slices.

        Raises:
            FlowError: the flow or the placement is wrong.
            ClusterError: a node has too few free CPUs, or its slots could not be started.
        """
        from actors.job import RayJob  # noqa: PLC0415
        from actors.placement import check_room  # noqa: PLC0415

        plan = self.plan(flow, placement=placement)
        where = {node.name: node for node in self._ray.nodes}
        node_ids = {slot: where[slot].node_id for slot in plan.slot_names}
        check_room(node_ids)
        job = Job(
            plan,
            RayJob(
                plan,
                node_ids=node_ids,
                hosts={slot: where[slot].ip for slot in plan.slot_names},
                limits=limits,
                notes=self._ray.notes,
            ),
        )
        self._jobs = [one for one in self._jobs if one.status == "running"] + [job]
        return job

    def spark(self, **settings: Any) -> SparkOnRay:
        """Start Spark on this cluster, once; `.session` is the SparkSession.

        Args:
            settings: of `ingest.session.SparkOnRay`: executors, cores, memory.

        Raises:
            JavaError: no Java was found.
            IngestError: Spark did not start.
        """
        if self._spark is None:
            from ingest.session import SparkOnRay  # noqa: PLC0415

            self._spark = SparkOnRay("slackwater", **settings)
            self._spark.start()
        return self._spark

    def close(self) -> None:
        """Stop every job, Spark, and the nodes if they are ours. Safe to call twice."""
        with ExitStack() as last_to_first:  # each in its turn, whatever another one raises
            last_to_first.callback(self._ray.close)
            if self._spark is not None:
                last_to_first.callback(self._spark.stop)
            for job in self._jobs:
                last_to_first.callback(job.close)
            self._jobs, self._spark = [], None


class Simulation(_Nodes):
    """The simulator as a place to submit flows to: virtual time, repeatable by its seed.

    Args:
        nodes: how many it has; slots are `node-1`, …
        seed: of the costs and delays that are drawn.
        cost: what work costs; None: the defaults of CostModel.
        link: what distance costs.
    """

    def __init__(
        self,
        nodes: int = 3,
        *,
        seed: int = 0,
        cost: CostModel | None = None,
        link: LinkModel | None = None,
    ) -> None:
        self.nodes = [f"node-{n}" for n in range(1, nodes + 1)]
        self._seed, self._cost, self._link = seed, cost, link
        self._jobs: list[SimulatedJob] = []

    def submit(
        self,
        flow: Dataflow,
        *,
        placement: Mapping[str, str] | None = None,
        limits: Limits | None = None,
    ) -> SimulatedJob:
        """Take a flow; it runs when the job is waited for.

        Raises:
            FlowError: the flow or the placement is wrong.
        """
        plan = self.plan(flow, placement=placement)
        job = SimulatedJob(plan, seed=self._seed, cost=self._cost, link=self._link, limits=limits)
        self._jobs.append(job)
        return job

    def close(self) -> None:
        """Let go of the jobs' sinks."""
        for job in self._jobs:
            job.close()
