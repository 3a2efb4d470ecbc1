"""Whole flows on real Ray nodes: the same to the letter as in the simulator and offline."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from examples import city_congestion
from slackwater.runtime.errors import ClusterError, FlowError, SinkError
from tests.simulate.test_closing_flows import closing_flow
from tests.simulate.test_who_is_charged import BLOCKS, BURNS_NS, Burning, block
from tests.support.crowds import crowd
from tests.support.endless import SilentInput
from tests.support.flows import city_tables, counting_flow, offline_congestion, sorted_rows
from tests.support.processes import wait_for_free_cpus
from tests.support.readers import JitterInput

pytestmark = pytest.mark.ray

LIMIT_S = 60.0
ONE_SLOT = {"*": "node-2"}


def run(host: Any, flow: sw.Dataflow, sink: str, **options: Any) -> tuple[pa.Table, sw.JobReport]:
    job = host.submit(flow, **options)
    report = job.wait(timeout=LIMIT_S)
    assert report.state == job.status == "done"
    assert report.ledger.is_balanced
    assert report.ledger.in_flight == 0
    return job.result(sink), report


def simulate(flow: sw.Dataflow, sink: str) -> pa.Table:
    return run(sw.Simulation(nodes=3, seed=1), flow, sink)[0]


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, pa.Table]:
    return city_tables(tmp_path_factory.mktemp("city"), rate=6, seconds=20)


def congestion(city: tuple[pa.Table, pa.Table], **options: Any) -> sw.Dataflow:
    return city_congestion.build(sw.table(city[0]), sw.table(city[1]), **options)


def test_a_join_finds_what_the_simulator_and_the_offline_query_find(
    cluster: sw.Cluster, city: Any
) -> None:
    """On three nodes; layouts of one slot and two are below."""
    table, report = run(cluster, congestion(city, speed=40.0), "jams")
    assert table.equals(simulate(congestion(city, speed=40.0), "jams"))
    assert sorted_rows(table) == offline_congestion(*city)
    assert len(table) > 100
    assert report.ledger.entered == len(city[0]) + len(city[1])
    assert report.ledger.late == 0
    nodes = {stage.name: stage.node for stage in report.stages}
    expected = {"buses": "node-1", "loops": "node-2", "congestion": "node-3", "jams": "node-3"}
    assert nodes == expected
    assert report.sinks[0].latency.quantile(0.5) > 0


@pytest.fixture(scope="module")
def readings() -> pa.Table:
    """Rows of 9 keys, a tenth of them up to 400 ms late."""
    rng = np.random.default_rng(5)
    times = np.arange(3_000) * 3_000_000
    late = np.where(rng.random(3_000) < 0.1, rng.integers(0, 400_000_000, 3_000), 0)
    order = np.argsort(times + late, kind="stable")
    return pa.table(
        {
            "ts": pa.array(times[order], pa.timestamp("ns")),
            "key": pa.array(rng.integers(0, 9, 3_000)[order]),
            "value": pa.array(rng.normal(size=3_000)[order]),
        }
    )


def test_sliding_aggregates_are_the_simulators_to_the_last_bit(
    cluster: sw.Cluster, readings: pa.Table
) -> None:
    def flow() -> sw.Dataflow:
        return counting_flow(readings, out_of_order="sort", disorder="500ms")

    table, _ = run(cluster, flow(), "counts")
    assert table.equals(simulate(flow(), "counts"))
    assert sum(table["n"].to_pylist()) == 2 * len(readings)  # each is in two windows


COPIES = range(5)
LAYOUTS: list[dict[str, Any]] = [
    {"placement": ONE_SLOT},
    {"placement": None, "limits": sw.Limits(credit_rows=300, gate_rows=200, max_slice_rows=50)},
    {"placement": {"*": "node-1", **{f"loops-{n}": "node-3" for n in COPIES}}},
]


def copies(city: tuple[pa.Table, pa.Table], *, seeds: Iterable[int | None]) -> sw.Dataflow:
    """Several runs in one: a copy for each seed, whose readers stutter in a way of its own."""
    flow = sw.Dataflow("copies")
    for n, seed in enumerate(seeds):
        inputs: list[sw.connectors.Input] = [sw.table(rows) for rows in city]
        if seed is not None:
            inputs = [JitterInput(given, 2 * seed + side) for side, given in enumerate(inputs)]
        buses, loops = (
            flow.source(f"{name}-{n}", given, event_time="event_time")
            for name, given in zip(("buses", "loops"), inputs, strict=True)
        )
        late, busy = buses.filter(sw.col("delay_s") > 300), loops.filter(sw.col("flow") > 1_000)
        jams = late.join(busy, on="area", within="5s", name=f"congestion-{n}")
        jams.sink(f"jams-{n}", sw.collect_sink())
    return flow


def test_fifteen_runs_with_delays_and_interleavings_of_their_own_agree_to_the_byte(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    small = city_tables(tmp_path, rate=3, seconds=12)
    expected = simulate(copies(small, seeds=[None]), "jams-0")
    assert len(expected) > 20
    for number, layout in enumerate(LAYOUTS):
        seeds = [len(COPIES) * number + n for n in COPIES]
        job = cluster.submit(copies(small, seeds=seeds), **layout)
        report = job.wait(timeout=LIMIT_S)
        assert report.ledger.is_balanced
        for n in COPIES:
            assert job.result(f"jams-{n}").equals(expected), f"seed {seeds[n]}, layout {layout}"


def test_ties_in_event_time_break_as_in_the_simulator(cluster: sw.Cluster) -> None:
    times = pa.array(np.repeat(np.arange(100), 6) * 1_000_000, pa.timestamp("ns"))

    def flow(*, jittered: bool) -> sw.Dataflow:
        made = sw.Dataflow("ties")
        streams = []
        for name in "abc":
            rows: Any = sw.table({"ts": times, "who": [f"{name}{n}" for n in range(600)]})
            rows = JitterInput(rows, 4) if jittered else rows
            streams.append(made.source(name, rows, event_time="ts"))
        made.merge(*streams, name="all").sink("out", sw.collect_sink())
        return made

    spread = {"a": "node-3", "b": "node-1", "c": "node-2", "all": "node-1", "out": "node-2"}
    table, _ = run(cluster, flow(jittered=True), "out", placement=spread)
    assert table.equals(simulate(flow(jittered=False), "out"))
    assert [who[0] for who in table["who"].to_pylist()[:18]] == list("aaaaaabbbbbbcccccc")


def doubled(columns: dict[str, Any]) -> dict[str, Any]:
    return {**columns, "twice": columns["value"] * 2}


def labelled(row: dict[str, Any]) -> dict[str, Any] | None:
    return None if row["key"] == 0 else {"ts": row["ts"], "label": f"key {row['key']}"}


def write_down(path: str, rows: pa.RecordBatch) -> None:
    with Path(path).open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row, default=str)}\n" for row in rows.to_pylist())


def test_every_kind_of_sink_gets_the_same_rows(
    cluster: sw.Cluster, city: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    flow = sw.Dataflow("sinks")
    late = flow.source("buses", sw.table(city[0]), event_time="arrival").filter(
        sw.col("delay_s") > 300
    )
    late = late.select("vehicle", "area", "delay_s")
    late.sink("collected", sw.collect_sink())
    late.sink("folder", sw.parquet_sink(tmp_path / "folder"))
    late.sink("file", sw.parquet_sink(tmp_path / "one.parquet"))
    late.sink("lines", sw.jsonl_sink("rows.jsonl"))  # in the driver's working folder
    late.sink("called", sw.callback_sink(partial(write_down, str(tmp_path / "called.jsonl"))))
    table, report = run(cluster, flow, "collected", placement=ONE_SLOT)
    rows = table.to_pylist()
    assert len(rows) > 100
    assert pq.read_table(tmp_path / "folder").equals(table)
    assert pq.read_table(tmp_path / "one.parquet").equals(table)
    for name in ("rows.jsonl", "called.jsonl"):
        lines = (tmp_path / name).read_text(encoding="utf-8").splitlines()
        assert [json.loads(line) for line in lines] == rows
    assert {sink.name: sink.rows for sink in report.sinks} == dict.fromkeys(
        ("collected", "folder", "file", "lines", "called"), len(rows)
    )
    assert not list(tmp_path.rglob("*.incomplete"))
    with pytest.raises(SinkError, match="two runs must not mix"):
        cluster.submit(flow)


def bare(row: dict[str, Any]) -> dict[str, Any]:
    names = {name.partition(".")[0] for name in sys.modules}
    return {"ts": row["ts"], "bare": ",".join(names & {"runtime", "actors", "ingest"})}


def test_users_functions_run_on_workers_that_import_no_room_by_its_bare_name(
    cluster: sw.Cluster, readings: pa.Table
) -> None:
    def flow() -> sw.Dataflow:
        made = sw.Dataflow("functions")
        stream = made.source(
            "events", sw.table(readings), event_time="ts", out_of_order="sort", disorder="1s"
        )
        columns = {"ts": pa.timestamp("ns"), "key": "int64", "value": "float64", "twice": "float64"}
        stream.map_batches(doubled, schema=columns).sink("twice", sw.collect_sink())
        labels = {"ts": pa.timestamp("ns"), "label": "string"}
        stream.map_rows(labelled, schema=labels).sink("labels", sw.collect_sink())
        names = {"ts": pa.timestamp("ns"), "bare": "string"}
        stream.map_rows(bare, schema=names).sink("bare", sw.collect_sink())
        return made

    job = cluster.submit(flow(), placement=ONE_SLOT)
    job.wait(timeout=LIMIT_S)
    twice, labels = job.result("twice"), job.result("labels")
    assert twice.equals(simulate(flow(), "twice"))
    assert labels.equals(simulate(flow(), "labels"))
    assert np.array_equal(twice["twice"], np.asarray(twice["value"]) * 2)
    assert 0 < len(labels) < len(twice) == len(readings)
    assert {*job.result("bare")["bare"].to_pylist()} == {""}
    assert not {"runtime", "actors", "ingest"} & sys.modules.keys()


def test_a_reader_of_a_users_own_is_charged_to_its_source(cluster: sw.Cluster) -> None:
    flow = sw.Dataflow("burning")
    dear = flow.source("dear", Burning(reads_inline=False), event_time="ts")
    rows = pa.Table.from_batches(map(block, range(BLOCKS)))
    cheap = flow.source("cheap", sw.table(rows), event_time="ts")
    dear.join(cheap, on="key", within="10ms", name="both").sink("out", sw.collect_sink())
    report = cluster.submit(flow, placement=ONE_SLOT).wait(timeout=LIMIT_S)
    took_ns = {stage.name: stage.service_ns for stage in report.stages}
    assert took_ns["dear"] >= 0.9 * BLOCKS * BURNS_NS, took_ns
    assert took_ns["both"] < 0.5 * BLOCKS * BURNS_NS, took_ns


def test_a_source_with_no_event_ends_as_any_other(cluster: sw.Cluster, readings: pa.Table) -> None:
    none = readings.slice(0, 0)
    table, report = run(cluster, counting_flow(none), "counts", placement=ONE_SLOT)
    assert table.equals(simulate(counting_flow(none), "counts"))
    assert table["n"].to_pylist() == []
    assert report.ledger.entered == report.ledger.out == 0


def test_on_arrival_every_result_is_there_though_not_in_order(
    cluster: sw.Cluster, city: Any
) -> None:
    table, report = run(cluster, congestion(city, speed=40.0, slack="0s"), "jams")
    assert sorted_rows(table) == offline_congestion(*city)
    gate = next(stage for stage in report.stages if stage.kind == "join")
    assert gate.late_dropped == 0


def test_explain_shows_where_each_stage_will_run(cluster: sw.Cluster, city: Any) -> None:
    text = cluster.explain(congestion(city), placement={"congestion": "node-1"})
    graph, rest = text.split("\n\nplacement\n")
    placement, said, checkpoints = rest.split("\n\n")
    assert "checkpoints" in checkpoints
    assert said.startswith("placed by the simple rule: no rates are known")
    assert graph == congestion(city).explain()
    assert placement.splitlines() == [
        "  buses       node-1",
        "  loops       node-2",
        "  congestion  node-1  with buses: placement= says so",
        "  jams        node-3",
    ]


@pytest.mark.parametrize(
    ("placement", "claim"),
    [
        ({"jams": "node-9"}, "node 'node-9', which is not there; did you mean 'node-"),
        ({"jamz": "node-1"}, "stage 'jamz', which is not there; did you mean 'jams'?"),
        ({"*": "elsewhere"}, "node 'elsewhere', which is not there. There are: node-1"),
    ],
)
def test_a_placement_that_names_what_is_not_there_is_refused(
    cluster: sw.Cluster, city: Any, placement: Any, claim: str
) -> None:
    with pytest.raises(FlowError) as caught:
        cluster.submit(congestion(city), placement=placement)
    assert claim in str(caught.value)


def test_a_job_too_many_is_refused_with_the_node_that_lacks_a_cpu(cluster: sw.Cluster) -> None:
    flow = sw.Dataflow("waits")
    silent = SilentInput(sw.table(pa.table({"ts": pa.array([0], pa.timestamp("ns"))})))
    flow.source("silent", silent, event_time="ts").sink("out", sw.collect_sink())
    with crowd("node-2", cpus=2):
        jobs = [cluster.submit(flow, placement=ONE_SLOT) for _ in range(2)]  # a CPU each
        wait_for_free_cpus("node-2", 0)
        said = r"node-2 lacks 1 of 1 CPUs \(0 of its 4 are free\); stop what holds CPUs"
        with pytest.raises(ClusterError, match=said):
            cluster.submit(flow, placement=ONE_SLOT)
        for job in jobs:
            job.stop()
        cluster.submit(flow, placement=ONE_SLOT).stop()  # their CPUs are free again, or soon


def test_results_outlive_the_workers_and_wrong_names_are_refused(
    cluster: sw.Cluster, readings: pa.Table
) -> None:
    job = cluster.submit(counting_flow(readings.slice(0, 10)), placement=ONE_SLOT)
    job.wait(timeout=LIMIT_S)
    job.close()
    job.close()
    assert job.status == "done"
    assert len(job.result("counts")) > 0
    assert job.latency["counts"]["rows"] == len(job.result("counts"))
    assert job.metrics.to_json()["state"] == "done"
    with pytest.raises(FlowError, match="no collect sink 'count' "):
        job.result("count")


def test_windows_that_close_in_time_are_the_same_to_the_letter(cluster: sw.Cluster) -> None:
    """Two replayed sources on two nodes, merged, and windows by replicas: all that may differ."""

    def flow() -> sw.Dataflow:
        return closing_flow(
            speed=20.0, replicas=2, close=sw.closing.probslack(0.2, first_rows=8, ordered=False)
        )

    table, report = run(cluster, flow(), "out")
    expected = simulate(flow(), "out")
    order = [("window_end", "ascending"), ("key", "ascending")]
    assert table.sort_by(order).equals(expected.sort_by(order))
    assert sum(one.closing.windows for one in report.stages if one.closing is not None) > 10


def test_the_last_revision_of_each_window_is_the_same_on_ray(cluster: sw.Cluster) -> None:
    """How often a window is corrected depends on when rows come; what it comes to does not."""

    def flow() -> sw.Dataflow:
        close = sw.closing.probslack(0.4, first_rows=8, ordered=False)
        return closing_flow(speed=20.0, replicas=2, late="correct", close=close)

    def last(table: pa.Table) -> dict[Any, int]:
        rows = sorted(table.to_pylist(), key=lambda row: row["revision"])
        return {(row["key"], row["window_end"]): row["n"] for row in rows}

    table, _ = run(cluster, flow(), "out")
    expected = simulate(flow(), "out")
    assert last(table) == last(expected)
    assert max(expected["revision"].to_pylist()) > 0
