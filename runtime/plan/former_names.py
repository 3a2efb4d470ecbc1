"""Former names of steps that a user has renamed, for whoever reads state of before.

```
renamed={"rides": "trips"}    trips ▶ rides, trips.1 ▶ rides.1, trips→out ▶ rides→out
```

State is by name where a slot has several stages, channels or sinks; inside a stage it is by place.
So only who puts a slot's part together asks for former names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeVar

from slackwater.runtime.plan.plan import Plan

__all__ = ["SAME_NAMES", "FormerNames"]

_V = TypeVar("_V")


class FormerNames(NamedTuple):
    """Former names of steps, stages and channels.

    Attributes:
        by_name: {name now: former name}, of those that differ.
    """

    by_name: Mapping[str, str]

    @classmethod
    def of(cls, plan: Plan, renamed: Mapping[str, str]) -> FormerNames:
        """Return the former names in a flow.

        Args:
            plan: plan of the flow as it is now.
            renamed: new names of steps, {old: new}.
        """
        former = {new: old for old, new in renamed.items()}
        for stage in plan.stages:
            step = stage.subject.step
            former[stage.name] = stage.subject._replace(step=former.get(step, step)).name
        for channel in plan.channels:
            former[channel.name] = channel.name_between(
                former.get(channel.source, channel.source),
                former.get(channel.target, channel.target),
            )
        return cls({now: then for now, then in former.items() if then != now})

    def then(self, name: str) -> str:
        """Return the former name of a step, stage or channel."""
        return self.by_name.get(name, name)

    @property
    def by_former_name(self) -> dict[str, str]:
        """Names now of those that differ, {former name: name now}."""
        return {then: now for now, then in self.by_name.items()}

    def by_name_now(self, values: Mapping[str, _V]) -> dict[str, _V]:
        """Return values that are by former names by the names of now."""
        now = self.by_former_name
        return {now.get(then, then): value for then, value in values.items()}


SAME_NAMES: Final = FormerNames({})
"""Names of a flow in which no step has another name than before."""
