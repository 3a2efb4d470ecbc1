"""`lookup` in a table that is read again: readings count by event time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.ingest.reread import RereadInput
from slackwater.runtime.errors import IngestError, SchemaError, SettingError, TypeMismatch
from slackwater.runtime.sources.spec import BadRows, Block
from tests.support.tables import result_of

SCHEMA = pa.schema({"zone": pa.int64(), "cents": pa.int64(), "tags": pa.list_(pa.string())})
EVERY_NS, START_NS = 10, 1_000


@dataclass(eq=False)
class Table:
    """A table that changes; None cannot be read."""

    versions: list[dict[int, int] | None]
    at: int = 0

    def describe(self) -> str:
        return "tariffs"

    def schema(self) -> pa.Schema:
        return SCHEMA

    def open(self) -> Any:
        version = self.versions[self.at]
        if version is None:
            raise IngestError("the table is gone")
        rows = [{"zone": z, "cents": c, "tags": [str(c)]} for z, c in version.items()]
        return sw.connectors.blocks([pa.RecordBatch.from_pylist(rows, SCHEMA)]).open()


@dataclass(eq=False)
class Recorded:
    """The blocks of all readings, one every 10 ns from 1,000 ns on."""

    table: Table
    every_ns: int = EVERY_NS
    failed: list[str] = field(default_factory=list)

    def with_keys(self, keys: tuple[str, ...], *, step: str = "tariffs") -> Any:
        now = [START_NS]
        given = RereadInput(self.table, EVERY_NS, keys, step, clock_ns=lambda: now[0])
        reader, parts = given.open(), []
        for at in range(len(self.table.versions)):
            self.table.at, now[0] = at, START_NS + at * EVERY_NS + 3
            while (polled := reader.poll()) is not None:
                if isinstance(polled, BadRows):
                    self.failed += polled.rows["reason"].to_pylist()
                    continue
                assert isinstance(polled, Block)
                parts.append(polled.rows)
        return sw.connectors.blocks(parts)


VERSIONS = st.lists(
    st.none() | st.dictionaries(st.integers(0, 3), st.integers(0, 9)), max_size=4
).map(lambda later: [{0: 5, 1: 6}, *later])


@given(
    VERSIONS,
    st.lists(st.tuples(st.integers(980, 1_045), st.integers(0, 3) | st.none()), max_size=12),
    st.sampled_from(["left", "inner"]),
    st.integers(1, 13),
)
def test_a_row_has_the_reading_of_its_event_time(
    versions: list[dict[int, int] | None],
    events: list[tuple[int, int | None]],
    how: Any,
    batch_rows: int,
) -> None:
    end_ns = START_NS + len(versions) * EVERY_NS
    events = sorted([one for one in events if one[0] < end_ns], key=lambda one: one[0])
    known: list[dict[int, int]] = []
    for version in versions:
        known.append(known[-1] if version is None else version)
    stream = pa.table(
        {
            "ts": pa.array([t for t, _ in events], pa.timestamp("ns")),
            "zone": pa.array([zone for _, zone in events], pa.int64()),
        }
    )
    table = Recorded(Table(versions))
    found = result_of(
        lambda rows: rows.lookup(table, on="zone", how=how), stream, batch_rows=batch_rows
    )
    expected = []
    for time, zone in events:
        cents = known[max(time - START_NS, 0) // EVERY_NS].get(-1 if zone is None else zone)
        if cents is not None or how == "left":
            expected.append((zone, cents, None if cents is None else [str(cents)]))
    assert found.column_names == ["ts", "zone", "cents", "tags"]
    rows = [tuple(row.values())[1:] for row in found.to_pylist()]
    assert sorted(map(str, rows)) == sorted(map(str, expected))
    assert len(table.failed) == versions.count(None)


def test_a_reading_that_fails_is_named_and_the_first_ends_the_job() -> None:
    table = Recorded(Table([{1: 1}, None]))
    table.with_keys(("zone",))
    (reason,) = table.failed
    assert reason.startswith("a reading failed, and the old rows count on: source 'tariffs': ")
    assert "the table is gone" in reason
    with pytest.raises(IngestError, match="the table is gone"):
        Recorded(Table([None])).with_keys(("zone",))


def test_after_a_failure_readings_go_on_where_they_were() -> None:
    now = [START_NS + 3]
    given = RereadInput(Table([{1: 1}]), EVERY_NS, ("zone",), clock_ns=lambda: now[0])
    reader = given.open()
    first, second = reader.poll(), reader.poll()
    assert isinstance(first, Block)
    assert isinstance(second, Block)
    assert first.rows["reread_until_ns"].to_pylist() == [START_NS] * 2
    assert second.rows["reread_from_ns"].to_pylist() == [START_NS, START_NS + EVERY_NS]
    assert reader.poll() is None
    again = given.open("", second.at)
    assert again.poll() is None
    now[0] += 2 * EVERY_NS
    missed = [again.poll(), again.poll()]
    assert [one.rows["reread_from_ns"][0].as_py() for one in missed if isinstance(one, Block)] == [
        START_NS + EVERY_NS,
        START_NS + 2 * EVERY_NS,
    ]
    assert again.poll() is None


def test_a_table_that_is_not_an_input_or_has_doubled_keys_is_refused() -> None:
    with pytest.raises(SettingError, match="give it to lookup as it is"):
        sw.reread({"zone": [1]}, every="1h")
    doubled = sw.table({"zone": [1, 1], "cents": [1, 2]})
    reader = sw.reread(doubled, every="1h").with_keys(("zone",), step="t").open()
    said = r"step 't': table of 2 rows has 1 row .* first zone = 1, in row 1, .*drop"
    with pytest.raises(SchemaError, match=said):
        reader.poll()


def test_cross_takes_no_reread() -> None:
    tariffs = sw.reread(sw.table({"cents": [10]}), every="1h")
    with pytest.raises(TypeMismatch, match=r"takes no sw\.reread\(…\); give it the input alone"):
        sw.Dataflow("f").source("s", sw.table({"ts": [1]}), event_time="ts").cross(tariffs)


def test_a_simulation_reads_once_whatever_the_clock() -> None:
    flow = sw.Dataflow("tariffs")
    events = pa.table({"ts": pa.array([1, 2**32], pa.timestamp("s")), "zone": [1, 1]})
    rides = flow.source("rides", sw.table(events), event_time="ts")
    tariffs = sw.reread(sw.table({"zone": [1], "cents": [10]}), every="1h")
    rides.lookup(tariffs, on="zone").sink("out", sw.collect_sink())
    assert "read again every 60.0 min" in flow.explain()
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        assert job.wait().state == "done"
        assert job.result("out")["cents"].to_pylist() == [10, 10]


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        (lambda rows: rows.select("cents"), {"cents": [10, None]}),
        (lambda rows: rows.drop("zone", "tags"), {"ts": [3, 4], "cents": [10, None]}),
        (lambda rows: rows.select(tags="cents"), {"tags": [10, None]}),
        (
            lambda rows: rows.drop("ts", "tags").with_columns(zone=sw.col("cents"), cents=0),
            {"zone": [10, None], "cents": [0, 0]},
        ),
    ],
)
@pytest.mark.parametrize("how", ["left", "inner"])
def test_later_steps_may_omit_or_replace_columns(
    how: Any, later: Any, expected: dict[str, list[int | None]]
) -> None:
    flow = sw.Dataflow("tariffs")
    events = sw.table({"ts": [3, 4], "zone": [1, 2]})
    rides = flow.source("rides", events, event_time="ts", time_unit="s")
    tariffs = sw.reread(sw.table({"zone": [1], "cents": [10], "tags": ["a"]}), every="1h")
    later(rides.lookup(tariffs, on="zone", how=how)).sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        assert job.wait().state == "done"
        rows = len(job.result("out"))
        assert rows == (1 if how == "inner" else 2)
        assert job.result("out").to_pydict() == {n: v[:rows] for n, v in expected.items()}


def test_a_simulation_has_the_rows_for_results_of_the_whole_input_too() -> None:
    flow = sw.Dataflow("tariffs")
    events = sw.table({"ts": [3, 4, 5], "zone": [1, 2, 1]})
    rides = flow.source("rides", events, event_time="ts", time_unit="s")
    totals = rides.aggregate(by="zone", window=sw.everything(), n=sw.count())
    tariffs = sw.reread(sw.table({"zone": [1], "cents": [10]}), every="1h")
    totals.lookup(tariffs, on="zone").sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        assert job.wait().state == "done"
        assert job.result("out").select(["n", "cents"]).to_pylist() == [
            {"n": 2, "cents": 10},
            {"n": 1, "cents": None},
        ]
