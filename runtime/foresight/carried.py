"""Statistics of a flow carried over to plans that were never run.

```
sampled   ticks 1,000 ─ falling 400 ─ pairs 900 ─ good 90         good lets 1 of 10 go on
carried   ticks 1,000 ─ good 100 ─ falling 40 ─ pairs 90          good is of one side's columns
```

What is assumed: a row costs a step the same wherever the step stands; a filter lets the same share
of rows go on there; a step makes as much of each row; and a join makes of rows that a filter of one
side has let through that share of what it made of all: of both sides' filters, both shares, though
they may have become one filter. So filters are taken to have nothing to do with each other, nor
with how many partners a row finds, nor with how many results a key has.
Source: [mace] §IX-A, "parameter estimation", by executing the plan over a sample.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.query_graph import (
    CostCurve,
    QueryGraph,
    QueryOperator,
    arrivals_of,
)
from slackwater.runtime.foresight.sampled import SampledStage
from slackwater.runtime.foresight.step_curves import of_fewer_keys
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.step import ChoosingStep, Step
from slackwater.runtime.plan.steps import SourceStep

__all__ = ["StepStatistics", "carried"]

LEAST_SHARE = 1e-9
"""Of the keys of a window: a filter that lets none through in the sample may let some."""


@dataclass(frozen=True)
class StepStatistics:
    """What a sample has shown of a flow's steps, each a stage of its own.

    Attributes:
        steps: of the flow that was sampled, {name: step}, in topological order.
        rows_in: {step: rows that came in; of a source those that it read}.
        rows_out: {step: rows that it handed on}.
        row_s: {step: CPU seconds of a row that comes in}.
        shares: {filter: which share of rows it lets go on}, where that is known better than by its
            own rows.
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
                f"the sample has nothing of {', '.join(missing)}: take it of this flow, with each "
                "step a stage of its own (Limits(fuse=False))"
            )
        above = _filters_above(self.steps, {})
        object.__setattr__(self, "above", above)

    @classmethod
    def of(
        cls,
        steps: Mapping[str, Step],
        stages: Sequence[Stage],
        sampled: Sequence[SampledStage],
        *,
        slice_s: float,
    ) -> StepStatistics:
        """Return the statistics of a sample that was run with `Limits(fuse=False)`.

        Args:
            steps: of the flow.
            stages: of its plan.
            sampled: what was seen of them.
            slice_s: how long a full slice takes.
        """
        seen = {one.name: one for one in sampled}
        rows_in: dict[str, float] = dict.fromkeys(steps, 0.0)
        rows_out: dict[str, float] = dict.fromkeys(steps, 0.0)
        busy_s: dict[str, float] = dict.fromkeys(steps, 0.0)
        for stage in stages:
            found = seen[stage.name]
            busy_s[stage.origin] += found.cost().in_full_slices(slice_s).row_s * found.rows_in
            if stage.part != "replica":  # what is dealt out has come to the gate already
                rows_in[stage.origin] += found.rows_in
            if stage.part != "gate":
                rows_out[stage.origin] += found.rows_out
        row_s = {name: busy_s[name] / rows_in[name] if rows_in[name] else 0.0 for name in steps}
        return cls(steps, rows_in, rows_out, row_s)

    def with_filters_of(
        self, other: StepStatistics, atoms: Mapping[str, tuple[str, ...]]
    ) -> StepStatistics:
        """Return them with what filters cost, and let go on, elsewhere: where they see more rows.

        Behind a join a filter sees the same few rows again and again, so what it lets go on there
        says little of what it does before; and few rows cost it little beside what comes without.

        Args:
            other: of the same sample, run with the filters further up.
            atoms: {filter there: the filters here that it stands for}.
        """
        shares, row_s = dict(self.shares), dict(self.row_s)
        most = dict(self.rows_in)  # {step here: how many rows it was seen with}
        for name, step in other.steps.items():
            for atom in atoms.get(name, (name,)) if isinstance(step, ChoosingStep) else ():
                if other.rows_in[name] > most.get(atom, 0.0):
                    most[atom] = other.rows_in[name]
                    shares[atom] = other.rows_out[name] / other.rows_in[name]
                    row_s[atom] = other.row_s[name]
        return replace(self, shares=shares, row_s=row_s)

    def share(self, atom: str) -> float:
        """Return which share of the rows a filter lets go on; 1 if it saw none."""
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
        statistics: of the flow that it was rewritten from, its filters split.
        steps: of the plan, in topological order.
        atoms: {filter of the plan: the filters of that flow that it stands for}; none: itself.
        free: filters that are to cost nothing.
        curves: {step: what stands for its cost and selectivity}, where that is no line, as it is
            in the flow that was sampled.

    Raises:
        SettingError: a step that the statistics do not have.
    """
    above = _filters_above(steps, atoms)
    rows: dict[str, float] = {}
    operators = []
    for name, step in steps.items():
        own = atoms.get(name, (name,)) if isinstance(step, ChoosingStep) else (name,)
        known = own[0]  # of several that are shared one is asked
        came = sum(rows[one] for one in step.inputs)
        if isinstance(step, SourceStep):
            came, rows[name] = statistics.rows_in[name], statistics.rows_out[name]
        elif isinstance(step, ChoosingStep):
            rows[name] = came * statistics.share(known)
        elif not step.traits.has_one_port:
            new, old = above[name], statistics.above[name]
            part = np.prod([statistics.share(one) for one in new - old])
            rows[name] = statistics.rows_out[name] * float(part)
        else:
            before = sum(statistics.rows_out[one] for one in statistics.steps[name].inputs)
            rows[name] = statistics.rows_out[name] * (came / before if before else 0.0)
        curve = (curves or {}).get(name)
        if curve is not None and (further := above[name] - statistics.above[name]):
            share = float(np.prod([statistics.share(one) for one in further]))
            curve = of_fewer_keys(curve, max(share, LEAST_SHARE))
        taken = _taken(statistics, known) if not isinstance(step, SourceStep) else 1.0
        operators.append(
            _operator(
                step,
                cost_s=0.0 if name in free else statistics.row_s[known] * taken,
                selectivity=rows[name] / came if came else 0.0,
                curve=curve,
            )
        )
    sources = [arrivals_of(one.name) for one in steps.values() if isinstance(one, SourceStep)]
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


def _taken(statistics: StepStatistics, name: str) -> float:
    """Return how many of the rows that its inputs hand on come to a step: late rows do not."""
    handed = sum(statistics.rows_out[one] for one in statistics.steps[name].inputs)
    return statistics.rows_in[name] / handed if handed else 1.0


def _filters_above(
    steps: Mapping[str, Step], atoms: Mapping[str, tuple[str, ...]]
) -> dict[str, frozenset[str]]:
    """Return {step: what the filters above it stand for}."""
    found: dict[str, frozenset[str]] = {}
    for name, step in steps.items():
        above = frozenset[str]().union(*(found[one] for one in step.inputs))
        found[name] = above
        if isinstance(step, ChoosingStep):
            found[name] = above | frozenset(atoms.get(name, (name,)))
    return found
