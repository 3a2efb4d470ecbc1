"""`lookup` and `cross`: rows with those of a table, beside a dict."""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.errors import (
    ColumnError,
    DuplicateName,
    FlowError,
    SchemaError,
    SlackwaterError,
    TypeMismatch,
)
from slackwater.runtime.plan.flow_fingerprints import flow_fingerprints
from tests.support.tables import result_of

KEYS: dict[pa.DataType, list[Any]] = {
    pa.int64(): [0, -1, 7, 2**40, -(2**63), 2**63 - 1],
    pa.int8(): [0, -1, 7],
    pa.uint64(): [0, 7, 2**63, 2**64 - 1],
    pa.float64(): [0.0, -0.0, 1.5, float("inf")],
    pa.bool_(): [False, True],
    pa.string(): ["", "a", "ä", "b" * 40],
    pa.date32(): [dt.date(1970, 1, 1), dt.date(2024, 2, 29)],
    pa.decimal128(10, 2): [Decimal("1.00"), Decimal("-2.50")],
}
WHOLE = [pa.int64(), pa.int8(), pa.uint64()]


def rows_of(kinds: list[pa.DataType]) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    values = [st.sampled_from([*KEYS[kind], None]) for kind in kinds]
    return st.lists(st.tuples(*values), max_size=12)


@given(st.data())
def test_each_row_leaves_with_the_row_of_its_key(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(list(KEYS)), min_size=1, max_size=3))
    others = [data.draw(st.sampled_from(WHOLE)) if kind in WHOLE else kind for kind in kinds]
    lefts, rights = data.draw(rows_of(kinds)), data.draw(rows_of(others))
    rights = list(dict.fromkeys(rights))  # one row of each key; 0.0 and −0.0 are one
    names = [f"k{place}" for place in range(len(kinds))]
    how = data.draw(st.sampled_from(["left", "inner"]))
    known = {key: place for place, key in enumerate(rights) if None not in key}
    stream = pa.table(
        {
            "ts": pa.array(range(len(lefts)), pa.timestamp("s")),
            **{
                name: pa.array([key[at] for key in lefts], kinds[at])
                for at, name in enumerate(names)
            },
        }
    )
    table = pa.table(
        {
            **{
                name: pa.array([key[at] for key in rights], others[at])
                for at, name in enumerate(names)
            },
            "place": pa.array(range(len(rights)), pa.int16()),
            "text": pa.array([f"t{place}" for place in range(len(rights))], pa.large_string()),
        }
    )
    found = result_of(
        lambda rows: rows.lookup(table, names, how=how),
        stream,
        batch_rows=data.draw(st.integers(1, 13)),
    )
    expected = [
        (at, known.get(key)) for at, key in enumerate(lefts) if how == "left" or key in known
    ]
    assert found["ts"].cast(pa.int64()).to_pylist() == [at for at, _ in expected]
    assert found["place"].to_pylist() == [place for _, place in expected]
    texts = [None if place is None else f"t{place}" for _, place in expected]
    assert found["text"].to_pylist() == texts


EVENTS = pa.table({"ts": pa.array(range(5), pa.timestamp("s")), "zone": [1, 2, 3, None, 1]})
ZONES = pa.table({"zone": [3, 1], "name": ["c", "a"], "tags": [["x"], None]})


def test_a_row_without_its_key_is_counted_as_filtered_by_inner() -> None:
    flow = sw.Dataflow("zones")
    events = flow.source("events", sw.table(EVENTS), event_time="ts")
    events.lookup(ZONES, on="zone", how="inner").sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        ledger = job.wait().ledger
        assert ledger.is_balanced
        assert (ledger.out, ledger.filtered) == (3, 2)
        assert job.result("out")["tags"].to_pylist() == [None, ["x"], None]


def test_a_filter_moves_before_a_left_lookup_and_finds_the_same() -> None:
    after = result_of(
        lambda s: s.lookup(ZONES, on="zone").filter(sw.col("zone") > 1), EVENTS, batch_rows=2
    )
    before = result_of(
        lambda s: s.filter(sw.col("zone") > 1).lookup(ZONES, on="zone"), EVENTS, batch_rows=2
    )
    assert before == after


def test_inputs_are_read_whole(tmp_path: Path) -> None:
    for place in range(3):
        pq.write_table(ZONES.slice(place, 1), tmp_path / f"{place}.parquet")
    (tmp_path / "zones.csv").write_text("zone,name\n3,c\n1,a\n")
    wanted = ["a", None, "c", None, "a"]
    for table in (
        sw.parquet(str(tmp_path / "*.parquet")),
        sw.csv(str(tmp_path / "zones.csv")),
        sw.table(ZONES, batch_rows=1),
        ZONES.to_pandas(),
        ZONES.combine_chunks().to_batches()[0],
        {"zone": [3, 1], "name": ["c", "a"]},
    ):
        found = result_of(lambda s, t=table: s.lookup(t, on="zone"), EVENTS, batch_rows=2)
        assert found["name"].to_pylist() == wanted


def test_a_fingerprint_and_a_pickle_have_the_rows_of_the_table() -> None:
    def mark(zones: pa.Table, folder: str) -> str:
        flow = sw.Dataflow("f")
        events = flow.source("events", sw.table(EVENTS), event_time="ts")
        events.lookup(zones, on="zone").sink("out", sw.parquet_sink(folder))
        step = flow.steps["lookup-1"]
        assert pickle.loads(pickle.dumps(step)) == step  # noqa: S301 - our own
        return flow_fingerprints(flow.steps)["out"].flow

    chunked = pa.concat_tables([ZONES.slice(0, 1), ZONES.slice(1)])
    assert mark(ZONES, "a") == mark(chunked, "a")
    assert mark(ZONES, "a") != mark(ZONES.take([1, 0]), "a")


def test_cross_gives_each_row_the_one_row() -> None:
    rates = {"rate": [0.5], "zone": ["all"]}
    found = result_of(lambda s: s.cross(rates), EVENTS, batch_rows=2)
    assert found.column_names == ["ts", "zone", "rate", "zone_right"]
    assert found["rate"].to_pylist() == [0.5] * 5


WORDS = pa.array(["c", "a"], pa.string_view())
NAMED = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.uint32()), WORDS)
VIEWS = {
    "text": WORDS,
    "bytes": pa.array([b"c", b"a"], pa.binary_view()),
    "texts": pa.array([["c"], ["a"]], pa.large_list(pa.string_view())),
    "named": NAMED,
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_as_polars_has_them_are_looked_up_and_crossed(name: str) -> None:
    frame = pa.table({"zone": [3, 1], name: VIEWS[name]})
    last, first = VIEWS[name].to_pylist()
    found = result_of(lambda s: s.lookup(frame, on="zone"), EVENTS, batch_rows=2)
    assert found[name].to_pylist() == [first, None, last, None, first]
    row = frame.slice(0, 1).select([name])
    assert result_of(lambda s: s.cross(row), EVENTS, batch_rows=2)[name].to_pylist() == [last] * 5


@pytest.mark.parametrize("keys", [WORDS, NAMED])
def test_a_key_of_views_is_found(keys: pa.Array) -> None:
    events = EVENTS.append_column("name", pa.array(["a", "b", "c", None, "d"]))
    frame = pa.table({"name": keys, "place": [1, 2]})
    found = result_of(lambda s: s.lookup(frame, on="name"), events, batch_rows=2)
    assert found["place"].to_pylist() == [2, None, 1, None, None]


class Waits:
    """An input that has nothing to read, and no end."""

    def describe(self) -> str:
        return "a feed"

    def schema(self) -> pa.Schema:
        return ZONES.schema

    def open(self) -> Waits:
        return self

    def poll(self) -> None:
        return None

    def close(self) -> None:
        pass


DOUBLED = pa.table({"zone": [3, 1, 1], "name": ["c", "a", "b"]})


@pytest.mark.parametrize(
    ("table", "options", "error", "text"),
    [
        (ZONES.drop(["zone"]), {"on": "zone"}, ColumnError, "zone"),
        ({"zone": ["3"]}, {"on": "zone"}, TypeMismatch, "keys need one type"),
        (DOUBLED, {"on": "zone"}, SchemaError, "zone = 1, in row 2"),
        (ZONES, {}, FlowError, "write cross"),
        (ZONES, {"on": "zone", "left_on": "zone"}, FlowError, "not both"),
        ("zones.csv", {"on": "zone"}, TypeMismatch, "is not a table; .* Polars or DuckDB"),
        ({"zone": [1], "x": [1, "a"]}, {"on": "zone"}, SchemaError, "its table: column 'x'"),
        (Waits(), {"on": "zone"}, SchemaError, "no more rows now"),
        ({"zone": [1], "ts": [1], "ts_right": [1]}, {"on": "zone"}, DuplicateName, "ts_right"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_looked_up_is_refused(
    table: Any, options: dict[str, Any], error: type[SlackwaterError], text: str
) -> None:
    with pytest.raises(error, match=text):
        result_of(lambda s: s.lookup(table, **options), EVENTS, batch_rows=5)


@pytest.mark.parametrize("rows", [0, 2])
def test_cross_refuses_no_row_and_two(rows: int) -> None:
    with pytest.raises(SchemaError, match=f"one row, and got {rows} rows;"):
        result_of(lambda s: s.cross({"x": pa.array(range(rows), pa.int64())}), EVENTS, batch_rows=5)
