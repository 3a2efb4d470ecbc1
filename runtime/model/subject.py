"""Subjects of commands, samples, trials and limits: a step, or one part of it.

```
join, one stage        Subject("join")                         stage join
join, replicas=2       Subject("join")                         stages join.gate, join.1, join.2
                       Subject("join", "gate"), ("join", 2)    stage  join.gate, stage join.2
```

A decider names steps. So it need not know how many stages a step has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from slackwater.runtime.json_form import typed
from slackwater.runtime.shown import shown

GATE: Final = "gate"
"""Part of a step with replicas: the gate that they share."""

Part: TypeAlias = int | Literal["gate"]
"""Part of a step: the gate that replicas share, or the number of a replica, from 1."""


class Subject(NamedTuple):
    """Subject: a step, as the user named it, or one part of it.

    Attributes:
        step: name of the step.
        part: the part; None if it is the whole step.
    """

    step: str
    part: Part | None = None

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> Subject:
        """Return the subject in an object of JSON that has its fields.

        Raises:
            TypeError, KeyError: there is no name of a step, or no such part.
        """
        part = plain.get("part")
        if part not in (None, GATE) and (type(part) is not int or part < 1):
            raise TypeError(f"part={shown(part)} is not a part of a step")
        return cls(typed("step", plain["step"], str), part)

    @property
    def name(self) -> str:
        """Name of the step, or of the stage that is the part."""
        return self.step if self.part is None else f"{self.step}.{self.part}"

    @property
    def whole(self) -> Subject:
        """The whole step."""
        return Subject(self.step)

    def includes(self, other: Subject) -> bool:
        """Whether another subject is this one, or a part of it."""
        return other == self or (self.part is None and other.step == self.step)

    def __str__(self) -> str:
        return self.name
