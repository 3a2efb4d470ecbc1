"""Partial results beside the source, for steps whose replicas get rows by key.

```
source ▸ filter ─▶ counts.1, counts.2      source ▸ filter ▸ combine ─▶ counts.1, counts.2
```

Fewer rows are divided, sent, and put in order by gates. The results are the same to the bit; of
floats only if the user asks for partial results anywhere, and then up to their last bits.
"""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.runtime.plan.step import EachRowStep, GatedStep, PartialResults, Step
from slackwater.runtime.plan.steps import SideStep, SourceStep

__all__ = ["partial_results", "why_rows_are_sent", "with_partial_results"]


def with_partial_results(steps: Mapping[str, Step]) -> dict[str, Step]:
    """Return the steps, those of partial results among them.

    Args:
        steps: {name: step} of a flow, each after its inputs, with a number for each `replicas=`.
    """
    planned: dict[str, Step] = {}
    for name, step in steps.items():
        made = partial_results(step, steps) if step.traits.sharing.replicas > 1 else None
        if made is None:
            planned[name] = step
        else:
            planned[made.beside.name] = made.beside
            planned[name] = made.of_parts
    return planned


def partial_results(step: Step, steps: Mapping[str, Step]) -> PartialResults | None:
    """Return the partial results of a step with replicas; None if it is sent rows."""
    if not isinstance(step, GatedStep) or why_rows_are_sent(step, steps):
        return None
    name = f"{step.name}.combine"
    while name in steps:
        name += "'"
    return step.beside_source(steps[step.inputs[0]].schema, name)


def why_rows_are_sent(step: GatedStep, steps: Mapping[str, Step]) -> str:
    """Return why a step's place in its flow forbids partial results; "": it does not.

    A source alone must feed it, and no row may be late there.
    """
    traits = step.traits
    if traits.sharing.replicas == 1 and not step.is_auto:
        return "replicas= is not written" if not traits.sharing.is_written else "replicas=1"
    if not traits.orders_keys:
        return "its gate has a slack, so rows may be late"
    if any(isinstance(other, SideStep) and step.name in other.inputs for other in steps.values()):
        return "another step takes its late rows"
    return _why_no_source(step, steps)


def _why_no_source(below: Step, steps: Mapping[str, Step]) -> str:
    """Return why no source in order alone feeds a step; "": it does."""
    while True:
        above = steps[below.inputs[0]]
        takers = [other.name for other in steps.values() if above.name in other.inputs]
        if takers != [below.name]:
            return f"{' and '.join(map(repr, takers))} read {above.name!r}"
        if isinstance(above, SourceStep):
            if above.source.idle_ns is not None:
                return f"source {above.name!r} has idle=, so rows may be late"
            return f"rows of {above.name!r} may be late" if above.source.may_be_late else ""
        if not isinstance(above, EachRowStep):
            return f"{above.name!r} feeds it, and only rows of a source are combined"
        below = above
