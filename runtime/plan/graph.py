"""Graph of a flow's steps: their order, checks, and the columns that they need."""

from __future__ import annotations

import os.path
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from slackwater.runtime.errors import CycleError, DuplicateName, FlowError, SettingError
from slackwater.runtime.expressions.result_types import type_read
from slackwater.runtime.model import END_NS, LONGEST_NS, READY_ONLY, Release, ReleaseRule
from slackwater.runtime.nearest import choices
from slackwater.runtime.plan.flow_fingerprints import check_sinks
from slackwater.runtime.plan.step import Step
from slackwater.runtime.plan.steps import (
    DivertedStep,
    LateStep,
    SideStep,
    SinkStep,
    SourceStep,
    sinks_among,
    sources_among,
)
from slackwater.runtime.shown import shown
from slackwater.runtime.sinks.output import FileTraits

_YEAR_NS = 365 * 86_400 * 10**9


@dataclass(frozen=True)
class StepGraph:
    """Steps of a flow as a graph, which is checked, explained and planned.

    Attributes:
        flow: the flow's name.
        steps: {name: step}, each after its inputs.
        release: the rule of gates without their own.
        deadline_ns: the latency to keep; None if none exists.
    """

    flow: str
    steps: Mapping[str, Step]
    release: Release = READY_ONLY
    deadline_ns: int | None = None

    def check(self) -> None:
        """Check that the flow can run.

        Raises:
            FlowError: no source, no sink, a step that feeds nothing, or a sink that cannot do
                what its options say.
        """
        check_runnable(self.flow, self.steps)
        check_sinks(self.steps)


def order_steps(steps: Iterable[Step]) -> dict[str, Step]:
    """Return {name: step}, each after its inputs, else in the order given.

    Raises:
        DuplicateName: two steps of one name.
        FlowError: an input that is not a step; names the nearest.
        CycleError: a step that feeds itself; draws the circle.
    """
    waiting: dict[str, Step] = {}
    for step in steps:
        if step.name in waiting:
            raise DuplicateName(f"two steps are named {step.name!r}; each needs its own name")
        waiting[step.name] = step
    for step in waiting.values():
        for name in step.inputs:
            if name not in waiting:
                raise FlowError(
                    f"step {step.name!r}: its input {name!r} is not a step of this flow; "
                    f"{choices(name, waiting)}"
                )
    ordered: dict[str, Step] = {}
    while waiting:
        before = len(ordered)
        for step in list(waiting.values()):
            if all(name in ordered for name in step.inputs):
                ordered[step.name] = waiting.pop(step.name)
        if len(ordered) == before:
            raise CycleError(_circle(waiting))
    return ordered


def _circle(waiting: Mapping[str, Step]) -> str:
    path = [next(iter(waiting))]
    while path[-1] not in path[:-1]:  # Each waiting step waits for another one.
        path.append(next(name for name in waiting[path[-1]].inputs if name in waiting))
    circle = path[path.index(path[-1]) :][::-1]
    return (
        f"step {circle[0]!r} feeds itself: {' → '.join(circle)}; "
        "take one of these inputs away, a flow runs from its sources to its sinks"
    )


def check_runnable(flow: str, steps: Mapping[str, Step]) -> None:
    """Check that all steps, ordered, lead from sources to sinks.

    Raises:
        FlowError: no source, no sink, a step that feeds nothing, a sink that feeds a step,
            or two sinks that write to one place.
        SettingError: lengths of time of more than 73 years together.
        SchemaError: a step reads a column of a source that does not travel.
    """
    sinks = sinks_among(steps.values())
    if not sources_among(steps.values()):
        raise FlowError(f"dataflow {flow!r} has no source; start with flow.source(...)")
    if not sinks:
        raise FlowError(f"dataflow {flow!r} has no sink; end with stream.sink(name, ...)")
    # A step that feeds only its side rows would still lose its results.
    consumers = [step for step in steps.values() if not isinstance(step, SideStep)]
    feeding = {name for step in consumers for name in step.inputs}
    for step in steps.values():
        if isinstance(step, SinkStep):
            if step.name in feeding:
                raise FlowError(
                    f"step {step.name!r} is a sink, and feeds other steps; feed them from its input"
                )
        elif step.name not in feeding:
            raise FlowError(
                f"step {step.name!r} feeds nothing, so its rows would be lost; "
                "give it a sink or omit it"
            )
    _check_diverted(steps)
    _check_travel(steps)
    longest = {step.name: _longest_ns(step) for step in steps.values()}
    if sum(longest.values()) > LONGEST_NS:
        most = max(longest, key=lambda name: longest[name])
        raise SettingError(
            f"dataflow {flow!r}: its windows, withins, slacks, disorders and idles add up to more "
            f"than 73 years together, {longest[most] / _YEAR_NS:.0f} of them in step "
            f"{shown(most)}, and event times with them would not fit in 64 bits; make them shorter"
        )
    _check_places(sinks)


def _check_places(sinks: Sequence[SinkStep]) -> None:
    """Check that no sink writes where the files of another one are read.

    Raises:
        FlowError: two have one path, or a folder and files below it, of one format.
    """
    places: list[tuple[str, FileTraits]] = []
    for sink in sinks:
        place = sink.output.traits.files
        if place is None:
            continue
        for first, other in places:
            ends = sorted((os.path.normpath(other.path), os.path.normpath(place.path)), key=len)
            is_below = ends[1].startswith(f"{ends[0]}{os.sep}") and other.format == place.format
            if ends[0] == ends[1] or is_below:
                raise FlowError(
                    f"sinks {first!r} and {sink.name!r} both write to {shown(ends[0])}, "
                    "where readers would see the rows of both; each needs its own place"
                )
        places.append((sink.name, place))


def _check_travel(steps: Mapping[str, Step]) -> None:
    """Check the types of the source columns that steps read."""
    needed = needed_columns(steps)
    for step in steps.values():
        for position, name in enumerate(step.inputs):
            source = steps[name]
            if not isinstance(source, SourceStep):
                continue
            read = columns_read(steps, needed, step, position)
            for field in source.schema:
                if field.name in read:
                    type_read(field, step=step.name)


def _longest_ns(step: Step) -> int:
    """Return the longest distance from an event's time that a step may look."""
    release = step.traits.release
    slack_ns = release.slack_ns if isinstance(release, ReleaseRule) else None
    return step.traits.reach_ns + (slack_ns or 0)


def _check_diverted(steps: Mapping[str, Step]) -> None:
    read_from = {step.inputs[0] for step in steps.values() if isinstance(step, DivertedStep)}
    for step in steps.values():
        if step.traits.diverts and step.name not in read_from:
            raise FlowError(
                f"step {step.name!r} diverts rows that it cannot use, and nothing takes them; "
                "write .diverted().sink(…) on its stream, or 'skip' instead of 'divert'"
            )


def needed_columns(steps: Mapping[str, Step]) -> dict[str, frozenset[str]]:
    """Return {step: the columns of its output that later steps read}.

    A step reads the columns that it names, needed or not: it runs as it is written. A batch can
    omit all columns that are not listed. Columns that only a source itself reads (times, writer,
    promise) are not listed.

    Args:
        steps: steps of the flow, in topological order.
    """
    needed: dict[str, frozenset[str]] = dict.fromkeys(steps, frozenset())
    for step in reversed(list(steps.values())):
        for position, name in enumerate(step.inputs):
            needed[name] |= columns_read(steps, needed, step, position)
    return needed


def columns_read(
    steps: Mapping[str, Step], needed: Mapping[str, frozenset[str]], step: Step, position: int
) -> frozenset[str]:
    """Return the columns of its input at `position` that a step reads or passes on.

    These are fewer than all that are needed of the input where another step reads it, too. A merge
    asks each of its inputs for the same columns. Late rows of a step leave with columns of its
    input, so it reads those, too.

    Args:
        steps: {name: step} of the flow.
        needed: {step: the columns needed of its output}, of all steps after the input.
        step: the step that reads.
        position: the input's place among the step's inputs.
    """
    there = frozenset(steps[step.inputs[position]].schema.names)
    read = frozenset(step.reads(position, there, needed[step.name]))
    for late in steps.values():
        if isinstance(late, LateStep) and late.inputs[0] == step.name:
            columns = late.columns[position] or {}
            read |= {old for new, old in columns.items() if new in needed[late.name]}
    return read & there


def times_ahead(steps: Mapping[str, Step]) -> dict[tuple[str, str], int]:
    """Return {(step with a gate, its feeder): event time by which the feeder is ahead}.

    ```
    orders ──▶ join, how="anti" ──▶ merge    the merge holds orders for as long as the join does;
           └──────────────────────▶          without them the join could not go on
    ```

    It is ahead of other feeders that have rows of the same source, since these hold them longer.

    Args:
        steps: steps of a flow, each after those that feed it.
    """
    delays: dict[str, dict[str, tuple[int, int]]] = {}  # {step: {source: (least, most)}}
    ahead: dict[tuple[str, str], int] = {}
    for name, step in steps.items():
        own: dict[str, tuple[int, int]] = {} if step.inputs else {name: (0, 0)}
        for feeder in step.inputs:
            for source, (least_ns, most_ns) in delays[feeder].items():
                least, most = own.get(source, (least_ns, most_ns))
                own[source] = min(least, least_ns), max(most, most_ns)
        if step.traits.has_gate:
            for feeder in step.inputs:
                times_ns = [
                    END_NS if least < own[source][1] == END_NS else own[source][1] - least
                    for source, (least, _) in delays[feeder].items()
                ]
                ahead[name, feeder] = max(times_ns, default=0)
        delay_ns = max((summary.delay_ns for summary in step.traits.summaries), default=0)
        delays[name] = {
            source: (min(least + delay_ns, END_NS), min(most + delay_ns, END_NS))
            for source, (least, most) in own.items()
        }
    return ahead
