"""Statistics of a flow, carried over to plans that never ran.

```
sampled   ticks 1,000 ─ falling 400 ─ pairs 900 ─ good 90         good keeps 1 of 10 rows
carried   ticks 1,000 ─ good 100 ─ falling 40 ─ pairs 90          good reads one side's columns
```

Assumptions: a row costs a step the same wherever the step stands. A filter keeps the same share of
rows there. A step makes as many results of each row. A join after a filter of one side makes that
filter's share of all its results; after filters of both sides, both shares, even if they have
become one filter. So filters are independent of each other, of the number of partners of a row,
and of the number of results of a key.
Source: [mace] §IX-A, "parameter estimation", by executing the plan over a sample.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.observations import StageObservations
from slackwater.runtime.foresight.query_graph import (
    CostCurve,
    QueryGraph,
    QueryOperator,
    arrivals_of,
)
from slackwater.runtime.foresight.step_curves import of_fewer_keys
from slackwater.runtime.model.subject import GATE
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.step import ChoosingStep, Step
from slackwater.runtime.plan.steps import SourceStep, sources_among

__all__ = ["StepStatistics", "carried"]

LEAST_SHARE = 1e-9
"""Least share of a window's keys: a filter that keeps no row of the sample may keep some later."""


@dataclass(frozen=True)
class StepStatistics:
    """Statistics of a flow's steps from a sample, each step a separate stage.

    Attributes:
        steps: {name: step} of the flow that was sampled, in topological order.
        rows_in: {step: rows that arrived; of a source, rows that it read}.
        rows_out: {step: rows that left}.
        row_s: {step: CPU seconds of a row that arrives}.
        shares: {filter: the share of rows that it keeps}, if other rows than its own show it
            better.
    """

    steps: Mapping[str, Step]
    rows_in: Mapping[str, float]
    rows_out: Mapping[str, float]
    row_s: Mapping[str, float]
    shares: Mapping[str, float] = field(default_factory=dict)
    above: Mapping[str, frozenset[str]] = field(init=False)
    """{step: the filters above it}."""

    def __post_init__(self) -> None:
        missing = [name for name in self.steps if name not in self.row_s]
        if missing:
            raise SettingError(
                f"the sample has no statistics of {', '.join(missing)}: take a sample of this "
                "flow, with each step in its own stage (Limits(fuse=False))"
            )
        above = _filters_above(self.steps, {})
        object.__setattr__(self, "above", above)

    @classmethod
    def of(
        cls,
        steps: Mapping[str, Step],
        stages: Sequence[Stage],
        sampled: Sequence[StageObservations],
        *,
        slice_s: float,
    ) -> StepStatistics:
        """Return the statistics of a sample that ran with `Limits(fuse=False)`.

        Args:
            steps: {name: step} of the flow.
            stages: stages of its plan.
            sampled: the sample of each stage, or of the step that it is an equal part of.
            slice_s: duration of a full slice.
        """
        samples = {stage.name: stage for stage in sampled}
        rows_in: dict[str, float] = dict.fromkeys(steps, 0.0)
        rows_out: dict[str, float] = dict.fromkeys(steps, 0.0)
        busy_s: dict[str, float] = dict.fromkeys(steps, 0.0)
        for stage in {stage.whole: stage for stage in stages}.values():
            sample, (step, part) = samples[stage.whole], stage.subject
            busy_s[step] += sample.cost().in_full_slices(slice_s).row_s * sample.rows_in
            if not stage.shares_gate:  # else the gate has counted its rows already
                rows_in[step] += sample.rows_in
            if part != GATE:
                rows_out[step] += sample.rows_out
        row_s = {name: busy_s[name] / rows_in[name] if rows_in[name] else 0.0 for name in steps}
        return cls(steps, rows_in, rows_out, row_s)

    def with_filters_of(
        self, other: StepStatistics, atoms: Mapping[str, tuple[str, ...]]
    ) -> StepStatistics:
        """Return the statistics with costs and shares of filters from where they see more rows.

        After a join a filter sees the same few rows again and again. So its share there says little
        of its share before the join; and a few rows cost little beside the slices.

        Args:
            other: statistics of the same sample, run with the filters further upstream.
            atoms: {filter there: the filters here that it replaces}.
        """
        shares, row_s = dict(self.shares), dict(self.row_s)
        most = dict(self.rows_in)  # {step here: the most rows that it was seen with}
        for name, step in other.steps.items():
            for atom in atoms.get(name, (name,)) if isinstance(step, ChoosingStep) else ():
                if other.rows_in[name] > most.get(atom, 0.0):
                    most[atom] = other.rows_in[name]
                    shares[atom] = other.rows_out[name] / other.rows_in[name]
                    row_s[atom] = other.row_s[name]
        return replace(self, shares=shares, row_s=row_s)

    def share(self, atom: str) -> float:
        """Return the share of rows that a filter keeps; 1 if it saw no row."""
        if atom in self.shares:
            return self.shares[atom]
        return self.rows_out[atom] / self.rows_in[atom] if self.rows_in.get(atom) else 1.0


def carried(
    statistics: StepStatistics,
    steps: Mapping[str, Step],
    atoms: Mapping[str, tuple[str, ...]],
    *,
    free: Collection[str] = (),
    curves: Mapping[str, CostCurve] | None = None,
) -> QueryGraph:
    """Return the query graph of a plan; its steps are the operators.

    Args:
        statistics: statistics of the flow before the rewrite, its filters split.
        steps: {name: step} of the plan, in topological order.
        atoms: {filter of the plan: the filters of that flow that it replaces}; absent: itself.
        free: filters that cost nothing.
        curves: {step: its curve in the flow that was sampled}, of nonlinear steps.

    Raises:
        SettingError: the statistics lack a step.
    """
    above = _filters_above(steps, atoms)
    rows: dict[str, float] = {}
    operators = []
    for name, step in steps.items():
        own = atoms.get(name, (name,)) if isinstance(step, ChoosingStep) else (name,)
        known = own[0]  # shared filters have equal statistics
        came = sum(rows[feeder] for feeder in step.inputs)
        if isinstance(step, SourceStep):
            came, rows[name] = statistics.rows_in[name], statistics.rows_out[name]
        elif isinstance(step, ChoosingStep):
            rows[name] = came * statistics.share(known)
        elif not step.traits.has_single_port:
            new, old = above[name], statistics.above[name]
            part = np.prod([statistics.share(atom) for atom in new - old])
            rows[name] = statistics.rows_out[name] * float(part)
        else:
            feeders = statistics.steps[name].inputs
            before = sum(statistics.rows_out[feeder] for feeder in feeders)
            rows[name] = statistics.rows_out[name] * (came / before if before else 0.0)
        curve = (curves or {}).get(name)
        if curve is not None and (further := above[name] - statistics.above[name]):
            share = float(np.prod([statistics.share(atom) for atom in further]))
            curve = of_fewer_keys(curve, max(share, LEAST_SHARE))
        share_in = _share_in(statistics, known) if not isinstance(step, SourceStep) else 1.0
        operators.append(
            _operator(
                step,
                cost_s=0.0 if name in free else statistics.row_s[known] * share_in,
                selectivity=rows[name] / came if came else 0.0,
                curve=curve,
            )
        )
    sources = [arrivals_of(step.name) for step in sources_among(steps.values())]
    return QueryGraph(tuple(sources), tuple(operators))


def _operator(
    step: Step, *, cost_s: float, selectivity: float, curve: CostCurve | None
) -> QueryOperator:
    inputs = step.inputs or (arrivals_of(step.name),)
    return QueryOperator(
        name=step.name,
        inputs=inputs,
        cost_s=(cost_s,) * len(inputs),
        selectivity=(selectivity,) * len(inputs),
        curve=curve,
    )


def _share_in(statistics: StepStatistics, name: str) -> float:
    # Late rows leave an input, but do not reach the step.
    handed = sum(statistics.rows_out[feeder] for feeder in statistics.steps[name].inputs)
    return statistics.rows_in[name] / handed if handed else 1.0


def _filters_above(
    steps: Mapping[str, Step], atoms: Mapping[str, tuple[str, ...]]
) -> dict[str, frozenset[str]]:
    """Return {step: the original filters upstream, and its own if it is one}."""
    filters: dict[str, frozenset[str]] = {}
    for name, step in steps.items():
        above = frozenset[str]().union(*(filters[feeder] for feeder in step.inputs))
        filters[name] = above
        if isinstance(step, ChoosingStep):
            filters[name] = above | frozenset(atoms.get(name, (name,)))
    return filters
