"""Patterns on Ray: rows as in the simulator; and more events than can be worked off."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.report.render import report_text
from tests.support.flows import sorted_rows

pytestmark = pytest.mark.ray
MS = 1_000_000


def trades(rows: int, seed: int) -> pa.Table:
    """Return rows of five keys, some of which come late."""
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, 4_000, rows)) * MS
    order = np.argsort(times + rng.integers(0, 200, rows) * MS, kind="stable")
    return pa.table(
        {
            "ts": times[order],
            "arrival": np.maximum.accumulate(times),
            "key": rng.integers(0, 5, rows),
            "kind": pa.array(rng.choice(["a", "b", "c"], rows)),
            "price": rng.random(rows),
            "id": np.arange(rows),
        }
    )


IDLE = sw.shedding.espice("1h")
"""Nothing is ever shed."""


def pattern_flow(rows: pa.Table, shed: sw.shedding.EventShedding | None = IDLE) -> sw.Dataflow:
    flow = sw.Dataflow("patterns")
    source = flow.source(
        "trades",
        sw.table(rows, batch_rows=50),
        event_time="ts",
        time_unit="ns",
        arrival="arrival",
        out_of_order="late",
        disorder="150ms",
        speed=4.0,
    )
    low = sw.patterns.event("low", of_type="a")
    high = sw.patterns.event("high", of_type=("b", "c"), where=sw.col("price") > low["price"])
    end = sw.patterns.event("end", of_type="c")
    keyed = source.key_by("key")
    keyed.pattern(
        sw.patterns.seq(low, high, sw.patterns.no(end)),
        type="kind",
        within="300ms",
        id="id",
        replicas=2,
    ).sink("rises", sw.collect_sink())
    keyed.pattern(
        sw.patterns.seq(low, sw.patterns.any_of(2, end, sw.patterns.event("b", of_type="b"))),
        type="kind",
        window=sw.patterns.opened_by(low, events=9),
        matches=1,
        id="id",
    ).sink("pairs", sw.collect_sink())
    keyed.pattern(
        sw.patterns.seq(low, end),
        type="kind",
        window=sw.sliding("200ms", "100ms"),
        matches=1,
        id="id",
        shed=shed,
    ).sink("windows", sw.collect_sink())
    return flow


def test_patterns_give_on_ray_what_the_simulator_gives(cluster: sw.Cluster) -> None:
    rows = trades(1_500, 7)
    results, late = [], []
    for host in (sw.Simulation(nodes=3, seed=1), cluster):
        job = host.submit(pattern_flow(rows))
        report = job.wait(timeout=60)
        assert report.ledger.is_balanced
        results.append([job.result(sink) for sink in ("rises", "pairs", "windows")])
        late.append(report.ledger.late)
    assert all(len(table) for table in results[0])
    assert late[0] == late[1]
    (rises, pairs, windows), (real_rises, real_pairs, real_windows) = results
    assert sorted_rows(rises) == sorted_rows(real_rises)  # replicas: no gate orders what they send
    assert pairs.equals(real_pairs)
    plain = sw.Simulation(nodes=3, seed=1).submit(pattern_flow(rows, shed=None))
    plain.wait()
    assert windows.equals(plain.result("windows"))
    assert windows.equals(real_windows)


def overload_flow(rows: pa.Table, shed: sw.shedding.EventShedding) -> sw.Dataflow:
    flow = sw.Dataflow("overload")
    source = flow.source(
        "events", sw.table(rows, batch_rows=2_000), event_time="ts", time_unit="ns", speed=1.0
    )
    steps = [sw.patterns.event(f"e{kind}", of_type=kind) for kind in range(6)]
    source.pattern(
        sw.patterns.seq(*steps),
        type="kind",
        window=sw.patterns.opened_by(steps[0], events=50),
        matches=1,
        shed=shed,
    ).sink("found", sw.collect_sink())
    return flow


def test_what_is_shed_is_in_the_ledger_and_in_the_report(cluster: sw.Cluster) -> None:
    """Far more events a second than any machine works off; how many are dropped is its own."""
    count = 300_000
    at = np.arange(count) % 50
    kinds = np.where(at < 12, at // 2, np.random.default_rng(1).integers(0, 6, count))
    rows = pa.table({"ts": np.arange(count) * 500, "kind": kinds})  # 2 M events a second
    job = cluster.submit(
        overload_flow(rows, sw.shedding.espice("200ms", drops="events", first=10**9))
    )
    report = job.wait(timeout=120)
    assert report.ledger.is_balanced
    (stage,) = [one for one in report.stages if one.shedding is not None]
    counts = stage.shedding
    assert counts is not None
    assert counts.starts >= 1
    assert 0 < counts.dropped <= counts.pairs
    assert report.ledger.out + counts.shed == count
    assert "Shed under load" in report_text(report)
