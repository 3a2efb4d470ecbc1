"""Windows of keys in whole flows: the same for any replicas, late rows counted and named."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.measure.ledger import imbalances
from tests.simulate.test_late_streams import feeds
from tests.support.flows import simulated, sorted_rows

MS = 1_000_000
ROWS = 600
REPLICAS = pytest.mark.parametrize("replicas", [1, 2, 3])
WINDOWS = {
    "session": sw.session("40ms"),
    "rows": sw.rows(7),
    "overlapping rows": sw.rows(6, every=4),
    "opened": sw.opened_by(sw.col("v") > 900, "60ms"),
    "everything": sw.everything(),
}


def rows() -> pa.Table:
    """Rows of 12 keys that arrive out of order, many at one time."""
    rng = np.random.default_rng(5)
    ts = rng.integers(0, 500, ROWS) * 5
    return pa.table(
        {
            "ts": ts[np.argsort(ts + rng.integers(0, 60, ROWS), kind="stable")],
            "line": [f"line {n}" for n in rng.integers(0, 12, ROWS)],
            "v": rng.integers(0, 1_000, ROWS),
        }
    )


def flow_of(window: Any, replicas: int, name: str = "windows") -> sw.Dataflow:
    flow = sw.Dataflow(name)
    options: dict[str, Any] = {"out_of_order": "sort", "disorder": "100ms", "time_unit": "ms"}
    source = flow.source("rows", sw.table(rows(), batch_rows=50), event_time="ts", **options)
    windows = source.aggregate(
        by="line", window=window, n=sw.count(), total=sw.sum("v"), replicas=replicas
    )
    windows.sink("out", sw.collect_sink())
    return flow


def by_hand(kind: str) -> list[tuple[Any, ...]]:
    """Return (line, start, end, rows, sum) of each window, in ms, sorted."""
    of_lines: dict[str, list[tuple[int, int]]] = defaultdict(list)
    table = rows()
    order = np.argsort(table["ts"].to_numpy(), kind="stable")
    for ts, line, v in zip(*(column.take(order).to_pylist() for column in table), strict=True):
        of_lines[line].append((ts, v))
    made = []
    for line, own in of_lines.items():
        cuts = [0, *(n for n, (a, b) in enumerate(pairwise(own), 1) if b[0] - a[0] > 40), len(own)]
        opened = [(place, ts) for place, (ts, v) in enumerate(own) if v > 900]
        windows = {
            "opened": [[row for row in own[place:] if row[0] < ts + 60] for place, ts in opened],
            "session": [own[start:stop] for start, stop in pairwise(cuts)],
            "rows": [own[n : n + 7] for n in range(0, len(own), 7)],
            "overlapping rows": [own[n : n + 6] for n in range(0, len(own), 4)],
            "everything": [own],
        }[kind]
        for each in windows:
            times, values = zip(*each, strict=True)
            end = times[-1] + (40 if kind == "session" else 0)
            if kind == "opened":
                end = times[0] + 60
            made.append((line, times[0], end, len(each), sum(values)))
    return sorted(made)


def in_ms(table: pa.Table) -> list[tuple[Any, ...]]:
    for name in ("window_start", "window_end"):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, table[name].cast(pa.timestamp("ms")).cast("int64"))
    return sorted_rows(table)


@REPLICAS
@pytest.mark.parametrize("kind", WINDOWS)
def test_windows_of_keys_are_those_by_hand_with_any_replicas(kind: str, replicas: int) -> None:
    job, report = simulated(flow_of(WINDOWS[kind], replicas))
    assert in_ms(job.result("out")) == by_hand(kind)
    assert imbalances(report) == []
    assert report.ledger.late == 0


@pytest.mark.parametrize("kind", WINDOWS)
def test_their_order_is_that_of_one_replica(kind: str) -> None:
    tables = [
        simulated(flow_of(WINDOWS[kind], replicas), seed=replicas)[0].result("out")
        for replicas in (1, 2, 3)
    ]
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])


@REPLICAS
def test_late_rows_of_sessions_are_counted_and_leave_by_late(replicas: int) -> None:
    flow = sw.Dataflow("visits", slack="0s")
    visits = feeds(flow).aggregate(
        by="line", window=sw.session("20ms"), n=sw.count(), replicas=replicas, name="visits"
    )
    visits.sink("out", sw.collect_sink())
    visits.late(name="missed").sink("late", sw.collect_sink())
    job, report = simulated(flow)
    late = job.result("late")
    assert imbalances(report) == []
    assert report.ledger.late == late.num_rows > 20
    assert sum(job.result("out")["n"].to_pylist()) + late.num_rows == report.ledger.entered
    assert min(late["n"].to_pylist()) >= 0


def test_what_leaves_at_the_end_can_be_windowed_again() -> None:
    flow = sw.Dataflow("all")
    source = flow.source("rows", sw.table(rows().sort_by("ts")), event_time="ts", time_unit="ms")
    of_lines = source.aggregate(by="line", window=sw.everything(), n=sw.count())
    of_lines.aggregate(window=sw.everything(), lines=sw.count(), n=sw.sum("n")).sink(
        "out", sw.collect_sink()
    )
    of_lines.aggregate(window=sw.tumbling("1d"), lines=sw.count()).sink("days", sw.collect_sink())
    job, _ = simulated(flow)
    assert job.result("out").select(["lines", "n"]).to_pylist() == [{"lines": 12, "n": ROWS}]
    assert job.result("days")["lines"].to_pylist() == [12]
    assert job.result("days")["window_start"].to_pylist()[0].year == 2116
