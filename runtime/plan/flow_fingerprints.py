"""Fingerprints of flows: whether a later run can resume a sink's output.

Where every gate on the way releases only what is ready, a sink's output is one sequence of rows,
whatever the machine does; so the rows that a run has committed are a prefix of what the next run
of the same flow over the same input will write, and it may omit them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from slackwater.runtime.errors import FlowError
from slackwater.runtime.model import BY_DEADLINE, READY_ONLY
from slackwater.runtime.plan.canonical import canonical_step
from slackwater.runtime.plan.partial_results import partial_results
from slackwater.runtime.plan.step import Step
from slackwater.runtime.plan.steps import (
    SinkStep,
    SourceStep,
    may_be_several,
    sinks_among,
    sources_among,
)
from slackwater.runtime.plan.traits import Role
from slackwater.runtime.sinks.output import FileTraits, SinkTraits

__all__ = [
    "FlowFingerprint",
    "check_sinks",
    "flow_fingerprints",
    "sameness_of",
    "why_rows_differ",
]


@dataclass(frozen=True)
class FlowFingerprint:
    """Fingerprint of a sink's output.

    Attributes:
        flow: a digest of the steps that lead to it.
        sources: the sources among them.
        form: form of the sink's files, in words.
        why_not: reason why no run can resume an earlier one; "" if one can.
    """

    flow: str
    sources: tuple[str, ...]
    form: str
    why_not: str = ""


def flow_fingerprints(steps: Mapping[str, Step]) -> dict[str, FlowFingerprint]:
    """Return the fingerprints of the sinks that later runs may resume: {sink: fingerprint}."""
    marks = {}
    for name, traits in _traits(steps).items():
        place = traits.files
        if place is None and not traits.resumes:
            continue
        upstream = _upstream(steps, name)
        text = "\n".join(canonical_step(steps[step_name]) for step_name in upstream)
        if place is not None:
            text += f"\n{place.format} {place.rows}{place.form and f' {place.form}'}"
        sources = tuple(source.name for source in sources_among(steps[each] for each in upstream))
        digest = hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
        form = "" if place is None else _form(place)
        marks[name] = FlowFingerprint(digest, sources, form, _why_not(steps, upstream))
    return marks


def check_sinks(steps: Mapping[str, Step]) -> None:
    """Check that the flow can do what options of its sinks require.

    Raises:
        FlowError: a sink of files resumes, and its output need not be the same sequence in every
            run; or it replaces or resumes files that a source reads.
    """
    for name, fingerprint in flow_fingerprints(steps).items():
        traits = _traits(steps)[name]
        place = traits.files
        if place is None:
            continue  # it may be new in this run, or go on in a job that comes back
        if traits.resumes and fingerprint.why_not:
            raise FlowError(
                f"sink {name!r}: resume=True continues after the rows of an earlier run, for which "
                f"every run must write the same rows in the same order, and {fingerprint.why_not}; "
                "omit resume, or change that"
            )
        if place.overwrite or traits.resumes:
            for source in sources_among(steps.values()):
                _check_apart(name, place, source)


def _traits(steps: Mapping[str, Step]) -> dict[str, SinkTraits]:
    return {step.name: step.output.traits for step in sinks_among(steps.values())}


def _form(place: FileTraits) -> str:
    rows = "the default rows=" if place.rows is None else f"rows={place.rows}"
    return f"{rows}, {place.form}" if place.form else rows


def _check_apart(sink: str, place: FileTraits, source: SourceStep) -> None:
    reads_at = getattr(source.source.input, "reads_at", None)
    read_files = reads_at and reads_at(place.path, kind=place.format, is_file=place.is_file)
    if read_files:
        raise FlowError(
            f"sink {sink!r} writes to {place.path!r} with "
            f"{'overwrite' if place.overwrite else 'resume'}=True, and source {source.name!r} "
            f"reads there ({read_files}): it would destroy its own input; choose another path for "
            "the sink"
        )


def _upstream(steps: Mapping[str, Step], sink: str) -> list[str]:
    """Return a sink and the steps upstream of it, in the order of the flow."""
    upstream = {sink}
    for name in reversed(list(steps)):
        if name in upstream:
            upstream.update(steps[name].inputs)
    return [name for name in steps if name in upstream]


def why_rows_differ(steps: Mapping[str, Step], sink: str) -> str:
    """Return why a sink's rows may differ after a checkpoint; "": they do not.

    They do not differ where the same rows come again in the same order, whatever the clock does.
    """
    upstream = _upstream(steps, sink)
    reasons = (_of_step(steps, name, upstream) or _of_live_input(steps[name]) for name in upstream)
    return next(filter(None, reasons), "")


def _why_not(steps: Mapping[str, Step], upstream: list[str]) -> str:
    for name in upstream:
        if reason := _of_step(steps, name, upstream) or _of_input(steps[name]):
            return reason
    for step in sinks_among(steps.values()):
        if step.output.traits.sees_again:
            what = step.output.describe().partition("\n")[0]
            return (
                f"{what} sink {step.name!r} of this flow would be given again rows that it has seen"
            )
    return ""


def _of_step(steps: Mapping[str, Step], name: str, upstream: list[str]) -> str:
    step = steps[name]
    release = step.traits.release
    if step.traits.close is not None:
        return _why_closing(step)
    if release != READY_ONLY:
        what = "is tuned by a deadline" if release is BY_DEADLINE else "has a slack"
        return (
            f"the gate of {name!r} {what}, so its order depends on the clock and on how rows are "
            "read"
        )
    if isinstance(step, SourceStep):
        reason = _why_uncertain(step, has_gate=_has_gate(steps, upstream))
        return reason or (_as_they_have_rows(step) if step.source.traits.has_partitions else "")
    if not step.traits.has_gate:
        return ""
    return _why_clock(step) or _why_rounded(step, steps) or _why_order_varies(steps, name, upstream)


def _why_closing(step: Step) -> str:
    who = f"windows of {step.name!r} close in time (close=)"
    if step.traits.uses_clock:
        return f"{who} by the clock, for lack of arrivals"
    if step.traits.changes == "revisions":
        return f"{who}, and how often a corrected result leaves again depends on how rows are read"
    return f"{who}: after them no sink can resume yet, though by arrivals all runs write the same"


def _why_clock(step: Step) -> str:
    return f"{step.name!r} uses the clock, too" if step.traits.uses_clock else ""


def _why_rounded(step: Step, steps: Mapping[str, Step]) -> str:
    """Return why last bits of a step's results vary; "": they do not."""
    made = partial_results(step, steps)
    if made is None or not made.rounded:
        return ""
    return (
        f"{step.name!r} combines floats anywhere (combine='anywhere'), so the last bits of "
        f"{', '.join(made.rounded)} depend on replicas= and on how rows are read"
    )


def _why_order_varies(steps: Mapping[str, Step], name: str, upstream: list[str]) -> str:
    """Return why a step's rows reach a sink in any order; "": they do not.

    Args:
        steps: {name of a step: step}.
        name: name of the step.
        upstream: the sink and the steps upstream of it.
    """
    step = steps[name]
    has_partitions = isinstance(step, SourceStep) and step.source.traits.has_partitions
    why = _why_replicas_mix(step, steps, upstream) if may_be_several(step) else ""
    if not (has_partitions or why) or not _meets_no_gate(steps, name, upstream):
        return ""
    return why or _as_they_have_rows(step)


def _why_replicas_mix(step: Step, steps: Mapping[str, Step], upstream: list[str]) -> str:
    """Return why rows of replicas reach a sink in any order; "": they do not."""
    sink = steps[upstream[-1]]
    who = f"rows of the replicas of {step.name!r} reach sink {sink.name!r} as they come"
    if reason := step.traits.why_no_order:
        return f"{who}: {reason}; put flow.merge(…) between"
    if _leaves_aside(steps, step.name, upstream):
        return f"{who}: they are put aside, as late or diverted; put flow.merge(…) between"
    if isinstance(sink, SinkStep) and not sink.ordered:
        return f"{who}; omit ordered=False"
    return ""


class Sameness(NamedTuple):
    """Sameness of results from run to run.

    Attributes:
        text: whether rows, and their order, are the same.
        why_not: the reason where they are not; "": they are.
    """

    text: str
    why_not: str


def sameness_of(steps: Mapping[str, Step]) -> Sameness:
    """Return whether two runs of a ready-only flow write the same bytes."""
    if reason := why_results_vary(steps):
        return Sameness("results may differ from run to run", reason)
    for name, step in steps.items():
        if isinstance(step, SinkStep):
            upstream = _upstream(steps, name)
            for other in upstream:
                if reason := _why_order_varies(steps, other, upstream):
                    return Sameness("the order of rows may differ from run to run", reason)
    return Sameness(READY_ONLY.text, "")


def why_results_vary(steps: Mapping[str, Step]) -> str:
    """Return why results of a ready-only flow differ between runs; "": they do not.

    A gate may have its own slack, or a step may use the clock. Or a source may send rows older than
    its promise: the rows that they still meet at a gate depend on when they arrive there.
    """
    for name, step in steps.items():
        if reason := _why_clock(step) or _why_rounded(step, steps):
            return reason
        if step.traits.changes == "revisions" and step.traits.close is not None:
            return (
                f"{name!r} corrects windows that closed in time, and how often a result leaves "
                "again depends on how rows are read"
            )
        if step.traits.release != READY_ONLY and step.traits.close is None:
            return _of_step(steps, name, [])
        if isinstance(step, SourceStep):
            followers = [other for other in steps if name in _upstream(steps, other)]
            has_gate = _has_gate(steps, followers)
            if has_gate or _releases_by_clock(step):
                reason = _why_uncertain(step, has_gate=has_gate)
                if reason or _are_read_otherwise(step):
                    return reason or _as_they_have_rows(step)
    return ""


def _are_read_otherwise(step: SourceStep) -> bool:
    """Whether the order of reading decides which rows of partitions are late.

    A gate puts them in order by their times and names, if all were there and none may be late.
    """
    spec = step.source
    varies = spec.traits.grows or spec.writer is not None or not spec.reorder.refuses
    return spec.traits.has_partitions and varies


def _why_uncertain(step: SourceStep, *, has_gate: bool) -> str:
    """Return why a source's rows may be late or depend on the clock; "": neither."""
    if step.source.idle_ns is not None:
        why = f"source {step.name!r} has idle=, so what waits for it depends on the clock"
        if step.source.goes_on_in_silence:
            why += ", and time goes on by the clock while all sources are silent"
        if step.source.waits_for_each_writer:
            why += f", and {_AWAKENED}, whatever arrival= says"
        return why
    if step.source.goes_by_clock:
        return f"source {step.name!r} waits for missing numbers by the clock, having no arrival="
    if step.source.flags_silent:
        return (
            f"source {step.name!r} goes on without silent writers, and {_AWAKENED}; merge=True "
            "puts them in order in the source"
        )
    if step.source.reorder.passes_late and has_gate:
        return (
            f"source {step.name!r} passes late rows on (late='pass'), and what they still find at "
            "a gate depends on when they come there; late='drop' omits them, and counts them"
        )
    return ""


def _as_they_have_rows(step: Step) -> str:
    return f"source {step.name!r} reads partitions as they have rows, in no fixed order"


def _releases_by_clock(step: SourceStep) -> bool:
    """Return whether the clock decides in the source which rows are late."""
    spec = step.source
    return spec.goes_by_clock or (spec.goes_on_in_silence and spec.reorder.sorts)


_AWAKENED = (
    "whether what a silent writer sends after all is late at a gate depends on how rows are read "
    "and when they come there"
)


def _has_gate(steps: Mapping[str, Step], names: list[str]) -> bool:
    return any(steps[name].traits.has_gate for name in names)


def _of_live_input(step: Step) -> str:
    """Return why an input does not give its rows again; "": it does."""
    if not isinstance(step, SourceStep):
        return ""
    spec = step.source
    if spec.ahead_ns is not None and spec.arrives_by_clock:
        return f"source {step.name!r} holds early rows by the clock, having no arrival="
    if spec.traits.compares_clocks:
        return f"source {step.name!r} compares clocks while it reads, so times differ"
    return ""


def _of_input(step: Step) -> str:
    if isinstance(step, SourceStep) and not getattr(step.source.input, "fingerprint", None):
        return (
            f"source {step.name!r} reads {step.source.input.describe()}, of which it cannot be "
            "told that it is still the same; files and tables can"
        )
    return ""


def _leaves_aside(steps: Mapping[str, Step], name: str, upstream: list[str]) -> bool:
    """Whether the sink gets rows that replicas put aside, late or diverted."""
    followers = [steps[other] for other in upstream if name in steps[other].inputs]
    return any(follower.traits.role is Role.SIDE_ROWS for follower in followers)


def _meets_no_gate(steps: Mapping[str, Step], name: str, upstream: list[str]) -> bool:
    """Whether some rows of a step reach the sink without a gate between."""
    followers = [other for other in upstream if name in steps[other].inputs]
    return any(
        isinstance(steps[follower], SinkStep)
        or (not steps[follower].traits.has_gate and _meets_no_gate(steps, follower, upstream))
        for follower in followers
    )
