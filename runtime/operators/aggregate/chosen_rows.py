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

from slackwater.runtime.expressions.whole import ends_of
from slackwater.runtime.model import Batch, Column, Columns, Int64Array, concat_batches
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.nullable import Nullable, valid_of
from slackwater.runtime.model.ranges import starts_of_runs, unfold
from slackwater.runtime.model.stable_order import lexical_order
from slackwater.runtime.model.state import OWNER, Field, Fields
from slackwater.runtime.operators.aggregate.accumulators import Pairs
from slackwater.runtime.operators.aggregate.ranges import Ranges
from slackwater.runtime.operators.aggregate.runs import Runs
from slackwater.runtime.operators.ground.arrays import order_of_floats, places_in_runs

Keys = tuple[npt.NDArray[Any], ...]
"""Keys of rows, the most significant last, as `np.lexsort` takes them: the least is chosen."""


_FEW_ROWS = 4_096
"""Parts of so many rows are not made one where all rows are chosen."""
_FAR = 1 << 31


class Rule(NamedTuple):
    """A rule that chooses rows among those of one cell.

    Attributes:
        keys: returns the keys of rows, given their event times and the values they are chosen by.
        size: number of rows that are chosen; None if all are.
        is_distinct: whether rows of equal keys count as one.
        is_by_value: whether rows of equal keys are the same, so that their order does not show.
        is_latest: whether the last row is chosen.
    """

    keys: Callable[[Int64Array, Column], Keys]
    size: int | None = None
    is_distinct: bool = False
    is_by_value: bool = False
    is_latest: bool = False

    @property
    def cuts(self) -> bool:
        """Whether some rows are not chosen."""
        return self.is_distinct or self.size is not None


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


def _greatest_values(_: Int64Array, values: Column) -> Keys:
    return (~ordered(values, zeros_differ=True),)


def _greatest_distinct(_: Int64Array, values: Column) -> Keys:
    # Of −0.0 and 0.0, which are one value, the greater stays.
    return ~ordered(values, zeros_differ=True), ~ordered(values)


def _same(_: Int64Array, values: Column) -> Keys:
    return (codes_of(values),)


_RULES: Mapping[str, Rule] = {
    "first": Rule(_earliest, 1),
    "last": Rule(_latest, 1, is_latest=True),
    "arg_min": Rule(_least, 1),
    "arg_max": Rule(_greatest, 1),
    "top_k": Rule(_greatest_values, is_by_value=True),
    "top_distinct": Rule(_greatest_distinct, is_distinct=True, is_by_value=True),
    "count_distinct": Rule(_same, is_distinct=True, is_by_value=True),
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
        self._parts: list[Batch] = []  # by cell; a part is twice as long as the next, or long

    def add(self, batch: Batch, cells: Int64Array, size: int) -> None:  # noqa: D102 - no state per cell
        rows = self._without_null(batch, cells)
        if len(rows):
            self._take(rows)

    def running(self, batch: Batch, places: Int64Array, runs: Runs, size: int) -> Chosen:
        """Take rows, and return the first or last row up to each entry.

        See `RunningAccumulator`.
        """
        rows = self._without_null(batch, places)
        assert rows.codes is not None, "they are the places"
        of_runs = np.arange(len(runs.cells))
        known, _starts, counts = self.combined(Pairs(runs.cells, of_runs, len(of_runs), True))
        parts = [] if known is None else [known.with_(codes=None)]
        first_new = 0 if known is None else len(known)
        both = concat_batches([*parts, rows.with_(codes=None)])
        # Number of a row of `both` at the entry where it comes; −1 elsewhere.
        numbers = np.full(runs.size, -1, dtype=np.int64)
        numbers[runs.at.take(rows.codes)] = np.arange(first_new, first_new + len(rows))
        has = counts > 0
        numbers[runs.starts[has]] = np.arange(first_new)
        entries = np.where(numbers >= 0, np.arange(runs.size), -1)
        if self._rule.is_latest:
            entries = np.maximum.accumulate(entries)
        else:
            far = np.where(entries < 0, runs.size, entries)
            firsts = np.minimum.reduceat(far, runs.starts).repeat(runs.lengths)
            entries = np.where(firsts <= np.arange(runs.size), firsts, -1)
        is_there = entries >= runs.starts.repeat(runs.lengths)
        chosen = numbers.take(np.where(is_there, entries, 0))
        if len(rows):
            cells = np.empty(runs.size, dtype=np.int64)
            cells[:] = runs.cells.repeat(runs.lengths)
            self._take(rows.with_(codes=cells.take(runs.at.take(rows.codes))))
        return Chosen(both, np.where(is_there, chosen, 0), is_there.astype(np.int64))

    def over(self, batch: Batch, places: Int64Array, rows: int, ranges: Ranges) -> Any:
        """Return the first or last row of each range; see `RangeAccumulator`."""
        own = self._without_null(batch, places)
        assert own.codes is not None, "they are the places"
        among = ranges.among(own.codes)
        has = among.counts > 0
        chosen = among.stops - 1 if self._rule.is_latest else among.starts
        return Chosen(own, np.where(has, chosen, 0), has.astype(np.int64))

    def _without_null(self, batch: Batch, codes: Int64Array) -> Batch:
        """Return the rows without nulls, with the columns that are needed and their codes."""
        columns: Columns = {name: batch.columns[name] for name in self._columns}
        there = _there(columns)
        times = batch.event_time_ns
        if there is not None:
            codes, times = codes.take(there), times.take(there)
            columns = {name: column.take(there) for name, column in columns.items()}
        columns = {name: _without_nulls(column) for name, column in columns.items()}
        return Batch(event_time_ns=times, stimulus_time_ns=times, columns=columns, codes=codes)

    def _take(self, rows: Batch) -> None:
        """Keep what is chosen of rows, at least one, whose codes are their cells."""
        assert rows.codes is not None, "they are the cells"
        part = self._chosen(rows, rows.codes)
        while self._parts and self._is_one(self._parts[-1], part):
            both = concat_batches([self._parts.pop(), part])
            assert both.codes is not None, "parts have the cells of their rows"
            part = self._chosen(both, both.codes)
        self._parts.append(part)

    def _is_one(self, before: Batch, part: Batch) -> bool:
        """Return whether two parts are made one."""
        return len(before) < 2 * len(part) and (self._rule.cuts or len(before) < _FEW_ROWS)

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
        if not len(rows):
            return rows
        rule = self._rule
        keys = rule.keys(rows.event_time_ns, rows.columns[self._by])
        best = _best(groups, keys[-1]) if rule.size == 1 else None
        if best is not None:
            groups, keys = groups.take(best), tuple(key.take(best) for key in keys)
        order = _order(groups, keys, is_stable=not rule.is_by_value)
        groups = groups.take(order)
        if rule.is_distinct:
            values = keys[-1].take(order)
            is_new = np.ones(len(order), dtype=np.bool_)
            is_new[1:] = (groups[1:] != groups[:-1]) | (values[1:] != values[:-1])
            order, groups = order[is_new], groups[is_new]
        if rule.size is not None:
            starts = starts_of_runs(groups)
            order = order[places_in_runs(starts, len(groups)) < rule.size]
        return rows.take(order if best is None else best.take(order))


def _best(groups: Int64Array, key: npt.NDArray[Any]) -> Int64Array | None:
    """Return rows of their group's least key; None if groups lie far apart."""
    low, high = ends_of(groups)
    if high - low > 4 * len(groups):
        return None
    groups = groups - low
    least = np.full(high - low + 1, np.iinfo(key.dtype).max, dtype=key.dtype)
    np.minimum.at(least, groups, key)
    best: Int64Array = (key == least.take(groups)).nonzero()[0]
    return best


def _order(groups: Int64Array, keys: Keys, *, is_stable: bool) -> Int64Array:
    """Return the order of rows by group and keys, as `np.lexsort` does, and quicker.

    Args:
        groups: shape (rows,), the group of each.
        keys: keys within a group.
        is_stable: whether equal rows stay in their order.
    """
    if not is_stable and len(keys) == 1 and (both := _joint_numbers(groups, keys[0])) is not None:
        return both.argsort()
    return lexical_order((*keys, groups), keeps_equals=is_stable)


def _joint_numbers(groups: Int64Array, key: npt.NDArray[Any]) -> Int64Array | None:
    """Return group and key as one number a row; None if too large."""
    low, high = ends_of(groups)
    least, most = ends_of(key)
    span = most - least + 1
    if (high - low + 1) * span >= _FAR * _FAR:
        return None
    both = groups - low
    both *= span
    wide = key if key.dtype.itemsize == groups.dtype.itemsize else key.astype(np.int64)
    both += (wide - wide.dtype.type(least)).astype(np.int64, copy=False)
    return both


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


def ordered(values: Column, *, zeros_differ: bool = False) -> npt.NDArray[Any]:
    """Return whole numbers in the order of values without nulls; equal for equal values.

    NaN is the greatest float.

    Args:
        values: shape (rows,), a column without nulls.
        zeros_differ: whether −0.0 is less than 0.0, so that equal numbers are the same values.
    """
    if isinstance(values, pa.Array):
        return np.asarray(arrow_functions().rank(values, tiebreaker="dense")).view(np.int64)
    assert isinstance(values, np.ndarray), "nulls are left out"
    if values.dtype.kind == "b":
        return values.view(np.uint8)
    if values.dtype.kind != "f":
        return values
    return order_of_floats(values if zeros_differ else values + 0.0)  # −0.0 + 0.0 is 0.0


def codes_of(values: Column) -> Int64Array:
    """Return whole numbers, equal for equal values; of 32 bits and fewer."""
    if not isinstance(values, pa.Array):
        whole = ordered(values)
        low, high = ends_of(whole)
        if high - low < _FAR:
            near: Int64Array = (whole - whole.dtype.type(low)).astype(np.int64)
            return near
        values = pa.array(whole)
    codes: Int64Array = np.asarray(values.dictionary_encode().indices).astype(np.int64)
    return codes
