"""Options that a function does not have, and values of another kind, are refused in words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.runtime.errors import (
    FlowError,
    IngestError,
    SchemaError,
    SettingError,
    TypeMismatch,
)

GERMAN = "shop;when;amount\na;01.03.2026 12:00:00;1,5\nb;02.03.2026 12:00:00;2,5\n"


def rows(**options: Any) -> sw.Stream:
    data = sw.table({"t": [1], "x": ["a"], "y": [2]})
    return sw.Dataflow("x").source("s", data, event_time="t", time_unit="s", **options)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda **o: sw.csv("a.csv", **o), {"delimiter": "sep", "sepp": "sep", "dtypes": "types"}),
        (lambda **o: sw.jsonl("a.jsonl", **o), {"encodin": "encoding"}),
        (lambda **o: sw.parquet("a.parquet", **o), {"usecols": "columns"}),
        (lambda **o: sw.table({}, **o), {"batch_row": "batch_rows"}),
        (lambda **o: sw.parquet_sink("out", **o), {"overwirte": "overwrite"}),
        (lambda **o: sw.csv_sink("out", **o), {"separator": "sep"}),
        (lambda **o: sw.Dataflow("x", **o), {"slck": "slack", "allowed_lateness": "slack"}),
        (sw.Simulation, {"node": "nodes"}),
        (lambda **o: rows().join(rows(), on="x", within="1s", **o), {"keeps": "keep"}),
        (rows, {"event_tiem": "event_time"}),
    ],
)
def test_an_option_that_is_not_there_is_refused_with_the_nearest(
    call: Callable[..., Any], says: dict[str, str]
) -> None:
    for wrong, right in says.items():
        with pytest.raises(
            sw.SlackwaterError, match=f"no option '{wrong}'; the nearest is '{right}'"
        ):
            call(**{wrong: 1})


def test_a_csv_file_of_another_separator_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(GERMAN)
    with pytest.raises(IngestError, match="its header has ';', so it may need sep=';'"):
        sw.Dataflow("x").source("s", sw.csv(tmp_path / "a.csv"), event_time="when")


def test_times_of_another_format_are_read_as_the_error_says(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(GERMAN)
    flow = sw.Dataflow("x")
    file = sw.csv(tmp_path / "a.csv", sep=";", decimal=",")
    with pytest.raises(SchemaError, match=r"say its format: event_time=") as raised:
        flow.source("s", file, event_time="when")
    said = str(raised.value).partition("event_time=")[2].partition(", with the codes")[0]
    time = eval(said, {"sw": sw})  # noqa: S307 - typed in, as a user would
    flow.source("s", file, event_time=time).sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        assert job.result("out")["amount"].to_pylist() == [1.5, 2.5]


def test_values_of_another_kind_are_refused_in_words() -> None:
    with pytest.raises(SettingError, match="speed='fast' must be a number"):
        rows(speed="fast")
    with pytest.raises(TypeMismatch, match=r"cast the text, \.cast\('int64'\), or write"):
        rows().filter(sw.col("x") > 1)
    with pytest.raises(TypeMismatch, match=r"is not a column's name; write 'x'"):
        rows().key_by(sw.col("x"))  # type: ignore[arg-type]
    with pytest.raises(TypeMismatch, match=r"is not a column's name; write 'x'"):
        rows().aggregate(by=sw.col("x"), window=sw.tumbling("1s"), n=sw.count())  # type: ignore[arg-type]


def test_an_event_time_of_no_column_is_refused() -> None:
    data = sw.table({"t": [1]})
    for time in (sw.event_time(), sw.lit(5)):
        with pytest.raises(FlowError, match="names no column of the input; there are: t"):
            sw.Dataflow("x").source("s", data, event_time=time)


def test_by_none_is_all_rows_together() -> None:
    made = rows().aggregate(by=None, window=sw.tumbling("1s"), n=sw.count())  # type: ignore[arg-type]
    assert made.columns == ("window_start", "window_end", "n")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: rows().key_by(["x"]), r"key_by on 's' takes names"),
        (lambda: rows().with_columns([1]), "must be a dict or None"),
        (lambda: rows().with_columns({5: 1}), "5 is not a name of a column"),
        (lambda: rows().rename({"x": 5}), "5 is not a column's name"),
        (lambda: rows().filter(sw.col("x").is_in(sw.col("y"))), "of a list column: .list.contains"),
        (lambda: sw.sliding("1d", "1ns"), "puts each event in 86,400,000,000,000 windows"),
    ],
)
def test_an_argument_of_another_kind_is_refused_where_it_is_written(
    call: Callable[[], Any], says: str
) -> None:
    with pytest.raises(sw.SlackwaterError, match=says):
        call()


def test_a_promise_may_be_a_columns_name_and_round_takes_an_expression() -> None:
    assert "promise" in rows(promise="y").flow.explain()
    assert str(round(sw.col("y"), 1)) == str(sw.col("y").round(1))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: rows().where, r"a stream has no 'where'; write \.filter\(sw\.col"),  # type: ignore[attr-defined]
        (lambda: rows().filtr, "a stream has no 'filtr'; the nearest is 'filter'"),  # type: ignore[attr-defined]
        (lambda: rows().key_by("x").filter, "made last before an operator, has no 'filter'"),  # type: ignore[attr-defined]
        (lambda: sw.col("x").isin, r"an expression has no 'isin'; write \.is_in"),  # type: ignore[attr-defined]
        (lambda: sw.col("x").str.to_uppercase, r"write \.upper\(\)"),  # type: ignore[attr-defined]
        (lambda: sw.col("x").dt.strftime, r"write \.format\("),  # type: ignore[attr-defined]
        (lambda: sw.col("x").list.len, r"write \.length\(\)"),  # type: ignore[attr-defined]
    ],
)
def test_a_method_of_another_library_is_answered_with_ours(
    call: Callable[[], Any], says: str
) -> None:
    with pytest.raises(AttributeError, match=says):
        call()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: rows().dedupe("x"), "missing a required argument: 'within'"),
        (lambda: rows().join(rows(), on="x", within="1s", share="some"), "'keys' or 'all'$"),
        (lambda: rows().filter(sw.col("y") > 1, sw.col("y") < 5), "too many positional arguments"),
        (lambda: sw.parquet_sink("out", overwrite="no"), "overwrite='no' must be True or False"),
        (lambda: sw.table({"t": [1]}, batch_rows="10"), "batch_rows='10' must be a whole number"),
        (lambda: sw.csv("a.csv", columns="a"), r"must be a list of texts or None; write columns="),
        (lambda: rows().aggregate(window=sw.tumbling("1s"), grace="5s"), "the nearest is 'slack'"),
        (lambda: rows().aggregate(window=sw.tumbling("1s"), by=3, n=sw.count()), "not a column's"),
        (lambda: rows().sink("o", sw.collect_sink), r"call it: collect_sink\(…\)"),
    ],
)
def test_a_call_that_does_not_fit_is_refused_at_its_line(
    call: Callable[[], Any], says: str
) -> None:
    with pytest.raises(sw.SlackwaterError, match=says):
        call()
