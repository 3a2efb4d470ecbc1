"""Rows that cannot be used: refused, skipped, or diverted, and counted in each case."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.report.render import report_text
from slackwater.runtime.errors import (
    FlowError,
    OperatorError,
    SchemaError,
    SettingError,
    SlackwaterError,
    TypeMismatch,
)
from slackwater.runtime.model.diverted import DIVERTED_SCHEMA
from slackwater.runtime.sources.spec import END_OF_INPUT, BadRows

col = sw.col
WHEN = col("ts").str.to_time("%d.%m.%Y %H:%M", zone="Europe/Berlin")
GOOD = ["29.03.2026 01:15", "29.03.2026 03:15"]
TEXTS = [*GOOD, "gestern", None, "29.03.2026 04:00", "1.1.0001 0:0"]


def rows(texts: list[str | None] = TEXTS) -> pa.Table:
    return pa.table({"ts": pa.array(texts, pa.string()), "n": range(len(texts))})


def run(make: Callable[[sw.Dataflow], Any]) -> tuple[sw.JobReport, dict[str, list[Any]]]:
    flow = sw.Dataflow("diverted")
    make(flow)
    sinks = [step.name for step in flow.steps.values() if step.traits.kind == "sink"]
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        report = job.wait()
        assert report.ledger.is_balanced
        return report, {name: job.result(name).to_pylist() for name in sinks}


# -- event times that are expressions ----------------------------------------------------


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_a_time_is_parsed_where_the_source_is_declared(batch_rows: int) -> None:
    def make(flow: sw.Dataflow) -> None:
        good = sw.table(rows([*GOOD, TEXTS[4]]), batch_rows=batch_rows)
        stream = flow.source("in", good, event_time=WHEN)
        stream.with_columns(at=sw.event_time()).sink("out", sw.collect_sink())

    _, found = run(make)
    hours = [(row["at"] - found["out"][0]["at"]) / 3_600e9 for row in found["out"]]
    assert hours == [0, 1, 1.75]  # the clock went forward at 2


def test_windows_are_in_the_zone_of_the_expression() -> None:
    def make(flow: sw.Dataflow) -> None:
        stream = flow.source("in", sw.table(rows(GOOD)), event_time=WHEN)
        window = stream.aggregate(n=sw.count(), window=sw.tumbling("1h"))
        assert window.schema.field("window_start").type == pa.timestamp("ns", "Europe/Berlin")
        window.sink("out", sw.collect_sink())

    _, found = run(make)
    assert [row["window_start"].hour for row in found["out"]] == [1, 3]


def test_whole_numbers_of_an_expression_have_the_unit_that_is_given() -> None:
    def make(flow: sw.Dataflow) -> None:
        table = pa.table({"minutes": [29_000_000, 29_000_001]})
        stream = flow.source("in", sw.table(table), event_time=col("minutes") * 60, time_unit="s")
        stream.with_columns(at=sw.event_time()).sink("out", sw.collect_sink())

    _, found = run(make)
    assert [row["at"] for row in found["out"]] == [29_000_000 * 60 * 10**9, 29_000_001 * 60 * 10**9]


@pytest.mark.parametrize(
    ("expression", "error", "text"),
    [
        (col("n") == 1, SchemaError, "times are timestamps or integers"),
        (col("n").str.to_time("%Y"), TypeMismatch, "takes text, not int64"),
        (col("x"), SlackwaterError, "'x'"),
    ],
)
def test_an_expression_that_is_no_time_is_refused_when_the_source_is_made(
    expression: sw.Expr, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        sw.Dataflow("no").source("in", sw.table(rows()), event_time=expression)


def test_a_row_without_a_time_ends_the_job_and_is_named() -> None:
    with pytest.raises(SchemaError, match=r"(?s)row 2 .*gestern.*on_bad='skip'.*on_bad='divert'"):
        run(
            lambda flow: flow.source("in", sw.table(rows(TEXTS[:5])), event_time=WHEN).sink(
                "out", sw.collect_sink()
            )
        )


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_rows_without_a_time_are_skipped_and_counted(batch_rows: int) -> None:
    def make(flow: sw.Dataflow) -> None:
        table = sw.table(rows(), batch_rows=batch_rows)
        flow.source("in", table, event_time=WHEN, on_bad="skip").sink("out", sw.collect_sink())

    report, found = run(make)
    assert [row["n"] for row in found["out"]] == [0, 1, 4]
    assert report.ledger.counts.of_job()["bad_time"] == 3
    assert len(report.stages[0].first_bad) == 3
    assert f"could not use a row: {report.stages[0].first_bad[0]}" in str(report)


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_rows_without_a_time_are_a_stream_of_their_own(batch_rows: int) -> None:
    def make(flow: sw.Dataflow) -> None:
        table = sw.table(rows(), batch_rows=batch_rows)
        stream = flow.source("in", table, event_time=WHEN, on_bad="divert")
        stream.sink("out", sw.collect_sink())
        stream.diverted().sink("bad", sw.collect_sink())

    report, found = run(make)
    assert [row["n"] for row in found["out"]] == [0, 1, 4]
    assert [row["row"] for row in found["bad"]] == [
        '{"ts": "gestern", "n": 2}',
        '{"ts": null, "n": 3}',
        '{"ts": "1.1.0001 0:0", "n": 5}',
    ]
    assert {row["step"] for row in found["bad"]} == {"in"}
    counts = report.ledger.counts.of_job()
    assert (report.ledger.entered, counts["out"], counts["diverted"]) == (6, 6, 3)
    assert "3 left by streams of diverted rows" in report_text(report)


def test_diverted_rows_of_a_source_with_writers_travel_to_another_slot() -> None:
    flow = sw.Dataflow("bad of both")
    bad = []
    for name in ("a", "b"):
        source = flow.source(name, sw.table(rows()), event_time=WHEN, on_bad="divert", writer="n")
        source.sink(f"out-{name}", sw.collect_sink())
        bad.append(source.diverted(name=f"bad-{name}"))
    flow.merge(*bad, name="all").sink("bad", sw.collect_sink())
    placement = {"bad-a": "node-1", "bad-b": "node-1", "all": "node-2"}
    job = sw.Simulation(nodes=2).submit(flow, placement=placement)
    assert job.wait().state == "done"
    assert [row["step"] for row in job.result("bad").to_pylist()] == [*"aabbab"]


def test_diverted_rows_that_nothing_takes_are_refused_before_the_run() -> None:
    flow = sw.Dataflow("lost")
    stream = flow.source("in", sw.table(rows()), event_time=WHEN, on_bad="divert")
    stream.sink("out", sw.collect_sink())
    with pytest.raises(FlowError, match=r"nothing takes them; write \.diverted\(\)"):
        flow.check()
    with pytest.raises(FlowError, match="diverts no rows"):
        stream.filter(col("n") > 1).diverted()


def test_an_unknown_word_is_refused() -> None:
    with pytest.raises(SettingError, match="on_bad='drop' must be"):
        sw.Dataflow("no").source("in", sw.table(rows()), event_time=WHEN, on_bad="drop")


# -- records that an input could not read ------------------------------------------------


class Records:
    """An input of good blocks and bad records, in turn."""

    is_history: ClassVar[bool] = True
    reads_inline: ClassVar[bool] = True

    def __init__(self, on_bad: str) -> None:
        self.on_bad = on_bad

    def describe(self) -> str:
        return "records"

    def schema(self) -> pa.Schema:
        return pa.schema({"ts": pa.timestamp("us"), "n": pa.int64()})

    def open(self) -> Any:
        return Reader(self._blocks())

    def _blocks(self) -> Iterator[pa.RecordBatch | BadRows]:
        for n in range(4):
            values = {"ts": pa.array([n], pa.timestamp("us")), "n": [n]}
            yield pa.record_batch(values, schema=self.schema())
            bad = {
                "file": ["a.csv"],
                "line": [2 * n + 2],
                "reason": ["2 values"],
                "text": [f"{n},"],
            }
            yield BadRows(pa.record_batch(bad))


class Reader:
    def __init__(self, blocks: Iterator[pa.RecordBatch | BadRows]) -> None:
        self._blocks = blocks

    def poll(self) -> Any:
        return next(self._blocks, END_OF_INPUT)

    def close(self) -> None:
        """Nothing is open."""


def test_records_that_cannot_be_read_are_counted_with_their_lines() -> None:
    report, found = run(
        lambda flow: flow.source("in", Records("skip"), event_time="ts").sink(
            "out", sw.collect_sink()
        )
    )
    assert len(found["out"]) == 4
    assert report.ledger.counts.of_job()["unreadable"] == 4
    assert report.ledger.entered == 8
    assert report.stages[0].first_bad[1] == "a.csv: line 4: 2 values: 1,"


def test_records_that_cannot_be_read_are_a_stream() -> None:
    def make(flow: sw.Dataflow) -> None:
        stream = flow.source("in", Records("divert"), event_time="ts")
        stream.sink("out", sw.collect_sink())
        stream.diverted().filter(col("line") > 2).sink("bad", sw.collect_sink())

    report, found = run(make)
    assert [row["row"] for row in found["bad"]] == ["1,", "2,", "3,"]
    assert found["bad"][0]["file"] == "a.csv"
    assert report.ledger.entered == 8


# -- users' functions ---------------------------------------------------------------------


def inverse(row: dict[str, Any]) -> dict[str, Any] | None:
    return None if row["n"] == 9 else {"n": row["n"], "inverse": 1 / row["n"]}


def inverses(columns: dict[str, Any]) -> dict[str, Any]:
    if (columns["n"] == 0).any():
        raise ZeroDivisionError("division by zero")
    return {"n": columns["n"], "inverse": 1 / columns["n"]}


NUMBERS = [4, 0, 2, 0, 1, 5]
DECLARED = {"n": "int64", "inverse": "float64"}


def numbers(flow: sw.Dataflow, batch_rows: int, **options: Any) -> sw.Stream:
    table = pa.table({"ts": pa.array(range(6), pa.timestamp("us")), "n": NUMBERS})
    return flow.source("in", sw.table(table, batch_rows=batch_rows), event_time="ts", **options)


def mapped(stream: sw.Stream, way: str, on_error: Any) -> sw.Stream:
    if way == "rows":
        return stream.map_rows(inverse, DECLARED, on_error=on_error, name="map")
    return stream.map_batches(inverses, DECLARED, on_error=on_error, name="map")


@pytest.mark.parametrize("way", ["rows", "batches"])
@pytest.mark.parametrize("batch_rows", [1, 4, 100])
def test_rows_for_which_a_function_raises_are_skipped_and_counted(
    way: str, batch_rows: int
) -> None:
    report, found = run(
        lambda flow: mapped(numbers(flow, batch_rows), way, "skip").sink("out", sw.collect_sink())
    )
    assert [row["n"] for row in found["out"]] == [4, 2, 1, 5]
    assert report.ledger.counts.of_job()["failed"] == 2
    assert report.ledger.entered == 6


@pytest.mark.parametrize("way", ["rows", "batches"])
@pytest.mark.parametrize("batch_rows", [1, 4, 100])
def test_rows_for_which_a_function_raises_are_a_stream(way: str, batch_rows: int) -> None:
    def make(flow: sw.Dataflow) -> None:
        stream = mapped(numbers(flow, batch_rows), way, "divert")
        stream.filter(col("n") > 1).sink("out", sw.collect_sink())
        stream.diverted().sink("bad", sw.collect_sink())

    report, found = run(make)
    assert [row["n"] for row in found["out"]] == [4, 2, 5]
    assert [(row["step"], row["error"]) for row in found["bad"]] == [
        ("map", "ZeroDivisionError: division by zero")
    ] * 2
    assert '"n": 0' in found["bad"][0]["row"]
    counts = report.ledger.counts.of_job()
    assert (report.ledger.entered, counts["out"], counts["filtered"]) == (6, 5, 1)


def test_a_function_after_an_operator_diverts_results() -> None:
    def make(flow: sw.Dataflow) -> None:
        windows = numbers(flow, 2).aggregate(most=sw.max("n"), by="n", window=sw.tumbling("1s"))
        stream = windows.map_batches(inverses, DECLARED, on_error="divert")
        stream.sink("out", sw.collect_sink())
        stream.diverted().sink("bad", sw.collect_sink())

    _, found = run(make)
    assert sorted(row["n"] for row in found["out"]) == [1, 2, 4, 5]
    assert len(found["bad"]) == 1


def test_a_function_that_raises_ends_the_job_unless_told_otherwise() -> None:
    with pytest.raises(OperatorError, match="division by zero"):
        run(lambda flow: mapped(numbers(flow, 4), "rows", "error").sink("out", sw.collect_sink()))
    with pytest.raises(SettingError, match="on_error='ignore' must be"):
        mapped(numbers(sw.Dataflow("no"), 4), "rows", "ignore")


def test_a_value_that_does_not_fit_the_schema_is_diverted_too() -> None:
    def make(flow: sw.Dataflow) -> None:
        stream = numbers(flow, 100).map_rows(
            lambda row: {"n": row["n"] if row["n"] else "none"}, {"n": "int64"}, on_error="divert"
        )
        stream.sink("out", sw.collect_sink())
        stream.diverted().sink("bad", sw.collect_sink())

    _, found = run(make)
    assert [row["n"] for row in found["out"]] == [4, 2, 1, 5]
    assert len(found["bad"]) == 2


def test_diverted_rows_have_the_columns_that_the_page_names() -> None:
    assert DIVERTED_SCHEMA.names == ["step", "error", "row", "file", "line"]


# -- custom operators --------------------------------------------------------------------


class Sums:
    """Counts a key's rows; raises for 3 after it has counted them, and does not fit for 4 and 5."""

    def __init__(self) -> None:
        self.rows, self.seen = 0, list[int]()

    def on_rows(self, key: str, given: list[dict[str, Any]]) -> list[dict[str, Any]]:
        self.rows += len(given)
        self.seen.append(self.rows)
        value = given[0].pop("v")
        if value == 3:
            self.due_ns = 0
            raise ValueError("three")
        if value == 5:
            return [{"k": key}]
        return [{"k": key, "n": "x" if value == 4 else self.rows}]


def summed(flow: sw.Dataflow, on_error: Any, replicas: int) -> None:
    values = pa.table({"t": range(1, 8), "k": [*"abababb"], "v": [1, 2, 3, 4, 5, 6, math.nan]})
    source = flow.source("s", sw.table(values), event_time="t", time_unit="s")
    made = source.process(
        Sums,
        {"k": "string", "n": "int64"},
        by="k",
        within="1m",
        on_error=on_error,
        replicas=replicas,
        name="sums",
    )
    made.merge().sink("out", sw.collect_sink())
    if on_error == "divert":
        made.diverted().sink("bad", sw.collect_sink())


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("on_error", ["skip", "divert"])
def test_rows_for_which_a_custom_operator_raises_leave_its_state_as_it_was(
    on_error: str, replicas: int
) -> None:
    report, found = run(lambda flow: summed(flow, on_error, replicas))
    assert [(row["k"], row["n"]) for row in found["out"]] == [
        ("a", 1),
        ("b", 1),
        ("b", 2),
        ("b", 3),
    ]
    counts = report.ledger.counts.of_job()
    assert (counts["out"], counts["failed"]) == ((4, 3) if on_error == "skip" else (7, 0))
    if on_error == "skip":
        return
    assert counts["diverted"] == 3
    assert {row["step"] for row in found["bad"]} == {"sums"}
    said = {json.loads(row["row"])["v"]: row["error"] for row in found["bad"]}
    assert said[3] == "ValueError: three"
    assert "tried to convert to int64" in said[4]
    assert said[5].startswith("what its function returned lacks n")


def test_what_a_timer_raises_ends_the_job() -> None:
    class Late:
        def on_rows(self, _key: str, rows: Any) -> None:
            self.due_ns = rows.event_time_ns + 1

        def on_time(self, _key: str, _t: int) -> None:
            raise ValueError("timer")

    def make(flow: sw.Dataflow) -> None:
        source = flow.source("s", sw.table({"t": [1]}), event_time="t", time_unit="s")
        made = source.process(Late, {"n": "int64"}, by="t", within="1m", on_error="skip")
        made.sink("out", sw.collect_sink())

    with pytest.raises(OperatorError, match="timer"):
        run(make)


def test_on_error_of_a_custom_operator_is_one_of_three_words() -> None:
    with pytest.raises(SettingError, match="on_error='ignore' must be 'error'"):
        run(lambda flow: summed(flow, "ignore", 1))
