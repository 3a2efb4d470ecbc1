"""Short run of a flow, to learn its stages' costs.

Inputs are opened twice: to look at arrivals, and to run some rows of each, evenly over the time
looked at. No sink is called, and no file is written. Users' functions run as in a job.
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
from slackwater.runtime.foresight.observations import StageObservations, share_of, spans_of
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.observed.parts import as_sampled, key_rows, of_steps
from slackwater.runtime.foresight.observed.slices import observed_slices, work_spread
from slackwater.runtime.foresight.observed.some_rows import SeenTimes, SomeRows
from slackwater.runtime.foresight.observed.source_times import source_times
from slackwater.runtime.foresight.observed.stretches import Stretched, stretched
from slackwater.runtime.foresight.observed_graph import observed_graph
from slackwater.runtime.foresight.query_graph import FloatArray
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.plan.plan import Plan, Stage
from slackwater.runtime.plan.stage_versions import stage_versions
from slackwater.runtime.plan.steps import GateStep, SourceStep
from slackwater.runtime.prepare.prepare import prepare
from slackwater.runtime.shedding.settings import SheddingSettings
from slackwater.runtime.simulate import CostModel, LinkModel, MeasuredCost, MeasuredSlice, NotedCost
from slackwater.runtime.simulate import Simulation as SimulationRun

__all__ = ["HERE", "Clocks", "take_sample"]

HERE = "here"
TIMING = 0.03
"""Standard error of this machine's time for equal work, as a share."""
UNCUT_NS = 3_600 * NS_PER_SECOND
NEVER_NS = 2**62
"""Bound under which a sample sheds no event; under `AT_ONCE_NS` it sheds all at once."""
AT_ONCE_NS = 1


@dataclass(frozen=True, kw_only=True)
class Clocks:
    """Clocks of a sample.

    Attributes:
        work_ns: clock that times slices.
        now_s: steady clock, for the time of looking at inputs and of the sampling.
        is_machine: whether `work_ns` is this machine's clock, whose times for equal work differ.
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

    A flow that sheds runs twice, without drops and with all dropped, to show what drops save.

    Args:
        flow: the flow, as it will be submitted.
        rows: mean number of rows of each source, >= 1: in stretches of one event time, evenly over
            the first 100 times as many. These are the first rows if sources are numbered, if the
            flow looks back longer than that, or if only they give a sink rows.
        clocks: the clocks of work and waits.
        limits: the limits of the job.
        cost: the cost model in place of a clock, as in a simulation of that model.

    Raises:
        SettingError: rows < 1, a source is live and cannot be read twice, or the sample has no rows
            or results.
        SlackwaterError: an error of the flow.
    """
    if rows < 1:
        raise SettingError(f"a sample of {rows} rows shows nothing; take 1,000 of each source")
    began_s = clocks.now_s()
    planned = prepare(as_sampled(flow), [HERE], limits=limits)
    _check_can_be_read_twice(planned)
    times, origin_ns = source_times(planned.stages, rows, now_s=clocks.now_s)
    is_timed = cost is None and clocks.is_machine

    def ran(part: Stretched, bound_ns: int = NEVER_NS) -> _Ran:
        costs = MeasuredCost(clocks.work_ns) if cost is None else NotedCost(cost)
        return _ran(planned, part, costs, bound_ns, is_timed=is_timed)

    run = ran(_stretched(planned, times, rows))
    if run.part.count > 1 and run.reached < sum(not stage.outputs for stage in planned.stages):
        # Partners may be only in the first rows: a result there shows more than no result.
        whole = ran(_stretched(planned, times, rows, is_whole=True))
        run = max(run, whole, key=lambda each: each.reached)
    shedding = {stage.name for stage in planned.stages if stage.sheds}
    dropped = ran(run.part, AT_ONCE_NS).stages if shedding else []
    part, report = run.part, run.report
    stages = of_steps(planned.stages, run.stages)
    reports = {stage.name: stage for stage in report.stages}
    slice_s = planned.limits.slice_ns / NS_PER_SECOND
    read = {stage.name: reports[stage.name].rows_in for stage in planned.stages if not stage.inputs}
    looked = sum(len(each.stimulus_s) * each.stands_for for each in times.values())
    graph = observed_graph(
        stages,
        slice_s=slice_s,
        is_all=sum(read.values()) >= looked,
        times_s={
            name: part.without_pauses(name, seen.seconds()) for name, seen in run.seen.items()
        },
    )
    saved = {
        unshed.name: _saved(unshed, bare, slice_s)
        for unshed, bare in zip(run.stages, dropped, strict=bool(shedding))
        if unshed.name in shedding
    }
    shares = {stage.name: share_of(stage, stages) for stage in stages}
    return FlowSample(
        graph,
        read,
        clocks.now_s() - began_s,
        stages=tuple(stages),
        row_bytes=_row_bytes(planned.stages, report),
        shares=shares,
        versions=stage_versions(planned.stages),
        times=times,
        origin_ns=origin_ns,
        saved=saved,
        key_rows=run.key_rows,
        stretches=part.count,
        covers_s=part.covers_s,
        looked_s=part.looked_s,
        spread=run.spread(slice_s, is_timed=is_timed),
    )


@dataclass(frozen=True)
class _Ran:
    """Run over some rows of the sources, with its observations."""

    part: Stretched
    stages: list[StageObservations]
    report: JobReport
    slices: Sequence[MeasuredSlice]
    seen: Mapping[str, SeenTimes]
    key_rows: Mapping[str, FloatArray]

    @property
    def reached(self) -> int:
        """Number of sinks that got rows."""
        feeding = {name for stage in self.stages for name in stage.inputs}
        return sum(stage.rows_in > 0 for stage in self.stages if stage.name not in feeding)

    def spread(self, slice_s: float, *, is_timed: bool) -> float:
        """Return the standard error of a source row's cost, as a share.

        Args:
            slice_s: duration of a full slice.
            is_timed: whether this machine timed it, whose times for equal work differ, too.
        """
        seen = {stage.name: stage.cost() for stage in self.stages}
        costs = {name: (cost, cost.in_full_slices(slice_s)) for name, cost in seen.items()}
        return math.hypot(work_spread(self.slices, self.part, costs), TIMING if is_timed else 0.0)


def _ran(
    planned: Plan, part: Stretched, costs: MeasuredCost, bound_ns: int, *, is_timed: bool
) -> _Ran:
    """Run some rows through a plan, timed here or by a model."""
    seen: dict[str, SeenTimes] = {}
    plan = _sampled_plan(planned, part, seen, bound_ns=bound_ns)
    link = LinkModel(delay_ns=0)
    simulation = SimulationRun(plan, egress=_leave, cost=costs, link=link, weighs=True)
    report = simulation.run()
    by_name = {stage.name: stage for stage in report.stages}
    stages = observed_slices(plan.stages, by_name, costs.slices)
    if is_timed:
        stages = [replace(stage, least_fixed_s=USUAL_S) for stage in stages]
    return _Ran(part, stages, report, costs.slices, seen, key_rows(plan.stages, simulation.keyed))


def _stretched(
    plan: Plan, times: Mapping[str, SourceTimes], rows: int, *, is_whole: bool = False
) -> Stretched:
    """Return the sources' rows for a sample of a plan."""
    slides_s = [
        each.window_s[1] for each in map(spans_of, plan.stages) if each.window_s is not None
    ]
    return stretched(
        times,
        rows,
        reach_s=_looks_back_s(plan, slides_s),
        slide_s=max([0.0, *slides_s]),
        is_whole=is_whole
        or any(step.source.sequence is not None for step in plan.sources)
        or _counts_events(plan),
    )


def _looks_back_s(plan: Plan, slides_s: Sequence[float]) -> float:
    """Return the longest look back of results over sources' rows, seconds of event time."""
    back_ns: dict[str, int] = {}
    for stage in plan.stages:
        own_ns = 0 if isinstance(stage.step, GateStep) else stage.window_ns
        fed_by = (back_ns.get(channel.source, 0) for channel in stage.inputs)
        back_ns[stage.name] = own_ns + max(fed_by, default=0)
    return max(back_ns.values(), default=0) / NS_PER_SECOND + max([0.0, *slides_s])


def _counts_events(plan: Plan) -> bool:
    """Whether a pattern's windows are numbers of events, whose length is unknown."""
    return any(stage.step.traits.counts_events for stage in plan.stages)


def _check_can_be_read_twice(plan: Plan) -> None:
    for step in plan.sources:
        if not (source := step.source).is_history:
            raise SettingError(
                f"source {step.name!r} reads {source.input.describe()}, which is live: to read a "
                "sample of it would take rows from the run. Predict from the same flow on a file "
                "of a former day"
            )


def _saved(unshed: StageObservations, bare: StageObservations, slice_s: float) -> float:
    """Return the share of a stage's work that is saved if all is dropped.

    Args:
        unshed: its sample without drops.
        bare: its sample with all dropped, except the events before the detector had learnt.
        slice_s: duration of a full slice.
    """
    whole_s = unshed.cost().in_full_slices(slice_s).row_s
    left_s = bare.cost(bare.pairs).in_full_slices(slice_s).row_s
    return min(max(1 - left_s / whole_s, 0.0), 1.0) if whole_s > 0 else 0.0


def _row_bytes(stages: Sequence[Stage], report: JobReport) -> dict[tuple[str, str], float]:
    """Return the bytes that each step sends to each other for a row."""
    whole = {stage.name: stage.whole for stage in stages}
    rows_out = dict.fromkeys(whole.values(), 0)
    for stage in report.stages:
        rows_out[whole[stage.name]] += stage.rows_out
    sent: dict[tuple[str, str], float] = {}
    for channel in report.channels:
        ends = whole[channel.source], whole[channel.target]
        rows = rows_out[ends[0]]
        sent[ends] = sent.get(ends, 0.0) + (channel.bytes_sent / rows if rows else 0.0)
    return sent


def _leave(sink: str, batch: object, is_end: bool) -> None:
    """Take results of a sample, and discard them."""


def _sampled_plan(
    plan: Plan, part: Stretched, seen: dict[str, SeenTimes], *, bound_ns: int
) -> Plan:
    # Slices are blocks, not cut by time: their different lengths separate a slice's fixed part
    # from the cost of a row.
    limits = replace(plan.limits, slice_ns=UNCUT_NS)
    stages = tuple(_sampled(_bounded(stage, bound_ns), part, seen) for stage in plan.stages)
    return replace(plan, stages=stages, tuning=None, limits=limits)


def _bounded(stage: Stage, bound_ns: int) -> Stage:
    """Return a stage with another bound, if it sheds."""
    shed = stage.step.traits.shed
    if not isinstance(shed, SheddingSettings):
        return stage
    other = replace(shed, overload=replace(shed.overload, latency_ns=bound_ns))
    return replace(stage, step=replace(stage.step, shed=other))  # type: ignore[call-arg]


def _sampled(stage: Stage, part: Stretched, seen: dict[str, SeenTimes]) -> Stage:
    if not isinstance(stage.step, SourceStep):
        return stage
    source = stage.step.source
    times = seen[stage.name] = SeenTimes(source)
    some = SomeRows(stage.name, source.input, part.rows[stage.name], times)
    first = replace(source, input=some, speed=None, start=None)
    return replace(stage, step=replace(stage.step, source=first))
