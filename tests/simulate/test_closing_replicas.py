"""Windows that close in time in replicas: one budget, and the last revision of each is fixed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw

MS = 1_000_000
WINDOW = 100
KEYS = 8


def rows_of(seed: int, rows: int = 2_500) -> pa.Table:
    """A row each 5 ms on average; some come up to a second later, so in no order."""
    chance = np.random.default_rng(seed)
    ts = np.cumsum(chance.geometric(0.2, rows))
    at = ts + chance.geometric(0.1, rows) + 900 * (chance.random(rows) < 0.01)
    order = np.argsort(at, kind="stable")
    columns = {"ts": ts * MS, "at": at * MS, "key": chance.integers(0, KEYS, rows)}
    return pa.table(columns).take(order)


TABLE = rows_of(5)
EXPECTED = Counter(
    zip(
        TABLE["key"].to_pylist(),
        (np.asarray(TABLE["ts"]) // MS // WINDOW * WINDOW).tolist(),
        strict=True,
    )
)


def flow_of(close: Any, **options: Any) -> sw.Dataflow:
    flow = sw.Dataflow("replicas")
    cut, speed = options.pop("batch_rows", 4_096), options.pop("speed", None)
    times: dict[str, Any] = {"event_time": "ts", "arrival": "at", "time_unit": "ns"}
    rows = flow.source(
        "rows",
        sw.table(TABLE, batch_rows=cut),
        out_of_order="late",
        disorder="5s",
        speed=speed,
        **times,
    )
    window = sw.tumbling(f"{WINDOW}ms")
    counts = rows.aggregate(by="key", window=window, n=sw.count(), close=close, **options)
    counts.sink("out", sw.collect_sink())
    return flow


def left(flow: sw.Dataflow) -> tuple[pa.Table, Any]:
    with sw.Simulation(2) as nodes:
        job = nodes.submit(flow)
        return (report := job.wait()) and job.result("out"), report


def last_revisions(out: pa.Table) -> dict[tuple[int, int], int]:
    """Return {(key, start): rows} of the highest revision of each."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for row in out.to_pylist():
        place = row["key"], row["window_start"].value // MS
        found[place] = max(found.get(place, (-1, 0)), (row.get("revision", 0), row["n"]))
    return {place: n for place, (_, n) in found.items()}


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_no_more_windows_miss_something_in_any_replica_than_one_budget_lets(replicas: int) -> None:
    out, report = left(flow_of(sw.closing.probslack(0.1, ordered=False), replicas=replicas))
    found = last_revisions(out)
    short = {start for (key, start), n in EXPECTED.items() if found.get((key, start), 0) < n}
    windows = {start for _, start in EXPECTED}
    assert 0 < len(short) <= 0.1 * len(windows)
    promised = [one.closing.promised for one in report.stages if one.closing is not None]
    assert promised == [0.1 / replicas] * replicas


@pytest.mark.parametrize(
    ("replicas", "speed", "cut"), [(1, None, 4_096), (2, None, 97), (2, 50.0, 4_096)]
)
def test_the_last_revision_has_every_row_whatever_pace_and_cut(
    replicas: int, speed: float | None, cut: int
) -> None:
    options: dict[str, Any] = {"replicas": replicas, "late": "correct", "speed": speed}
    out, _ = left(flow_of(sw.closing.probslack(0.2, ordered=False), batch_rows=cut, **options))
    assert out.num_rows > len(EXPECTED), "some are corrected"
    assert last_revisions(out) == EXPECTED


def test_a_slack_of_the_flow_that_does_not_hold_for_closing_windows_is_said_at_the_line() -> None:
    flow = sw.Dataflow("slack", slack="1s")
    rows = flow.source("rows", sw.table(TABLE), event_time="ts", arrival="at", time_unit="ns")
    with pytest.warns(UserWarning, match=r"slack=.*of the flow is not for it") as said:
        rows.key_by("key").aggregate(
            window=sw.tumbling("1s"), n=sw.count(), close=sw.closing.probslack(0.1)
        )
    assert said[0].filename == __file__
