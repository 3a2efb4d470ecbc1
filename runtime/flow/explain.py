"""A flow as text: what a person reads before running it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from runtime.errors import FlowError
from runtime.flow.keep import keep_text, panes_text
from runtime.model import READY_ONLY, format_ns
from runtime.plan.graph import StepGraph
from runtime.plan.steps import (
    Aggregate,
    AggregateStep,
    AssignStep,
    FilterStep,
    JoinStep,
    LateStep,
    MapBatchesStep,
    MapRowsStep,
    MergeStep,
    SelectStep,
    Share,
    SinkSpec,
    SinkStep,
    SourceStep,
    Step,
)
from runtime.plan.unpaced import unpaced_note
from runtime.sources.spec import SourceSpec

_SHARES: dict[Share, str] = {
    "keys": "each reads the rows of its keys",
    "all": "each reads all rows and stores its share",
}


def explain_graph(graph: StepGraph) -> str:
    """Return the steps of a flow, a paragraph for each, in topological order."""
    deadline = "" if graph.deadline_ns is None else f", deadline {format_ns(graph.deadline_ns)}"
    if graph.deadline_ns is None and graph.release == READY_ONLY:
        deadline = " (no deadline: gates release only what is ready)"
    lines = [f"dataflow {graph.flow}: {graph.release.text}{deadline}"]
    sources = {s.name: s.source for s in graph.steps.values() if isinstance(s, SourceStep)}
    if note := unpaced_note(graph.deadline_ns, sources):
        lines.append(f"note: {note}")
    for step in graph.steps.values():
        kind = type(step).__name__.removesuffix("Step").lower()
        behind = f" ← {', '.join(step.inputs)}" if step.inputs else ""
        lines += ["", f"{step.name} ({kind}){behind}"]
        lines += [f"    {line}" for line in _settings(step, graph.steps)]
        if not isinstance(step, SinkStep):
            columns = ", ".join(f"{field.name} {field.type}" for field in step.schema)
            lines.append(f"    columns  {columns}")
    try:
        graph.check()
    except FlowError as problem:
        lines += ["", f"cannot run yet: {problem}"]
    return "\n".join(lines)


def _settings(  # noqa: PLR0912 - one for each kind of step
    step: Step, steps: Mapping[str, Step]
) -> Iterator[str]:
    match step:
        case SourceStep():
            yield f"reads    {step.source.input.describe()}"
            yield f"time     {_times(step.source)}"
        case FilterStep():
            yield f"keeps    {step.predicate}"
        case AssignStep():
            for name, expression in step.columns.items():
                yield f"assigns  {name} = {expression}"
        case SelectStep():
            renamed = [f"{new} = {old}" for new, old in step.columns.items() if new != old]
            if renamed:
                yield f"renames  {', '.join(renamed)}"
        case MapBatchesStep() | MapRowsStep():
            yield f"calls    {getattr(step.function, '__qualname__', repr(step.function))}"
        case MergeStep():
            yield f"gate     {step.release.text}"
        case JoinStep():
            keys = zip(step.left_on, step.right_on, strict=True)
            equal = ", ".join(a if a == b else f"{a} = {b}" for a, b in keys)
            yield f"on       {equal}, within {format_ns(step.within_ns)}"
            if step.where is not None:
                yield f"where    {step.where}"
            yield f"gate     {step.release.text}"
            if step.release != READY_ONLY:
                yield f"keeps    {keep_text(step, steps)}"
            if step.replicas > 1:
                yield f"replicas {step.replicas} behind that gate, {_SHARES[step.share]}"
        case AggregateStep():
            window = step.window
            slide = "" if window.is_tumbling else f" every {format_ns(window.slide_ns)}"
            yield f"by       {', '.join(step.keys) or 'nothing: all rows together'}"
            yield f"window   {format_ns(window.size_ns)}{slide}"
            for name, aggregate in step.aggregates.items():
                yield f"gives    {name} = {_aggregate(aggregate)}"
            if step.late == "correct":
                yield "late     corrects: its window's row leaves again, with the next revision"
                yield f"keeps    {panes_text(step, steps)}"
            yield f"gate     {step.release.text}"
            if step.replicas > 1:
                yield f"replicas {step.replicas} behind that gate, {_SHARES['keys']}"
        case LateStep():
            yield f"takes    what came too late to count in full at {step.inputs[0]}"
        case SinkStep():
            yield f"writes   {step.sink.kind}{f' {step.sink.path}' if step.sink.path else ''}"
            options = _publishing(step.sink)
            if options:
                yield f"         {options}"


def _publishing(sink: SinkSpec) -> str:
    words = []
    if sink.rows is not None:
        words.append(f"a part for {sink.rows:,} rows")
    if sink.every_ns is not None:
        words.append(f"published every {format_ns(sink.every_ns)}")
    if sink.overwrite:
        words.append("replaces what our manifest there names")
    if sink.resume:
        words.append("goes on behind what is committed")
    return ", ".join(words)


def _times(spec: SourceSpec) -> str:
    words = [
        spec.event_time
        if spec.time_unit in (None, "ns")
        else f"{spec.event_time} in {spec.time_unit}"
    ]
    if spec.arrival is not None:
        words.append(f"arrives by {spec.arrival}")
    if spec.speed is not None:
        words.append(f"replayed at {spec.speed:g}×")
    if spec.writer is not None:
        words.append(f"a writer for each {spec.writer}")
    if spec.promise is not None:
        words.append(f"promises {spec.promise}")
    if spec.promises_nothing:
        words.append("promises nothing before its end, so that a gate keeps all its rows")
    if spec.idle_ns is not None:
        words.append(f"idle after {format_ns(spec.idle_ns)}")
    if spec.ahead_ns is not None:
        words.append(f"held if ahead by more than {format_ns(spec.ahead_ns)}")
    words.append(
        {
            "error": "in order, or an error",
            "sort": f"sorted within {format_ns(spec.disorder_ns)}",
            "late": f"late behind {format_ns(spec.disorder_ns)}",
        }[spec.out_of_order]
    )
    return ", ".join(words)


def _aggregate(aggregate: Aggregate) -> str:
    level = "" if aggregate.level is None else f", {aggregate.level:g}"
    return f"{aggregate.kind}({aggregate.column or ''}{level})"
