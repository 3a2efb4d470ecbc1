"""What `map_batches` is to the flow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, replace

from slackwater.runtime.model import Columns
from slackwater.runtime.plan.step import EachRowStep, Step

BatchFunction = Callable[[Columns], Columns]
"""{name: column} in, {name: column} out, same number of rows."""


@dataclass(frozen=True, kw_only=True)
class MapBatchesStep(EachRowStep):
    """The user's vectorised function, columns in, columns out, same rows."""

    function: BatchFunction

    @property
    def kind(self) -> str:
        """It maps."""
        return "mapbatches"

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

    def bare(self) -> MapBatchesStep:
        """Return it without the function."""
        return replace(self, function=None)  # type: ignore[arg-type]
