"""Partial aggregates of a batch, made beside a source, and aggregates of these.

```
of rows                        of partial results
n     = count()                n     = sum(n)
least = min(x)                 least = min(least)
mean  = sum(x), count(x)       mean  = sum(mean) / sum(mean.count)
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from slackwater.runtime.operators.aggregate.kinds import KINDS
from slackwater.runtime.operators.aggregate.written import Aggregate, AggregateOfParts

__all__ = ["PartialAggregates", "partial_aggregates", "why_no_parts"]


class PartialAggregates(NamedTuple):
    """Partial aggregates of a step.

    Attributes:
        of_rows: {column of a partial result: aggregate of rows}.
        types: {that column: its type}.
        of_parts: {column of a result: aggregate of partial results}.
        rounded: columns of results whose last bits depend on how rows are cut into batches.
    """

    of_rows: Mapping[str, Aggregate]
    types: Mapping[str, pa.DataType]
    of_parts: Mapping[str, Aggregate]
    rounded: tuple[str, ...]


def partial_aggregates(
    keys: Sequence[str], aggregates: Mapping[str, Aggregate], schema: pa.Schema
) -> PartialAggregates:
    """Return the partial aggregates of a step; `why_no_parts` must give nothing.

    Args:
        keys: key columns. Of floats 0.0 and −0.0 are one key, and either may leave.
        aggregates: {column: aggregate} of the step.
        schema: columns of the rows.
    """
    of_rows: dict[str, Aggregate] = {}
    types: dict[str, pa.DataType] = {}
    of_parts: dict[str, Aggregate] = {}
    rounded = [key for key in keys if pa.types.is_floating(schema.field(key).type)]
    for name, aggregate in aggregates.items():
        column, kind = aggregate.column, aggregate.kind
        if kind == "count":
            of_rows[name], types[name] = aggregate, pa.int64()
            of_parts[name] = Aggregate("sum", name)
            continue
        assert column is not None, "only a count needs no column"
        of_type = schema.field(column).type
        if not _is_whole(of_type):
            rounded.append(name)
        counts = None
        if kind == "mean":
            counts = _unused(f"{name}.count", {*keys, *aggregates, *of_rows})
            of_rows[counts], types[counts] = Aggregate("count", column), pa.int64()
        total = pa.int64() if _is_whole(of_type) else pa.float64()
        of_rows[name] = Aggregate("sum" if kind == "mean" else kind, column)
        types[name] = of_type if kind in ("min", "max") else total
        of_parts[name] = AggregateOfParts(kind, name, of_rows=column, counts=counts)
    return PartialAggregates(of_rows, types, of_parts, tuple(rounded))


def why_no_parts(aggregates: Mapping[str, Aggregate], schema: pa.Schema) -> str:
    """Return why an aggregate cannot be combined of partial results; "": all can."""
    return next(_without_parts(aggregates, schema), "")


def _without_parts(aggregates: Mapping[str, Aggregate], schema: pa.Schema) -> Iterator[str]:
    for name, aggregate in aggregates.items():
        if aggregate.condition is not None or not KINDS[aggregate.kind].has_parts:
            yield f"{name} = {aggregate.text} needs each row"
            continue
        if aggregate.kind == "count":
            continue
        of_type = schema.field(aggregate.column).type
        if not _is_whole(of_type) and not pa.types.is_floating(of_type):
            yield (
                f"{name} is the {aggregate.kind} of {aggregate.column!r}, {of_type}, and only "
                "floats and whole numbers up to int64 have partial results"
            )


def _unused(name: str, used: set[str]) -> str:
    while name in used:
        name += "'"
    return name


def _is_whole(kind: pa.DataType) -> bool:
    """Whether values are whole numbers that int64 has."""
    return bool(pa.types.is_integer(kind)) and kind != pa.uint64()
