"""A gate shared by the replicas of an operator: the same results, each event counted once."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import SettingError
from tests.support.flows import sorted_rows
from tests.support.replicas import ROWS, counts, paired, results, rows, simulate

SHARES = pytest.mark.parametrize("share", ["keys", "all"])


@pytest.fixture(scope="module")
def alone() -> tuple[list[Any], Any]:
    """What one join finds, sorted, and its report."""
    found, report = results(*paired())
    return sorted_rows(found), report


@SHARES
@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize("seed", range(2))
def test_ready_only_replicas_find_what_one_join_finds(
    alone: Any, share: Any, replicas: int, seed: int
) -> None:
    expected, by_one = alone
    found, report = results(*paired(replicas=replicas, share=share), seed=seed)
    assert sorted_rows(found) == expected
    assert len(found) > 100
    assert report.ledger == by_one.ledger
    assert report.ledger.entered == report.ledger.out == 2 * ROWS
    compared = [s.comparisons for s in report.stages if s.kind == "join"]
    assert sum(compared) == next(s.comparisons for s in by_one.stages if s.kind == "join")
    assert len(compared) == replicas
    assert min(compared) > 0


@SHARES
@pytest.mark.parametrize("slice_rows", [16, 10_000])
def test_behind_a_gate_the_results_of_replicas_have_one_order_however_messages_travel(
    alone: Any, share: Any, slice_rows: int
) -> None:
    tables = []
    limits = sw.Limits(max_slice_rows=slice_rows, min_slice_rows=min(slice_rows, 1_000))
    for seed in range(4):
        flow, pairs = paired(replicas=3, share=share)
        # Two filters: stages of their own, each fed by three replicas as they come.
        high, low = pairs.filter(sw.col("v") > 200), pairs.filter(sw.col("v") <= 200)
        high.merge(low, name="merged").sink("out", sw.collect_sink())
        job = sw.Simulation(nodes=1 + seed, seed=seed).submit(flow, limits=limits)
        job.wait()
        tables.append(job.result("out"))
    assert all(table.equals(tables[0]) for table in tables)
    assert sorted_rows(tables[0]) == alone[0]


def test_a_replica_leaves_its_rows_in_one_order_run_after_run() -> None:
    lines: list[list[Any]] = []
    for seed in range(4):
        found, _ = results(*paired(replicas=3), seed=seed)
        lines.append(
            [found.filter(pa.compute.equal(found["line"], f"line {n}")) for n in range(12)]
        )
    assert all(tables == lines[0] for tables in lines)


def test_replicas_behind_replicas_count_what_one_of_each_counts() -> None:
    tables = []
    for joins, windows in ((1, 1), (2, 3), (3, 2)):
        flow, pairs = paired(replicas=joins)
        found, report = results(flow, counts(pairs, replicas=windows))
        tables.append(sorted_rows(found))
        assert report.ledger.out == 2 * ROWS
    assert tables[0] == tables[1] == tables[2]
    assert len(tables[0]) > 50


@SHARES
@pytest.mark.parametrize("slack", ["0s", "20ms"])
def test_with_slack_replicas_find_every_pair_once_and_each_event_counts_once(
    alone: Any, share: Any, slack: str
) -> None:
    flow, pairs = paired(replicas=3, share=share, slack=slack, speed=1.0)
    found, report = results(flow, pairs, seed=3)
    assert sorted_rows(found) == alone[0]
    assert len(found) > 100
    gates = [
        stage for stage in report.stages if stage.kind == ("gate" if share == "all" else "join")
    ]
    assert len(gates) == (1 if share == "all" else 3)
    ledger = report.ledger
    assert ledger.entered == 2 * ROWS
    assert ledger.copies == ledger.in_flight == 0
    assert ledger.out + ledger.late == 2 * ROWS
    assert all(gate.ready + gate.slack_ready + gate.late == gate.rows_in for gate in gates)
    assert sum(gate.rows_in for gate in gates) == 2 * ROWS
    assert ledger.slack_ready == sum(gate.slack_ready for gate in gates) > 0
    assert ledger.late_used + ledger.late == sum(gate.late for gate in gates) > 0


@SHARES
def test_what_replicas_promise_makes_no_result_late_that_was_not_late_of_one_join(
    share: Any,
) -> None:
    late = {}
    for replicas in (1, 3):
        flow, pairs = paired(replicas=replicas, share=share, slack="20ms", speed=1.0)
        pairs.merge(name="merged").sink("out", sw.collect_sink())
        _, report = simulate(flow, seed=3)
        merged = next(stage for stage in report.stages if stage.name == "merged")
        assert any(stage.late for stage in report.stages if stage.name.startswith("pairs"))
        assert merged.ready == merged.rows_in > 100
        late[replicas] = merged.late
    assert late == {1: 0, 3: 0}


def test_a_slow_replica_slows_the_gate_and_nothing_grows(alone: Any) -> None:
    flow, pairs = paired(replicas=2)
    pairs.sink("out", sw.collect_sink())
    host = sw.Simulation(nodes=3, cost=sw.testing.CostModel(stages={"pairs.2": 1_000_000.0}))
    job = host.submit(
        flow, limits=sw.Limits(credit_rows=50, gate_rows=50, max_slice_rows=20, min_slice_rows=1)
    )
    report = job.wait()
    replicas = [stage for stage in report.stages if stage.kind == "join"]
    assert all(stage.max_gate_rows <= 2 * (50 + 50 + 2 * 20) for stage in replicas)
    assert sorted_rows(job.result("out")) == alone[0]


def test_work_of_a_replica_that_compares_more_takes_longer_in_virtual_time() -> None:
    took = []
    for per_comparison_ns in (0.0, 1e6):
        flow, pairs = paired(replicas=2)
        pairs.sink("out", sw.collect_sink())
        host = sw.Simulation(
            nodes=3, cost=sw.testing.CostModel(per_comparison_ns=per_comparison_ns)
        )
        report = host.submit(flow).wait()
        compared = {s.name: s.comparisons for s in report.stages if s.kind == "join"}
        busy = {s.name: s.service_ns for s in report.stages if s.kind == "join"}
        took.append((compared, busy))
    assert took[0][0] == took[1][0]
    for name, comparisons in took[1][0].items():
        assert took[1][1][name] >= comparisons * 1e6 > took[0][1][name]


def _of_many(kind: str, replicas: int) -> tuple[sw.Dataflow, sw.Stream]:
    flow, pairs = paired(replicas=replicas if kind == "join" else 1)
    several: dict[str, Any] = {"replicas": replicas, "name": "several"}
    if kind == "aggregate":
        return flow, counts(pairs, replicas=replicas)
    if kind == "dedupe":
        return flow, pairs.dedupe("line", within="20ms", **several)
    if kind == "followed_by":
        small, great = sw.col("v") < 300, sw.col("v") > 600
        found = pairs.followed_by(first=small, then=great, within="40ms", by="line", **several)
        return flow, found
    if kind == "top_k":
        pairs = pairs.top_k("v", 2, by="line", window=sw.tumbling("20ms"), **several)
    if kind == "newest":
        pairs = pairs.newest("line", **several)
    if kind == "silence":
        pairs = pairs.silence("line", after="10ms", **several)
    if kind == "over":
        pairs = pairs.over(by="line", rows=3, total=sw.sum("v"), **several)
    if kind == "totals":
        pairs = pairs.aggregate(by="line", n=sw.count(), most=sw.max("v"), **several)
    return flow, pairs


@pytest.mark.parametrize(
    "kind",
    ["join", "aggregate", "dedupe", "followed_by", "top_k", "newest", "silence", "over", "totals"],
)
def test_rows_are_the_same_for_any_number_of_replicas_and_their_order_behind_a_gate(
    kind: str,
) -> None:
    """Without a gate before the sink their order differs from run to run: it is not promised."""
    one, _ = results(*_of_many(kind, 1))
    for replicas in (2, 3, 4):
        as_they_come, by_time = [], []
        for seed in range(2):
            flow, found = _of_many(kind, replicas)
            found.merge(name="gate").sink("gated", sw.collect_sink())
            found.sink("straight", sw.collect_sink())
            job, _ = simulate(flow, seed=seed)
            as_they_come.append(job.result("straight"))
            by_time.append(job.result("gated"))
        assert all(sorted_rows(table) == sorted_rows(one) for table in as_they_come)
        assert all(table.equals(by_time[0]) for table in by_time)
        assert sorted_rows(by_time[0]) == sorted_rows(one)


def test_auto_is_a_replica_for_each_slot_and_changes_no_byte() -> None:
    found = []
    for nodes in (1, 2, 4):
        flow, pairs = paired(replicas="auto")
        found.append(results(flow, pairs, seed=nodes, nodes=nodes)[0])
        joins = [s for s in sw.Simulation(nodes=nodes).plan(flow).stages if s.kind == "join"]
        assert len(joins) == nodes
    assert all(table.equals(found[0]) for table in found)
    assert "replicas auto: as many as rates show to be worth it; without, one" in flow.explain()
    with pytest.raises(SettingError, match="must be a whole number or 'auto' or None"):
        paired(replicas="all")


def test_an_unordered_sink_has_no_gate_and_the_same_rows(alone: Any) -> None:
    flow, pairs = paired(replicas=3)
    pairs.select("line", "v", "v_right").sink("ordered", sw.collect_sink())
    pairs.sink("out", sw.collect_sink(), ordered=False)
    job, report = simulate(flow, seed=1)
    assert sorted_rows(job.result("out")) == alone[0]
    gates = {stage.name: stage.has_gate for stage in report.stages if stage.kind == "sink"}
    assert gates == {"ordered": True, "out": False}
    text = flow.explain()
    assert "order    event time, hash of the key: a row waits until none of its time" in text
    assert "order    as rows come from replicas (ordered=False)" in text


@pytest.mark.parametrize("how", [{"replicas": 7}, {"fuse": False}])
def test_ties_with_a_source_of_writers_break_alike_after_replicas_before_it(how: Any) -> None:
    def order(replicas: int = 1, *, fuse: bool = True) -> pa.Table:
        flow, pairs = paired(replicas=replicas)
        few = pairs.filter(sw.col("v") > 0).select("line")
        few.filter(sw.col("line") != "line 1").sink("few", sw.collect_sink())
        read = flow.source("read", sw.table(rows(3)), event_time="ts", time_unit="ms", writer="v")
        once = read.dedupe("line", within="5ms", replicas=replicas)
        once.merge(read).sink("out", sw.collect_sink())
        job, _ = simulate(flow, limits=sw.Limits(fuse=fuse))
        return job.result("out")

    assert order(**how).equals(order())


def test_replicas_without_a_key_are_named_in_the_report() -> None:
    flow, pairs = paired(replicas=100)
    _, report = results(flow, pairs)
    (note,) = [note for note in report.notes if "replicas got no row" in note]
    busy = sum(stage.rows_in > 0 for stage in report.stages if stage.kind == "join")
    assert note.startswith(f"'pairs': {100 - busy} of 100 replicas got no row (pairs.")
    assert f"replicas={busy} may do, with the same results" in note
    flow, pairs = paired(replicas=2)
    assert not [note for note in results(flow, pairs)[1].notes if "got no row" in note]
