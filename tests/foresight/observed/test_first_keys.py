"""Key groups by the first rows of sources: what is read, and what it is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.foresight.observed.first_keys import ROWS, first_key_rows
from slackwater.runtime.model.hashes import KEY_GROUPS, even_groups, rows_by_group
from slackwater.runtime.placement.key_shares import key_groups_of, with_groups
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.prepare.prepare import prepare
from tests.simulate.test_marks import Marked
from tests.simulate.test_marks_elsewhere import check_goes_on

AREAS = 200
MANY = 40_000


def rows_of(keys: Any, *, gap_ms: int = 1) -> pa.Table:
    times = np.arange(len(keys)) * gap_ms
    return pa.table({"ts": times, "area": np.asarray(keys, np.int64), "n": times % 100})


def areas(seed: int, rows: int = MANY) -> pa.Table:
    return rows_of(np.random.default_rng(seed).integers(0, AREAS, rows))


def source(flow: sw.Dataflow, name: str, rows: Any, **options: Any) -> sw.Stream:
    given = sw.table(rows) if isinstance(rows, pa.Table) else rows
    return flow.source(name, given, event_time="ts", time_unit="ms", **options)


def joined(left: Any, right: Any, replicas: int = 2, within: str = "50ms") -> sw.Dataflow:
    flow = sw.Dataflow("joined")
    some = source(flow, "left", left).filter(sw.col("n") < 20)
    pairs = some.join(
        source(flow, "right", right), on="area", within=within, replicas=replicas, name="pairs"
    )
    pairs.sink("out", sw.collect_sink())
    return flow


def first_of(flow: sw.Dataflow) -> dict[str, Any]:
    return first_key_rows(prepare(flow, ["a", "b"]))


def by_group(*tables: pa.Table) -> Any:
    return sum(rows_by_group([table["area"].to_numpy()], len(table)) for table in tables)


def test_replicas_of_few_keys_get_as_many_rows() -> None:
    flow = joined(areas(1), areas(2))
    even = prepare(flow, ["a", "b"]).key_groups
    with sw.Simulation(nodes=2) as host:
        job = host.submit(flow)
        report = job.wait()
    rows = {stage.name: stage.rows_in for stage in report.stages if stage.name.startswith("pairs.")}
    share = rows["pairs.1"] / sum(rows.values())
    assert share == pytest.approx(0.5, abs=0.01)
    whole = by_group(areas(1).filter(areas(1)["n"].to_numpy() < 20), areas(2))
    assert whole[: even["pairs.1"]].sum() / whole.sum() < 0.46  # as many groups would give this
    assert not report.skews


def test_rows_are_counted_after_the_steps_before() -> None:
    rows = first_of(joined(areas(1), areas(2)))["pairs"]
    few, every = areas(1, ROWS), areas(2, ROWS)
    expected = by_group(few.filter(few["n"].to_numpy() < 20), every)
    assert rows.tolist() == expected.tolist()


def test_a_source_with_few_rows_a_second_counts_less() -> None:
    even, hot = areas(1), rows_of(np.full(MANY, 7), gap_ms=1_000)
    rows = first_of(joined(even, hot))["pairs"]
    few = even.slice(0, ROWS)
    few = few.filter(few["n"].to_numpy() < 20)
    assert rows.sum() == pytest.approx(len(few) + ROWS / 1_000)
    short = rows_of(np.full(5, 7))  # five rows in all, however close
    rows = first_of(joined(even, short))["pairs"]
    assert rows.sum() == pytest.approx(len(few) + 5)


def test_partial_results_are_counted_in_place_of_rows() -> None:
    flow = sw.Dataflow("counted")
    for n in (1, 2):  # each replica beside a source, so both own keys
        source(flow, f"s{n}", areas(n)).aggregate(
            by="area", window=sw.tumbling("1m"), n=sw.count(), replicas=2, name=f"counts{n}"
        ).sink(f"out{n}", sw.collect_sink())
    rows = first_of(flow)["counts1"]
    assert rows.tolist() == rows_by_group([np.arange(AREAS)], AREAS).tolist()  # one minute


def test_partitions_are_read_in_several_places(tmp_path: Path) -> None:
    for number in range(9):  # each has its own keys
        table = rows_of(np.arange(MANY) % 10 + 10 * number)
        pq.write_table(table, tmp_path / f"{number}.parquet")
    flow = joined(sw.parquet(tmp_path, partitions="files"), areas(1))
    rows = first_of(flow)["pairs"]
    keys = np.concatenate([np.arange(10) + 10 * number for number in (0, 3, 6)])
    groups = rows_by_group([keys], len(keys)) > 0
    right = rows_by_group([areas(1, ROWS)["area"].to_numpy()], ROWS)
    assert ((rows > right) == groups).all()


@pytest.mark.parametrize("kind", ["live", "function", "results", "tuned", "one replica"])
def test_nothing_is_read_of_rows_that_cannot_be_had_at_once(kind: str) -> None:
    flow = sw.Dataflow("f", deadline="4s" if kind == "tuned" else None)
    stream = source(flow, "rows", Refusing("live" if kind == "live" else "history"))
    if kind == "function":
        stream = stream.map_rows(dict, schema=stream.schema)
    if kind == "results":
        stream = stream.dedupe("n", within="1s", replicas=2).select("area", "n")
    replicas = 1 if kind == "one replica" else 2
    stream.dedupe("area", within="1s", replicas=replicas, name="once").sink(
        "out", sw.collect_sink()
    )
    assert "once" not in first_of(flow)
    assert Refusing.opened == (kind == "results")  # for the step before


class Refusing:
    """Input that cannot be read, and says whether it was opened."""

    reads_inline = True
    opened = False

    def __init__(self, kind: str) -> None:
        self.is_history = kind == "history"
        type(self).opened = False

    def describe(self) -> str:
        return "rows that cannot be read"

    def schema(self) -> pa.Schema:
        return areas(1, 1).schema

    def open(self) -> Any:
        type(self).opened = True
        raise OSError("it is locked")


def test_an_input_that_cannot_be_read_is_no_error_of_the_plan() -> None:
    flow = sw.Dataflow("f")
    source(flow, "rows", Refusing("history")).dedupe(
        "area", within="1s", replicas=2, name="once"
    ).sink("out", sw.collect_sink())
    with sw.Simulation(nodes=2) as host:
        assert host.plan(flow).key_groups == {"once.1": 64, "once.2": 64}
        assert Refusing.opened
        with pytest.raises(sw.SlackwaterError, match="it is locked"):
            host.submit(flow).wait()


def test_a_prediction_places_by_its_own_sample() -> None:
    flow = joined(areas(1), areas(2))
    with sw.Simulation(nodes=2) as host:
        made = host.predict(flow, 1_000, sample=4_000)
        plan = host.plan(flow, rates=made)
        text = host.explain(flow, rates=1_000, sample=4_000)
    rows = round(made.sample.key_rows["pairs"].sum())
    assert made.plan.balances["pairs"].rows == plan.balances["pairs"].rows == rows
    assert plan.key_groups == made.plan.key_groups != {"pairs.1": 64, "pairs.2": 64}
    assert "of 128 key groups, by the keys of" in text


runs_of_groups = st.integers(1, 4).flatmap(
    lambda replicas: st.lists(
        st.integers(0, KEY_GROUPS), min_size=replicas - 1, max_size=replicas - 1
    )
)


def chained(replicas: int) -> Plan:
    """Return the plan of two keyed steps in a chain, on three nodes."""
    left, right = areas(1, 600), areas(2, 600)
    flow = sw.Dataflow("chained")
    pairs = source(flow, "left", left).join(
        source(flow, "right", right), on="area", within="40ms", replicas=replicas, name="pairs"
    )
    sums = pairs.aggregate(
        by="n", window=sw.tumbling("100ms"), m=sw.mean("ts_right"), replicas=replicas, name="sums"
    )
    sums.sink("out", sw.collect_sink())
    pairs.sink("pairs-out", sw.collect_sink())
    with sw.Simulation(nodes=3) as host:
        return host.plan(flow)


def results_of(plan: Plan) -> dict[str, list[Any]]:
    run = Marked(plan, 1)
    assert run.run().ledger.is_balanced
    return run.results


EXPECTED: dict[str, list[Any]] = {}


@given(runs_of_groups)
def test_results_are_the_same_bytes_wherever_runs_of_groups_end(stops: list[int]) -> None:
    if not EXPECTED:
        EXPECTED.update(results_of(chained(1)))
        assert len(EXPECTED["pairs-out"]) > 100
    groups = tuple(np.diff([0, *sorted(stops), KEY_GROUPS]).tolist())
    plan = chained(len(groups))
    plan = with_groups(plan, dict.fromkeys(key_groups_of(plan), groups))
    assert results_of(plan) == EXPECTED


def test_a_run_goes_on_with_the_groups_of_its_checkpoint() -> None:
    plan = chained(3)
    assert plan.balances
    even = with_groups(plan, dict.fromkeys(key_groups_of(plan), even_groups(3)))
    assert key_groups_of(even) != key_groups_of(plan)
    check_goes_on(plan, with_groups(even, key_groups_of(plan)))
