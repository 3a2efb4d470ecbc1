"""Tables in whole flows: the same changes for any replicas and batches."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

import slackwater as sw

ROWS, KEYS = 60, 5


def rows(seed: int, *, late: bool = False) -> dict[str, list[Any]]:
    draw = Random(seed)  # noqa: S311
    times = sorted(draw.randrange(ROWS // 2) for _ in range(ROWS))
    if late:
        times[-1] = 0
    return {
        "t": times,
        "id": [draw.randrange(KEYS) for _ in range(ROWS)],
        "group": [draw.choice(["a", "b", None]) for _ in range(ROWS)],
    }


def flow_of(
    seed: int, *, replicas: int | None = None, batch_rows: int = 1_000, keep: str | None = None
) -> sw.Dataflow:
    flow = sw.Dataflow("tables")
    keyed: dict[str, Any] = {"replicas": replicas}
    left, right = (
        flow.source(
            name,
            sw.table(rows(seed + number), batch_rows=batch_rows),
            event_time="t",
            time_unit="s",
        ).drop("t")
        for number, name in enumerate(("left", "right"))
    )
    lefts = left.to_table("id", keep=keep, **keyed)
    rights = right.key_by("id").to_table(keep=keep, **keyed)
    rights = rights.filter(sw.col("group") == "a")
    pairs = lefts.join(rights.drop("group"), "id", how="outer", **keyed)
    pairs.sink("pairs", sw.collect_sink())
    by_group = pairs.join(left.rename({"id": "other"}), "group", how="semi", **keyed)
    by_group.sink("by group", sw.collect_sink())
    return flow


def changes(flow: sw.Dataflow) -> dict[str, list[dict[str, Any]]]:
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        report = job.wait()
        assert report.ledger.is_balanced
        assert report.ledger.results == sum(sink.rows for sink in report.sinks)
        return {sink: job.result(sink).to_pylist() for sink in ("pairs", "by group")}


def applied(made: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    table: Counter[tuple[Any, ...]] = Counter()
    for change in made:
        kind, row = change.pop("change"), tuple(change.values())
        table[row] += {"insert": 1, "delete": -1}[kind]
        assert table[row] >= 0
    return +table


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_same_changes_leave_for_any_replicas_and_batches(seed: int) -> None:
    first = changes(flow_of(seed, replicas=1))
    assert changes(flow_of(seed, replicas=3, batch_rows=7)) == first
    assert changes(flow_of(seed, replicas=2, batch_rows=1)) == first
    plain = changes(flow_of(seed, batch_rows=3))
    pairs = applied(first["pairs"])
    assert pairs == applied(plain["pairs"])
    lefts, rights = (
        dict(zip(own["id"], own["group"], strict=True)) for own in (rows(seed), rows(seed + 1))
    )
    met = {key for key, group in rights.items() if group == "a"}
    assert pairs == Counter((key, lefts.get(key)) for key in {*lefts, *met})
    groups = {group for group in rows(seed)["group"] if group is not None}
    expected = {row: n for row, n in pairs.items() if row[1] in groups}
    assert applied(first["by group"]) == expected


def kept(own: dict[str, list[Any]], keep: int) -> dict[int, list[Any]]:
    """Return {key: groups of its rows} of keys that stay at the last event time."""
    there: dict[int, tuple[int, list[Any]]] = {}
    for time, key, group in zip(*own.values(), strict=True):
        newest, groups = there.get(key, (0, []))
        has_gone = (newest // keep + 2) * keep <= time
        there[key] = (time, [group] if has_gone else [*groups, group])
    last = own["t"][-1]
    return {
        key: groups for key, (newest, groups) in there.items() if (newest // keep + 2) * keep > last
    }


def test_keys_go_at_the_same_times_for_any_replicas_and_batches() -> None:
    first = changes(flow_of(1, replicas=1, keep="1s"))
    assert changes(flow_of(1, replicas=3, batch_rows=7, keep="1s")) == first
    lefts, rights = kept(rows(1), 1), kept(rows(2), 1)
    met = {key for key, groups in rights.items() if groups[-1] == "a"}
    pairs = Counter((key, lefts[key][-1] if key in lefts else None) for key in {*lefts, *met})
    assert applied(first["pairs"]) == pairs
    flow = sw.Dataflow("totals")
    source = flow.source("rows", sw.table(rows(1)), event_time="t", time_unit="s")
    totals = source.aggregate(by="id", n=sw.count(), keep="1s")
    totals.aggregate(keys=sw.count(), rows=sw.sum("n")).sink("all", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        report = job.wait()
        last = job.result("all").to_pylist()[-1]
    assert (last["keys"], last["rows"]) == (len(lefts), sum(map(len, lefts.values())))
    assert 0 < len(lefts) < KEYS
    assert "keys got no row for keep=, and went" in str(report)


def test_a_row_that_is_late_at_its_source_changes_nothing() -> None:
    flow = sw.Dataflow("late")
    late = flow.source(
        "late",
        sw.table(rows(1, late=True), batch_rows=1),
        event_time="t",
        time_unit="s",
        out_of_order="late",
        disorder="0s",
    )
    table = late.drop("t").to_table("id")
    table.sink("table", sw.collect_sink())
    table.late().drop("late_step").sink("late rows", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        ledger = job.wait().ledger
    assert (ledger.entered, ledger.late, ledger.is_balanced) == (ROWS, 1, True)
