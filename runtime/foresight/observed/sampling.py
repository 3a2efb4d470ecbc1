"""Short run of a flow, to learn its stages' costs.

Inputs are opened twice: to look how rows come, and for so many rows of each, evenly over what was
looked at. No sink is called, and nothing is written. The user's functions run, as they will.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from slackwater.runtime.config import Limits
from slackwater.runtime.errors import SettingError
from slackwater.runtime.flow.dataflow import Dataflow
from slackwater.runtime.foresight.curves import USUAL_S
from slackwater.runtime.foresight.gates import SourceTimes
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.observed.some_rows import SeenTimes, SomeRows
from slackwater.runtime.foresight.observed.source_times import source_times
from slackwater.runtime.foresight.observed.stretches import Stretched, stretched, work_spread
from slackwater.runtime.foresight.sample_statistics import query_graph_of_sample
from slackwater.runtime.foresight.sampled import SampledStage, sampled_stages, share_of, spans_of
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.plan.plan import Plan, Stage
from slackwater.runtime.plan.stage_versions import stage_versions
from slackwater.runtime.plan.steps import GateStep, SourceStep
from slackwater.runtime.prepare import prepare
from slackwater.runtime.shedding import Espice
from slackwater.runtime.simulate import CostModel, LinkModel, MeasuredCost, MeasuredSlice, NotedCost
from slackwater.runtime.simulate import Simulation as SimulationRun

__all__ = ["HERE", "Clocks", "take_sample"]

HERE = "here"
TIMING = 0.03
"""How far what this machine takes for the same work is off from one time to another: its standard
error, as a share."""
UNCUT_NS = 3_600 * NS_PER_SECOND
NEVER_NS = 2**62
"""A bound under which nothing is shed in a sample; and one under which all is, at once."""
AT_ONCE_NS = 1


@dataclass(frozen=True, kw_only=True)
class Clocks:
    """Clocks of a sample.

    Attributes:
        work_ns: how long work took, by which slices are timed.
        now_s: a steady clock, for how long inputs are looked at and how long the sample took.
        is_machine: whether `work_ns` is that of this machine, whose times of one work differ.
    """

    work_ns: Callable[[], int]
    now_s: Callable[[], float]
    is_machine: bool


def take_sample(
    flow: Dataflow,
    *,
    rows: int,
    clocks: Clocks,
    limits: Limits | None = None,
    cost: CostModel | None = None,
) -> FlowSample:
    """Run some rows of each source through the flow, and measure.

    Where a stage sheds, twice: with nothing dropped, and with all, which is what dropping saves.

    Args:
        flow: as it will be submitted.
        rows: of each source on average, >= 1: in stretches of the same event time, evenly over the
            first 100 times as many; the first ones of a flow with numbered sources, or one that
            looks back for longer than so many rows, or where only these give a sink any.
        clocks: by which work and waits are timed.
        limits: those it will be submitted with.
        cost: what work costs, in place of a clock: as in a simulation of that model.

    Raises:
        SettingError: rows < 1, a source whose input is live and cannot be read twice, or a sample
            without rows or results.
        SlackwaterError: what the flow raised.
    """
    if rows < 1:
        raise SettingError(f"a sample of {rows} rows shows nothing; take 1,000 of each source")
    began_s = clocks.now_s()
    planned = prepare(flow, [HERE], limits=limits)
    _check_can_be_read_twice(planned)
    times, origin_ns = source_times(planned.stages, rows, now_s=clocks.now_s)
    is_timed = cost is None and clocks.is_machine

    def ran(part: Stretched, bound_ns: int = NEVER_NS) -> _Ran:
        costs = MeasuredCost(clocks.work_ns) if cost is None else NotedCost(cost)
        return _ran(planned, part, costs, bound_ns, is_timed=is_timed)

    run = ran(_stretched(planned, times, rows))
    if run.part.count > 1 and run.reached < sum(not one.outputs for one in planned.stages):
        # Partners may be in the first rows alone: a result there says more than none.
        whole = ran(_stretched(planned, times, rows, is_whole=True))
        run = max(run, whole, key=lambda one: one.reached)
    shedding = {stage.name for stage in planned.stages if stage.sheds}
    dropped = ran(run.part, AT_ONCE_NS).stages if shedding else []
    part, stages, report = run.part, run.stages, run.report
    found = {one.name: one for one in report.stages}
    slice_s = planned.limits.slice_ns / NS_PER_SECOND
    read = {stage.name: found[stage.name].rows_in for stage in planned.stages if not stage.inputs}
    looked = sum(len(one.stimulus_s) * one.stands_for for one in times.values())
    graph = query_graph_of_sample(
        stages,
        slice_s=slice_s,
        is_all=sum(read.values()) >= looked,
        times_s={name: part.without_pauses(name, one.seconds()) for name, one in run.seen.items()},
    )
    saved = {
        kept.name: _saved(kept, bare, slice_s)
        for kept, bare in zip(stages, dropped, strict=bool(shedding))
        if kept.name in shedding
    }
    shares = {stage.name: share_of(stage, stages) for stage in stages}
    return FlowSample(
        graph,
        read,
        clocks.now_s() - began_s,
        stages=tuple(stages),
        row_bytes=_row_bytes(report),
        shares=shares,
        versions=stage_versions(planned.stages),
        times=times,
        origin_ns=origin_ns,
        saved=saved,
        stretches=part.count,
        covers_s=part.covers_s,
        looked_s=part.looked_s,
        spread=run.spread(slice_s, is_timed=is_timed),
    )


@dataclass(frozen=True)
class _Ran:
    """A run over some rows of the sources, and what it has shown."""

    part: Stretched
    stages: list[SampledStage]
    report: JobReport
    slices: Sequence[MeasuredSlice]
    seen: Mapping[str, SeenTimes]

    @property
    def reached(self) -> int:
        """Sinks that got rows."""
        feeding = {name for one in self.stages for name in one.inputs}
        return sum(one.rows_in > 0 for one in self.stages if one.name not in feeding)

    def spread(self, slice_s: float, *, is_timed: bool) -> float:
        """Return the standard error of a source row's cost, as a share.

        Args:
            slice_s: how long a full slice takes.
            is_timed: by this machine, whose times of one work differ, too.
        """
        seen = {one.name: one.cost() for one in self.stages}
        costs = {name: (cost, cost.in_full_slices(slice_s)) for name, cost in seen.items()}
        return math.hypot(work_spread(self.slices, self.part, costs), TIMING if is_timed else 0.0)


def _ran(
    planned: Plan, part: Stretched, costs: MeasuredCost, bound_ns: int, *, is_timed: bool
) -> _Ran:
    """Run some rows through a plan, timed here or by a model."""
    seen: dict[str, SeenTimes] = {}
    plan = _sampled_plan(planned, part, seen, bound_ns=bound_ns)
    link = LinkModel(delay_ns=0)
    report = SimulationRun(plan, egress=_leave, cost=costs, link=link, weighs=True).run()
    by_name = {one.name: one for one in report.stages}
    stages = sampled_stages(plan.stages, by_name, costs.slices)
    if is_timed:
        stages = [replace(one, least_fixed_s=USUAL_S) for one in stages]
    return _Ran(part, stages, report, costs.slices, seen)


def _stretched(
    plan: Plan, times: Mapping[str, SourceTimes], rows: int, *, is_whole: bool = False
) -> Stretched:
    """Return the rows of its sources that a sample of a plan takes."""
    slides_s = [
        each.window_s[1] for each in map(spans_of, plan.stages) if each.window_s is not None
    ]
    sources = [stage.step.source for stage in plan.stages if isinstance(stage.step, SourceStep)]
    return stretched(
        times,
        rows,
        reach_s=_looks_back_s(plan, slides_s),
        slide_s=max([0.0, *slides_s]),
        is_whole=is_whole
        or any(one.sequence is not None for one in sources)
        or _counts_events(plan),
    )


def _looks_back_s(plan: Plan, slides_s: Sequence[float]) -> float:
    """Return how far results look back over rows of the sources, seconds of event time."""
    back_ns: dict[str, int] = {}
    for stage in plan.stages:
        own_ns = 0 if isinstance(stage.step, GateStep) else stage.window_ns
        fed_by = (back_ns.get(channel.source, 0) for channel in stage.inputs)
        back_ns[stage.name] = own_ns + max(fed_by, default=0)
    return max(back_ns.values(), default=0) / NS_PER_SECOND + max([0.0, *slides_s])


def _counts_events(plan: Plan) -> bool:
    """Whether a pattern's windows are numbers of events: how long these are is not known."""
    return any(one.step.traits.counts_events for one in plan.stages)


def _check_can_be_read_twice(plan: Plan) -> None:
    for stage in plan.stages:
        if isinstance(stage.step, SourceStep) and not (source := stage.step.source).is_history:
            raise SettingError(
                f"source {stage.name!r} reads {source.input.describe()}, which is live: to read a "
                "sample of it would take rows from the run. Predict from the same flow on a file "
                "of a former day"
            )


def _saved(kept: SampledStage, bare: SampledStage, slice_s: float) -> float:
    """Return the share of a stage's work that is saved if all is dropped.

    Args:
        kept: as it was with nothing dropped.
        bare: as it was with all dropped, but for what came before anything was known.
        slice_s: how long a full slice takes.
    """
    whole_s = kept.cost().in_full_slices(slice_s).row_s
    left_s = bare.cost(bare.slice_pairs).in_full_slices(slice_s).row_s
    return min(max(1 - left_s / whole_s, 0.0), 1.0) if whole_s > 0 else 0.0


def _row_bytes(report: JobReport) -> dict[tuple[str, str], float]:
    """Return the bytes that each stage sends to each other for a row."""
    rows_out = {one.name: one.rows_out for one in report.stages}
    sent: dict[tuple[str, str], float] = {}
    for channel in report.channels:
        ends = channel.source, channel.target
        rows = rows_out[channel.source]
        sent[ends] = sent.get(ends, 0.0) + (channel.bytes_sent / rows if rows else 0.0)
    return sent


def _leave(sink: str, batch: object, is_end: bool) -> None:
    """Results of a sample go nowhere."""


def _sampled_plan(
    plan: Plan, part: Stretched, seen: dict[str, SeenTimes], *, bound_ns: int
) -> Plan:
    # Slices as the blocks come, not cut by time: of different lengths they tell a slice's fixed
    # part from what a row costs.
    limits = replace(plan.limits, slice_ns=UNCUT_NS)
    stages = tuple(_sampled(_bounded(stage, bound_ns), part, seen) for stage in plan.stages)
    return replace(plan, stages=stages, tuning=None, limits=limits)


def _bounded(stage: Stage, bound_ns: int) -> Stage:
    """Return a stage with another bound, if it sheds."""
    shed = stage.step.traits.shed
    if not isinstance(shed, Espice):
        return stage
    other = replace(shed, overload=replace(shed.overload, latency_ns=bound_ns))
    return replace(stage, step=replace(stage.step, shed=other))  # type: ignore[call-arg]


def _sampled(stage: Stage, part: Stretched, seen: dict[str, SeenTimes]) -> Stage:
    if not isinstance(stage.step, SourceStep):
        return stage
    source = stage.step.source
    times = seen[stage.name] = SeenTimes(source)
    first = replace(source, input=SomeRows(source.input, part.rows[stage.name], times), speed=None)
    return replace(stage, step=replace(stage.step, source=first))
