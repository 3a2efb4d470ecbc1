"""The step of a custom operator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from slackwater.runtime.model import Release, format_ns
from slackwater.runtime.model.diverted import OnBad
from slackwater.runtime.operators.ground.user_code import Units
from slackwater.runtime.plan.step import USERS, GatedStep, Step
from slackwater.runtime.plan.traits import Replica, Role, Sharing, StepTraits


@dataclass(frozen=True, kw_only=True)
class ProcessStep(GatedStep):
    """A user's object for each key takes the key's rows, and is called by timers."""

    keys: tuple[str, ...]
    operator: Any = field(metadata=USERS)
    """Each key begins with a copy of this object."""
    within_ns: int | None
    """How long an object is kept after the last row of its key; None: to the end."""
    release: Release
    on_error: OnBad = "error"
    """Fate of rows for which `on_rows` raises."""
    units: Units = ()
    """Columns that it is given in nanoseconds, with the units in which they are kept."""
    replicas: int = 1
    replica: Replica | None = None
    """In a plan: the number of this replica among several, which share by keys."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows whose time was done when they came."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return StepTraits(
            kind="process",
            role=Role.AFTER_GATE,
            reach_ns=self.within_ns or 0,
            runs_users_code=True,
            release=self.release,
            port_keys=(self.keys,),
            makes="on its time",
            misses="their turn",
            sharing=Sharing(self.replicas, "keys"),
            replica=self.replica,
            diverts=self.on_error == "divert",
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102
        # The user's object may read any column.
        return there

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield f"by       {', '.join(self.keys)}"
        yield f"calls    {type(self.operator).__qualname__}, for each key"
        if self.within_ns is None:
            yield "keeps    each key to the end, as many as most_kept_rows"
        else:
            kept = f"until {format_ns(self.within_ns)} after its last row, and its due_ns"
            yield f"keeps    a key {kept}; counts those that it forgets"
        if self.on_error != "error":
            yield f"errors   rows for which it raises: {self.on_error}"
