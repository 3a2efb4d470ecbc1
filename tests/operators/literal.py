"""Joins and aggregates one row at a time, as literally as can be: what the machines must equal.

A stream is a list of segments: late rows, then rows in order, then a watermark. `reads_of` cuts
it into reads of a gate, anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from operator import attrgetter
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from slackwater.runtime.model import END_NS, PLACE_BITS, START_NS, Arrived, Batch, Column, GateRead
from slackwater.runtime.model.schema import column_of_arrow, number_dtype
from slackwater.runtime.operators.aggregate.step import AggregateStep
from slackwater.runtime.operators.ground.contract import Operator
from slackwater.runtime.operators.join.step import JoinStep
from tests.support.told import gate_read


@dataclass(frozen=True)
class Row:
    port: int
    time: int
    stimulus: int
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Segment:
    late: Sequence[Row]
    rows: Sequence[Row]
    watermark: int
    frontier: int
    """Behind it come late rows of idle writers only."""


Schemas = Sequence[pa.Schema]  # of each port
Leaves = list[tuple[Any, ...]]  # (event time, stimulus time, column, column, …)
ColumnValues = tuple[Any, ...]  # of one row

MOST_SEGMENTS, MOST_LATE, MOST_ROWS = 4, 4, 12
HEAD, ROW = 5, 5  # bytes
SEGMENT = HEAD + (MOST_LATE + MOST_ROWS) * ROW
STREAM = 1 + MOST_SEGMENTS * SEGMENT


@st.composite
def streams(
    draw: st.DrawFn, values: Sequence[Sequence[ColumnValues]], *, late: bool = True
) -> list[Segment]:
    """Draw a stream; `values` has, for each port, what a row may have in its columns.

    A stream is one draw, of bytes that each stand for a choice at a place of its own: to draw
    choice by choice took longer than all that is done with a stream. Zeros are a stream of one
    segment with no rows, so that Hypothesis finds small ones.
    """
    choices = draw(st.binary(min_size=STREAM, max_size=STREAM))
    segments: list[Segment] = []
    watermark = frontier = -20
    for number in range(1 + choices[0] % MOST_SEGMENTS):
        own = choices[1 + number * SEGMENT :][:SEGMENT]
        n_late, n_rows, span, step, behind = own[:HEAD]
        split = HEAD + MOST_LATE * ROW
        before: list[Row] = []
        if late and number:
            low = min(watermark - 14, frontier)
            before = _rows(own[HEAD:split], n_late % (MOST_LATE + 1), (low, watermark), values)
        high = watermark + (3, 12, 40)[span % 3]
        ahead = _rows(own[split:], n_rows % (MOST_ROWS + 1), (watermark, high), values)
        watermark = max([watermark, *(row.time for row in ahead)]) + step % 4
        if late:
            frontier = max(frontier, watermark - (0, 0, 4, 30)[behind % 4])
        segments.append(Segment(before, ahead, watermark, frontier if late else watermark))
    return segments


def _rows(
    choices: bytes, count: int, times: tuple[int, int], values: Sequence[Sequence[ColumnValues]]
) -> list[Row]:
    """Return so many rows, by time and then port; `times` are the first and the last there may be.

    A row's choices: time, port, stimulus time, and two for the values, of which there are many.
    """
    low, high = times
    rows = []
    for start in range(0, count * ROW, ROW):
        time, port, stimulus, *which = choices[start : start + ROW]
        port %= len(values)
        own = values[port][int.from_bytes(which) % len(values[port])]
        rows.append(Row(port, low + time % (high - low + 1), stimulus % 100, own))
    return sorted(rows, key=attrgetter("time", "port"))


def any_row(*columns: Sequence[Any]) -> list[ColumnValues]:
    """Return column values of rows, any with any."""
    return list(product(*columns))


def batch_of_rows(rows: Sequence[Row], schema: pa.Schema) -> Batch | None:
    if not rows:
        return None
    columns: dict[str, Column] = {}
    for place, field in enumerate(schema):
        values = [row.values[place] for row in rows]
        if None in values or number_dtype(field.type) is None:
            columns[field.name] = column_of_arrow(pa.array(values, field.type))
        else:
            columns[field.name] = np.array(values, number_dtype(field.type))
    times = np.array([row.time for row in rows])
    return Batch(
        event_time_ns=times,
        stimulus_time_ns=np.array([row.stimulus for row in rows]),
        columns=columns,
    )


def reached(segments: Sequence[Segment]) -> int:
    """Return the newest event time that rows or watermarks have reached before the end."""
    times = [row.time for segment in segments for row in (*segment.late, *segment.rows)]
    return max([START_NS, *times, *(segment.watermark for segment in segments)])


def reads_of(
    segments: Sequence[Segment], schemas: Schemas, cut: Random | None = None
) -> Iterator[GateRead]:
    """Yield the stream as reads: a segment each, or cut at random, and then the end."""

    def ports(rows: Sequence[Row]) -> list[Batch | None]:
        return [
            batch_of_rows([row for row in rows if row.port == port], schema)
            for port, schema in enumerate(schemas)
        ]

    watermark = frontier = START_NS
    for segment in segments:
        late_parts = list(_pieces(segment.late, cut))
        parts = list(_pieces(segment.rows, cut))
        for part in late_parts[:-1]:
            yield gate_read(ports([]), ports(part), watermark, 0, frontier)
        for number, part in enumerate(parts):
            behind = late_parts[-1] if number == 0 else []
            watermark = max([watermark, *(row.time for row in part)])
            if number == len(parts) - 1:
                watermark = segment.watermark
            frontier = max(frontier, min(watermark, segment.frontier))
            yield gate_read(ports(part), ports(behind), watermark, 0, frontier)
    yield gate_read(ports([]), ports([]), END_NS, 0, END_NS, newest_ns=reached(segments))


def by_arrival(reads: Iterable[GateRead]) -> Iterator[GateRead]:
    """Yield reads whose rows arrived one after the other, and tell how far arrivals are.

    The second row of each three arrives with the first, and every fourth is of another source.
    None has a stimulus: what closes a window, a row or a word, depends on how they are cut.
    """
    came = 0

    def arrived(batch: Batch | None) -> Batch | None:
        nonlocal came
        if batch is None:
            return None
        places = np.arange(came, came + len(batch))
        sources = (places % 4 == 0).astype(np.int64) << PLACE_BITS
        came += len(batch)
        return batch.with_(
            stimulus_time_ns=np.zeros(len(batch), np.int64),
            arrivals=np.column_stack((places - (places % 3 == 1), sources + places)),
        )

    for read in reads:
        late, ports = [list(map(arrived, side)) for side in (read.late, read.ports)]
        told_ns = came - (came % 3 == 1)  # of the row that comes next
        told = read.progress.with_arrived(Arrived(told_ns, 0))
        yield replace(read, late=late, ports=ports, progress=told)


def _pieces(rows: Sequence[Row], cut: Random | None) -> Iterator[Sequence[Row]]:
    start = 0
    while cut is not None and start < len(rows):
        stop = start + cut.randint(1, 5)
        yield rows[start:stop]
        start = stop
    if cut is None or not rows:
        yield rows


def leaves_of(results: Sequence[Batch | None]) -> Leaves:
    """Return the rows that left, floats and all, so that they can be compared to the bit."""
    leaves: Leaves = []
    for batch in results:
        if batch is None:
            continue
        assert len(batch), "an operator returns rows or None"
        columns = [
            c.tolist() if isinstance(c, np.ndarray) else c.to_pylist()
            for c in (batch.event_time_ns, batch.stimulus_time_ns, *batch.columns.values())
        ]
        leaves += [tuple(map(repr, row)) for row in zip(*columns, strict=True)]
    return leaves


def run(operator: Operator, reads: Iterator[GateRead]) -> Leaves:
    return leaves_of([operator.work(released, now_ns=0).rows for released in reads])


class LiteralJoin:
    """A `JoinStep`, a row at a time."""

    def __init__(
        self, step: JoinStep, schemas: Schemas, where: Callable[[Mapping[str, Any]], bool]
    ) -> None:
        self.step, self.schemas, self.where = step, schemas, where
        self.held: list[list[Row]] = [[], []]
        self.late_dropped = self.comparisons = 0
        self.leaves: Leaves = []

    def run(self, segments: Sequence[Segment]) -> Leaves:
        horizon = START_NS
        for segment in segments:
            for row in (*segment.late, *segment.rows):
                self._take(row, horizon)
            by_promise = self.step.keep == "promise"
            passed = segment.frontier if by_promise else segment.watermark
            horizon = passed - self.step.within_ns
            self.held = [[row for row in side if row.time >= horizon] for side in self.held]
        return self.leaves

    def _take(self, row: Row, horizon: int) -> None:
        if row.time < horizon:
            self.late_dropped += 1
            return
        for other in self.held[1 - row.port]:
            if abs(row.time - other.time) <= self.step.within_ns:
                left, right = (row, other) if row.port == 0 else (other, row)
                self._pair(left, right)
        self.held[row.port].append(row)

    def _pair(self, left: Row, right: Row) -> None:
        one, other = (
            dict(zip(schema.names, row.values, strict=True))
            for schema, row in zip(self.schemas, (left, right), strict=True)
        )
        keys = [one[name] for name in self.step.left_on]
        if None in keys or keys != [other[name] for name in self.step.right_on]:
            return
        self.comparisons += 1
        found = one | {leaves: other[name] for name, leaves in self.step.right_names.items()}
        if self.where(found):
            values = [found[name] for name in self.step.schema.names]
            stimulus = max(left.stimulus, right.stimulus)
            self.leaves.append(tuple(map(repr, (max(left.time, right.time), stimulus, *values))))


class LiteralAggregate:
    """An `AggregateStep` of one port, a row at a time."""

    def __init__(self, step: AggregateStep, schema: pa.Schema) -> None:
        self.step, self.names = step, schema.names
        self.windows: dict[int, dict[tuple[Any, ...], list[Row]]] = {}  # {k: {key: rows}}
        self.late_dropped = 0
        self.leaves: Leaves = []

    def run(self, segments: Sequence[Segment]) -> Leaves:
        watermark = START_NS
        for segment in segments:
            for row in (*segment.late, *segment.rows):
                self._take(row, watermark)
            watermark = segment.watermark
            self._close(watermark)
        self._close(END_NS)
        return self.leaves

    def _take(self, row: Row, watermark: int) -> None:
        window = self.step.window
        time = row.time - window.offset_ns
        first, last = (time - window.size_ns) // window.slide_ns + 1, time // window.slide_ns
        inside = [k for k in range(first, last + 1) if self._end(k) > watermark]
        values = dict(zip(self.names, row.values, strict=True))
        for k in inside:
            key = tuple(values[name] for name in self.step.keys)
            self.windows.setdefault(k, {}).setdefault(key, []).append(row)
        self.late_dropped += not inside

    def _close(self, watermark: int) -> None:
        shown = -1 if self.step.window.closed == "end" else 0
        for k in sorted(k for k in self.windows if self._end(k) <= watermark):
            end = self._end(k)
            bounds = end - self.step.window.size_ns + shown, end + shown
            for key, rows in self.windows.pop(k).items():
                found = [self._aggregate(name, rows) for name in self.step.aggregates]
                stimulus = max(row.stimulus for row in rows)
                self.leaves.append(tuple(map(repr, (end - 1, stimulus, *key, *bounds, *found))))

    def _end(self, k: int) -> int:
        window = self.step.window
        return k * window.slide_ns + window.size_ns + window.offset_ns

    def _aggregate(self, name: str, rows: Sequence[Row]) -> Any:
        aggregate = self.step.aggregates[name]
        if aggregate.column is None:
            return len(rows)
        place = self.names.index(aggregate.column)
        values = [row.values[place] for row in rows]
        if aggregate.kind == "quantile":
            assert aggregate.level is not None
            return np.quantile(values, aggregate.level).item()
        if aggregate.kind in ("min", "max"):
            return min(values) if aggregate.kind == "min" else max(values)
        total = self._sum_by_panes([row.time for row in rows], values)
        return total if aggregate.kind == "sum" else float(total) / len(rows)

    def _sum_by_panes(self, times: Sequence[int], values: Sequence[Any]) -> Any:
        window = self.step.window
        pane = int(np.gcd(window.size_ns, window.slide_ns))
        panes: dict[int, Any] = {}  # {pane: sum}
        for time, value in zip(times, values, strict=True):
            number = (time - window.offset_ns) // pane
            panes[number] = panes.get(number, 0) + value
        total: Any = 0
        for number in sorted(panes):
            total += panes[number]  # sum() rounds otherwise from Python 3.12 on
        return total
