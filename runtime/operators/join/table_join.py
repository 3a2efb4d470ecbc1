"""A join of tables: its step, and the check of its options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import pyarrow as pa

from slackwater.runtime.errors import FlowError, TypeMismatch
from slackwater.runtime.expressions.comparable import family
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model import Release, format_ns
from slackwater.runtime.operators.join.how import (
    How,
    alone_of,
    how_text,
    keys_text,
    late_columns_of,
)
from slackwater.runtime.plan.promises import PASSES
from slackwater.runtime.plan.step import GatedStep, Side, Step
from slackwater.runtime.plan.traits import (
    MARKS,
    Replica,
    Replicas,
    Role,
    Share,
    Sharing,
    StepTraits,
)

OnMissing = Literal["error", "count"]
"""Fate of a row that takes out one that is not there."""


@dataclass(frozen=True, kw_only=True)
class TableJoinStep(GatedStep):
    """Join of two tables: rows with equal keys, whatever their event times.

    Rows that leave have the columns of a join with `within=`, and the event time of the row that
    caused them. Each side is a table of all its rows; a row that is taken out takes its pairs.
    """

    left_on: tuple[str, ...]
    right_on: tuple[str, ...]
    where: Expr | None
    """Over the columns of pairs, of an inner join alone."""
    right_names: Mapping[str, str]
    """{right column: name it leaves under}; the right keys are not in it."""
    retracts: tuple[bool, bool]
    """Whether rows of the left, and of the right, may be taken out."""
    how: How = "inner"
    on_missing: OnMissing = "error"
    keep_ns: int | None = None
    """Least time that a key stays after its newest row; None if all stay to the end."""
    release: Release
    replicas: Replicas = None
    replica: Replica | None = None
    """In a plan: the number of this replica among several, which share by keys."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that came too late."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return StepTraits(
            kind="table_join",
            role=Role.AFTER_GATE,
            changes="none" if self.only_adds else "retractions",
            kinds=frozenset({"inserts", "deletions"}),
            takes_changes="retractions",
            takes_late=any(self.retracts),
            reads_fields=MARKS,
            gives_fields=MARKS,
            release=self.release,
            ports=(0, 1),
            port_keys=(self.left_on, self.right_on),
            summaries=(PASSES, PASSES),
            makes="pairs",
            misses="partners",
            sharing=Sharing.of(self.replicas),
            result_keys=self.left_on,
            replica=self.replica,
            needs_rows=self.only_adds,
        )

    @property
    def only_adds(self) -> bool:
        """Whether no result is ever taken out."""
        grows = not any(self.retracts) and self.keep_ns is None
        return grows and self.how in ("inner", "semi")

    @property
    def alone(self) -> tuple[int, ...]:
        """Sides whose rows leave without a partner: 0 left, 1 right."""
        return alone_of(self.how)

    @property
    def names(self) -> tuple[dict[str, str], dict[str, str]]:
        """Columns of both sides, {name it leaves under: name it came under}."""
        if self.how in ("semi", "anti"):
            return {name: name for name in self.schema.names}, {}
        came = {leaves: name for name, leaves in self.right_names.items()}
        of_right = {name: came[name] for name in self.schema.names if name in came}
        of_left = {name: name for name in self.schema.names if name not in came}
        return of_left, of_right

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """Return the columns that leave; all of a side whose rows may go."""
        if self.retracts[position]:
            return there
        wanted = needed | (frozenset() if self.where is None else self.where.columns())
        if position == 0:
            return wanted | set(self.left_on)
        read = {column for column, name in self.right_names.items() if name in wanted}
        return read | set(self.right_on)

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102
        # Rows of other keys do not matter to a row.
        if column not in self.left_on:
            return (None, None)
        return (column, self.right_on[self.left_on.index(column)])

    def pruned(self, needed: frozenset[str], *, keeps_late: bool) -> TableJoinStep:  # noqa: D102 - see Step
        wanted = needed | (frozenset() if self.where is None else self.where.columns())
        schema = pa.schema([field for field in self.schema if field.name in wanted])
        return replace(self, schema=schema, keeps_late=keeps_late)

    def late_columns(  # noqa: D102 - see Step
        self, inputs: Sequence[pa.Schema], *, side: Side | None, who: str
    ) -> tuple[Mapping[str, str] | None, ...]:
        return late_columns_of(self.left_on, self.right_on, inputs, side)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield f"on       {keys_text(self.left_on, self.right_on)}, of any event times"
        if self.how != "inner":
            yield f"how      {self.how}: {how_text(self.how)}"
        if self.where is not None:
            yield f"where    {self.where!s}"
        until = "until the end"
        if self.keep_ns is not None:
            until = f"of a key for {format_ns(self.keep_ns)} or more after its newest: then they go"
        yield f"keeps    all rows of both sides {until}; at most most_kept_rows"


def check_table_join(
    how: How,
    schemas: Sequence[pa.Schema],
    retracts: Sequence[bool],
    *,
    where: Expr | None,
    share: Share,
    step: str,
    **of_times: object,
) -> None:
    """Check the options of a join without `within=`.

    Args:
        how: the option of this name.
        schemas: columns of both sides.
        retracts: whether rows of each side may be taken out.
        where: the option of this name.
        share: the option of this name.
        step: the step's name, for errors.
        of_times: options that only a join with `within=` has; None if not given.

    Raises:
        FlowError: an option that needs `within=`, or a `how` that it does not go with.
        TypeMismatch: rows may be taken out, and a column is a list, struct or map.
    """
    for option, value in of_times.items():
        if value is not None:
            raise FlowError(
                f"step {step!r}: {option}= is about the times of pairs; write within= too"
            )
    if share != "keys":
        raise FlowError(
            f"step {step!r}: share={share!r} without within=: each replica of a join of tables "
            "has the rows of its keys; omit share="
        )
    if where is not None and how != "inner":
        raise FlowError(
            f"step {step!r}: where= with how={how!r} and without within=: rows count as partners "
            "by their keys alone; filter a side before, or write how='inner'"
        )
    for schema, takes_out in zip(schemas, retracts, strict=True):
        for field in schema if takes_out else ():
            if family(field.type) == "nested":
                raise TypeMismatch(
                    f"step {step!r}: column {field.name!r} is {field.type}, and a row that is "
                    "taken out is recognised by its values; .drop it before, or take what is in it"
                )
