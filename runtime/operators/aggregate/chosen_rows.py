"""Chosen rows of each cell: the first, the greatest k, those that differ, all.

```
rows of a cell       last       arg_max(x, by=y)    top_k(x, 2)    count_distinct(x)
t 3  x 7  y 1                    t 3  x 7
t 5  x 1  y 0        t 5  x 1                        x 9, x 7       x 7, x 1, x 9
t 4  x 9  y 0
```

A choice among rows is the choice among those that were chosen of their parts. So the rows of a read
are cut to those that are needed, and parts of about one length are made one and cut again. Rows of
equal values are chosen by event time, then as they came, so no cut shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from slackwater.runtime.model import Batch, Column, Columns, Int64Array, concat_batches
from slackwater.runtime.model.nullable import Nullable, valid_of
from slackwater.runtime.model.ranges import unfold
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.aggregate.accumulators import Pairs
from slackwater.runtime.operators.ground.arrays import starts_of_runs

Keys = tuple[npt.NDArray[Any], ...]
"""Keys of rows, the most significant last, as `np.lexsort` takes them: the least is chosen."""


class Rule(NamedTuple):
    """A rule that chooses rows among those of one cell.

    Attributes:
        keys: returns the keys of rows, given their event times and the values they are chosen by.
        size: number of rows that are chosen; None if all are.
        is_distinct: whether rows of equal values count as one.
    """

    keys: Callable[[Int64Array, Column], Keys]
    size: int | None = None
    is_distinct: bool = False


def rule_of(kind: str, size: int | None) -> Rule:
    """Return the rule of a kind of aggregates; `size` is the k of `top_k`."""
    rule = _RULES[kind]
    return rule if size is None else rule._replace(size=size)


def _earliest(times: Int64Array, _: Column) -> Keys:
    return (times,)


def _latest(times: Int64Array, _: Column) -> Keys:
    return np.arange(len(times))[::-1], ~times


def _least(times: Int64Array, values: Column) -> Keys:
    return times, ordered(values)


def _greatest(times: Int64Array, values: Column) -> Keys:
    return times, ~ordered(values)


def _same(_: Int64Array, values: Column) -> Keys:
    return (codes_of(values),)


_RULES: Mapping[str, Rule] = {
    "first": Rule(_earliest, 1),
    "last": Rule(_latest, 1),
    "arg_min": Rule(_least, 1),
    "arg_max": Rule(_greatest, 1),
    "top_k": Rule(_greatest),
    "count_distinct": Rule(_same, is_distinct=True),
    "collect": Rule(_earliest),
}


class Chosen(NamedTuple):
    """Chosen rows of all results, one result after the other.

    Attributes:
        rows: rows of all results; None if no row was ever added.
        starts: shape (results,), the places of their first rows.
        counts: shape (results,), the number of rows of each.
    """

    rows: Batch | None
    starts: Int64Array
    counts: Int64Array


class ChosenRows:
    """ChosenRows holds the chosen rows of each cell, with an aggregate's columns.

    Rows in which one of these columns is null are left out.

    Args:
        rule: the rule that chooses them.
        columns: the columns of the aggregate.
        by: the one of these by which rows are chosen.
    """

    STATE = Fields(Field("_parts", of=OWNER, each=True))

    def __init__(self, rule: Rule, columns: tuple[str, ...], by: str) -> None:
        self._rule, self._columns, self._by = rule, columns, by
        self._parts: list[Batch] = []  # by cell; each is at least twice as long as the next

    def add(self, batch: Batch, cells: Int64Array, size: int) -> None:  # noqa: D102 - no state per cell
        columns: Columns = {name: batch.columns[name] for name in self._columns}
        there = _there(columns)
        times = batch.event_time_ns
        if there is not None:
            cells, times = cells.take(there), times.take(there)
            columns = {name: column.take(there) for name, column in columns.items()}
        if not len(cells):
            return
        columns = {name: _without_nulls(column) for name, column in columns.items()}
        rows = Batch(event_time_ns=times, stimulus_time_ns=times, columns=columns, codes=cells)
        part = self._chosen(rows, cells)
        while self._parts and len(self._parts[-1]) < 2 * len(part):
            both = concat_batches([self._parts.pop(), part])
            assert both.codes is not None, "parts have the cells of their rows"
            part = self._chosen(both, both.codes)
        self._parts.append(part)

    def combined(self, pairs: Pairs) -> Chosen:
        """Return the chosen rows of each result."""
        parts = [_rows_of(part, pairs) for part in self._parts]
        parts = [rows for rows in parts if len(rows)] or parts[:1]
        if not parts:
            nothing = np.zeros(pairs.size, dtype=np.int64)
            return Chosen(None, nothing, nothing)
        rows = concat_batches(parts)
        assert rows.codes is not None, "these are the results"
        if len(parts) > 1 or not pairs.are_single:
            rows = self._chosen(rows, rows.codes)
        assert rows.codes is not None, "as before"
        counts = np.bincount(rows.codes, minlength=pairs.size)
        return Chosen(rows, counts.cumsum() - counts, counts)

    def _chosen(self, rows: Batch, groups: Int64Array) -> Batch:
        """Return the chosen rows of each group, in the order of groups and rule."""
        rule = self._rule
        keys = rule.keys(rows.event_time_ns, rows.columns[self._by])
        order = np.lexsort((*keys, groups))
        groups = groups.take(order)
        if rule.is_distinct:
            (values,) = keys
            values = values.take(order)
            is_new = np.ones(len(order), dtype=np.bool_)
            is_new[1:] = (groups[1:] != groups[:-1]) | (values[1:] != values[:-1])
            order = order[is_new]
        elif rule.size is not None:
            starts = starts_of_runs(groups)
            sizes = np.diff(starts, append=len(groups))
            ranks = np.arange(len(groups)) - starts.repeat(sizes)
            order = order[ranks < rule.size]
        return rows.take(order)


def _rows_of(part: Batch, pairs: Pairs) -> Batch:
    """Return the rows that a part has for results, whose numbers they have as codes."""
    assert part.codes is not None, "parts have the cells of their rows"
    starts = part.codes.searchsorted(pairs.cells)
    counts = part.codes.searchsorted(pairs.cells, "right") - starts
    entries, places = unfold(starts, counts)
    return part.take(places).with_(codes=pairs.results.take(entries))


def _there(columns: Columns) -> Int64Array | None:
    """Return the rows in which no column is null; None if all are."""
    masks = [mask for column in columns.values() if (mask := valid_of(column)) is not None]
    return np.logical_and.reduce(masks).nonzero()[0] if masks else None


def _without_nulls(column: Column) -> Column:
    return column.values if isinstance(column, Nullable) else column


# -- values as whole numbers ------------------------------------------------------------


def ordered(values: Column) -> npt.NDArray[Any]:
    """Return whole numbers in the order of values without nulls; equal for equal values.

    NaN is the greatest float, and −0.0 is 0.0.
    """
    if isinstance(values, pa.Array):
        return np.asarray(pc.rank(values, tiebreaker="dense")).view(np.int64)
    assert isinstance(values, np.ndarray), "nulls are left out"
    if values.dtype.kind == "b":
        return values.view(np.uint8)
    if values.dtype.kind != "f":
        return values
    floats = values.astype(np.float64) + 0.0  # −0.0 is 0.0 from now on
    floats[np.isnan(floats)] = np.nan  # of many bit patterns one, above infinity
    bits = floats.view(np.int64)
    whole: Int64Array = bits ^ ((bits >> 63) & np.int64(2**63 - 1))
    return whole


def codes_of(values: Column) -> npt.NDArray[Any]:
    """Return whole numbers that are equal for equal values, without nulls."""
    if isinstance(values, pa.Array):
        return np.asarray(values.dictionary_encode().indices)
    return ordered(values)
