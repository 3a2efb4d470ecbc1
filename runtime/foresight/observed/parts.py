"""Parts of steps: put together in a sample, and divided for a plan.

```
sample    buses ─▶ join ─▶ out            of steps, whatever parts it ran in
                │
plan      buses.1 ─┬─▶ join.1 ─┬─▶ out    a part has the costs of its step, and a share of its rows
          buses.2 ─┴─▶ join.2 ─┘
```

So one sample shows what any number of replicas costs. A replica's share is that of the groups of
keys that it owns; a source stage's is that of its partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from slackwater.runtime.flow.dataflow import Dataflow
from slackwater.runtime.foresight.curves import PartCurve
from slackwater.runtime.foresight.gates import SourceTimes
from slackwater.runtime.foresight.observations import StageObservations
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.query_graph import (
    FloatArray,
    QueryGraph,
    QueryOperator,
    arrivals_of,
)
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import Batch
from slackwater.runtime.model.hashes import (
    KEY_GROUPS,
    even_groups,
    groups_owned,
    rows_by_group,
)
from slackwater.runtime.placement.key_shares import group_weights
from slackwater.runtime.plan.division import UNDIVIDED
from slackwater.runtime.plan.plan import Channel, Plan, Stage
from slackwater.runtime.plan.step import GatedStep, Step
from slackwater.runtime.sources.input_part import InputPart

__all__ = [
    "as_sampled",
    "divided",
    "key_rows",
    "key_rows_of_parts",
    "of_steps",
    "part_shares",
    "with_replicas",
]

SAMPLED = 2
"""Most replicas of a step in a sample: two show what dividing the rows costs."""


def as_sampled(flow: Dataflow) -> Dataflow:
    """Return a flow as a sample of it runs: with few replicas, whatever their number."""
    few = flow.with_steps(_few(step) for step in flow.steps.values())
    return few.with_division(UNDIVIDED)


def _few(step: Step) -> Step:
    if not isinstance(step, GatedStep) or not step.traits.owns_keys:
        return step
    count = SAMPLED if step.is_auto else min(step.traits.sharing.replicas, SAMPLED)
    return step.with_replicas(count)


def with_replicas(flow: Dataflow, steps: Iterable[str], count: int) -> Dataflow:
    """Return a flow with another number of replicas of some steps."""
    names = set(steps)
    return flow.with_steps(
        step.with_replicas(count) if isinstance(step, GatedStep) and name in names else step
        for name, step in flow.steps.items()
    )


def of_steps(
    stages: Sequence[Stage], observed: Iterable[StageObservations]
) -> list[StageObservations]:
    """Return the observations of steps, from those of their equal parts.

    Args:
        stages: stages of the plan that was observed.
        observed: the observations of each stage, in topological order.
    """
    whole = {stage.name: stage.whole for stage in stages}
    parts: dict[str, list[StageObservations]] = {}
    for each in observed:
        parts.setdefault(whole[each.name], []).append(each)
    return [_together(name, each, whole) for name, each in parts.items()]


def _together(
    name: str, parts: Sequence[StageObservations], whole: Mapping[str, str]
) -> StageObservations:
    inputs = tuple(dict.fromkeys(whole[feeder] for part in parts for feeder in part.inputs))
    if len(parts) == 1:
        return replace(parts[0], name=name, inputs=inputs)
    return replace(
        parts[0],
        name=name,
        inputs=inputs,
        rows_in=sum(part.rows_in for part in parts),
        rows_out=sum(part.rows_out for part in parts),
        rows=[rows for part in parts for rows in part.rows],
        busy_s=[busy_s for part in parts for busy_s in part.busy_s],
        slices=[slices for part in parts for slices in part.slices],
        released=[rows for part in parts for rows in part.released],
        out=[rows for part in parts for rows in part.out],
        pairs=[pairs for part in parts for pairs in part.pairs],
    )


def key_rows(
    stages: Sequence[Stage], sent: Iterable[tuple[Channel, Batch]]
) -> dict[str, FloatArray]:
    """Return {step: shape (KEY_GROUPS,), its rows in each group of keys}.

    Args:
        stages: stages of a plan.
        sent: rows on channels of the plan; those of other channels than replicas' are omitted.
    """
    whole = {stage.name: stage.whole for stage in stages}
    rows: dict[str, FloatArray] = {}
    for channel, batch in sent:
        if channel.owned is not None:
            columns = [batch.columns[name] for name in channel.owned.columns]
            counts = rows.setdefault(whole[channel.target], np.zeros(KEY_GROUPS))
            counts += rows_by_group(columns, len(batch.event_time_ns))
    return rows


def key_rows_of_parts(samples: Iterable[StageSample]) -> dict[str, FloatArray]:
    """Return {step: shape (KEY_GROUPS,), its rows}, evenly over the groups of each replica.

    Args:
        samples: samples of replicas in a tuned job, which own as many groups each; those of source
            stages are omitted.
    """
    came: dict[str, dict[int, float]] = {}
    for sample in samples:
        step, part = sample.subject
        if isinstance(part, int) and sample.came:
            rows = came.setdefault(step, {})
            rows[part] = rows.get(part, 0.0) + sample.came
    by_group: dict[str, FloatArray] = {}
    for step, rows in came.items():
        each = by_group[step] = np.zeros(KEY_GROUPS)
        for part, count in rows.items():
            owned = groups_owned(part - 1, even_groups(max(rows)))
            each[owned] = count / len(owned)
    return by_group


def part_shares(plan: Plan, sample: FlowSample) -> dict[str, float]:
    """Return {stage: its share of its step's rows}, of all stages of a plan.

    Args:
        plan: plan of the flow.
        sample: sample of the flow, which may show the rows of each group of keys.
    """
    weights = {step: group_weights(rows) for step, rows in sample.key_rows.items()}
    even = np.full(KEY_GROUPS, 1 / KEY_GROUPS)
    shares: dict[str, float] = {}
    for stage in plan.stages:
        given = getattr(getattr(stage.step, "source", None), "input", None)
        owned = next((channel.owned for channel in stage.inputs if channel.owned), None)
        if isinstance(given, InputPart):
            shares[stage.name] = given.share
        elif owned is not None:
            shares[stage.name] = float(weights.get(stage.whole, even)[owned.own_groups].sum())
        else:
            shares[stage.name] = 1.0
    return shares


def divided(sample: FlowSample, plan: Plan) -> FlowSample:
    """Return a sample of steps as one of the stages of a plan.

    Args:
        sample: sample of the same flow.
        plan: plan with any number of replicas and of source stages.
    """
    if sample.graph.names == tuple(stage.name for stage in plan.stages):
        return sample
    whole = {stage.name: stage.whole for stage in plan.stages}
    share, by_step = part_shares(plan, sample), dict[str, list[str]]()
    for name, step in whole.items():
        by_step.setdefault(step, []).append(name)
    operators = {operator.name: operator for operator in sample.graph.operators}
    observed = {stage.name: stage for stage in sample.stages}
    sources = [name for name, step in whole.items() if step in sample.rows]
    return replace(
        sample,
        graph=QueryGraph(
            tuple(arrivals_of(name) for name in sources),
            tuple(
                _part_of(operators[stage.whole], stage, whole, share[stage.name])
                for stage in plan.stages
            ),
        ),
        rows={name: round(sample.rows[whole[name]] * share[name]) for name in sources},
        stages=tuple(
            replace(observed[step], name=name) for name, step in whole.items() if step in observed
        ),
        row_bytes={
            (part, target): sent * share[target]
            for (feeder, to), sent in sample.row_bytes.items()
            for part in by_step.get(feeder, ())
            for target in by_step.get(to, ())
        },
        shares={
            name: sample.shares[step] * share[name]
            for name, step in whole.items()
            if step in sample.shares
        },
        times={
            name: _times_of_part(times, share[name], len(by_step[whole[name]]))
            for name in sources
            if (times := sample.times.get(whole[name])) is not None
        },
        recorded={
            name: recorded.times(share[name])
            for name in sources
            if (recorded := sample.recorded.get(whole[name])) is not None
        },
    )


def _times_of_part(times: SourceTimes, share: float, parts: int) -> SourceTimes:
    """Return the times of one stage of a source: fewer rows stand for its rows."""
    most = max(times.most_rows // parts, 1)
    return replace(times, stands_for=times.stands_for * share, most_rows=most)


def _part_of(
    operator: QueryOperator, stage: Stage, whole: Mapping[str, str], share: float
) -> QueryOperator:
    """Return the operator of a stage, from that of its step."""
    if not stage.inputs:  # its own rows
        return replace(operator, name=stage.name, inputs=(arrivals_of(stage.name),))
    inputs = tuple(dict.fromkeys(channel.source for channel in stage.inputs))
    numbers = tuple(operator.inputs.index(whole[feeder]) for feeder in inputs)
    curve = operator.curve
    is_alone = share == 1.0 and numbers == tuple(range(len(operator.inputs)))
    return replace(
        operator,
        name=stage.name,
        inputs=inputs,
        cost_s=tuple(operator.cost_s[n] * share for n in numbers),
        selectivity=tuple(operator.selectivity[n] * share for n in numbers),
        curve=curve if curve is None or is_alone else PartCurve(curve, share, numbers),
    )
