"""Observations of a flow, by a sample or by an earlier job: costs, counts, times.

A prediction is made from these and from rates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from slackwater.runtime.foresight import QueryGraph
from slackwater.runtime.foresight.gates import SourceTimes
from slackwater.runtime.foresight.observations import StageObservations
from slackwater.runtime.foresight.query_graph import FloatArray
from slackwater.runtime.foresight.rates import RecordedRate
from slackwater.runtime.json_form import JsonView, View
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.stage_versions import other_stages, stage_versions
from slackwater.runtime.simulate import CostModel

__all__ = ["FlowSample", "costs_of"]


@dataclass(frozen=True)
class FlowSample(JsonView):
    """Sample of a flow: the costs and counts that it has shown.

    A step whose stages are equal parts has one entry, under its name (`Stage.whole`), until the
    sample is `divided` for a plan.

    Attributes:
        graph: costs and selectivities; its operators are steps, or the stages of a plan.
        rows: {source: rows that were read}.
        took_s: duration of the sampling.
        stages: sample of each stage, in topological order.
        row_bytes: {(stage, its target): bytes sent for each row that leaves the stage}.
        shares: {stage: share of its inputs' output rows that reach it}.
        versions: {stage: a digest of what it did with a row}; empty: any version.
        times: {source: arrivals, event times and promises of its rows}.
        origin_ns: the event time that counts as 0 in `times`.
        recorded: {source: its arrivals}, if an earlier job has shown all this.
        origin: the earlier job of `recorded`, in words; "" for a sample.
        stretches: number of stretches of time with its rows, evenly over the time looked at.
        covers_s: event time of these stretches together; 0: unknown.
        looked_s: event time over which arrivals were looked at.
        spread: standard error of the cost of a source's row, as a share of it, by the difference
            between parts of the sample, its coverage, and this machine's timing; 0: unknown.
        key_rows: {step with replicas: shape (KEY_GROUPS,), its rows in each group of keys}; absent:
            unknown.
        saved: {stage that sheds: share of its work that is saved if all is dropped}, by two passes
            over the sample; empty: no stage sheds, or it is unknown.
    """

    graph: QueryGraph
    rows: dict[str, int]
    took_s: float
    stages: tuple[StageObservations, ...] = ()
    row_bytes: Mapping[tuple[str, str], float] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    times: Mapping[str, SourceTimes] = field(default_factory=dict)
    origin_ns: int = 0
    recorded: Mapping[str, RecordedRate] = field(default_factory=dict)
    origin: str = ""
    saved: Mapping[str, float] = field(default_factory=dict)
    key_rows: Mapping[str, FloatArray] = field(default_factory=dict)
    stretches: int = 1
    covers_s: float = 0.0
    looked_s: float = 0.0
    spread: float = 0.0

    JSON: ClassVar[View] = {
        "rows": "rows",
        "took_s": lambda sample: round(sample.took_s, 3),
        "stretches": "stretches",
        "covers_s": "covers_s",
        "looked_s": "looked_s",
        "spread": "spread",
    }

    @property
    def kind(self) -> str:
        """Kind of the sample, in a word."""
        return "history" if self.recorded else "sample"

    def differs_from(self, plan: Plan) -> list[str]:
        """Return the stages of a plan that differ from the sample's, sorted."""
        if not self.versions:
            names = {stage.name for stage in plan.stages}
            steps = {stage.whole for stage in plan.stages}
            own = set(self.graph.names)
            return [] if steps == own else sorted(names ^ own)
        return other_stages(stage_versions(plan.stages), self.versions)


def costs_of(sample: FlowSample) -> CostModel:
    """Return the simulator's cost model from a sample."""
    if not sample.stages:  # of a history: rows in full slices
        each = {
            stage.name: stage.cost_s[0] / sample.shares.get(stage.name, 1.0) * NS_PER_SECOND
            for stage in sample.graph.operators
        }
        return CostModel(per_slice_ns=0, per_row_ns=0, stages=each)
    costs = {stage.name: stage.cost(stage.more) for stage in sample.stages}
    fixed, row, more = (
        {name: getattr(cost, part) * NS_PER_SECOND for name, cost in costs.items()}
        for part in ("fixed_s", "row_s", "more_s")
    )
    joins = {stage.name for stage in sample.stages if stage.within_s is not None}
    return CostModel(
        per_row_ns=0,
        slices=fixed,
        stages=row,
        compared={name: cost_ns if name in joins else 0.0 for name, cost_ns in more.items()},
        results={name: 0.0 if name in joins else cost_ns for name, cost_ns in more.items()},
    )
