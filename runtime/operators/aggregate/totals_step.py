"""`aggregate` without windows: its step, whose results change with each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import pyarrow as pa

from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import Duration, Release, duration_ns, format_ns
from slackwater.runtime.operators.aggregate.custom_aggregate import CustomFunctions
from slackwater.runtime.operators.aggregate.running import refuse_unretracted, refuse_unscanned
from slackwater.runtime.operators.aggregate.schema import aggregate_types, bound
from slackwater.runtime.operators.aggregate.written import Aggregate
from slackwater.runtime.operators.ground.checks import key_types, none_missing, unique_columns
from slackwater.runtime.operators.ground.untouched import changes_of_keys, keep_length_ns
from slackwater.runtime.plan.promises import PASSES, Summary
from slackwater.runtime.plan.step import GatedStep, Step
from slackwater.runtime.plan.traits import MARKS, Replica, Replicas, Role, Sharing, StepTraits
from slackwater.runtime.shown import shown

OnMissing = Literal["error", "count"]
"""Fate of a row that takes one out which was never there: the job ends, or it is counted."""
_OPTIONS = ("window", "by", "every", "keep", "on_missing", "slack", "replicas", "name")


@dataclass(frozen=True, kw_only=True)
class TotalsStep(GatedStep):
    """The aggregates of all rows of each key so far, which change with each.

    Columns that leave: the keys, then the aggregates. The event time of a change is that of its
    row, or with `every` the last moment of its part of time.
    """

    keys: tuple[str, ...]
    aggregates: Mapping[str, Aggregate]
    every_ns: int | None = None
    """Length of the parts of event time in each of which a key changes once at most; None if each
    row is a change."""
    retracts: bool = False
    """Whether rows of the input are taken back."""
    on_missing: OnMissing = "error"
    keep_ns: int | None = None
    """Least time that a key stays after its newest row; None if all stay to the end."""
    of_input: pa.Schema | None = None
    """Columns that the aggregates read, where keys do not stay."""
    release: Release
    replicas: Replicas = None
    replica: Replica | None = None
    """In a plan: the number of this replica among several, which share by keys."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that came too late."""

    @property
    def custom(self) -> Mapping[str, CustomFunctions] | None:
        """Functions of custom aggregates: without windows there are none."""
        return None

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        every_ns = self.every_ns
        return StepTraits(
            kind="totals",
            role=Role.AFTER_GATE,
            changes="retractions",
            kinds=changes_of_keys(goes=self.retracts or self.keep_ns is not None),
            takes_changes="retractions",
            takes_late=self.retracts,
            reads_fields=MARKS,
            gives_fields=MARKS,
            reach_ns=every_ns or 0,
            release=self.release,
            port_keys=(self.keys,),
            summaries=(Summary(every_ns, every_ns - 1) if every_ns else PASSES,),
            makes="windows" if every_ns else "rows",
            windows_ns=(every_ns, every_ns) if every_ns else None,
            misses="the totals",
            sharing=Sharing.of(self.replicas),
            result_keys=self.keys,
            replica=self.replica,
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        own = {column for each in self.aggregates.values() for column in each.columns}
        return own | {*self.keys}

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102 - see Step
        # The rows of a key make its results.
        return (column if column in self.keys else None,)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield f"by       {', '.join(self.keys) or 'nothing: all rows together'}"
        yield "window   none: all rows so far"
        if self.every_ns:
            yield f"every    {format_ns(self.every_ns)}: a key changes once at most"
        for name, aggregate in self.aggregates.items():
            yield f"gives    {name} = {aggregate.text}"

    def keeps(self, steps: Mapping[str, Step]) -> str:  # noqa: D102 - see Step
        if self.keep_ns is None:
            return "a few numbers for each key, to the end of the input"
        keep = format_ns(self.keep_ns)
        return f"a few numbers for each key, for {keep} or more after its last row"


def totals_step(
    schema: pa.Schema,
    keys: tuple[str, ...],
    aggregates: Mapping[str, Aggregate],
    *,
    every: Duration | None,
    keep: Duration | None,
    on_missing: OnMissing,
    retracts: bool,
    name: str,
    **of_step: Any,
) -> TotalsStep:
    """Return the step of an aggregate without windows.

    Args:
        schema: columns of its input.
        keys: names of its key columns.
        aggregates: {column: aggregate}, as the user gave them.
        every: length of the parts of time of changes, or None.
        keep: least time that a key stays after its newest row, or None.
        on_missing: fate of a row that takes back one which was never there.
        retracts: whether rows of the input are taken back.
        name: name of the step.
        of_step: its inputs, and the settings of its gate.

    Raises:
        FlowError: no aggregates, or one that needs all rows again.
        ColumnError, TypeMismatch: a column is not there, or of another type.
        DuplicateName: an aggregate has the name of a key.
        SettingError: `every` or `keep` is not a length of time, `keep` no multiple of `every`, or
            `on_missing` not a fate.
    """
    if on_missing not in ("error", "count"):
        raise SettingError(
            f"step {name!r}: on_missing={shown(on_missing)} must be 'error' or 'count'"
        )
    types = aggregate_types(schema, aggregates, options=_OPTIONS, of="aggregate", step=name)
    fields = [*zip(keys, key_types(schema, keys, step=name), strict=True), *types.items()]
    way_out = "give the aggregate, or the key before it (.rename), another name"
    unique_columns([column for column, _ in fields], step=name, way_out=way_out)
    if retracts:
        refuse_unretracted(aggregates, step=name)
    else:
        way_out = "give it a window=, such as sw.tumbling('1h'), or sw.everything() for one result"
        refuse_unscanned(aggregates, f"{way_out} at the end", step=name)
        none_missing(on_missing, step=name)
    every_ns = None
    if every is not None:
        every_ns = duration_ns(every, what=f"step {name!r}: every", positive=True)
    keep_ns, of_input = keep_length_ns(keep, step=name), None
    if keep_ns is not None:
        if keep_ns % (every_ns or 1):
            raise SettingError(
                f"step {name!r}: keep={shown(keep)} must be a multiple of every={shown(every)}: "
                "keys go between two parts of time"
            )
        read = {column for each in aggregates.values() for column in each.columns}
        of_input = pa.schema([field for field in schema if field.name in read])
    return TotalsStep(
        name=name,
        schema=pa.schema(fields),
        keys=keys,
        aggregates=bound(aggregates, schema, step=name),
        every_ns=every_ns,
        keep_ns=keep_ns,
        of_input=of_input,
        retracts=retracts,
        on_missing=on_missing,
        **of_step,
    )
