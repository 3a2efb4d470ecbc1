"""Fields of rows along paths: a channel carries those that a step downstream reads.

```
buses ──────▶ filter ─▶ merge ─▶ counts ─▶ sink       writers   to the merge, whose gate reads them
by vehicle                       close in             arrivals  to the counts
                                 time                 marks     from there to the sink
```
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from slackwater.runtime.plan.planned_stages import PlannedStage
from slackwater.runtime.plan.step import Step
from slackwater.runtime.plan.steps import LateStep, SideStep
from slackwater.runtime.plan.traits import Role

__all__ = ["WRITERS", "FieldWays"]

WRITERS = frozenset({"writers"})
"""Fields that a gate reads; its rows leave without them."""
_NONE: frozenset[str] = frozenset()
_NOT_OF_LATE_ROWS = WRITERS | {"arrivals"}
"""Fields that late rows leave without: each is another event there."""


@dataclass(frozen=True)
class FieldWays:
    """Paths of the fields of rows (`ROW_FIELDS`) in a flow.

    Attributes:
        given: {step: fields with which its rows leave its stage, if they are read}.
        read: {step: fields of its input rows that it, or a step downstream of it, reads}.
    """

    given: Mapping[str, frozenset[str]]
    read: Mapping[str, frozenset[str]]

    @classmethod
    def of(
        cls,
        steps: Mapping[str, Step],
        planned_of: Mapping[str, list[PlannedStage]],
        heads: Mapping[str, str],
        *,
        closing: Collection[str],
    ) -> FieldWays:
        """Return the paths of fields among a flow's steps.

        Args:
            steps: steps of the flow, in topological order.
            planned_of: {step that begins a stage: the stages that its rows leave}.
            heads: {step: the step that begins its stage}.
            closing: steps that use arrivals, and those from the sources to them.
        """
        return cls(_given(planned_of, heads), _read(steps, closing))

    def into(self, step: Step, feeder: str) -> frozenset[str]:
        """Return the fields on a channel into a step from its input `feeder`."""
        given = self.given[feeder]
        if isinstance(step, SideStep):
            given = self.given[step.name] - WRITERS
        return given & self.read[step.name]


def _given(
    planned_of: Mapping[str, list[PlannedStage]], heads: Mapping[str, str]
) -> dict[str, frozenset[str]]:
    given: dict[str, frozenset[str]] = {}
    for name, stages in planned_of.items():
        step, chain = stages[0].origin, stages[0].chain
        own, lost, feeders = _NONE, _NONE, step.inputs
        if isinstance(step, LateStep):  # whose rows are those of its input's inputs
            lost, feeders = _NOT_OF_LATE_ROWS, planned_of[heads[feeders[0]]][0].origin.inputs
        elif isinstance(step, SideStep):
            feeders = ()
        elif step.traits.role is Role.AFTER_GATE:
            lost = WRITERS
        if step.traits.passes_on:
            own = own.union(*[given[heads[feeder]] for feeder in feeders]) - lost
        if step.traits.role is not Role.AFTER_GATE and any(
            len(planned_of[heads[feeder]]) > 1 for feeder in step.inputs
        ):
            own |= WRITERS  # replicas feed its stage, which tells their rows apart
        if step.traits.orders_keys:
            own |= WRITERS  # the hashes of keys
        own = own.union(*[each.traits.gives_fields for each in (step, *chain)])
        given[name] = own - WRITERS if stages[0].combines else own
    return {name: given[head] for name, head in heads.items()}


def _read(steps: Mapping[str, Step], closing: Collection[str]) -> dict[str, frozenset[str]]:
    read = dict.fromkeys(steps, _NONE)
    of_output = dict.fromkeys(steps, _NONE)
    for step in reversed(list(steps.values())):
        traits, passed = step.traits, of_output[step.name]
        own = read[step.name] | traits.reads_fields
        if step.name in closing:
            own |= {"arrivals"}
        if traits.has_gate:
            own, passed = own | WRITERS, passed - WRITERS
        if traits.passes_on:
            own |= passed
        read[step.name] = own
        if isinstance(step, LateStep):
            read[step.inputs[0]] |= own - _NOT_OF_LATE_ROWS
        elif traits.role is not Role.SIDE_ROWS:
            for name in step.inputs:
                of_output[name] |= own
    return read
