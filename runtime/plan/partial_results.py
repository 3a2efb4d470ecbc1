"""Partial results beside the source, for steps whose replicas get rows by key.

```
source ▸ filter ─▶ counts.1, counts.2      source ▸ filter ▸ combine ─▶ counts.1, counts.2
```

Fewer rows are divided, sent, and put in order by gates. The results are the same to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping

from slackwater.runtime.plan.step import EachRowStep, GatedStep, Step
from slackwater.runtime.plan.steps import SideStep, SourceStep


def with_partial_results(steps: Mapping[str, Step]) -> dict[str, Step]:
    """Return the steps, those of partial results among them.

    Args:
        steps: {name: step} of a flow, each after its inputs.
    """
    planned: dict[str, Step] = {}
    for name, step in steps.items():
        made = None
        if isinstance(step, GatedStep) and _may_combine(step, steps):
            feeder = steps[step.inputs[0]]
            made = step.beside_source(feeder.schema, f"{name}.combine")
        if made is not None:
            beside, step = made  # noqa: PLW2901 (it takes partial results)
            planned[beside.name] = beside
        planned[name] = step
    return planned


def _may_combine(step: GatedStep, steps: Mapping[str, Step]) -> bool:
    """Whether a source alone feeds a step, and no row is late there."""
    traits = step.traits
    if traits.sharing.replicas == 1 or not traits.orders_keys or len(step.inputs) != 1:
        return False
    if any(isinstance(other, SideStep) and step.name in other.inputs for other in steps.values()):
        return False
    above, below = steps[step.inputs[0]], step.name
    while True:
        if [other.name for other in steps.values() if above.name in other.inputs] != [below]:
            return False
        if isinstance(above, SourceStep):
            return not above.source.may_be_late and above.source.idle_ns is None
        if not isinstance(above, EachRowStep):
            return False
        above, below = steps[above.inputs[0]], above.name
