"""`explain` says in its first line whether two runs of a flow write the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw

ROWS = sw.table(pa.table({"ts": [1, 2], "k": ["a", "b"], "v": [1, 2]}))
SAME = "ready-only (no deadline: gates release only what is ready)"
MAY_DIFFER = "results may differ from run to run"
OTHER_ORDER = "the order of rows may differ from run to run"


def explained(build: Callable[[sw.Dataflow, sw.Stream], Any], **source: Any) -> list[str]:
    flow = sw.Dataflow("f", slack=None)
    rows = flow.source("rows", ROWS, event_time="ts", time_unit="s", **source)
    for stream in build(flow, rows):
        stream.sink(f"out of {stream.name}", sw.collect_sink())
    return flow.explain().splitlines()


class Parts:
    replay = "exact"

    def describe(self) -> str:
        return "two parts"

    def schema(self) -> pa.Schema:
        return pa.schema([("ts", pa.int64())])

    def partitions(self) -> list[sw.connectors.Partition]:
        return [sw.connectors.Partition("a"), sw.connectors.Partition("b")]

    def open(self, name: str, at: bytes | None) -> Any:
        raise AssertionError(f"{name} is not read at {at!r}")


class Live:
    def describe(self) -> str:
        return "a feed"

    def schema(self) -> pa.Schema:
        return pa.schema([("ts", pa.int64())])

    def open(self) -> Any:
        raise AssertionError("it is not read")


def first_line(given: Any, **settings: Any) -> str:
    flow = sw.Dataflow("f")
    rows = flow.source("rows", given, event_time="ts", time_unit="s", **settings)
    rows.filter(sw.col("ts") > 1).sink("out", sw.collect_sink())
    return flow.explain().splitlines()[0]


def test_rows_of_partitions_reach_a_sink_in_an_order_of_the_run() -> None:
    assert OTHER_ORDER in first_line(Parts())


class Growing(Parts):
    grows = True


@pytest.mark.parametrize(
    ("given", "settings", "text"),
    [
        (Parts(), {}, SAME),
        (Growing(), {}, MAY_DIFFER),
        (Parts(), {"out_of_order": "late"}, MAY_DIFFER),
        (Parts(), {"writer": "ts"}, MAY_DIFFER),
    ],
)
def test_a_gate_puts_rows_of_partitions_in_one_order_unless_some_may_be_late(
    given: Any, settings: dict[str, Any], text: str
) -> None:
    flow = sw.Dataflow("f")
    counted = flow.source("rows", given, event_time="ts", **settings)
    counted.aggregate(window=sw.tumbling("1s"), n=sw.count()).sink("out", sw.collect_sink())
    assert text in flow.explain().splitlines()[0]


def test_a_source_that_waits_by_the_clock_says_so_without_a_gate() -> None:
    numbered = {"out_of_order": "sequence", "sequence": "v"}
    assert MAY_DIFFER in first_line(ROWS, **numbered)
    assert SAME in first_line(ROWS, **numbered, arrival="ts")
    assert MAY_DIFFER in first_line(Live(), idle="1s", out_of_order="sort", disorder="1s")
    assert SAME in first_line(Live(), idle="1s")


def counts(stream: sw.Stream, **settings: Any) -> sw.Stream:
    return stream.aggregate(by="k", window=sw.tumbling("1s"), n=sw.count(), **settings)


def shared(stream: sw.Stream) -> sw.Stream:
    return stream.join(stream, on="k", within="1s", replicas=2, share="all")


def late_rows(stream: sw.Stream) -> sw.Stream:
    counted = counts(stream, replicas=2)
    counted.sink("counts", sw.collect_sink())
    return counted.late()


def in_time() -> dict[str, Any]:
    return {"close": sw.closing.probslack(miss=0.1)}


@pytest.mark.parametrize(
    ("build", "source", "first"),
    [
        (lambda _, rows: [rows], {}, SAME),
        (lambda _, rows: [counts(rows)], {}, SAME),
        (lambda _, rows: [counts(rows, **in_time())], {"arrival": "ts"}, SAME),
        (lambda flow, rows: [flow.merge(counts(rows, replicas=2))], {}, SAME),
        (lambda _, rows: [counts(rows, replicas=2)], {}, SAME),
        (lambda _, rows: [rows, counts(rows, replicas=2)], {}, SAME),
        (lambda _, rows: [counts(rows, replicas=2).filter(sw.col("n") > 0)], {}, SAME),
        (lambda _, rows: [shared(rows)], {}, OTHER_ORDER),
        (lambda _, rows: [shared(rows).filter(sw.col("k") != "a")], {}, OTHER_ORDER),
        (lambda flow, rows: [flow.merge(shared(rows))], {}, SAME),
        (
            lambda _, rows: [counts(rows, replicas=2, **in_time())],
            {"arrival": "ts"},
            OTHER_ORDER,
        ),
        (lambda _, rows: [rows.dedupe(on="k", within="1s", replicas=2)], {}, SAME),
        (lambda _, rows: [counts(rows, slack="1s")], {}, MAY_DIFFER),
        (lambda _, rows: [counts(rows)], {"idle": "1s"}, MAY_DIFFER),
        (lambda _, rows: [counts(counts(rows), **in_time())], {}, MAY_DIFFER),
        (lambda _, rows: [counts(rows, slack="1s", replicas=2)], {}, MAY_DIFFER),
        (
            lambda _, rows: [counts(rows, late="correct", **in_time())],
            {"arrival": "ts"},
            MAY_DIFFER,
        ),
    ],
)
def test_the_first_line_says_whether_bytes_may_differ(
    build: Callable[[sw.Dataflow, sw.Stream], Any], source: dict[str, Any], first: str
) -> None:
    head, *lines = explained(build, **source)
    assert head.startswith(f"dataflow f: {first}")
    if first == SAME:
        assert not [line for line in lines if "may differ" in line]
    else:
        assert "ready-only" not in head
        assert lines[0].startswith(f"note: {first}, for ")


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (shared, "as they come: share='all' divides the rows of a key; put flow.merge(…) between"),
        (
            lambda rows: counts(rows, replicas=2, **in_time()),
            "as they come: windows close in time; put flow.merge(…) between",
        ),
        (
            late_rows,
            "as they come: they are put aside, as late or diverted; put flow.merge(…) between",
        ),
        (lambda rows: counts(rows, replicas=2), "as they come; omit ordered=False"),
    ],
)
def test_the_reason_of_another_order_names_the_sink_and_its_own_remedy(
    build: Callable[[sw.Stream], sw.Stream], said: str
) -> None:
    flow = sw.Dataflow("f", slack=None)
    rows = flow.source("rows", ROWS, event_time="ts", time_unit="s", arrival="ts")
    rows.sink("plain", sw.collect_sink())
    build(rows).sink("out", sw.collect_sink(), ordered="omit" not in said)
    assert f"reach sink 'out' {said}" in flow.explain()
