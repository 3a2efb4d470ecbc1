"""The rows of an operator's ports as reads of a gate, cut anywhere, for `slackwater.testing`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np

from slackwater.runtime.model import (
    END_NS,
    START_NS,
    Batch,
    GateRead,
    Int64Array,
    Progress,
    concat_batches,
)

_LATE = 0.15
"""Which part of the rows come late."""
_PARTS = 6
"""Reads, before they are cut."""


@dataclass(frozen=True)
class Segment:
    """Late rows, then rows in order, of each port; then a watermark."""

    late: list[Int64Array]
    ordered: list[Int64Array]
    watermark_ns: int
    frontier_ns: int


class Reads:
    """Reads in which a gate may release some rows: always the same segments.

    Args:
        ports: all rows of each, in order.
        seed: seed of the segments.
        late: whether some rows come late.
    """

    def __init__(self, ports: Sequence[Batch], seed: int, *, late: bool) -> None:
        self._ports = ports
        self._turns = _turns(ports)
        self._segments = _segments(ports, Random(seed), late=late)  # noqa: S311 - no secret

    def cut(self, cut: Random | None = None) -> Iterator[GateRead]:
        """Yield the segments as reads, each as one or cut anywhere; then the end."""
        none: list[Batch | None] = [None for _ in self._ports]
        watermark_ns = frontier_ns = START_NS
        for segment in self._segments:
            late = list(self._parts(segment.late, cut))
            parts = list(self._parts(segment.ordered, cut))
            for part in late[:-1]:
                yield GateRead(none, part, watermark_ns, Progress(frontier_ns, 0))
            for number, part in enumerate(parts):
                newest_ns = [rows.event_time_ns.item(-1) for rows in part if rows is not None]
                watermark_ns = max([watermark_ns, *newest_ns])
                if number == len(parts) - 1:
                    watermark_ns = segment.watermark_ns
                frontier_ns = max(frontier_ns, min(watermark_ns, segment.frontier_ns))
                progress = Progress(frontier_ns, 0)
                yield GateRead(part, none if number else late[-1], watermark_ns, progress)
        last_ns = max([int(rows.event_time_ns.max()) for rows in self._ports])
        yield GateRead(none, none, END_NS, Progress(END_NS, 0, last_ns))

    def _parts(
        self, of_ports: Sequence[Int64Array], cut: Random | None
    ) -> Iterator[list[Batch | None]]:
        """Yield the rows at these places, some at a time."""
        turns = np.concatenate([self._turns[port].take(own) for port, own in enumerate(of_ports)])
        turns.sort()
        for part in pieces(turns, cut):
            if not len(part):
                yield [None for _ in of_ports]
                continue
            yield [
                _some(rows, own[(at >= part[0]) & (at <= part[-1])])
                for rows, own, at in zip(
                    self._ports,
                    of_ports,
                    [self._turns[port].take(own) for port, own in enumerate(of_ports)],
                    strict=True,
                )
            ]


def _some(rows: Batch, places: Int64Array) -> Batch | None:
    return rows.take(places) if len(places) else None


def pieces(places: Int64Array, cut: Random | None) -> Iterator[Int64Array]:
    """Yield the places in order, a few at a time."""
    start = 0
    while cut is not None and start < len(places):
        stop = start + cut.choice([1, 2, 3, 5, 40])
        yield places[start:stop]
        start = stop
    if cut is None or not len(places):
        yield places


def in_order(inputs: list[Batch]) -> Batch:
    """Return the rows of the inputs of one port in their order."""
    rows = concat_batches(inputs)
    return rows.take(rows.event_time_ns.argsort(kind="stable"))


def _turns(ports: Sequence[Batch]) -> list[Int64Array]:
    """Return where each row of each port stands in the order (event time, port)."""
    times = np.concatenate([rows.event_time_ns for rows in ports])
    turns = np.empty(len(times), dtype=np.int64)
    turns[times.argsort(kind="stable")] = np.arange(len(times))
    ends = np.cumsum([len(rows) for rows in ports])[:-1]
    return np.split(turns, ends)


def _segments(ports: Sequence[Batch], chance: Random, *, late: bool) -> list[Segment]:
    """Return the rows in parts, each followed by a watermark."""
    turns = _turns(ports)
    rows = sum(len(part) for part in ports)
    times = np.concatenate([part.event_time_ns for part in ports])
    times.sort()
    ends = sorted({chance.randrange(1, rows + 1) for _ in range(_PARTS)} | {rows})
    comes_with = np.searchsorted(ends, np.arange(rows), "right")  # which part, by turn
    is_late = np.zeros(rows, dtype=np.bool_)
    for turn in range(rows):
        if late and comes_with[turn] < len(ends) - 1 and chance.random() < _LATE:
            newest_ns = times[ends[comes_with[turn]] - 1]
            if times[turn] < newest_ns:  # else it would be in order still
                is_late[turn] = True
                comes_with[turn] = chance.randrange(comes_with[turn] + 1, len(ends))
    segments = []
    for number, end in enumerate(ends):
        watermark_ns = int(times[end - 1])
        to_come = times[is_late & (comes_with > number)]
        frontier_ns = min([watermark_ns, *to_come.tolist()])
        here = comes_with == number
        segments.append(
            Segment(
                [np.flatnonzero((here & is_late).take(own)) for own in turns],
                [np.flatnonzero((here & ~is_late).take(own)) for own in turns],
                watermark_ns,
                frontier_ns,
            )
        )
    return segments
