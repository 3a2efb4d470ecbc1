"""Running a flow again and again on local nodes, its results compared with the offline ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.workload import DELAY_OVER, DENSE_OVER, FLOW_OVER, MS, WITHIN_NS
from benchmarks.frame import Spread, check
from benchmarks.jobs import collected
from benchmarks.offline import pairs_within

Arrays = dict[str, npt.NDArray[Any]]
ONE_SLOT = {"*": "node-1"}
PLACES: dict[str, Mapping[str, str] | None] = {"one slot": ONE_SLOT, "three nodes": None}
"""{name: placement} of a join; None is the default: a source on node-1 and on node-2 each, join and
sink on node-3."""


@dataclass(frozen=True)
class Timed:
    """Repetitions of one flow at one place: how fast, and what its stages cost the last time."""

    events: int
    million_per_s: Spread
    ns_per_row: dict[str, float]  # {stage: busy time for each row that came in}
    rates: list[float]  # million events a second, run by run


def timed(
    cluster: sw.Cluster,
    build: Callable[[], sw.Dataflow],
    *,
    placement: Mapping[str, str] | None,
    repetitions: int,
    verify: Callable[[pa.Table], None],
    before_each: Callable[[], None] | None = None,
) -> Timed:
    """Run a flow with one collect sink some times, after once to warm up, and check each run.

    The time is the job's elapsed time: from the moment at which sources begin to when the last
    slot has closed its sinks, by the slots' own clock. `before_each` is called before each run
    that counts.
    """
    rates = []
    report = None
    for run in range(repetitions + 1):
        if run and before_each is not None:
            before_each()
        report, rows = collected(cluster.submit(build(), placement=placement))
        verify(rows)
        check(not report.ledger.late, f"{report.ledger.late} events came late in ready-only mode")
        rates.append(report.ledger.entered / report.elapsed_s / 1e6)
    assert report is not None
    cost = {stage.name: round(stage.service_per_row_ns, 1) for stage in report.stages}
    return Timed(report.ledger.entered, Spread.of(rates[1:]), cost, rates[1:])


def arrays_of(table: pa.Table) -> Arrays:
    """Return the columns as NumPy arrays, timestamps as int64."""
    made = {}
    for name in table.column_names:
        values = table[name].to_numpy()
        made[name] = values.astype(np.int64) if values.dtype.kind == "M" else values
    return made


def join_offline(
    bus: Arrays,
    loop: Arrays,
    *,
    is_dense: bool = False,
    over: tuple[float, float] = (DELAY_OVER, FLOW_OVER),
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the rows (bus, loop) of every pair that the join must find."""
    late = np.flatnonzero(bus["delay_s"] > over[0])
    every = np.arange(len(loop["ts"]))
    busy = every if is_dense else np.flatnonzero(loop["flow"] > over[1])
    left, right = pairs_within(
        bus["ts"][late] * MS,
        bus["area"][late].astype(np.int64),
        loop["ts"][busy] * MS,
        loop["area"][busy].astype(np.int64),
        WITHIN_NS,
    )
    left, right = late[left], busy[right]
    if is_dense:
        product = bus["delay_s"][left].astype(np.int64) * loop["flow"][right]
        kept = product > DENSE_OVER
        left, right = left[kept], right[kept]
    return left, right


def same_rows(found: Arrays, expected: Arrays, what: str) -> None:
    """Check that both hold the same rows, in whatever order.

    Raises:
        WrongResultError: they do not.
    """
    sizes = len(next(iter(found.values()))), len(next(iter(expected.values())))
    check(sizes[0] == sizes[1], f"{what}: {sizes[0]} results, and {sizes[1]} offline")
    orders = [np.lexsort([table[name] for name in expected]) for table in (found, expected)]
    for name, values in expected.items():
        same = np.array_equal(found[name][orders[0]], values[orders[1]])
        check(same, f"{what}: column {name!r} differs from the offline query's")
