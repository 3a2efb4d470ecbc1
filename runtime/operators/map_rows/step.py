"""The step of `map_rows`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from slackwater.runtime.model.diverted import OnBad
from slackwater.runtime.operators.ground.user_code import Units
from slackwater.runtime.plan.step import USERS, EachRowStep, Step
from slackwater.runtime.plan.traits import StepTraits, each_row

RowFunction = Callable[[dict[str, Any]], dict[str, Any] | None]
"""One row in, one row (or None: filtered) out."""


@dataclass(frozen=True, kw_only=True)
class MapRowsStep(EachRowStep):
    """The user's function on one row at a time: slow. None filters the row."""

    function: RowFunction = field(metadata=USERS)
    units: Units = ()
    """Columns that it is given in nanoseconds, with the units in which they are kept."""
    on_error: OnBad = "error"
    """Fate of rows for which the function raises."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        diverts = self.on_error == "divert"
        return each_row("maprows", runs_users_code=True, diverts=diverts)

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102
        # The user's function may read any column.
        return there

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield f"calls    {getattr(self.function, '__qualname__', repr(self.function))}"
        if self.on_error != "error":
            yield f"errors   rows for which it raises: {self.on_error}"
