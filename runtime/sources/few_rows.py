"""Few rows of a live source are read as Python's numbers, and only as wanted.

A live source has a thousand blocks a second of a few rows each, and a filter after it passes few of
these. To make arrays of five columns of four rows, and to compare arrays, was most of what
such a block cost.

```
block ─▶ few? no nulls? in order? near times? ─yes─▶ FewRows ─▶ tests ─▶ columns of rows that pass
              └─ no: all that is unusual is looked at by `blocks.py`, before anything has changed
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.runtime.expressions.row_tests import FEW_ROWS, RowTests, is_alike, still_passing
from slackwater.runtime.model import EARLIEST_NS, LATEST_NS, Batch, Columns, Int64Array
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.schema import (
    TIME_UNIT_NS,
    is_time,
    number_dtype,
    read_type,
    storage_type,
    time_unit,
)
from slackwater.runtime.order.reorder import AsTheyCome, OrderedOrRefused
from slackwater.runtime.sources.column_reader import ColumnReader
from slackwater.runtime.sources.judged_block import JudgedBlock
from slackwater.runtime.sources.spec import SourceSpec

__all__ = ["FewReader", "FewRows", "few_reader"]

_Bound = tuple[int, Callable[[Any, Any], bool], int | float]
_NOT_TRIED = 16
"""Number of blocks after an unusual one that are not tried: a source with one mostly has more."""


class FewRows:
    """Block of few rows in order, none late; its columns are read when wanted.

    Attributes:
        rows: number of rows, at least one.
        newest_ns: the event time of the last.
        promised_ns: promise after the last row.
    """

    is_plain = False
    due_ns: memoryview[int] | None = None
    """The source is not paced."""
    arrived_ns: Int64Array | None = None
    """No step uses arrivals."""

    def __init__(
        self, reader: FewReader, arrow: pa.RecordBatch, times_ns: list[int], before_ns: int
    ) -> None:
        self.rows = len(times_ns)
        self.newest_ns = newest_ns = times_ns[-1]
        promised_ns = newest_ns - reader.disorder_ns
        self.promised_ns = promised_ns if promised_ns > before_ns else before_ns
        self._reader, self._arrow = reader, arrow
        self._times_ns, self._before_ns = times_ns, before_ns

    def passing(self, tests: RowTests | None, now_ns: int) -> tuple[Batch | None, int | None]:
        """Return the rows that pass the tests, and how many do not.

        Args:
            tests: tests of the filter after it; None if all pass.
            now_ns: wall clock, their stimulus time.

        Returns:
            The rows; None if none passes, or if the tests were not asked, so these are all rows.
        """
        passing = None if tests is None else self._reader.passing(tests, self._arrow)
        left_out = None if passing is None else self.rows - len(passing)
        if left_out == self.rows:
            return None, left_out
        batch = self._batch(now_ns)
        if passing is None or not left_out:
            return batch, left_out
        return batch.take(np.array(passing)), left_out

    def block(self) -> JudgedBlock:
        """Return the same rows as a block, of which some can be taken."""
        batch, disorder_ns = self._batch(None), self._reader.disorder_ns
        promised_ns = [max(time_ns - disorder_ns, self._before_ns) for time_ns in self._times_ns]
        return JudgedBlock(
            batch,
            self.rows,
            None,
            batch.event_time_ns.data,
            np.array(promised_ns, dtype=np.int64).data,
            None,
            None,
            "",
        )

    def _batch(self, now_ns: int | None) -> Batch:
        """Return the rows; None if their stimulus is not known yet.

        They have no fields: `few_reader` refuses sources that give some.
        """
        times_ns = np.array(self._times_ns, dtype=np.int64)
        return Batch(
            event_time_ns=times_ns,
            stimulus_time_ns=times_ns if now_ns is None else np.full_like(times_ns, now_ns),
            columns=self._reader.carried(self._arrow),
        )

    def rest(self, start: int) -> dict[str, Any]:
        """Return all that is known of the rows from this position on; see `JudgedBlock.rest`."""
        return self.block().rest(start)


class FewReader:
    """Reads blocks of few rows of one source, if nothing about them is unusual.

    Args:
        spec: its settings; see `few_reader`.
        schema: inside schema of the columns wanted.
        columns: reads all of these.
        carried: names of the columns that travel.

    Attributes:
        disorder_ns: how much older than the newest a row may be.
    """

    def __init__(
        self, spec: SourceSpec, schema: pa.Schema, columns: ColumnReader, carried: list[str]
    ) -> None:
        self._schema, self._columns, self._carried = schema, columns, carried
        self._event_time, self.disorder_ns = spec.time_column, spec.reorder.longest_ns
        kind = schema.field(spec.time_column).type
        unit = time_unit(kind) if is_time(kind) else spec.time_unit or "ns"
        self._unit_ns = TIME_UNIT_NS[unit]
        self._known: pa.Schema | None = None  # of the last block
        self._time_place: int | None = None  # where times lie there; None if not all is as wanted
        self._tests: RowTests | None = None  # those that were bound last
        self._bound: list[_Bound] | None = None
        self._not_tried = 0  # so many blocks
        # Imported here, before rows come; a slot has done so already, for an input of its user's.
        self._without_nulls = arrow_functions().get_function("drop_null").call

    def read(self, arrow: pa.RecordBatch, newest_ns: int, *, promised_ns: int) -> FewRows | None:
        """Return a block's rows, changing nothing; None if something is unusual.

        Args:
            arrow: block of the reader, as Arrow rows.
            newest_ns: the newest event time before it.
            promised_ns: promise before the block.
        """
        if not 0 < len(arrow) <= FEW_ROWS:
            return None
        if self._not_tried:
            self._not_tried -= 1
            return None
        times_ns = self._times_ns(arrow, newest_ns)
        if times_ns is None or times_ns[0] < promised_ns:
            self._not_tried = _NOT_TRIED
            return None
        return FewRows(self, arrow, times_ns, promised_ns)

    def passing(self, tests: RowTests, arrow: pa.RecordBatch) -> Sequence[int] | None:
        """Return which rows pass, ascending; None if they may not be asked one by one."""
        if tests is not self._tests:
            self._tests, self._bound = tests, self._bind(tests)
        if self._bound is None:
            return None
        bound = (
            (_as_list(arrow, place), compare, number) for place, compare, number in self._bound
        )
        return still_passing(range(len(arrow)), bound)

    def carried(self, arrow: pa.RecordBatch) -> Columns:
        """Return the columns that travel."""
        columns = self._columns.read(arrow, row=0)
        return {name: columns[name] for name in self._carried}

    def _times_ns(self, arrow: pa.RecordBatch, least_ns: int) -> list[int] | None:
        """Return the rows' times if these ascend from there, and nothing is unusual."""
        schema = arrow.schema
        if self._known is None or not schema.equals(self._known):
            self._known, self._tests, self._time_place = schema, None, self._place_in(schema)
        if self._time_place is None or self._has_nulls(arrow):
            return None
        times = _as_list(arrow, self._time_place)
        unit_ns = self._unit_ns
        times_ns = times if unit_ns == 1 else [time * unit_ns for time in times]
        before_ns = least_ns
        for time_ns in times_ns:
            if time_ns < before_ns:
                return None
            before_ns = time_ns
        return times_ns if times_ns[0] >= EARLIEST_NS and before_ns <= LATEST_NS else None

    def _has_nulls(self, arrow: pa.RecordBatch) -> bool:
        """Return whether any column has, or damaged text, which may not be touched."""
        try:
            arrow.validate(full=True)
            return len(self._without_nulls([arrow])) < len(arrow)
        except pa.ArrowException:  # of a kind that cannot be dropped
            return True

    def _place_in(self, schema: pa.Schema) -> int | None:
        for field in self._schema:
            place = schema.get_field_index(field.name)
            if place < 0 or schema.field(place).type != read_type(field.type):
                return None
        return int(schema.get_field_index(self._event_time))

    def _bind(self, tests: RowTests) -> list[_Bound] | None:
        """Return the tests with where their columns lie; None if Python compares them otherwise."""
        assert self._known is not None, "a block was read"
        bound = []
        for name, compare, number in tests.each:
            dtype = number_dtype(self._schema.field(name).type)
            if dtype is None or not is_alike(dtype):
                return None
            bound.append((self._known.get_field_index(name), compare, number))
        return bound


def few_reader(
    spec: SourceSpec,
    schema: pa.Schema,
    columns: ColumnReader,
    carried: list[str],
    *,
    tells_arrivals: bool,
) -> FewReader | None:
    """Return a reader of few rows at once; None if rows need more work.

    Args:
        spec: settings of the source.
        schema: inside schema of the columns wanted.
        columns: reads all of these.
        carried: names of the columns that travel.
        tells_arrivals: whether arrivals are used.
    """
    # Of ours, which are read in the slot itself, few rows are the end of a file.
    if tells_arrivals or spec.traits.reads_inline:
        return None
    if type(spec.reorder) not in (OrderedOrRefused, AsTheyCome):
        return None
    if spec.computes_time or spec.row_fields:
        return None
    more = (spec.speed, spec.promise, spec.clock, spec.ahead_ns)
    if any(setting is not None for setting in more):
        return None
    return FewReader(spec, schema, columns, carried)


def _as_list(arrow: pa.RecordBatch, place: int) -> list[Any]:
    values = arrow.column(place)
    numbers: list[Any] = (
        values.view(storage_type(values.type)) if is_time(values.type) else values
    ).tolist()
    return numbers
