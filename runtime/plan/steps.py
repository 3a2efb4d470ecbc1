"""The steps that no operator is: sources, sinks, the gate that replicas share, late rows.

`runtime/flow/` and the operators make them, `runtime/plan/plan.py` turns them into stages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import pyarrow as pa

from slackwater.runtime.model import Release
from slackwater.runtime.model.schema import travels
from slackwater.runtime.order.policies import OURS
from slackwater.runtime.plan.promises import Summary
from slackwater.runtime.plan.settings_text import times_text
from slackwater.runtime.plan.step import GatedStep, Keep, Role, Sharing, Side, Step
from slackwater.runtime.sinks import Output, traits_of
from slackwater.runtime.sources.spec import SourceSpec


@dataclass(frozen=True, kw_only=True)
class SourceStep(Step):
    """Where events enter."""

    source: SourceSpec

    @property
    def kind(self) -> str:
        """It is a source."""
        return "source"

    @property
    def role(self) -> Role:
        """It is a source."""
        return Role.SOURCE

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """It has no inputs."""
        del position, there
        return needed

    def names_before(self, column: str) -> tuple[str | None, ...]:
        """It has no inputs."""
        del column
        return ()

    @property
    def passes_on(self) -> bool:
        """Its rows are the events."""
        return True

    @property
    def revises(self) -> bool:
        """It does not."""
        return False

    @property
    def longest_ns(self) -> int:
        """How far behind, or ahead, its rows may be."""
        spec = self.source
        return spec.reorder.longest_ns + (spec.idle_ns or 0) + (spec.ahead_ns or 0)

    @property
    def runs_users_code(self) -> bool:
        """Its order policy may be the user's own; so may its input, which says so by itself."""
        return not isinstance(self.source.reorder, OURS)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield what it reads, and how it has time."""
        del steps
        yield f"reads    {self.source.input.describe()}"
        yield f"time     {times_text(self.source)}"
        unread = [f"{one.name} ({one.type})" for one in self.schema if not travels(one.type)]
        if unread:
            yield f"not read {', '.join(unread)}: does not travel"

    def bare(self) -> SourceStep:
        """Return it without its input."""
        return replace(self, source=None)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class GateStep(GatedStep):
    """The gate that the replicas of a step share; made by the plan, never written by a user.

    It says of its rows what the step behind it, `of`, says, and hands them on as they came.
    """

    of: GatedStep
    release: Release

    @property
    def kind(self) -> str:
        """It is a gate."""
        return "gate"

    @property
    def role(self) -> Role:
        """It is a gate."""
        return Role.SHARED_GATE

    @property
    def ports(self) -> tuple[int, ...]:
        """As behind it."""
        return self.of.ports

    @property
    def port_keys(self) -> tuple[tuple[str, ...], ...]:
        """As behind it."""
        return self.of.port_keys

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """As behind it."""
        return self.of.reads(position, there, needed)

    @property
    def span_ns(self) -> int:
        """As behind it."""
        return self.of.span_ns

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """As behind it: a gate and its replicas are one step to all others."""
        return self.of.summaries

    def names_before(self, column: str) -> tuple[str | None, ...]:
        """As behind it."""
        return self.of.names_before(column)

    @property
    def passes_on(self) -> bool:
        """As behind it."""
        return self.of.passes_on

    @property
    def revises(self) -> bool:
        """As behind it."""
        return self.of.revises

    @property
    def kept_by(self) -> Keep | None:
        """As behind it."""
        return self.of.kept_by

    @property
    def misses(self) -> str:
        """As behind it."""
        return self.of.misses

    @property
    def sharing(self) -> Sharing:
        """How it shares rows out."""
        return self.of.sharing

    def pruned(self, needed: frozenset[str], *, keeps_late: bool) -> GateStep:
        """It makes no columns, and keeps nothing that is late."""
        del needed, keeps_late
        return self

    def late_columns(
        self, inputs: Sequence[pa.Schema], *, side: Side | None, who: str
    ) -> tuple[Mapping[str, str] | None, ...]:
        """As behind it."""
        return self.of.late_columns(inputs, side=side, who=who)

    @property
    def counters(self) -> tuple[str, ...]:
        """None: it has no machine but a gate."""
        return ()

    @property
    def has_time(self) -> bool:
        """It has none."""
        return False

    @property
    def runs_users_code(self) -> bool:
        """It does not."""
        return False

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield nothing: no user has written it."""
        del steps
        yield from ()

    def bare(self) -> GateStep:
        """Return it with the step behind it bare."""
        return replace(self, of=self.of.bare())


@dataclass(frozen=True, kw_only=True)
class LateStep(Step):
    """The rows that could not count in full at its input, such as a join or an aggregate.

    Columns that leave: those of `columns`, then `late_step`, of two ports `late_side` ("left" or
    "right"), `late_event_time`, `late_by_ns` (how far what was closed was ahead of it), and
    `late_dropped` (false: it missed some of its windows only). It happens, as an event of this
    stream, when it was found late: not before what the step had promised.
    """

    columns: tuple[Mapping[str, str] | None, ...]
    """For each port of the step {column: name it came under}; None: its rows are left out."""

    @property
    def kind(self) -> str:
        """It is late rows."""
        return "late"

    @property
    def role(self) -> Role:
        """It is where late rows enter."""
        return Role.LATE_ROWS

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """None of what leaves the step before it: it takes other rows."""
        del position, there, needed
        return frozenset()

    def names_before(self, column: str) -> tuple[str | None, ...]:
        """None is there: it takes other rows."""
        del column
        return (None,)

    @property
    def passes_on(self) -> bool:
        """As every step that looks at each row alone."""
        return True

    @property
    def revises(self) -> bool:
        """It does not."""
        return False

    @property
    def longest_ns(self) -> int:
        """It looks no further than the row."""
        return 0

    @property
    def runs_users_code(self) -> bool:
        """It does not."""
        return False

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield what it takes."""
        del steps
        yield f"takes    what came too late to count in full at {self.inputs[0]}"

    def bare(self) -> LateStep:
        """It is."""
        return self


@dataclass(frozen=True, kw_only=True)
class SinkStep(Step):
    """Where results leave."""

    output: Output

    @property
    def kind(self) -> str:
        """It is a sink."""
        return "sink"

    @property
    def role(self) -> Role:
        """It is a sink."""
        return Role.SINK

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """All there is."""
        del position, needed
        return there

    def names_before(self, column: str) -> tuple[str | None, ...]:
        """It lets nothing go on."""
        del column
        return (None,)

    @property
    def passes_on(self) -> bool:
        """Here events end."""
        return False

    @property
    def revises(self) -> bool:
        """It does not."""
        return False

    @property
    def longest_ns(self) -> int:
        """It looks no further than the row."""
        return 0

    @property
    def runs_users_code(self) -> bool:
        """If it is a function, or an output of the user's own."""
        return traits_of(self.output).runs_users_code

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield where rows go, and how they are published."""
        del steps
        first, *options = self.output.describe().splitlines() or [""]
        yield f"writes   {first}"
        yield from (f"         {line}" for line in options)

    def bare(self) -> SinkStep:
        """Return it without its output."""
        return replace(self, output=None)  # type: ignore[arg-type]
