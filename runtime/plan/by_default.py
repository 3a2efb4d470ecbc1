"""Checkpoints by default, if a flow is live and they make nothing worse.

| a live flow | by default |
| --- | --- |
| its input does not say `replay` | none: of a feed, rows would be omitted after a failure |
| its input begins again with each process that submits | none: no run goes on after another |
| rows would be lost at a sink, as it commits at its end alone | none |
| replicas write parts of their own | none: such a job takes no checkpoints |
| a sink would hold rows for about as long as the deadline | none |
| any other | each second |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from slackwater.runtime.model import NS_PER_SECOND, format_ns
from slackwater.runtime.plan.after_failure import guarantees
from slackwater.runtime.plan.step import Step
from slackwater.runtime.plan.steps import sinks_among, sources_among

__all__ = ["EVERY_NS", "default_line", "is_live", "why_none"]

EVERY_NS = NS_PER_SECOND
"""Time from a checkpoint to the next one where the user says nothing: as long as rows that a sink
holds may be late, and a hundred times what a small checkpoint takes."""


def is_live(steps: Mapping[str, Step]) -> bool:
    """Whether not all input of a flow is there from the start."""
    return any(not step.source.is_history for step in sources_among(steps.values()))


def why_none(steps: Mapping[str, Step], *, deadline_ns: int | None) -> str:
    """Return why a flow takes no checkpoints by default; "" if it does.

    Args:
        steps: steps of the flow, by name.
        deadline_ns: deadline of the flow; None if it has none.
    """
    if not is_live(steps):
        return "no source of the flow is live"
    return next(_reasons(steps, deadline_ns), "")


def default_line(steps: Mapping[str, Step], *, deadline_ns: int | None) -> str:
    """Return a line of `explain` on the checkpoints of a flow whose user says nothing."""
    if why := why_none(steps, deadline_ns=deadline_ns):
        return f"by default no checkpoints: {why}"
    return f"by default checkpoints each {format_ns(EVERY_NS)}, where all nodes reach their folder"


def _reasons(steps: Mapping[str, Step], deadline_ns: int | None) -> Iterator[str]:
    wish = "; checkpoint='1s' takes them nevertheless"
    for source in sources_among(steps.values()):
        if not source.source.traits.says_replay:
            yield (
                f"the input of source {source.name!r} does not say whether it gives its rows "
                f"again; give it an attribute replay{wish}"
            )
        traits = source.source.traits
        if traits.ends_with_driver and not traits.keeps_offsets:
            yield f"source {source.name!r} begins again with each process that submits it{wish}"
    known = guarantees(steps)
    for guarantee in known:
        if guarantee.word == "at most once":
            yield f"{guarantee.kind} {guarantee.step!r}: {guarantee.why}{wish}"
    for sink in sinks_among(steps.values()):
        if sink.may_have_writers:
            yield f"replicas write parts of their own at sink {sink.name!r} (ordered=False)"
    held = [guarantee.step for guarantee in known if guarantee.is_held]
    if held and deadline_ns is not None and deadline_ns < 2 * EVERY_NS:
        yield (
            f"sink {held[0]!r} would hold rows for {format_ns(EVERY_NS)}, and the flow has a "
            f"deadline of {format_ns(deadline_ns)}{wish}"
        )
