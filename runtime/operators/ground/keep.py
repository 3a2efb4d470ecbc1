"""`keep=` of joins, and the sources without promises, which keep rows until their end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from slackwater.runtime.plan.arrivals import sources_upstream
from slackwater.runtime.plan.step import Step
from slackwater.runtime.plan.traits import Keep, Share

_SHARES: dict[Share, str] = {
    "keys": "each reads the rows of its keys",
    "all": "each reads all rows and stores its share",
}


_NO_ORDER = "as replicas' results come, since "


def default_keep(steps: Mapping[str, Step], inputs: Sequence[str]) -> Keep:
    """Return the `keep` of a join of these inputs if no `keep=` was written.

    The promise, unless a source promises nothing before its end: then all rows would stay till
    then.
    """
    return "slack" if silent_sources(steps, inputs) else "promise"


def silent_sources(steps: Mapping[str, Step], inputs: Sequence[str]) -> list[str]:
    """Return the sources upstream of these inputs that promise nothing before their end.

    Args:
        steps: all steps upstream, and perhaps others.
        inputs: names of the steps that feed them.
    """
    upstream = sources_upstream(steps, inputs)
    return [step.name for step in upstream if step.source.promises_nothing]


def gate_texts(step: Step, steps: Mapping[str, Step]) -> Iterator[str]:
    """Yield the lines of `explain` on a gate, the rows kept there, and replicas."""
    replicas, share, is_written = step.traits.sharing
    yield f"gate     {step.traits.release.text}"
    if rows := step.keeps(steps):
        yield f"keeps    {rows}"
    if vars(step).get("replicas") == "auto":
        yield "replicas auto: as many as rates show to be worth it; without, one for each slot"
    elif step.traits.owns_keys and replicas > 1:
        yield f"replicas {replicas}, each with a gate, to which the rows of its keys are sent"
    elif replicas > 1:
        yield f"replicas {replicas} after that gate, {_SHARES[share]}"
    if step.traits.orders_keys:
        yield "order    event time, hash of the key, order within the key: for any replicas="
    elif is_written:
        yield f"order    {_NO_ORDER}{step.traits.why_no_order}"


def silent_text(steps: Mapping[str, Step], inputs: Sequence[str]) -> str:
    """Return a text on sources that promise nothing before their end, or ""."""
    silent = silent_sources(steps, inputs)
    who = f"{', '.join(silent)} promise{'' if len(silent) > 1 else 's'}"
    return f"{who} nothing before its end" if silent else ""


def most_text(step: Step, most: int) -> str:
    """Return the text of a limit of kept rows; a replica has a part."""
    replica = step.traits.replica
    part = "" if replica is None else f", the part of one of {replica.of} replicas"
    return f"most_kept_rows={most:,}{part}"
