"""The limit of what a stream can reach: one pass of NumPy over the same rows, for the same query.

The rows lie in memory as NumPy arrays, one thread runs, and all columns that leave are made. Each
query has two programs: all rows at once (`benchmarks/offline.py`, which gives the results that a
run is checked against), and part by part, such that what is computed on the way stays in the
cache. The quicker one of a run is its limit. Neither keeps anything for rows that are yet to come,
takes rows that are late, or says when a result is due.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np

from benchmarks.engine.running import Arrays
from benchmarks.engine.workload import DELAY_OVER, DENSE_OVER, FLOW_OVER, MS, WITHIN_NS
from benchmarks.frame import Result, Spread

Program = Callable[[], object]
JOIN_ROWS = {"sparse": 131_072, "dense": 32_768}
"""Buses of a part: of 8,192 to 262,144 the quickest."""
AGGREGATE_ROWS = 65_536
_CALLS = 3
_WINDOW_MS = 1_000


@dataclass
class Beside:
    """Programs that are timed in turns with runs of a flow.

    Args:
        rows: that each goes through.
        programs: {name: it}, all for the same query.
    """

    rows: int
    programs: Mapping[str, Program]
    rates: dict[str, list[float]] = field(default_factory=dict)
    """{name: million rows a second, turn by turn}"""

    def __post_init__(self) -> None:
        with contextlib.suppress(ModuleNotFoundError):  # BEFORE there was one, slots did not
            from slackwater.actors.slot.process_setup import keep_freed_memory  # noqa: PLC0415

            keep_freed_memory()  # as slots do: it makes the aggregate's up to twice as quick

    def turn(self) -> None:
        """Time each program: the median of a few calls, since one takes some milliseconds."""
        for name, program in self.programs.items():
            took = []
            for _ in range(_CALLS):
                began_s = time.perf_counter()
                program()
                took.append(time.perf_counter() - began_s)
            self.rates.setdefault(name, []).append(self.rows / median(took) / 1e6)

    def quickest(self) -> str:
        """Return the name of the program that is the limit."""
        return max(self.rates, key=lambda name: median(self.rates[name]))

    def shares(self, rates: list[float], name: str) -> Spread:
        """Return what rates of a flow are of a program's, turn by turn, in percent."""
        pairs = zip(rates, self.rates[name], strict=True)
        return Spread.of([100 * rate / limit for rate, limit in pairs])

    def tell(self, result: Result, rates: list[float], first: list[object]) -> dict[str, Any]:
        """Add a row for each program to the table, and return the figures.

        Args:
            result: to be added to.
            rates: of the flow in one slot, million rows a second, turn by turn.
            first: the cells before that of the rate.
        """
        limit, figures = self.quickest(), dict[str, Any]()
        for name, own in self.rates.items():
            shares, is_limit = self.shares(rates, name), name == limit
            what = f"NumPy {name}{', the limit' if is_limit else ''}; one slot is {shares} %"
            result.rows.append([*first, what, Spread.of(own), "", ""][: len(result.header)])
            figures[name] = {"million_per_s": Spread.of(own), "one slot, % of it": shares}
        return {"limit": limit, "one slot, % of the limit": self.shares(rates, limit), **figures}


# -- the join -------------------------------------------------------------------------------------


def join_by_parts(bus: Arrays, loop: Arrays, *, kind: str) -> Arrays:
    """Return the columns of all pairs; buses and loops are in order of time."""
    within_ms, rows = WITHIN_NS // MS, JOIN_ROWS[kind]
    found = []
    for start in range(0, len(bus["ts"]), rows):
        buses = {name: values[start : start + rows] for name, values in bus.items()}
        reach = buses["ts"][0] - within_ms, buses["ts"][-1] + within_ms + 1
        near = slice(*loop["ts"].searchsorted(reach))
        loops = {name: values[near] for name, values in loop.items()}
        found.append(_joined(buses, loops, is_dense=kind == "dense"))
    return {name: np.concatenate([part[name] for part in found]) for name in found[0]}


def _joined(bus: Arrays, loop: Arrays, *, is_dense: bool) -> Arrays:
    late = np.flatnonzero(bus["delay_s"] > DELAY_OVER)
    buses = {name: values.take(late) for name, values in bus.items()}
    if not is_dense:
        busy = np.flatnonzero(loop["flow"] > FLOW_OVER)
        loop = {name: values.take(busy) for name, values in loop.items()}
    left, right = _pairs(buses, loop)
    if is_dense:
        product = buses["delay_s"].take(left).astype(np.int64) * loop["flow"].take(right)
        kept = np.flatnonzero(product > DENSE_OVER)
        left, right = left.take(kept), right.take(kept)
    pairs = {name: values.take(left) for name, values in buses.items()}
    pairs |= {name: loop[name].take(right) for name in ("flow", "sensor")}
    return pairs | {"ts_right": loop["ts"].take(right)}


def _pairs(bus: Arrays, loop: Arrays) -> tuple[np.ndarray, np.ndarray]:
    """Return which buses and loops are of one area and close in time: a binary search for each."""
    within_ms = WITHIN_NS // MS
    # By area, and in order of time within each: 16 bits sort by radix.
    searches = bus["area"].astype(np.uint16).argsort(kind="stable")
    order = loop["area"].astype(np.uint16).argsort(kind="stable")
    newest = max(times["ts"].max(initial=0) for times in (bus, loop))
    apart = int(newest) + 2 * within_ms + 2  # so far that no window reaches another area
    at = bus["area"].take(searches) * np.int64(apart) + bus["ts"].take(searches)
    axis = loop["area"].take(order) * np.int64(apart) + loop["ts"].take(order)
    first = axis.searchsorted(at - within_ms)
    counts = axis.searchsorted(at + within_ms, "right") - first
    places = (first - (counts.cumsum() - counts)).repeat(counts)
    places += np.arange(len(places))
    return searches.repeat(counts), order.take(places)


# -- the aggregate --------------------------------------------------------------------------------


def aggregate_by_parts(events: Arrays) -> Arrays:
    """Return key, window_start, window_end, n and mean of each key and second.

    Events may be in any order of time, and spread over less than 49 days.
    """
    times, key, value = events["ts"], events["key"], events["value"]
    keys = int(key.max()) + 1
    first, last = int(times.min()) // _WINDOW_MS, int(times.max()) // _WINDOW_MS
    count = np.zeros((last - first + 1) * keys, dtype=np.int64)
    total = np.zeros(len(count))
    for start in range(0, len(times), AGGREGATE_ROWS):
        rows = slice(start, start + AGGREGATE_ROWS)
        own = times[rows]
        begin, end = int(own.min()) // _WINDOW_MS, int(own.max()) // _WINDOW_MS + 1
        cell = (own - begin * _WINDOW_MS).astype(np.uint32)  # divided in half the time of 64 bits
        cell //= np.uint32(_WINDOW_MS)
        cell *= np.uint32(keys)
        cell += key[rows].view(np.uint32)
        within = slice((begin - first) * keys, (end - first) * keys)
        size, cells = within.stop - within.start, cell.astype(np.int64)
        count[within] += np.bincount(cells, minlength=size)
        total[within] += np.bincount(cells, weights=value[rows], minlength=size)
    return leaving(np.flatnonzero(count), count, total, keys=keys, first=first)


def leaving(
    found: np.ndarray, count: np.ndarray, total: np.ndarray, *, keys: int, first: int
) -> Arrays:
    """Return the columns that leave, of cells that are (second − first) × keys + key."""
    starts = (found // keys + first) * (_WINDOW_MS * MS)
    return {
        "key": (found % keys).astype(np.int32),
        "window_start": starts,
        "window_end": starts + _WINDOW_MS * MS,
        "n": count.take(found),
        "mean": total.take(found) / count.take(found),
    }
