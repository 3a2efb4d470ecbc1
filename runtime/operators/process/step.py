"""What an operator of the user's own is to the flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from slackwater.runtime.model import Release, format_ns
from slackwater.runtime.operators.ground.keep import replicas_text
from slackwater.runtime.plan.promises import PASSES, Summary
from slackwater.runtime.plan.step import GatedStep, Keep, Replica, Sharing, Side, Step, all_columns


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

    @property
    def kind(self) -> str:
        """It processes."""
        return "process"

    @property
    def ports(self) -> tuple[int, ...]:
        """One."""
        return (0,)

    @property
    def port_keys(self) -> tuple[tuple[str, ...], ...]:
        """An object has all rows of its key."""
        return (self.keys,)

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """All: nobody knows what the user's object reads."""
        del position, needed
        return there

    @property
    def span_ns(self) -> int:
        """As long as an object knows of a row, if no other follows."""
        return self.within_ns

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """As they come: nothing is older than the rows, or the time, that it follows from."""
        return (PASSES,)

    def names_before(self, column: str) -> tuple[str | None, ...]:
        """Nobody knows what the user's object makes of it."""
        del column
        return (None,)

    @property
    def passes_on(self) -> bool:
        """It makes new rows."""
        return False

    @property
    def revises(self) -> bool:
        """It does not."""
        return False

    @property
    def kept_by(self) -> Keep | None:
        """Neither: rows go to their objects in order, so late ones miss theirs."""
        return None

    @property
    def misses(self) -> str:
        """The object of their key."""
        return "their turn"

    @property
    def sharing(self) -> Sharing:
        """By keys."""
        return Sharing(self.replicas, "keys")

    def pruned(self, needed: frozenset[str], *, keeps_late: bool) -> ProcessStep:
        """Return it as it is run: the user's object makes all columns."""
        del needed
        return replace(self, keeps_late=keeps_late)

    def late_columns(
        self, inputs: Sequence[pa.Schema], *, side: Side | None, who: str
    ) -> tuple[Mapping[str, str] | None, ...]:
        """All columns of its rows."""
        return all_columns(self, inputs, side=side, who=who)

    @property
    def counters(self) -> tuple[str, ...]:
        """How often objects were called in time."""
        return ("timers",)

    @property
    def has_time(self) -> bool:
        """It goes by event time only."""
        return False

    @property
    def runs_users_code(self) -> bool:
        """It calls the user's object."""
        return True

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield its keys, whose it is, and how long objects stay."""
        del steps
        yield f"by       {', '.join(self.keys)}"
        yield f"calls    {type(self.operator).__qualname__}, for each key"
        yield f"keeps    a key until {format_ns(self.within_ns)} behind its last row"
        yield f"gate     {self.release.text}"
        if self.replicas > 1:
            yield replicas_text(self.sharing)

    def bare(self) -> ProcessStep:
        """Return it without the user's object."""
        return replace(self, operator=None)
