"""The join as fast as it goes: 2 M buses and 2 M sensor readings, all of 10,000 s, ready-only.

Sparse: 10 % of the buses and 2 % of the readings reach the join. Dense: 10 % and all, and a
predicate on the pair. Gate, scheduler and sink are in the path; every run's results are compared
with the offline query.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.limit import Beside, Program, join_by_parts
from benchmarks.engine.running import PLACES, Arrays, arrays_of, join_offline, same_rows, timed
from benchmarks.engine.workload import BLOCK_ROWS, join_flow, join_tables, write
from benchmarks.frame import Claim, Options, Result, check

EVENTS, SECONDS = 2_000_000, 10_000
TARGETS = {"sparse": 4.0, "dense": 2.5}
PEERS = "two replicas"
BY_REPLICAS = {"bus": "node-1", "scats": "node-2", "pairs": "node-1"} | {
    f"join-1.{number}": f"node-{number}" for number in (1, 2)
}
"""Placement of two replicas: each beside a source, in the two processes that two cores bear."""
LEAST_BY_REPLICAS = 1.3  # × one slot, the dense join
SHARES = {"sparse": 25.0, "dense": 40.0}
"""{join: percent of the limit that one slot must reach}"""


def run(options: Options) -> Result:
    """Measure both joins: in one slot, on three nodes, and as two replicas on two of them."""
    scale = 4 if options.quick else 1
    repetitions = 2 if options.quick else 5
    tables = join_tables(options.seed, events=EVENTS // scale, seconds=SECONDS // scale)
    bus, loop = map(arrays_of, tables)
    events = len(bus["ts"]) + len(loop["ts"])
    result = Result(
        f"{events:,} events of {SECONDS // scale:,} s in blocks of {BLOCK_ROWS:,} rows, "
        f"{repetitions} repetitions after one to warm up",
        ["join", "where", "M events/s", "results", "busy ns a row, by stage"],
    )
    with tempfile.TemporaryDirectory() as folder, sw.Cluster.local(nodes=3) as cluster:
        inputs = write(tables[0], Path(folder) / "bus"), write(tables[1], Path(folder) / "scats")
        for kind, target in TARGETS.items():
            is_dense = kind == "dense"
            left, right = join_offline(bus, loop, is_dense=is_dense)
            expected = results(bus, loop, left, right)
            figures: dict[str, Any] = {"results": len(left)}
            beside = Beside(events, programs(bus, loop, kind=kind))
            alone: float | None = None
            for place, placement in (PLACES | {PEERS: BY_REPLICAS}).items():
                replicas = 2 if place == PEERS else None
                measured = timed(
                    cluster,
                    partial(
                        join_flow,
                        *inputs,
                        sw.collect_sink(),
                        is_dense=is_dense,
                        replicas=replicas,
                    ),
                    placement=placement,
                    repetitions=repetitions,
                    verify=partial(verify, expected=expected, what=f"{kind}, {place}"),
                    before_each=beside.turn if place == "one slot" else None,
                )
                cost = ", ".join(f"{s} {ns:g}" for s, ns in measured.ns_per_row.items())
                result.rows.append([kind, place, measured.million_per_s, f"{len(left):,}", cost])
                figures[f"{place}_million_per_s"] = measured.million_per_s
                figures[f"{place}_ns_per_row"] = measured.ns_per_row
                if place == "one slot":
                    median = alone = measured.million_per_s.median
                    result.claims.append(
                        Claim(f"{kind} join, {place}: M events/s", median, ">=", target)
                    )
                    told = beside.tell(result, measured.rates, [kind])
                    share = told["one slot, % of the limit"].median
                    result.claims.append(
                        Claim(f"{kind} join, {place}: % of the limit", share, ">=", SHARES[kind])
                    )
                    figures |= told
            assert alone is not None, "one slot comes first"
            figures[f"{PEERS}_by_one_slot"] = by_one = measured.million_per_s.median / alone
            if is_dense:
                what = f"{kind} join, {PEERS} on nodes: × one slot"
                result.claims.append(Claim(what, by_one, ">=", LEAST_BY_REPLICAS))
            result.figures[kind] = figures
    result.notes += [
        "best placement: one slot, all stages on node-1; three nodes: a source on node-1 and on "
        "node-2 each, join and sink on node-3; two replicas: a source and a replica on node-1 and "
        "on node-2 each, the sink on node-1; they share this machine's cores",
        "events / the job's elapsed time, from the first stimulus to the end of all slots",
        "input: Arrow IPC files in the page cache, mapped into memory by the sources",
        "every run's results were compared with the offline query's",
        "limit: one pass of NumPy over the same rows in memory, one thread, all columns that leave "
        "are made; the quicker of two programs, each timed before each run in one slot",
    ]
    return result


def programs(bus: Arrays, loop: Arrays, *, kind: str) -> dict[str, Program]:
    """Return those that go through the same rows without any stream; both give the same pairs."""

    def at_once() -> Arrays:
        return results(bus, loop, *join_offline(bus, loop, is_dense=kind == "dense"))

    by_parts = partial(join_by_parts, bus, loop, kind=kind)
    same_rows(by_parts(), at_once(), f"{kind}, NumPy by parts")
    return {"at once": at_once, "by parts": by_parts}


def results(bus: Arrays, loop: Arrays, left: np.ndarray, right: np.ndarray) -> Arrays:
    """Return the columns of the pairs (left[i], right[i])."""
    found = {name: values[left] for name, values in bus.items()}
    found |= {name: loop[name][right] for name in ("flow", "sensor")}
    return found | {"ts_right": loop["ts"][right]}


def verify(found: pa.Table, *, expected: Arrays, what: str) -> None:
    """Check that a run found the expected pairs, each once, in event-time order."""
    rows = arrays_of(found)
    times = np.maximum(rows["ts"], rows["ts_right"])
    check(bool((times[1:] >= times[:-1]).all()), f"{what}: results are not in event-time order")
    same_rows(rows, expected, what)
