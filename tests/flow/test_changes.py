"""Streams that carry changes: the steps that take them, those that refuse them, and sinks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw
from slackwater.runtime.errors import (
    DuplicateName,
    FlowError,
    OperatorError,
    SettingError,
    TypeMismatch,
)
from slackwater.runtime.flow import Dataflow, Stream, col

LOG = {
    "t": [1, 1, 2, 2, 3, 4],
    "op": ["+I", "+I", "-U", "+U", "-D", "+I"],
    "id": ["a", "b", "a", "a", "b", "c"],
    "n": [1, 2, 1, 5, 2, 3],
    "list": [[1], [2, 3], [1], [], [2, 3], [7]],
}


def changelog(flow: Dataflow, log: dict[str, list[Any]] = LOG, **options: Any) -> Stream:
    source = flow.source("log", sw.table(log), event_time="t", time_unit="s")
    return source.changes("op", **options)


def outcome(step: Callable[[Stream], Stream], log: dict[str, list[Any]] = LOG) -> Any:
    flow = Dataflow("changes")
    step(changelog(flow, log)).sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        return job.wait(), job.result("out").to_pylist()


def kinds(rows: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    return [(row["change"], *(row[name] for name in columns)) for row in rows]


def test_a_sink_shows_kinds_without_old_halves() -> None:
    report, rows = outcome(lambda log: log.drop("list", "t"))
    assert rows == [
        {"id": "a", "n": 1, "change": "insert"},
        {"id": "b", "n": 2, "change": "insert"},
        {"id": "a", "n": 5, "change": "update"},
        {"id": "b", "n": 2, "change": "delete"},
        {"id": "c", "n": 3, "change": "insert"},
    ]
    sink = report.sinks[0]
    assert (sink.rows, sink.marked) == (5, {"revision": 1, "deletion": 1})
    assert report.ledger.results == 5
    assert (report.ledger.entered, report.ledger.missing) == (6, 0)


A_DELETION_AND_AN_INSERTION = [
    ("insert", "a", 1),
    ("insert", "b", 2),
    ("delete", "a", 1),
    ("insert", "a", 5),
    ("delete", "b", 2),
    ("insert", "c", 3),
]
PASS: dict[str, tuple[Callable[[Stream], Stream], list[tuple[Any, ...]]]] = {
    "a filter that drops the new half": (
        lambda log: log.filter(col("n") < 3),
        [("insert", "a", 1), ("insert", "b", 2), ("delete", "a", 1), ("delete", "b", 2)],
    ),
    "a filter that drops the old half": (
        lambda log: log.filter(col("n") > 2),
        [("insert", "a", 5), ("insert", "c", 3)],
    ),
    "a filter that drops neither": (
        lambda log: log.filter(col("n") > 0),
        A_DELETION_AND_AN_INSERTION,
    ),
    "a filter by a key": (
        lambda log: log.filter(~(col("id") == "a")),
        [
            ("insert", "b", 2),
            ("delete", "b", 2),
            ("insert", "c", 3),
        ],
    ),
    "columns": (
        lambda log: log.with_columns(m=col("n") * 10).rename({"m": "k"}).select("id", n=col("k")),
        [
            ("insert", "a", 10),
            ("insert", "b", 20),
            ("update", "a", 50),
            ("delete", "b", 20),
            ("insert", "c", 30),
        ],
    ),
    "map_batches": (
        lambda log: log.map_batches(lambda c: {"id": c["id"], "n": c["n"]}, FORM),
        [
            ("insert", "a", 1),
            ("insert", "b", 2),
            ("update", "a", 5),
            ("delete", "b", 2),
            ("insert", "c", 3),
        ],
    ),
    "map_rows": (lambda log: log.map_rows(dict, FORM), A_DELETION_AND_AN_INSERTION),
    "flat_map": (
        lambda log: log.flat_map(lambda row: [row] * (row["n"] == 2), FORM),
        [("insert", "b", 2), ("delete", "b", 2)],
    ),
    "explode": (
        lambda log: log.explode("list").select("id", n=col("list")),
        [
            ("insert", "a", 1),
            ("insert", "b", 2),
            ("insert", "b", 3),
            ("delete", "a", 1),
            ("insert", "a", None),
            ("delete", "b", 2),
            ("delete", "b", 3),
            ("insert", "c", 7),
        ],
    ),
    "merge": (
        lambda log: log.filter(col("n") < 2).merge(log.filter(col("n") > 1)),
        A_DELETION_AND_AN_INSERTION,
    ),
}
FORM = {"id": "string", "n": "int64"}


@pytest.mark.parametrize("name", PASS)
def test_steps_of_each_row_pass_changes_on(name: str) -> None:
    step, expected = PASS[name]

    def narrow(log: Stream) -> Stream:
        return step(log if name == "explode" else log.select("id", "n"))

    assert kinds(outcome(narrow)[1], "id", "n") == expected


class Rows:
    def on_rows(self, key: Any, rows: Any) -> list[dict[str, Any]]:
        return [{"n": len(rows) if key else 0}]


WINDOW = sw.tumbling("1m")
REFUSE: dict[str, Callable[[Stream, Stream], Any]] = {
    "aggregate": lambda log, _: log.aggregate(by="id", window=WINDOW, rows=sw.count()),
    "interval": lambda log, _: log.aggregate(by="id", window=sw.session("5s"), rows=sw.count()),
    "join": lambda log, other: log.join(other, "id", within="5s"),
    "join, on its right": lambda log, other: other.join(log, "id", within="5s"),
    "asof": lambda log, other: log.asof(other, "id"),
    "dedupe": lambda log, _: log.dedupe("id", within="5s"),
    "top_k": lambda log, _: log.top_k("n", 1, by="id"),
    "newest": lambda log, _: log.newest("id"),
    "limit": lambda log, _: log.limit(3),
    "over": lambda log, _: log.over(by="id", last="5s", rows_so_far=sw.count()),
    "silence": lambda log, _: log.silence(by="id", after="5s"),
    "followed_by": lambda log, _: log.followed_by(
        by="id", first=col("n") > 1, then=col("n") > 2, within="5s"
    ),
    "process": lambda log, _: log.process(Rows, {"n": "int64"}, by="id", within="5s"),
    "changes": lambda log, _: log.changes("id"),
}


@pytest.mark.parametrize("name", REFUSE)
def test_other_steps_refuse_changes_by_name(name: str) -> None:
    flow = Dataflow("changes")
    other = flow.source("other", sw.table(LOG), event_time="t", time_unit="s")
    log = changelog(flow, name="orders").filter(col("n") > 0)
    with pytest.raises(FlowError, match=r"is downstream of 'orders', whose rows change.*to_table"):
        REFUSE[name](log, other)


def test_updates_without_what_they_replace_go_into_a_table_first() -> None:
    flow = Dataflow("changes")
    log = changelog(flow, name="orders", upserts=True)
    with pytest.raises(FlowError, match="'orders', whose updates come without"):
        log.sink("out", sw.collect_sink())
    whole = log.flow.source("other", sw.table(LOG), event_time="t", time_unit="s").changes("op")
    with pytest.raises(FlowError, match="changes of two forms"):
        log.merge(whole)


def slow(flow: Dataflow, **options: Any) -> Stream:
    table = sw.table({name: LOG[name] for name in ("t", "op", "id", "n")})
    return flow.source("log", table, event_time="t", time_unit="s", **options)


READERS: dict[str, Callable[[Stream], Stream]] = {
    "totals": lambda log: log.aggregate(by="id", rows=sw.count(), name="reader"),
    "to_table": lambda log: log.to_table("id", name="reader"),
    "join": lambda log: log.join(log, "id", name="reader"),
    "merge": lambda log: log.merge(log, name="reader"),
}


@pytest.mark.parametrize("name", READERS)
def test_a_slack_where_changes_are_read_is_refused(name: str) -> None:
    log = slow(Dataflow("changes", slack="0s")).changes("op")
    says = r"'reader' reads changes.*and its gate does not wait.*write slack=None in 'reader'"
    with pytest.raises(FlowError, match=says):
        READERS[name](log)


def test_a_slack_before_changes_are_read_is_refused() -> None:
    both = (log := slow(Dataflow("changes"))).merge(log, slack="1s", name="both")
    both.to_table("id", name="plain")  # rows that do not change may come late
    with pytest.raises(FlowError, match=r"gate of 'both' before it.*write slack=None in 'both'"):
        both.changes("op").aggregate(by="id", rows=sw.count())


@pytest.mark.parametrize("order", ["late", "sort", sw.order.k_slack("1s")])
def test_a_changelog_of_which_a_source_drops_late_rows_is_refused(order: Any) -> None:
    options = {"disorder": "1s"} if isinstance(order, str) else {}
    rows = slow(Dataflow("changes"), out_of_order=order, **options)
    rows.to_table("id")  # rows that do not change may be dropped
    with pytest.raises(FlowError, match=r"source 'log' drops rows that come late.*late='pass'"):
        rows.filter(col("n") > 0).changes("op")


def test_changes_that_a_source_passes_late_leave_exact_totals() -> None:
    log = {
        "t": [1, 2, 20, 3, 3, 4, 30],
        "op": ["+I", "+I", "+I", "-U", "+U", "-D", "+I"],
        "id": ["a", "b", "c", "a", "a", "b", "c"],
        "n": [1, 2, 3, 1, 5, 2, 9],
    }
    flow = Dataflow("late")
    order = sw.order.k_slack("5s", late="pass")
    rows = flow.source("log", sw.table(log), event_time="t", time_unit="s", out_of_order=order)
    totals = rows.changes("op").aggregate(by="id", rows=sw.count(), sum=sw.sum("n"))
    totals.sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        assert job.wait().ledger.late == 0
        last: dict[str, tuple[int, int]] = {}
        for row in job.result("out").to_pylist():
            last[row["id"]] = (row["rows"], row["sum"])
            if row["change"] == "delete":
                del last[row["id"]]
    assert last == {"a": (1, 5), "c": (2, 12)}


def test_a_k_slack_chain_before_changes_is_refused_with_a_way_out() -> None:
    _, good = slow(Dataflow("changes")).k_slack_chain("1s", "2s")
    with pytest.raises(FlowError, match="read changes on the stream before it") as problem:
        good.changes("op").aggregate(by="id", rows=sw.count())
    assert "slack=None" not in str(problem.value)


@pytest.mark.parametrize(
    ("reader", "says"), [("totals", "counts when it comes"), ("to_table", "is dropped")]
)
def test_explain_says_what_a_late_change_does_through_other_steps(reader: str, says: str) -> None:
    flow = Dataflow("changes")
    table = slow(flow, idle="1s").to_table("id", name="table")
    READERS[reader](table).sink("out", sw.collect_sink())
    assert f"note     a change that comes late (idle=, out_of_order=) {says}" in flow.explain()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda rows: rows.to_table("id", keep="0s"), "keep='0s'"),
        (lambda rows: rows.to_table("id", keep="slack"), "is about partners within a time"),
        (lambda rows: rows.aggregate(n=sw.count(), keep="5s", every="2s"), "must be a multiple of"),
        (lambda rows: rows.aggregate(n=sw.count(), keep="5s", window=WINDOW), "without window="),
        (lambda rows: rows.join(rows, "id", within="1s", keep="5s"), "for a join of tables"),
    ],
)
def test_a_keep_that_says_nothing_is_refused(call: Callable[[Stream], Stream], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        call(slow(Dataflow("changes")))


def tables_of(rows: Stream, keep: str, replicas: int | None) -> list[Stream]:
    return [
        rows.to_table("k", keep=keep, replicas=replicas),
        rows.aggregate(by="k", n=sw.count(), keep=keep, replicas=replicas),
        rows.join(rows.select("k"), "k", within=None, keep=keep, replicas=replicas),
    ]


@pytest.mark.parametrize("most_rows", [1, 1_000])
@pytest.mark.parametrize("replicas", [None, 2])
def test_the_end_of_the_input_takes_back_only_keys_that_event_time_has_passed(
    replicas: int | None, most_rows: int
) -> None:
    flow = Dataflow("kept")
    table = sw.table({"t": [1, 3, 12, 12, 25], "k": ["a", "b", "b", "c", "dropped"]})
    rows = flow.source("rows", table, event_time="t", time_unit="s").drop("t")
    windows = rows.aggregate(by="k", window=sw.tumbling("10s"), rows=sw.count())
    windows = windows.filter(~(col("k") == "dropped")).select("k")  # the last one is over at 30
    expected: dict[str, set[str]] = {}
    for stream, keep, stay in (
        (rows.filter(~(col("k") == "dropped")), "10s", {"b", "c"}),
        (windows, "10s", {"b", "c"}),
        (windows, "7s", set()),
    ):
        for made in tables_of(stream, keep, replicas):
            made.sink(sink := f"{len(expected)}", sw.collect_sink())
            expected[sink] = stay
    with sw.Simulation() as nodes:
        limits = sw.Limits(max_slice_rows=most_rows, min_slice_rows=1)
        job = nodes.submit(flow, limits=limits)
        job.wait()
        for sink, stay in expected.items():
            keys_left: set[str] = set()
            for row in job.result(sink).to_pylist():
                (keys_left.discard if row["change"] == "delete" else keys_left.add)(row["k"])
            assert keys_left == stay, sink


def test_late_changes_are_rows_that_say_what_they_did() -> None:
    flow = Dataflow("late")
    words, ids = ["+I", "+I", "-U", "+U", "-D", "+I"], ["a", "b", "a", "a", "b", "d"]
    log = {"t": [1, 2, 3, 3, 4, 30], "at": [1, 2, 21, 21, 22, 30], "op": words, "id": ids}
    times = [1, 5, 10, 15, 20, 25, 30]
    other = {"t": times, "at": times, "op": ["+I"] * 7, "id": list("tuvwxyz")}
    of_time = {"event_time": "t", "arrival": "at", "time_unit": "s", "speed": 1.0}
    streams = [
        flow.source("log", sw.table(log), idle="1s", **of_time),
        flow.source("other", sw.table(other), **of_time),
    ]
    both, more = (stream.select("id", "op").changes("op") for stream in streams)
    table = both.merge(more).to_table("id")
    table.sink("table", sw.collect_sink())
    late = table.late()
    late.sink("late", sw.collect_sink())
    late.aggregate(window=sw.everything(), rows=sw.count()).sink("count", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        report = job.wait()
        rows = job.result("late").select(["id", "late_change"]).to_pylist()
        assert [tuple(row.values()) for row in rows] == [
            ("a", "old"),
            ("a", "update"),
            ("b", "delete"),
        ]
        assert job.result("count").to_pylist()[0]["rows"] == report.ledger.late == 3


def test_explain_says_where_changes_may_come_late() -> None:
    for idle in ("1s", None):
        flow = Dataflow("changes")
        slow(flow, idle=idle).changes("op").to_table("id").sink("out", sw.collect_sink())
        assert ("note     a change that comes late" in flow.explain()) == (idle is not None)


def test_rows_that_took_out_nothing_are_in_the_report() -> None:
    log = {**LOG, "op": ["-D", *LOG["op"][1:2], "+I", "-D", *LOG["op"][4:]]}
    report, _ = outcome(lambda stream: stream.to_table("id", on_missing="count"), log)
    assert "1 row took out what was not there, and changed nothing" in str(report)


@pytest.mark.parametrize(
    "call",
    [
        lambda rows: rows.to_table("id", on_missing="count"),
        lambda rows: rows.aggregate(by="id", n=sw.count(), on_missing="count"),
        lambda rows: rows.join(rows, "id", within=None, on_missing="count"),
        lambda rows: rows.join(rows, "id", within="1s", on_missing="count"),
        lambda rows: rows.changes("op", words={}),
    ],
)
def test_options_that_would_do_nothing_are_refused(call: Callable[[Stream], Stream]) -> None:
    with pytest.raises(SettingError, match="; omit it"):
        call(slow(Dataflow("changes")))


KINDS: dict[str, tuple[Callable[[Stream, Stream], Stream], str]] = {
    "to_table": (lambda log, _: log.to_table("id"), "insert, update or delete; a"),
    "to_table of inserts": (lambda _, rows: rows.to_table("id"), "insert or update; a"),
    "to_table with keep=": (
        lambda _, rows: rows.to_table("id", keep="1s"),
        "insert, update or delete; a",
    ),
    "to_table of upserts": (
        lambda _, rows: rows.changes("op", words={"+I": "update"}, upserts=True).to_table("id"),
        "insert or update; a",
    ),
    "totals": (
        lambda log, _: log.aggregate(by="id", m=sw.sum("n")),
        "insert, update or delete; a",
    ),
    "totals of inserts": (
        lambda _, rows: rows.aggregate(by="id", m=sw.sum("n")),
        "insert or update; a",
    ),
    "totals with keep=": (
        lambda _, rows: rows.aggregate(by="id", m=sw.sum("n"), keep="1s"),
        "insert, update or delete; a",
    ),
    "a join": (lambda log, rows: log.join(rows, "id"), "insert or delete\n"),
    "a filter of a join": (
        lambda log, rows: log.join(rows, "id", how="left").filter(col("n") > 1),
        "insert or delete\n",
    ),
    "totals of a join": (
        lambda log, rows: log.join(rows, "id").aggregate(by="id", m=sw.sum("n")),
        "insert, update or delete; a",
    ),
    "a filter of a table": (
        lambda _, rows: rows.to_table("id").filter(col("n") > 1),
        "insert or delete\n",
    ),
    "both merged": (
        lambda log, rows: log.join(rows, "id", how="semi").merge(log),
        "insert, update or delete; a",
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_explain_names_the_kinds_that_leave_and_no_others(name: str) -> None:
    flow, (step, says) = Dataflow("changes"), KINDS[name]
    rows = slow(flow).drop("t")
    step(rows.changes("op"), rows).sink("out", sw.collect_sink())
    text = flow.explain()
    assert f"shows    change = {says}" in text
    lines = [line for line in text.splitlines() if line.startswith("    changes  ")]
    for kind, word in (("inserts", "insert"), ("updates", "update"), ("deletions", "delete")):
        assert (kind in lines[-1]) == (word in says), lines[-1]


def test_explain_says_which_rows_change_and_why() -> None:
    flow = Dataflow("changes")
    changelog(flow, name="orders").filter(col("n") > 0, name="some").sink("out", sw.collect_sink())
    text = flow.explain()
    whole = "changes  inserts, updates with the rows that they replace, deletions"
    assert f"{whole}\n" in text
    of_filter = "inserts, deletions, of orders; an update leaves as a deletion and an insertion\n"
    assert f"changes  {of_filter}" in text
    assert "shows    change = insert or delete\n" in text


def with_words(*words: str) -> dict[str, Any]:
    """Return a log of equal rows with these words, after insertions of them."""
    every = ["+I", "+I", *words]
    same = {"t": 1, "id": "a", "n": 1, "list": [1]}
    return {"op": every, **{name: [value] * len(every) for name, value in same.items()}}


def test_halves_of_updates_may_stand_in_runs() -> None:
    report, rows = outcome(lambda stream: stream, with_words("-U", "-U", "+U", "+U"))
    assert kinds(rows, "id") == [("insert", "a")] * 2 + [("update", "a")] * 2
    assert report.ledger.filtered == 2


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ({**LOG, "op": ["x", *LOG["op"][1:]]}, "'op' is 'x', which names no change"),
        ({**LOG, "op": [None, *LOG["op"][1:]]}, "'op' is None, which names no change"),
        ({**LOG, "op": ["u", *LOG["op"][1:]]}, "'op' is 'u', an update without the row"),
        (
            with_words("-U", "+I"),
            r"row is old \('-U'\), and the next one, '\+I', does not",
        ),
        (with_words("-U", "-U", "+U", "-D"), r"is old \('-U'\), and the next one, '\+U', does not"),
        (with_words("+I", "+U"), r"'op' is '\+U', an update without the row that it replaces"),
        (with_words("-U", "+U", "+U"), r"'op' is '\+U', an update without the row"),
    ],
)
def test_kinds_that_cannot_be_used_are_refused(log: dict[str, Any], message: str) -> None:
    with pytest.raises(OperatorError, match=message):
        outcome(lambda stream: stream, log)


IMAGES: dict[str, list[Any]] = {
    "t": [1, 2, 3, 4],
    "op": ["c", "r", "u", "d"],
    "before": [None, None, {"id": 1, "n": "a"}, {"id": 2, "n": None}],
    "after": [{"id": 1, "n": "a"}, {"id": 2, "n": None}, {"id": 1, "n": "b"}, None],
}


@pytest.mark.parametrize("lacks_before", [False, True])
def test_images_of_rows_become_rows(lacks_before: bool) -> None:
    log: dict[str, list[Any]] = {**IMAGES}
    if lacks_before:  # but keys
        log["before"] = [None, None, None, {"id": 2, "n": "key"}]
        with pytest.raises(OperatorError, match=r"(?s)'before' is null.*upserts=True"):
            of_images(log)
    rows = of_images(log, upserts=lacks_before)
    expected = [("insert", 1, "a"), ("insert", 2, None), ("update", 1, "b"), ("delete", 2, None)]
    assert kinds(rows, "id", "n") == expected


def of_images(log: dict[str, list[Any]], **options: Any) -> list[dict[str, Any]]:
    flow = Dataflow("images")
    made = changelog(flow, log, images=("before", "after"), **options)
    table = made.to_table("id") if options.get("upserts") else made
    table.sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        report = job.wait()
        assert report.ledger.is_balanced
        rows: list[dict[str, Any]] = job.result("out").to_pylist()
    return rows


def test_images_of_other_fields_are_refused() -> None:
    with pytest.raises(TypeMismatch, match="must be structs with the same fields"):
        of_images({**IMAGES, "after": [{"id": 1}, None, None, None]})


def test_a_column_of_that_name_is_refused_at_the_sink() -> None:
    flow = Dataflow("changes")
    log = changelog(flow).rename({"n": "change"})
    with pytest.raises(DuplicateName, match="'change' is the column that says how"):
        log.sink("out", sw.collect_sink())


def test_files_have_the_column_too(tmp_path: Path) -> None:
    flow = Dataflow("changes")
    log = changelog(flow).select("id", "n")
    log.sink("csv", sw.csv_sink(str(tmp_path / "rows.csv")))
    with sw.Simulation() as nodes:
        nodes.submit(flow).wait()
    assert (tmp_path / "rows.csv").read_text().splitlines()[:2] == ["id,n,change", "a,1,insert"]
