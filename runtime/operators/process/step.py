"""What an operator of the user's own is to the flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from slackwater.runtime.model import Release, format_ns
from slackwater.runtime.operators.ground.keep import replicas_text
from slackwater.runtime.plan.step import GatedStep, Step
from slackwater.runtime.plan.traits import Replica, Role, Sharing, StepTraits


@dataclass(frozen=True, kw_only=True)
class ProcessStep(GatedStep):
    """An object of the user's for each key: it takes the rows of its key, and is called in time."""

    keys: tuple[str, ...]
    operator: Any
    """What each key begins with a copy of."""
    within_ns: int
    """How long an object is kept behind the last row of its key."""
    release: Release
    replicas: int = 1
    replica: Replica | None = None
    """In a plan: which of several this is; they share by keys."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that came behind their time."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return StepTraits(
            kind="process",
            role=Role.AFTER_GATE,
            reach_ns=self.within_ns,
            runs_users_code=True,
            release=self.release,
            port_keys=(self.keys,),
            makes="on its time",
            misses="their turn",
            sharing=Sharing(self.replicas, "keys"),
            replica=self.replica,
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """All: nobody knows what the user's object reads."""
        del position, needed
        return there

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield its keys, whose it is, and how long objects stay."""
        del steps
        yield f"by       {', '.join(self.keys)}"
        yield f"calls    {type(self.operator).__qualname__}, for each key"
        yield f"keeps    a key until {format_ns(self.within_ns)} behind its last row"
        yield f"gate     {self.release.text}"
        if self.replicas > 1:
            yield replicas_text(self.traits.sharing)

    def bare(self) -> ProcessStep:
        """Return the step without the user's object."""
        return self.without("operator")
