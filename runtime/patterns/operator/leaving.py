"""Matches leave as rows."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from slackwater.runtime.model import Batch, Column, Columns, Int64Array
from slackwater.runtime.model.nullable import NUMBERS
from slackwater.runtime.patterns.operator.rows import Rows
from slackwater.runtime.patterns.operator.step import EVENTS, WINDOW_START, PatternStep
from slackwater.runtime.patterns.settings import Found


class Leaving:
    """Leaving makes rows of matches.

    Args:
        step: says which columns leave.
        rows: the rows that matches are made of.
        carried: further columns that these rows keep.
    """

    def __init__(self, step: PatternStep, rows: Rows, *, carried: Sequence[str]) -> None:
        self._rows = rows
        self._columns = step.schema.names
        self._names = step.names
        self._keys = step.keys
        self._id_column = step.id_column
        self._words = [json.dumps(one.name, ensure_ascii=False) for one in step.pattern.asked]
        own = {old for name, (_, old) in self._names.items() if name in self._columns}
        also = [one for one in step.pattern.asked if one.also is not None]
        read = {
            column.partition(".")[2] or column
            for one in also
            if one.also is not None
            for column in one.also.columns()
        }
        ids = set() if step.id_column is None else {step.id_column}
        self._kept = own | read | ids | {*carried, *step.keys}

    def kept(self, rows: Batch) -> Batch:
        """Return rows with the columns that matches need."""
        columns = {name: one for name, one in rows.columns.items() if name in self._kept}
        return Batch(
            event_time_ns=rows.event_time_ns,
            stimulus_time_ns=rows.stimulus_time_ns,
            columns=columns,
            marks=rows.marks,
        )

    def rows_of(self, found: Sequence[Found], watermark_stimulus_ns: int) -> Batch | None:
        """Return a row for each match; None if there are no matches."""
        if not found:
            return None
        parts = [part for one in found for part in one.parts]
        turns = np.array([turn for turn, _ in parts], dtype=np.int64)
        sizes = np.array([len(one.parts) for one in found])
        begins = np.cumsum(sizes) - sizes
        distinct, places = np.unique(turns, return_inverse=True)
        rows = self._rows.at(distinct)
        stimuli = np.maximum.reduceat(rows.stimulus_time_ns.take(places), begins)
        has_waited = np.array([one.has_waited for one in found])
        stimuli[has_waited] = np.maximum(stimuli[has_waited], watermark_stimulus_ns)
        marks = None
        if rows.marks is not None:
            marks = np.bitwise_or.reduceat(rows.marks.take(places), begins)
        columns: Columns = {}
        for name in self._columns:
            if name == EVENTS:
                columns[name] = self._events(rows, places, [asked for _, asked in parts], sizes)
            elif name == WINDOW_START:
                columns[name] = np.array([one.window_start_ns for one in found], dtype=np.int64)
            elif name in self._keys:
                columns[name] = _taken(rows.columns[name], places.take(begins))
            else:
                asked, came = self._names[name]
                columns[name] = _taken(rows.columns[came], self._of(asked, parts, places))
        times = np.array([one.time_ns for one in found], dtype=np.int64)
        return Batch(
            event_time_ns=times,
            stimulus_time_ns=stimuli,
            columns=columns,
            marks=marks,
        )

    def _of(self, asked: int, parts: list[tuple[int, int]], places: Int64Array) -> Int64Array:
        return places[[one == asked for _, one in parts]]

    def _events(
        self, rows: Batch, places: Int64Array, asked: list[int], sizes: Int64Array
    ) -> pa.Array:
        ids: list[object]
        if self._id_column is None:
            ids = rows.event_time_ns.tolist()
        else:
            ids = rows.columns[self._id_column].tolist()
        words = [json.dumps(one, ensure_ascii=False) for one in ids]
        each = [
            f"[{self._words[one]}, {words[place]}]"
            for one, place in zip(asked, places.tolist(), strict=True)
        ]
        texts, begin = [], 0
        for size in sizes.tolist():
            texts.append(f"[{', '.join(each[begin : begin + size])}]")
            begin += size
        return pa.array(texts, pa.string())


def _taken(column: Column, places: Int64Array) -> Column:
    return column.take(places) if isinstance(column, NUMBERS) else column.take(pa.array(places))
