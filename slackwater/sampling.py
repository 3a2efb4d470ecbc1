"""A short run of a flow here, in this process, to learn what its stages cost.

Inputs are opened anew and read from the start, at most so many rows of each; no sink is called,
and nothing is written. The user's functions run, as they will.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import cycle

import pyarrow as pa

from actors.kernel.occupied import OccupiedClock
from runtime.config import Limits
from runtime.errors import SettingError
from runtime.estimate import QueryGraph
from runtime.estimate.gates import SourceTimes
from runtime.estimate.rates import RecordedRate
from runtime.estimate.sample_statistics import query_graph_of_sample
from runtime.estimate.sampled import SampledStage, sampled_stages, share_of
from runtime.flow.dataflow import Dataflow
from runtime.measure.report import JobReport
from runtime.model import NS_PER_SECOND
from runtime.plan.plan import Plan, Stage
from runtime.plan.stage_versions import other_stages, stage_versions
from runtime.plan.steps import SourceStep
from runtime.prepare import prepare
from runtime.shedding import Espice
from runtime.simulate import CostModel, LinkModel, MeasuredCost, NotedCost
from runtime.simulate import Simulation as SimulationRun
from runtime.sources.spec import END_OF_INPUT, EndOfInput, Input, SourceReader
from slackwater.sample_times import SeenTimes
from slackwater.source_times import source_times

__all__ = ["FlowSample", "as_sample", "costs_of", "sample_flow"]

BLOCKS = (50, 1, 200, 5, 1, 100, 20, 1, 400, 2, 10, 1)
"""Rows of the blocks that a sample is cut into by turns: what a slice costs, and what a row, is
seen from slices of different lengths. Those of one row bound the fixed part of a slice."""
HERE = "here"
UNCUT_NS = 3_600 * NS_PER_SECOND
NEVER_NS = 2**62
"""A bound under which nothing is shed in a sample; and one under which all is, at once."""
AT_ONCE_NS = 1


@dataclass(frozen=True)
class FlowSample:
    """What a sample has shown.

    Attributes:
        graph: costs and selectivities; the stages of a plan are its operators.
        rows: {source: rows that were read}.
        took_s: how long the sample took.
        stages: what was seen of each, in topological order.
        row_bytes: {(stage, the one that it feeds): bytes sent there for each row put out}.
        shares: {stage: how many of the rows that its inputs put out come to it}.
        versions: {stage: a digest of what it did with a row}; empty: of any version.
        times: {source: when its rows came, of what time they are, and what they promise}.
        origin_ns: the event time that counts as 0 in `times`.
        recorded: {source: what arrived there}, where an earlier job has shown all this.
        origin: which job of how many that was, in words; "" of a sample.
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

    @property
    def kind(self) -> str:
        """What it is, in a word."""
        return "history" if self.recorded else "sample"

    def differs_from(self, plan: Plan) -> list[str]:
        """Return the stages that are not the same in a plan as they were in the sample, sorted."""
        if not self.versions:
            return sorted({stage.name for stage in plan.stages} ^ set(self.graph.names))
        return other_stages(stage_versions(plan.stages), self.versions)


def sample_flow(
    flow: Dataflow,
    *,
    rows: int = 1_000,
    limits: Limits | None = None,
    clock_ns: Callable[[], int] | None = None,
    cost: CostModel | None = None,
) -> FlowSample:
    """Run the first rows of each source through the flow, and measure.

    Where a stage sheds, twice: with nothing dropped, and with all, which is what dropping saves.

    Args:
        flow: as it will be submitted.
        rows: of each source, >= 1.
        limits: those it will be submitted with.
        clock_ns: by which slices are timed; unless told, how long they occupy this thread: its CPU,
            and what it waits of its own accord.
        cost: what work costs, in place of a clock: as in a simulation of that model.

    Raises:
        SettingError: rows < 1, a source whose input is live and cannot be read twice, or a sample
            without rows or results.
        SlackwaterError: what the flow raised.
    """
    if rows < 1:
        raise SettingError(f"a sample of {rows} rows shows nothing; take 1,000 of each source")
    began_s = time.perf_counter()
    planned = prepare(flow, [HERE], limits=limits)
    seen: dict[str, SeenTimes] = {}
    occupied_ns = OccupiedClock()

    def ran(bound_ns: int, noted: dict[str, SeenTimes]) -> tuple[list[SampledStage], JobReport]:
        plan = _sampled_plan(planned, rows, noted, bound_ns=bound_ns)
        costs = MeasuredCost(clock_ns or occupied_ns) if cost is None else NotedCost(cost)
        link = LinkModel(delay_ns=0)
        report = SimulationRun(plan, egress=_leave, cost=costs, link=link, weighs=True).run()
        by_name = {one.name: one for one in report.stages}
        return sampled_stages(plan.stages, by_name, costs.slices), report

    with closing(occupied_ns):
        stages, report = ran(NEVER_NS, seen)
        shedding = {stage.name for stage in planned.stages if stage.sheds}
        dropped = ran(AT_ONCE_NS, {})[0] if shedding else []
    found = {one.name: one for one in report.stages}
    slice_s = planned.limits.slice_ns / NS_PER_SECOND
    graph = query_graph_of_sample(
        stages,
        slice_s=slice_s,
        times_s={name: times.seconds() for name, times in seen.items()},
    )
    saved = {
        kept.name: _saved(kept, bare, slice_s)
        for kept, bare in zip(stages, dropped, strict=bool(shedding))
        if kept.name in shedding
    }
    read = {stage.name: found[stage.name].rows_in for stage in planned.stages if not stage.inputs}
    shares = {stage.name: share_of(stage, stages) for stage in stages}
    times, origin_ns = source_times(planned.stages, read)
    return FlowSample(
        graph,
        read,
        time.perf_counter() - began_s,
        stages=tuple(stages),
        row_bytes=_row_bytes(report),
        shares=shares,
        versions=stage_versions(planned.stages),
        times=times,
        origin_ns=origin_ns,
        saved=saved,
    )


def _saved(kept: SampledStage, bare: SampledStage, slice_s: float) -> float:
    """Return what share of a stage's work is not done where all is dropped, 0 to 1.

    Args:
        kept: as it was with nothing dropped.
        bare: as it was with all dropped, but for what came before anything was known.
        slice_s: how long a full slice takes.
    """
    whole_s = kept.cost().in_full_slices(slice_s).row_s
    left_s = bare.cost(bare.slice_pairs).in_full_slices(slice_s).row_s
    return min(max(1 - left_s / whole_s, 0.0), 1.0) if whole_s > 0 else 0.0


def _row_bytes(report: JobReport) -> dict[tuple[str, str], float]:
    """Return what each stage sends to each other for a row that it puts out; both ports of one."""
    rows_out = {one.name: one.rows_out for one in report.stages}
    sent: dict[tuple[str, str], float] = {}
    for channel in report.channels:
        ends = channel.source, channel.target
        rows = rows_out[channel.source]
        sent[ends] = sent.get(ends, 0.0) + (channel.bytes_sent / rows if rows else 0.0)
    return sent


def as_sample(
    sample: int | FlowSample,
    flow: Dataflow,
    *,
    limits: Limits | None = None,
    cost: CostModel | None = None,
) -> FlowSample:
    """Return a sample of so many rows of each source, or the one that was taken before.

    Args:
        sample: rows of each source, or what `sample_flow` returned.
        flow: as it will be submitted.
        limits: those it will be submitted with.
        cost: as of `sample_flow`.

    Raises:
        SettingError: it is neither; or as of `sample_flow`.
    """
    if isinstance(sample, FlowSample):
        return sample
    if isinstance(sample, bool) or not isinstance(sample, int):
        raise SettingError(
            f"sample={sample!r} is no sample, and costs are known from nothing else: give a number "
            "of rows, or what sample_flow(flow) returned"
        )
    return sample_flow(flow, rows=sample, limits=limits, cost=cost)


def costs_of(sample: FlowSample) -> CostModel:
    """Return what work costs in the simulator by what a sample has shown."""
    if not sample.stages:  # of a history: rows in full slices
        each = {
            one.name: one.cost_s[0] / sample.shares.get(one.name, 1.0) * NS_PER_SECOND
            for one in sample.graph.operators
        }
        return CostModel(per_slice_ns=0, per_row_ns=0, released=each)
    costs = {one.name: one.cost(one.more) for one in sample.stages}
    fixed, row, more = (
        {name: getattr(cost, part) * NS_PER_SECOND for name, cost in costs.items()}
        for part in ("fixed_s", "row_s", "more_s")
    )
    joins = {one.name for one in sample.stages if one.within_s is not None}
    return CostModel(
        per_row_ns=0,
        slices=fixed,
        released=row,
        compared={name: cost_ns if name in joins else 0.0 for name, cost_ns in more.items()},
        results={name: 0.0 if name in joins else cost_ns for name, cost_ns in more.items()},
    )


def _leave(sink: str, batch: object, is_end: bool) -> None:
    """Results of a sample go nowhere."""


def _sampled_plan(
    plan: Plan, rows: int, seen: dict[str, SeenTimes], *, bound_ns: int = NEVER_NS
) -> Plan:
    # Slices as the blocks come, not cut by time: of different lengths they tell a slice's fixed
    # part from what a row costs.
    limits = replace(plan.limits, slice_ns=UNCUT_NS)
    stages = tuple(_sampled(_bounded(stage, bound_ns), rows, seen) for stage in plan.stages)
    return replace(plan, stages=stages, tuning=None, limits=limits)


def _bounded(stage: Stage, bound_ns: int) -> Stage:
    """Return a stage with another bound, if it sheds: how quick a sample is says nothing of it."""
    shed = getattr(stage.step, "shed", None)
    if not isinstance(shed, Espice):
        return stage
    other = replace(shed, overload=replace(shed.overload, latency_ns=bound_ns))
    return replace(stage, step=replace(stage.step, shed=other))  # type: ignore[call-arg]


def _sampled(stage: Stage, rows: int, seen: dict[str, SeenTimes]) -> Stage:
    if not isinstance(stage.step, SourceStep):
        return stage
    source = stage.step.source
    if not source.is_history:
        raise SettingError(
            f"source {stage.name!r} reads {source.input.describe()}, which is live: to read a "
            "sample of it would take rows from the run. Predict from the same flow on a file of a "
            "former day"
        )
    times = seen[stage.name] = SeenTimes(source)
    first = replace(source, input=FirstRows(source.input, rows, times), speed=None)
    return replace(stage, step=replace(stage.step, source=first))


@dataclass(frozen=True)
class FirstRows:
    """The first rows of an input, in blocks of different lengths."""

    input: Input
    rows: int
    seen: SeenTimes
    reads_inline = True  # and no history: its slices, too, are to be as long as those of the run

    def describe(self) -> str:
        """Return what it is of."""
        return f"the first {self.rows} rows of {self.input.describe()}"

    def schema(self) -> pa.Schema:
        """Return the columns."""
        return self.input.schema()

    def open(self) -> SourceReader:
        """Open it from the start."""
        return _FirstReader(self.input.open(), self.rows, self.seen)


class _FirstReader:
    def __init__(self, reader: SourceReader, rows: int, seen: SeenTimes) -> None:
        self._reader, self._left, self._seen = reader, rows, seen
        self._lengths = cycle(BLOCKS)
        self._blocks: Iterator[pa.RecordBatch] = iter(())

    def poll(self) -> pa.RecordBatch | EndOfInput | None:
        while (block := next(self._blocks, None)) is None:
            if self._left <= 0:
                return END_OF_INPUT
            found = self._reader.poll()
            if not isinstance(found, pa.RecordBatch):
                return found
            found = found.slice(0, self._left)
            self._left -= found.num_rows
            self._seen.note(found)
            self._blocks = self._cut(found)
        return block

    def close(self) -> None:
        self._reader.close()

    def _cut(self, block: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        at = 0
        while at < block.num_rows:
            length = next(self._lengths)
            yield block.slice(at, length)
            at += length
