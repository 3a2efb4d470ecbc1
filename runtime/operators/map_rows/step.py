"""What `map_rows` is to the flow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from slackwater.runtime.plan.step import EachRowStep, Step

RowFunction = Callable[[dict[str, Any]], dict[str, Any] | None]
"""One row in, one row (or None: filtered) out."""


@dataclass(frozen=True, kw_only=True)
class MapRowsStep(EachRowStep):
    """The user's function on one row at a time: the slow path. None filters the row."""

    function: RowFunction

    @property
    def kind(self) -> str:
        """It maps."""
        return "maprows"

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """All: nobody knows what the function reads."""
        del position, needed
        return there

    def names_before(self, column: str) -> tuple[str | None, ...]:
        """Nobody knows what the function makes of it."""
        del column
        return (None,)

    @property
    def runs_users_code(self) -> bool:
        """It calls the user's function."""
        return True

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield the function's name."""
        del steps
        yield f"calls    {getattr(self.function, '__qualname__', repr(self.function))}"

    def bare(self) -> MapRowsStep:
        """Return it without the function."""
        return replace(self, function=None)  # type: ignore[arg-type]
