"""The step of a join."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model import READY_ONLY, Release, format_ns
from slackwater.runtime.operators.ground.drift import CERTAIN, Drift
from slackwater.runtime.operators.ground.keep import silent_text
from slackwater.runtime.plan.promises import PASSES
from slackwater.runtime.plan.step import GatedStep, Side, Step
from slackwater.runtime.plan.traits import MARKS, Keep, Replica, Role, Share, Sharing, StepTraits


@dataclass(frozen=True, kw_only=True)
class JoinStep(GatedStep):
    """Sliding-window join of two streams: pairs with equal keys, |Δ event time| ≤ within.

    The row that leaves has the left columns, then the right ones; a right column whose name
    the left has too, keys apart, gets `suffix`. Its event time is the later of the two. With drift
    there is a last column, `certain`: whether they are near enough whatever clocks were off by.
    """

    left_on: tuple[str, ...]
    right_on: tuple[str, ...]
    within_ns: int
    where: Expr | None
    """Over the columns that leave."""
    right_names: Mapping[str, str]
    """{right column: name it leaves under}; the right keys are not in it."""
    release: Release
    drift: Drift | None = None
    keep: Keep = "promise"
    replicas: int = 1
    share: Share = "keys"
    replica: Replica | None = None
    """In a plan: the number of this replica among several."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that could not count in full."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return StepTraits(
            kind="join",
            role=Role.AFTER_GATE,
            reads_fields=MARKS,
            gives_fields=MARKS,
            reach_ns=self.widest_ns,
            release=self.release,
            ports=(0, 1),
            port_keys=(self.left_on, self.right_on),
            summaries=(PASSES, PASSES),  # a pair has the times of its later row
            makes="pairs",
            kept_by=self.keep,
            misses="partners",
            sharing=Sharing(self.replicas, self.share),
            replica=self.replica,
            needs_rows=True,
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        wanted = needed | self._asked
        bounds = self.drift.columns if self.drift else frozenset()
        if position == 0:
            return wanted | set(self.left_on) | bounds
        read = {column for column, name in self.right_names.items() if name in wanted}
        return read | set(self.right_on) | bounds

    @property
    def _asked(self) -> frozenset[str]:
        return frozenset() if self.where is None else self.where.columns()

    @property
    def widest_ns(self) -> int:
        """The most that the times of a pair may differ, by their clocks."""
        return self.within_ns + (2 * self.drift.most_ns if self.drift else 0)

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102
        # A left key was that of the right, too.
        if column in self.left_on:
            right = self.right_on[self.left_on.index(column)]
            return (column, right)
        if self.drift and column == CERTAIN:
            return (None, None)
        came = {name: old for old, name in self.right_names.items()}
        return (None, came[column]) if column in came else (column, None)

    def pruned(self, needed: frozenset[str], *, keeps_late: bool) -> JoinStep:  # noqa: D102 - see Step
        wanted = needed | self._asked
        schema = pa.schema([field for field in self.schema if field.name in wanted])
        return replace(self, schema=schema, keeps_late=keeps_late)

    def late_columns(  # noqa: D102 - see Step
        self, inputs: Sequence[pa.Schema], *, side: Side | None, who: str
    ) -> tuple[Mapping[str, str] | None, ...]:
        if side is None:
            return tuple(
                dict(zip(self.left_on, keys, strict=True)) for keys in (self.left_on, self.right_on)
            )
        return tuple(
            {column: column for column in schema.names} if side == own else None
            for own, schema in zip(("left", "right"), inputs, strict=True)
        )

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        keys = zip(self.left_on, self.right_on, strict=True)
        equal = ", ".join(a if a == b else f"{a} = {b}" for a, b in keys)
        yield f"on       {equal}, within {format_ns(self.within_ns)}"
        if self.drift:
            yield f"drift    {self.drift.text}: each pair that may be near enough, marked"
        if self.where is not None:
            yield f"where    {self.where!s}"

    def keeps(self, steps: Mapping[str, Step]) -> str:  # noqa: D102 - see Step
        if self.release == READY_ONLY:
            return ""
        within = format_ns(self.widest_ns)
        silent = silent_text(steps, self.inputs)
        if self.keep == "promise":
            text = (
                f"rows until all have promised {within} more, so that late ones find all partners"
            )
            return f"{text}; {silent}: as many as most_kept_rows" if silent else text
        text = f"rows until {within} more were released; late ones may miss partners"
        return f"{text} ({silent}; keep='promise' would keep all)" if silent else text
