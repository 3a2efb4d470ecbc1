"""Division of a flow's steps into stages, as an earlier start of it had them.

```
4 slots   replicas="auto"  sums.1 … sums.4     partitions in  trips.1 … trips.4     checkpoint
2 slots   the same stages, two of each in a slot                                    goes on
```

State belongs to stages. So a job that goes on has those of its checkpoint, whatever the number of
slots is now.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.steps import SourceStep
from slackwater.runtime.sources.input_part import InputPart

__all__ = ["UNDIVIDED", "Division", "partitions_of_plan"]


class Division(NamedTuple):
    """Division of steps into stages.

    Attributes:
        stages: {step: number of its stages}.
        partitions: {source: names of its partitions when its flow was planned}.
    """

    stages: Mapping[str, int]
    partitions: Mapping[str, tuple[str, ...]]

    def renamed(self, names: Mapping[str, str]) -> Division:
        """Return the division with other names of steps, {old: new}."""
        return Division(
            {names.get(step, step): count for step, count in self.stages.items()},
            {names.get(step, step): known for step, known in self.partitions.items()},
        )


UNDIVIDED: Final = Division({}, {})
"""Division of a flow that begins: slots decide."""


def partitions_of_plan(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Return {source: names of its partitions}, of sources that several stages read."""
    known: dict[str, tuple[str, ...]] = {}
    for stage in plan.stages:
        if isinstance(stage.step, SourceStep):
            part = stage.step.source.input
            if isinstance(part, InputPart):
                known[stage.subject.step] = part.known
    return known
