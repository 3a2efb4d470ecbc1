"""Builder of dataflows, which users call, and which checks each call.

    flow = Dataflow("congestion")
    buses = flow.source("buses", parquet("buses/"), event_time="ts")
    loops = flow.source("loops", parquet("loops/"), event_time="ts")
    jams = buses.filter(col("speed") < 8).join(loops, on="cell", within="5s")
    jams.sink("jams", parquet_sink("out/"))

The steps are kept in `runtime/operators/ground/flow_builder.py`; `runtime/plan/` takes them from
here.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from datetime import datetime
from typing import Any, Literal, TypedDict, Unpack

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import FlowError, SchemaError, SettingError, TypeMismatch
from slackwater.runtime.expressions.expressions import ColumnRef, Expr
from slackwater.runtime.flow import checks
from slackwater.runtime.flow.stream import Stream
from slackwater.runtime.model import BY_DEADLINE, READY_ONLY, Duration, duration_ns, format_ns
from slackwater.runtime.model.diverted import OnBad
from slackwater.runtime.notebook import fixed_width
from slackwater.runtime.operators.ground.keep import gate_texts
from slackwater.runtime.order.policies import OrderWord
from slackwater.runtime.order.reorder import Reorder
from slackwater.runtime.plan.after_failure import guarantee_lines
from slackwater.runtime.plan.by_default import default_line
from slackwater.runtime.plan.changes import changes_text, late_changes_text
from slackwater.runtime.plan.division import UNDIVIDED, Division
from slackwater.runtime.plan.flow_fingerprints import Sameness, sameness_of
from slackwater.runtime.plan.graph import StepGraph, needed_columns
from slackwater.runtime.plan.slack import rule_of
from slackwater.runtime.plan.step import Step
from slackwater.runtime.plan.steps import SourceStep, sources_among
from slackwater.runtime.plan.traits import Keep, Role
from slackwater.runtime.plan.unpaced import unpaced_note
from slackwater.runtime.registry.operators import FlowMethods
from slackwater.runtime.shown import shown
from slackwater.runtime.sources.clock_columns import ClockColumns
from slackwater.runtime.sources.spec import INPUT_METHODS, Input, SourceSpec, missing_methods


class SourceOptions(TypedDict, total=False):
    """Options of `Dataflow.source` beside an input; see SourceSpec."""

    event_time: str | Expr
    time_unit: Literal["ns", "us", "ms", "s"] | None
    arrival: str | None
    speed: float | None
    start: datetime | str | None
    writer: str | None
    promise: Expr | str | None
    out_of_order: OrderWord | Reorder
    disorder: Duration
    idle: Duration | None
    ahead: Duration | None
    clock: ClockColumns | None
    sequence: str | None
    on_bad: OnBad
    retry: int
    max_rows: int


class Dataflow(FlowMethods):
    """Flow under construction.

    Args:
        name: name of the flow in reports.
        slack: slack of every gate without its own. If None, a gate releases only ready rows, and
            results are complete. "500ms": it waits for at most that event time. "0s": it holds no
            row.
        deadline: the latency to keep, from the arrival of an event to the end of the work on it
            ([ssg] Eq. 2, 3). Gates without a slack then wait just as long as it allows; without
            a deadline they release only ready rows, however long that takes.
        keep: rule `keep` of every join without its own, see Stream.join. If None, "promise", or
            "slack" after a source that promises nothing before its end.

    Raises:
        SettingError: slack or deadline is not a duration, or keep none of the two.
    """

    division: Division = UNDIVIDED
    """Division of steps into stages, of a flow that goes on from a checkpoint."""

    @checked_call
    def __init__(
        self,
        name: str,
        *,
        slack: Duration | None = None,
        deadline: Duration | None = None,
        keep: Keep | None = None,
    ) -> None:
        super().__init__(name)
        self.deadline_ns = (
            None
            if deadline is None
            else duration_ns(deadline, what=f"dataflow {name!r}: deadline", positive=True)
        )
        own = rule_of(slack, who=f"dataflow {name!r}")
        is_tuned = own == READY_ONLY and self.deadline_ns is not None
        self.release = BY_DEADLINE if is_tuned else own
        self.keep = keep

    @checked_call
    def source(
        self, name: str, source: SourceSpec | Input, **options: Unpack[SourceOptions]
    ) -> Stream:
        """Add a source of events.

        Args:
            name: name of the source.
            source: its settings, or an input and its settings as options.
            options: options of the source, as in SourceSpec; `disorder` is its disorder_ns, written
                "500ms", and `idle` and `ahead` its idle_ns and ahead_ns. A `promise` that is an
                integer is in nanoseconds, whatever `time_unit` is.

        Raises:
            SchemaError, TypeMismatch: a column is missing, or its type does not fit its role.
            SettingError: an option is out of range.
        """
        name = self.name_for("source", name)
        if not isinstance(source, SourceSpec):
            source = _spec(name, source, dict(options))
        elif options:
            raise FlowError(
                f"source {name!r}: {', '.join(options)} would change a SourceSpec; "
                "set it there, or pass the input alone"
            )
        schema = checks.source_schema(name, source)
        return self.add(SourceStep(name=name, inputs=(), schema=schema, source=source))

    @property
    def graph(self) -> StepGraph:
        """Graph of the current steps, for `plan_stages`.

        Raises:
            DuplicateName, CycleError: the steps make no flow.
        """
        return StepGraph(self.name, self.steps, self.release, self.deadline_ns)

    def check(self) -> None:
        """Check that the flow can run.

        Raises:
            FlowError: no source, no sink, a step that feeds nothing, or a sink whose options
                cannot be fulfilled.
            DuplicateName, CycleError: the steps make no flow.
        """
        self.graph.check()

    def explain(self, *, checkpoints: bool = False) -> str:
        """Return the graph as text: each step with its inputs, settings and columns.

        Args:
            checkpoints: whether to say what sources and sinks guarantee after a failure, in a job
                with checkpoints.

        Raises:
            DuplicateName, CycleError: the steps make no flow.
        """
        text = explain_graph(self.graph)
        if not checkpoints:
            return text
        default = default_line(self.steps, deadline_ns=self.deadline_ns)
        return "\n".join([text, "", *guarantee_lines(self.steps), "", default])

    def _repr_html_(self) -> str:
        return fixed_width(self.explain())

    def needed_columns(self) -> dict[str, frozenset[str]]:
        """Return {step: columns of its output that later steps read}."""
        return needed_columns(self.steps)

    def with_steps(self, steps: Iterable[Step]) -> Dataflow:
        """Return a copy of the flow with other steps.

        Raises:
            FlowError: the steps cannot run; see `check`.
        """
        other = copy(self)
        other._steps = list(steps)
        other.check()
        return other

    def with_division(self, division: Division) -> Dataflow:
        """Return a copy of the flow, divided into stages as at a checkpoint.

        Where the user has written a number of replicas, that stays.
        """
        other = copy(self)
        other.division = division
        return other

    @checked_call
    def with_deadline(self, deadline: Duration) -> Dataflow:
        """Return a copy of the flow with another deadline.

        The same gates are tuned, by the new deadline.

        Raises:
            SettingError: `deadline` is not a duration above 0.
        """
        other = copy(self)
        other.deadline_ns = duration_ns(
            deadline, what=f"dataflow {self.name!r}: deadline", positive=True
        )
        return other

    def add(self, step: Step) -> Stream:
        """Add a step whose inputs exist, and return its stream.

        Raises:
            FlowError: a sink would destroy the input of a source, or its options cannot be
                fulfilled.
        """
        self.put(step)
        return Stream(self, step)


def _spec(name: str, source: Input, options: dict[str, Any]) -> SourceSpec:
    missing = missing_methods(source)
    if missing or isinstance(source, type):
        way_out = _input_of(source, missing)
        raise TypeMismatch(f"source {name!r}: {shown(source, 60)} is not an input; {way_out}")
    if "event_time" not in options:
        columns = ", ".join(checks.outside_schema(name, source).names)
        raise FlowError(
            f"source {name!r} needs event_time=, the column of event times, or an expression; "
            f"there are: {columns}"
        )
    if isinstance(options.get("promise"), str):
        options["promise"] = ColumnRef(options["promise"])
    if isinstance(options["event_time"], ColumnRef):
        options["event_time"] = options["event_time"].name
    disorder_ns = duration_ns(options.pop("disorder", 0), what=f"source {name!r}: disorder")
    idle, idle_ns = options.pop("idle", None), None
    if idle is not None:
        idle_ns = duration_ns(idle, what=f"source {name!r}: idle", positive=True)
    ahead, ahead_ns = options.pop("ahead", None), None
    if ahead is not None:
        ahead_ns = duration_ns(ahead, what=f"source {name!r}: ahead")
    try:
        return SourceSpec(
            input=source, disorder_ns=disorder_ns, idle_ns=idle_ns, ahead_ns=ahead_ns, **options
        )
    except SettingError as problem:
        raise SettingError(f"source {name!r}: {problem}") from None


_READERS = {".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl"}


def _input_of(value: object, missing: Sequence[str]) -> str:
    """Return what to write for a value that is not an input."""
    if isinstance(value, str | os.PathLike):
        path = os.fspath(value)
        reader = _READERS.get(os.path.splitext(path)[1], "csv")
        return f"write sw.{reader}({path!r})"
    if isinstance(value, type):
        return f"pass an object of it, {value.__name__}(…)"
    if isinstance(value, Mapping) or hasattr(value, "__arrow_c_stream__"):
        return "write sw.table(…) of it"
    if len(missing) < len(INPUT_METHODS):
        return f"its class has no {missing[0]}(), which is a method of each input"
    return "write sw.parquet('…') or sw.table(…), say"


def explain_graph(graph: StepGraph) -> str:
    """Return the steps of a flow, a paragraph for each, in topological order."""
    same = Sameness(graph.release.text, "")
    deadline = "" if graph.deadline_ns is None else f", deadline {format_ns(graph.deadline_ns)}"
    if graph.deadline_ns is None and graph.release == READY_ONLY:
        deadline = " (no deadline: gates release only what is ready)"
        same = sameness_of(graph.steps)
    lines = [f"dataflow {graph.flow}: {same.text}{deadline}"]
    sources = {step.name: step.source for step in sources_among(graph.steps.values())}
    if same.why_not:
        lines.append(f"note: {same.text}, for {same.why_not}")
    if note := unpaced_note(graph.deadline_ns, sources):
        lines.append(f"note: {note}")
    for step in graph.steps.values():
        inputs = f" ← {', '.join(step.inputs)}" if step.inputs else ""
        lines += ["", f"{step.name} ({step.traits.kind}){inputs}"]
        lines += [f"    {line}" for line in step.explained(graph.steps)]
        if step.traits.role is Role.AFTER_GATE:
            lines += [f"    {line}" for line in gate_texts(step, graph.steps)]
        if changes := changes_text(graph.steps, step.name):
            lines.append(f"    {changes}")
        if note := late_changes_text(graph.steps, step):
            lines.append(f"    {note}")
        if step.traits.role is not Role.SINK:
            columns = ", ".join(f"{field.name} {field.type}" for field in step.schema)
            lines.append(f"    columns  {columns}")
    try:
        graph.check()
    except (FlowError, SchemaError) as problem:
        lines += ["", f"cannot run yet: {problem}"]
    return "\n".join(lines)
