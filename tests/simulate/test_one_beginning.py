"""Replayed sources of a flow begin at one arrival, so that rows come as they came."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import SettingError
from slackwater.runtime.plan.beginning import Beginning
from slackwater.runtime.prepare.prepare import prepare

MS = 10**6
BASE_NS = 1_700_000_000 * 10**9
LATER_MS = 600


def feed(times_ms: Sequence[int]) -> pa.Table:
    return pa.table({"t": [BASE_NS + at * MS for at in times_ms], "k": [1] * len(times_ms)})


ROWS = 300
FIRST = feed(range(0, ROWS * 10, 10))
SECOND = feed(range(LATER_MS, ROWS * 10, 10))


def source(flow: sw.Dataflow, name: str, rows: Any, **options: Any) -> Any:
    given = rows if not isinstance(rows, pa.Table) else sw.table(rows)
    return flow.source(name, given, event_time="t", **{"speed": 1.0, **options})


def windows(*, start: Any = None, deadline: str | None = None, **options: Any) -> sw.Dataflow:
    slack = None if deadline else "0s"
    flow = sw.Dataflow("windows", slack=slack, deadline=deadline)
    one = source(flow, "one", FIRST, start=start, **options)
    other = source(flow, "other", SECOND, start=start, **options)
    merged = one.merge(other, name="both")
    counted = merged.aggregate({"n": sw.count()}, window=sw.tumbling("100ms"), name="counts")
    counted.sink("out", sw.collect_sink())
    return flow


def ran(flow: sw.Dataflow, **options: Any) -> Any:
    with sw.Simulation(1, **options) as nodes:
        job = nodes.submit(flow)
        job.wait()
        return job


def late_rows(job: Any) -> int:
    return sum(stage.late for stage in job.report().stages)


def test_no_row_of_two_feeds_is_late_that_came_in_order() -> None:
    job = ran(windows())
    assert late_rows(job) == 0
    assert sum(job.result("out")["n"].to_pylist()) == len(FIRST) + len(SECOND)
    assert late_rows(ran(windows(start="own"))) > 200, "each from its own first arrival"


def test_a_deadline_sheds_no_row_of_feeds_that_are_in_step() -> None:
    assert late_rows(ran(windows(deadline="300ms"))) == 0


def joined(rows: Any, **options: Any) -> sw.Dataflow:
    flow = sw.Dataflow("pairs", slack="0s", keep="slack")
    one, other = source(flow, "one", FIRST, **options), source(flow, "other", rows, **options)
    one.join(other, on="k", within="30ms", name="pairs").sink("out", sw.collect_sink())
    return flow


def test_keep_slack_pairs_rows_that_happened_together() -> None:
    in_step = ran(joined(SECOND)).result("out").num_rows
    assert in_step > 1_000
    assert ran(joined(SECOND, start="own")).result("out").num_rows < in_step // 2


def idle(*, start: Any = None) -> Any:
    flow = sw.Dataflow("idle")
    one = source(flow, "one", feed(range(0, 9_000, 10)), idle="1s", start=start)
    other = source(flow, "other", feed(range(6_000, 9_000, 10)), idle="1s", start=start)
    merged = one.merge(other, name="both")
    merged.sink("out", sw.collect_sink())
    return ran(flow)


def test_a_source_that_has_not_begun_is_idle_after_its_time() -> None:
    marks = [stage.idle_marks for stage in idle().report().stages if stage.idle_marks]
    assert marks == [{"other": 1}]
    assert not any(stage.idle_marks for stage in idle(start="own").report().stages)


def test_a_source_recorded_apart_begins_with_its_own_first_arrival() -> None:
    flow = sw.Dataflow("apart", slack="0s")
    years = feed(range(0, 3_000, 10))
    ago = years.set_column(0, "t", pa.array([at - 10**17 for at in years["t"].to_pylist()]))
    one = source(flow, "one", years)
    other = source(flow, "other", ago, start="own")
    for stream in (one, other):
        stream.sink(f"out-{stream.name}", sw.collect_sink())
    assert ran(flow).report().elapsed_s < 5


@pytest.mark.parametrize(
    "start",
    [
        datetime.fromtimestamp(BASE_NS / 10**9 - 1, UTC),
        datetime.fromtimestamp(BASE_NS / 10**9 - 1, UTC).isoformat(),
        datetime.fromtimestamp(BASE_NS / 10**9 - 1, UTC).replace(tzinfo=None).isoformat(),
    ],
)
def test_a_replay_begins_at_the_time_that_is_written(start: Any) -> None:
    flow = sw.Dataflow("timed")
    source(flow, "one", FIRST, start=start).sink("out", sw.collect_sink())
    plan = prepare(flow, ["a"])
    assert plan.beginnings == {"one": Beginning(BASE_NS - 10**9, 10**9, 10**9, is_given=True)}
    report = ran(flow).report()
    assert 1 + 2.99 <= report.elapsed_s < 4.5


def test_rows_before_the_beginning_are_due_with_it() -> None:
    flow = sw.Dataflow("timed")
    late = datetime.fromtimestamp(BASE_NS / 10**9 + 2, UTC)
    source(flow, "one", FIRST, start=late).sink("out", sw.collect_sink())
    job = ran(flow)
    assert job.result("out").num_rows == ROWS
    assert job.report().elapsed_s < 1.5


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"start": "yesterday"}, "start='yesterday' is not a time; write start="),
        ({"start": "9999-01-01"}, r"start='9999-01-01.*' is beyond the times"),
        ({"start": datetime(1500, 1, 1, tzinfo=UTC)}, r"start='1500-01-01.*' is beyond the times"),
        (
            {"start": "own", "speed": None},
            "start='own' is of a replay, and the source has no speed",
        ),
    ],
)
def test_a_start_that_cannot_be_is_refused(options: Any, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        source(sw.Dataflow("wrong"), "one", FIRST, **options)


def test_explain_says_where_replays_begin() -> None:
    with sw.Simulation(1) as nodes:
        text = nodes.explain(windows())
        assert "begins   with the first arrival of one, other" in text
        assert "one    begins at 2023-11-14T22:13:20Z\n" in text
        assert "other  begins at 2023-11-14T22:13:20Z, its first row arrived 600 ms later" in text
        assert "begins   with its own first arrival" in nodes.explain(windows(start="own"))


@pytest.mark.parametrize("start", [None, "own", "2023-11-14 22:13:19"])
def test_a_flow_is_predicted_whatever_its_replays_begin_at(start: str | None) -> None:
    with sw.Simulation(1) as nodes:
        assert nodes.predict(windows(start=start), {"one": 100, "other": 100}).worst_s > 0


def test_a_wait_of_hours_is_noted() -> None:
    flow = sw.Dataflow("far")
    for name, at in (("one", 0), ("other", 7_200_000)):
        source(flow, name, feed([at])).sink(f"out-{name}", sw.collect_sink())
    note, *others = prepare(flow, ["a"]).verdict.notes
    assert "the first row of 'other' is due 2.0 h after the start" in note
    assert not others


class Counted:
    """Input that counts how often it is opened."""

    is_history = True

    def __init__(self, rows: pa.Table, *, is_live: bool = False) -> None:
        self.inner, self.opened, self.is_history = sw.table(rows), 0, not is_live

    def describe(self) -> str:
        return "counted"

    def schema(self) -> pa.Schema:
        return self.inner.schema()

    def open(self) -> Any:
        self.opened += 1
        return self.inner.open()


@pytest.mark.parametrize(
    ("kinds", "opened"),
    [
        ([{}], [0]),
        ([{}, {"speed": None}], [0, 0]),
        ([{}, {"start": "own"}], [0, 0]),
        ([{}, {}, {"start": "own"}], [1, 1, 0]),
        ([{}, {}, {"is_live": True}], [1, 1, 0]),
    ],
)
def test_an_input_is_opened_only_where_a_beginning_is_shared(
    kinds: list[dict[str, Any]], opened: list[int]
) -> None:
    flow = sw.Dataflow("few")
    inputs = [Counted(FIRST, is_live=kind.pop("is_live", False)) for kind in map(dict, kinds)]
    for number, (given, kind) in enumerate(zip(inputs, kinds, strict=True)):
        own = {name: value for name, value in kind.items() if name != "is_live"}
        source(flow, f"s{number}", given, **own).sink(f"o{number}", sw.collect_sink())
    plan = prepare(flow, ["a"])
    assert [given.opened for given in inputs] == opened
    assert len(plan.beginnings) == sum(opened)


def test_sources_without_rows_or_with_bad_ones_hold_back_nobody() -> None:
    flow = sw.Dataflow("empty", slack="0s")
    source(flow, "none", FIRST.slice(0, 0)).sink("o-none", sw.collect_sink())
    source(flow, "one", FIRST).sink("o-one", sw.collect_sink())
    nulls = pa.table({"t": pa.array([None, BASE_NS - 10**9], pa.int64()), "k": [1, 1]})
    source(flow, "bad", nulls, on_bad="skip").sink("o-bad", sw.collect_sink())
    assert prepare(flow, ["a"]).beginnings == {
        "one": Beginning(BASE_NS - 10**9, 10**9, 10**9),
        "bad": Beginning(BASE_NS - 10**9, 0, 0),
    }
    assert ran(flow).result("o-one").num_rows == ROWS


class Waiting(Counted):
    """Input that has nothing at its first polls."""

    def __init__(self, rows: pa.Table, waits: int) -> None:
        super().__init__(rows)
        self.waits = waits

    def open(self) -> Any:
        reader, left = super().open(), self.waits

        class Reader:
            close = reader.close

            def poll(self) -> Any:
                nonlocal left
                left -= 1
                return None if left >= 0 else reader.poll()

        return Reader()


@pytest.mark.parametrize(("waits", "is_known"), [(0, True), (3, True), (10**9, False)])
def test_an_input_that_has_nothing_at_first_is_read_on(waits: int, is_known: bool) -> None:
    flow = sw.Dataflow("waits")
    source(flow, "one", FIRST).sink("o-one", sw.collect_sink())
    source(flow, "other", Waiting(FIRST, waits)).sink("o-other", sw.collect_sink())
    assert ("other" in prepare(flow, ["a"]).beginnings) == is_known


def test_an_error_of_the_first_row_is_that_of_the_run() -> None:
    flow = sw.Dataflow("bad")
    source(flow, "one", FIRST).sink("o-one", sw.collect_sink())
    nulls = pa.table({"t": pa.array([None, BASE_NS], pa.int64()), "k": [1, 1]})
    source(flow, "bad", nulls).sink("o-bad", sw.collect_sink())
    assert set(prepare(flow, ["a"]).beginnings) == {"one"}
    with pytest.raises(sw.SlackwaterError, match="null"):
        ran(flow)


def test_the_arrival_column_says_where_a_replay_begins() -> None:
    flow = sw.Dataflow("arrivals")
    for name, heard in (("one", 5_000), ("other", 7_000)):
        rows = FIRST.append_column("heard", pa.array([BASE_NS + heard * MS] * ROWS, pa.int64()))
        source(flow, name, rows, arrival="heard", speed=4.0).sink(f"o-{name}", sw.collect_sink())
    assert prepare(flow, ["a"]).beginnings == {
        "one": Beginning(BASE_NS + 5_000 * MS, 0, 0),
        "other": Beginning(BASE_NS + 5_000 * MS, 2_000 * MS, 500 * MS),
    }


@pytest.mark.parametrize(
    "start", [5, True, date(2024, 5, 1), time(8), timedelta(1), np.datetime64("2024"), b"own", [1]]
)
def test_a_start_of_another_type_is_refused_with_its_source(start: Any) -> None:
    with pytest.raises(sw.SlackwaterError, match=r"(?s)source 'one'.*start=.*2024-05-01 08:00:00"):
        source(sw.Dataflow("types"), "one", FIRST, start=start)


@pytest.mark.parametrize("start", ["1500-01-01", datetime(9999, 1, 1, tzinfo=UTC)])
def test_a_start_beyond_nanoseconds_is_refused_with_its_source(start: Any) -> None:
    with pytest.raises(sw.SlackwaterError, match=r"source 'one'.*beyond the times"):
        source(sw.Dataflow("years"), "one", FIRST, start=start)


@pytest.mark.parametrize(("hours", "is_noted"), [(0.5, False), (2, True)])
def test_a_note_says_that_a_first_row_is_due_long_after_a_given_start(
    hours: float, is_noted: bool
) -> None:
    flow = sw.Dataflow("given")
    after = timedelta(hours=hours)
    start = datetime.fromtimestamp(FIRST["t"][0].as_py() / 10**9, UTC) - after
    source(flow, "one", FIRST, start=start).sink("o-one", sw.collect_sink())
    with sw.Simulation() as nodes:
        notes = nodes.submit(flow).wait().notes
    assert any("'one'" in note and "after its start=" in note for note in notes) == is_noted
