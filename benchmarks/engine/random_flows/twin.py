"""A stream beside the rows that must leave it, as pandas has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

import slackwater as sw

_T = TypeVar("_T")

TIME = "\0t"
"""The column of a frame with the event times, which no stream has."""
DIFF = "\0d"
"""The column of a frame whose rows change: 1 of a row that comes, −1 of one that goes."""
MOST_COLUMNS = 24
"""Columns of a stream, beyond which a step adds none."""
Changes = Literal["none", "whole", "split"]
"""Changes of a stream: none; updates; or deletions and insertions alone."""


@dataclass
class Twin:
    """A stream of the flow, and its rows.

    Attributes:
        stream: as drawn.
        schema: its columns.
        rows: its rows, a column for each of the stream's, and TIME. Text is Python's, null None;
            floats have NaN for null; times are int64 nanoseconds. Of a table they are its changes,
            with DIFF: what comes and goes at each time, in any order, and at times both.
        is_ordered: whether its rows leave by event time.
        rough: columns of floats whose sum depends on the order of the rows.
        changes: how its rows change.
        table_keys: columns by which an update replaces a row, of whole changes.
        is_last: whether no step can follow.
    """

    stream: sw.Stream
    schema: pa.Schema
    rows: pd.DataFrame
    is_ordered: bool = True
    rough: frozenset[str] = field(default_factory=frozenset)
    changes: Changes = "none"
    table_keys: tuple[str, ...] = ()
    is_last: bool = False

    @property
    def is_table(self) -> bool:
        """Whether its rows change."""
        return self.changes != "none"

    def columns(self, *kinds: str) -> list[str]:
        """Return the columns of these kinds; see `kind_of`."""
        return [each.name for each in self.schema if kind_of(each.type) in kinds]


def kind_of(of: pa.DataType) -> str:
    """Return whole, float, decimal, text, bool, time or list."""
    if pa.types.is_integer(of):
        return "whole"
    if pa.types.is_floating(of):
        return "float"
    if pa.types.is_timestamp(of):
        return "time"
    if pa.types.is_decimal(of) or pa.types.is_list(of):
        return "decimal" if pa.types.is_decimal(of) else "list"
    return "bool" if pa.types.is_boolean(of) else "text"


def pandas_type(of: pa.DataType) -> str:
    """Return the pandas type that holds a column: with nulls but for floats, where they are NaN."""
    kind = kind_of(of)
    if kind == "whole":
        return str(of).replace("int", "Int").replace("u", "U")
    if kind == "float":
        return {"float": "float32", "double": "float64"}[str(of)]
    return {"time": "Int64", "bool": "boolean"}.get(kind, "object")


def one_of(rng: np.random.Generator, choices: Sequence[_T]) -> _T:
    """Return one of these, at least one."""
    return choices[int(rng.integers(len(choices)))]


def some_of(rng: np.random.Generator, choices: Sequence[_T], *, least: int = 1) -> list[_T]:
    """Return some of these, at least so many, in a random order."""
    size = int(rng.integers(least, len(choices) + 1))
    return [choices[int(place)] for place in rng.permutation(len(choices))[:size]]
