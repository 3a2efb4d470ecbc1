"""Submit flows to the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from slackwater.flow_host import FlowHost
from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import SettingError
from slackwater.runtime.flow.dataflow import Dataflow
from slackwater.runtime.foresight.chosen.admission import check_admission
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.slots import slots_of_nodes
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.shown import shown
from slackwater.runtime.simulate import CostModel, Fault, LinkModel
from slackwater.runtime.simulate.models import MeasuredCost
from slackwater.simulated_job import SimulatedJob
from slackwater.submitted import Planned

if TYPE_CHECKING:
    from slackwater.runtime.foresight.predicted.asked import Ahead
    from slackwater.runtime.foresight.predicted.prediction import Prediction
    from slackwater.runtime.foresight.rates import Rate


MOST_SLOTS = 1_000
"""Most slots: a plan for this many takes seconds, for ten times as many minutes."""


def _check_models(seed: int, cost: object, link: object) -> None:
    if seed < 0:
        raise SettingError(f"seed={seed} must be zero or more, such as 7")
    if cost is not None and not isinstance(cost, CostModel | MeasuredCost):
        raise SettingError(
            f"cost={shown(cost)} is not a model of costs; write "
            "sw.testing.CostModel(per_row_ns=250)"
        )
    if link is not None and not isinstance(link, LinkModel):
        raise SettingError(
            f"link={shown(link)} is not a model of links; write "
            "sw.testing.LinkModel(delay_ns=20_000_000)"
        )


def _repeatable(plan: Plan) -> Plan:
    """Return a plan whose inputs do not depend on the clock."""
    stages = list(plan.stages)
    for number, stage in enumerate(stages):
        step = stage.step
        if isinstance(step, SourceStep) and hasattr(step.source.input, "simulated"):
            spec = replace(step.source, input=step.source.input.simulated())
            stages[number] = replace(stage, step=replace(step, source=spec))
    return replace(plan, stages=tuple(stages))


class Simulation(FlowHost):
    """The simulator as a place to submit flows to: virtual time, repeatable by its seed.

    Args:
        nodes: number of simulated nodes.
        cores: cores of each node; slots are `node-1/1`, `node-1/2` and so on, or just `node-1`.
        seed: seed of the drawn costs and delays.
        cost: cost of work, also in predictions. If None, as a sample here shows, for a flow that is
            submitted with rates; else the defaults of CostModel.
        link: capacity and delay between nodes.

    Raises:
        SettingError: no slot, or more than 1,000.
    """

    @checked_call
    def __init__(
        self,
        nodes: int = 3,
        *,
        cores: int = 1,
        seed: int = 0,
        cost: CostModel | None = None,
        link: LinkModel | None = None,
    ) -> None:
        if not 1 <= nodes * cores <= MOST_SLOTS:
            raise SettingError(
                f"{nodes} nodes with {cores} cores are {nodes * cores} slots; a simulation has 1 "
                f"to {MOST_SLOTS:,}, since a plan for more takes minutes: choose fewer nodes or "
                "cores (--nodes, --cores)"
            )
        _check_models(seed, cost, link)
        self.nodes = [f"node-{n}" for n in range(1, nodes + 1)]
        self.slots = slots_of_nodes(dict.fromkeys(self.nodes, cores))
        self._seed, self._cost, self._link = seed, cost, link
        if link is not None:
            link.check_nodes(self.nodes)
        self._hop_ns = (link or LinkModel()).least_delay_ns
        self._jobs: list[SimulatedJob] = []

    @checked_call
    def submit(
        self, flow: Dataflow, *, faults: Sequence[Fault] = (), **how: Unpack[Planned]
    ) -> SimulatedJob:
        """Take a flow; it runs when the job is waited for.

        Args:
            flow: the flow; it is checked again here. The run uses copies of its objects, except
                outputs.
            faults: faults of the run (`sw.testing.SlotDies(…)` and others); the seed draws how late
                each peer hears of a fault.
            **how: options of the plan: `placement`, `limits`, `tuning`, `rates`, `sample` and
                `admission`; see `slackwater.submitted.Planned`.

        Raises:
            FlowError: the flow or the placement is wrong, no slack can keep the deadline, or the
                flow was not admitted. Or a part of it does not pickle for a cluster's slots.
            SettingError: `tuning` is wrong, or the flow has no deadline for it; or a fault names
                no slot of the plan.
        """
        from slackwater.actors.jobs.picklable import copied_plan  # noqa: PLC0415 (Ray's part of it)

        cost = self._cost
        if cost is None and (rates := how.get("rates")) is not None:
            # The prediction and the run use the same costs.
            check_admission(how.get("admission"), rates)
            if (prediction := self._made(flow, rates, how)) is not None:
                from slackwater.runtime.foresight.observed.flow_sample import costs_of  # noqa: PLC0415

                how["rates"], cost = prediction, costs_of(prediction.sample)
        plan = _repeatable(copied_plan(self._ready(flow, how)))
        job = SimulatedJob(
            plan,
            seed=self._seed,
            cost=cost,
            link=self._link,
            faults=faults,
            slots=self.slots,
        )
        self._jobs.append(job)
        return job

    def _made(
        self, flow: Dataflow, rates: Mapping[str, Rate] | Rate | Prediction, how: Planned
    ) -> Prediction | None:
        by: Ahead = {
            "placement": how.get("placement"),
            "limits": how.get("limits"),
            "tuning": how.get("tuning"),
        }
        return self._predicted_if_known(flow, rates, how.get("sample", 1_000), **by)[0]

    def close(self) -> None:
        """Release the jobs' sinks."""
        for job in self._jobs:
            job.close()
