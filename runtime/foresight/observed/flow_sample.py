"""Observations of a flow, by a sample or by an earlier job: costs, counts, times.

A prediction is made of these, and of rates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from slackwater.runtime.foresight import QueryGraph
from slackwater.runtime.foresight.gates import SourceTimes
from slackwater.runtime.foresight.rates import RecordedRate
from slackwater.runtime.foresight.sampled import SampledStage
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.stage_versions import other_stages, stage_versions
from slackwater.runtime.simulate import CostModel

__all__ = ["FlowSample", "costs_of"]


@dataclass(frozen=True)
class FlowSample:
    """Sample of a flow: the costs and counts that it has shown.

    Attributes:
        graph: costs and selectivities; the stages of a plan are its operators.
        rows: {source: rows that were read}.
        took_s: how long the sample took.
        stages: what was seen of each, in topological order.
        row_bytes: {(stage, the one that it feeds): bytes sent there for each row put out}.
        shares: {stage: how many of the rows that its inputs put out reach it}.
        versions: {stage: a digest of what it did with a row}; empty: of any version.
        times: {source: when its rows came, of what time they are, and what they promise}.
        origin_ns: the event time that counts as 0 in `times`.
        recorded: {source: what arrived there}, where an earlier job has shown all this.
        origin: which job of how many that was, in words; "" of a sample.
        stretches: of how many stretches of time its rows are, evenly over what was looked at.
        covers_s: how much event time these are together; 0: not known.
        looked_s: over how much event time it was looked how rows come.
        spread: standard error of what a row of the sources costs, as a share of it, by how parts of
            the sample differ, how much it covers, and how this machine keeps time; 0: not known.
        saved: {stage that sheds: the share of its work that is not done where all is dropped}, by
            two passes over the sample; empty: none sheds, or it is not known.
    """

    graph: QueryGraph
    rows: dict[str, int]
    took_s: float
    stages: tuple[SampledStage, ...] = ()
    row_bytes: Mapping[tuple[str, str], float] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    times: Mapping[str, SourceTimes] = field(default_factory=dict)
    origin_ns: int = 0
    recorded: Mapping[str, RecordedRate] = field(default_factory=dict)
    origin: str = ""
    saved: Mapping[str, float] = field(default_factory=dict)
    stretches: int = 1
    covers_s: float = 0.0
    looked_s: float = 0.0
    spread: float = 0.0

    @property
    def kind(self) -> str:
        """Kind of the sample, in a word."""
        return "history" if self.recorded else "sample"

    def to_json(self) -> dict[str, object]:
        """Return what it is made of, as plain values; times in seconds."""
        return {
            "rows": self.rows,
            "took_s": round(self.took_s, 3),
            "stretches": self.stretches,
            "covers_s": self.covers_s,
            "looked_s": self.looked_s,
            "spread": self.spread,
        }

    def differs_from(self, plan: Plan) -> list[str]:
        """Return the stages of a plan that differ from the sample's, sorted."""
        if not self.versions:
            return sorted({stage.name for stage in plan.stages} ^ set(self.graph.names))
        return other_stages(stage_versions(plan.stages), self.versions)


def costs_of(sample: FlowSample) -> CostModel:
    """Return what work costs in the simulator by what a sample has shown."""
    if not sample.stages:  # of a history: rows in full slices
        each = {
            one.name: one.cost_s[0] / sample.shares.get(one.name, 1.0) * NS_PER_SECOND
            for one in sample.graph.operators
        }
        return CostModel(per_slice_ns=0, per_row_ns=0, stages=each)
    costs = {one.name: one.cost(one.more) for one in sample.stages}
    fixed, row, more = (
        {name: getattr(cost, part) * NS_PER_SECOND for name, cost in costs.items()}
        for part in ("fixed_s", "row_s", "more_s")
    )
    joins = {one.name for one in sample.stages if one.within_s is not None}
    return CostModel(
        per_row_ns=0,
        slices=fixed,
        stages=row,
        compared={name: cost_ns if name in joins else 0.0 for name, cost_ns in more.items()},
        results={name: 0.0 if name in joins else cost_ns for name, cost_ns in more.items()},
    )
