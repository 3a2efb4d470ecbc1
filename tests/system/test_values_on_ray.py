"""Parts of values, exploded lists and diverted rows are the same on Ray nodes as simulated."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw

pytestmark = pytest.mark.ray
ROWS = 400
col = sw.col


def rows() -> pa.Table:
    texts = [f"29.03.2026 0{3 + n // 200}:{n % 60:02}:{n % 7:02}" for n in range(ROWS)]
    texts[17] = "gestern"
    return pa.table(
        {
            "ts": pa.array([*sorted(texts[:17] + texts[18:]), "gestern"]),
            "n": range(ROWS),
            "readings": pa.array([[n, n + 1][: n % 3] for n in range(ROWS)], pa.list_(pa.int32())),
            "head": [{"line": f"L{n % 5}", "day": None} for n in range(ROWS)],
        }
    )


def inverse(row: dict[str, Any]) -> dict[str, Any]:
    return {"n": row["n"], "line": row["line"], "inverse": 1 / (row["n"] % 50)}


class Limited:
    """Raises for every seventh row of a line."""

    def on_rows(self, _key: str, given: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for row in given:
            if row["n"] % 7 == 0:
                raise ValueError(row["n"])
        return [{"n": row["n"]} for row in given]


def flow() -> sw.Dataflow:
    flow = sw.Dataflow("values")
    when = col("ts").str.to_time("%d.%m.%Y %H:%M:%S", zone="Europe/Berlin")
    read = flow.source("in", sw.table(rows(), batch_rows=50), event_time=when, on_bad="divert")
    read.diverted().sink("unusable", sw.collect_sink())
    parts = read.with_columns(line=col("head")["line"], last=col("readings")[-1])
    declared = {"n": "int64", "line": "string", "inverse": "float64"}
    mapped = parts.map_rows(inverse, declared, on_error="divert", name="inverse")
    mapped.diverted().sink("failed", sw.collect_sink())
    mapped.aggregate(n=sw.count(), by="line", window=sw.tumbling("10m")).sink(
        "lines", sw.collect_sink()
    )
    limited = parts.process(
        Limited, {"n": "int64"}, by="line", within="10m", on_error="divert", replicas=2
    )
    limited.merge().sink("limited", sw.collect_sink())
    limited.diverted().sink("beyond", sw.collect_sink())
    exploded = parts.select("n", "readings").explode("readings")
    exploded.aggregate(n=sw.count("readings"), window=sw.tumbling("10m")).sink(
        "elements", sw.collect_sink()
    )
    return flow


def test_a_flow_of_parts_and_diverted_rows_gives_what_it_gives_simulated(
    cluster: sw.Cluster,
) -> None:
    with sw.Simulation() as nodes:
        simulated = nodes.submit(flow())
        expected = simulated.wait()
    job = cluster.submit(flow())
    report = job.wait(timeout=60.0)
    assert report.ledger.is_balanced
    counts = report.ledger.counts.of_job()
    assert counts == expected.ledger.counts.of_job()
    beyond = len(job.result("beyond"))
    assert counts["diverted"] == 1 + ROWS // 50 + beyond
    for sink in ("unusable", "failed", "lines", "elements", "limited", "beyond"):
        found, same = job.result(sink), simulated.result(sink)
        assert found.schema == same.schema
        assert sorted(map(str, found.to_pylist())) == sorted(map(str, same.to_pylist()))
        assert len(found) > 0
