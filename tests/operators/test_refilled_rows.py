"""Functions that fill one dict, list or array again give what fresh ones give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import OperatorError
from tests.support.flows import simulated

ROWS = 12
PARTS = pa.struct([("n", pa.int64()), ("list", pa.list_(pa.int64()))])
SCHEMA = pa.schema([("n", pa.int64()), ("list", pa.list_(pa.int64())), ("parts", PARTS)])
EXPECTED = [{"n": n, "list": [n, -n], "parts": {"n": n, "list": [n]}} for n in range(ROWS)]

ONE: dict[str, Any] = {"n": None, "list": [0, 0], "parts": {"n": 0, "list": np.zeros(1, np.int64)}}

SAME_LIST = [ONE]


def refilled(n: int) -> dict[str, Any]:
    """Return the same dict as always, with other values in all of its parts."""
    ONE["n"] = n
    ONE["list"][:] = [n, -n]
    ONE["parts"]["n"] = n
    ONE["parts"]["list"][0] = n
    return ONE


class Returns:
    """Returns the same list with the same dict in each call."""

    def __init__(self) -> None:
        self.due_ns: int | None = None
        self.n = 0

    def on_rows(self, key: int, rows: Any) -> Any:
        del key
        refilled(rows[0]["n"])
        return SAME_LIST


class Yields(Returns):
    """Yields the same dict for each row."""

    def on_rows(self, key: int, rows: Any) -> Iterator[Any]:
        del key
        for row in rows:
            yield refilled(row["n"])


class InTime(Returns):
    """Returns the same list from `on_time`, whose time a generator has set."""

    def on_rows(self, key: int, rows: Any) -> Iterator[Any]:
        del key
        self.n = rows[0]["n"]
        self.due_ns = rows.event_time_ns + 1
        yield from ()

    def on_time(self, key: int, t: int) -> Any:
        del key, t
        refilled(self.n)
        return SAME_LIST


ROOM = np.zeros(ROWS, np.int64)
FLOATS = np.zeros(ROWS)


def in_one_room(columns: dict[str, Any]) -> dict[str, Any]:
    n = columns["n"]
    ROOM[: len(n)] = n
    FLOATS[: len(n)] = n
    columns["n"] = ROOM[: len(n)]  # which the dict of ours has then
    return {"n": columns["n"], "x": pa.array(FLOATS[: len(n)])}


BUILDS: dict[str, Callable[[sw.Stream], sw.Stream]] = {
    "map_rows": lambda rows: rows.map_rows(lambda row: refilled(row["n"]), SCHEMA),
    "skip": lambda rows: rows.map_rows(lambda row: refilled(row["n"]), SCHEMA, on_error="skip"),
    "on_rows": lambda rows: rows.process(Returns, SCHEMA, within="1m", by="key"),
    "yields": lambda rows: rows.process(Yields, SCHEMA, within="1m", by="key"),
    "on_time": lambda rows: rows.process(InTime, SCHEMA, within="1m", by="n"),
}


def results(build: Callable[[sw.Stream], sw.Stream], *, cut: int) -> list[Any]:
    data = {"t": range(ROWS), "key": [0] * ROWS, "n": range(ROWS)}
    flow = sw.Dataflow("refilled")
    rows = flow.source("s", sw.table(data, batch_rows=cut), event_time="t", time_unit="s")
    build(rows).sink("out", sw.collect_sink())
    job, _ = simulated(flow)
    return list(job.result("out").to_pylist())


@pytest.mark.parametrize("cut", [1, 5, ROWS])
@pytest.mark.parametrize("build", BUILDS.values(), ids=BUILDS.keys())
def test_a_dict_that_is_filled_again_gives_each_row(
    build: Callable[[sw.Stream], sw.Stream], cut: int
) -> None:
    assert results(build, cut=cut) == EXPECTED


@pytest.mark.parametrize("cut", [1, 5, ROWS])
def test_arrays_that_are_filled_again_give_each_batch(cut: int) -> None:
    def build(rows: sw.Stream) -> sw.Stream:
        return rows.map_batches(in_one_room, {"n": "int64", "x": "float64"})

    assert results(build, cut=cut) == [{"n": n, "x": float(n)} for n in range(ROWS)]


def test_a_list_of_map_elements_that_is_filled_again_gives_each_value() -> None:
    def build(rows: sw.Stream) -> sw.Stream:
        of_n = sw.col("n").map_elements(lambda n: refilled(n)["list"], SCHEMA.field("list").type)
        return rows.select(list=of_n)

    assert results(build, cut=5) == [{"list": [n, -n]} for n in range(ROWS)]


NOW: dict[str, int] = {}
LIST = pa.list_(pa.int64())


class Latest:
    """A whole number that is looked up when it is asked for."""

    def __index__(self) -> int:
        return NOW["n"]


class Shows:
    """A view of a list of one number, or a column of them, that is no `Sequence`."""

    def __init__(self, rows: int = 1) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, at: int) -> int:
        if at >= self.rows:
            raise IndexError(at)
        return NOW["n"]


LAZY: dict[str, tuple[Any, Any]] = {
    "values": (LIST, NOW.values()),
    "view": (LIST, Shows()),
    "number": (pa.int64(), Latest()),
}


class YieldsLazy:
    """Yields a row whose value is read when it is asked for."""

    def __init__(self, kept: str) -> None:
        self.kept = kept
        self.due_ns: int | None = None

    def on_rows(self, key: int, rows: Any) -> Iterator[Any]:
        del key
        for row in rows:
            NOW["n"] = row["n"]
            yield {"kept": LAZY[self.kept][1]}


def lazily(n: int, kept: str) -> Any:
    NOW["n"] = n
    return LAZY[kept][1]


OF_LAZY: dict[str, Callable[[sw.Stream, str], sw.Stream]] = {
    "map_rows": lambda rows, kept: rows.map_rows(
        lambda row: {"kept": lazily(row["n"], kept)}, pa.schema([("kept", LAZY[kept][0])])
    ),
    "process": lambda rows, kept: rows.process(
        YieldsLazy(kept), pa.schema([("kept", LAZY[kept][0])]), within="1m", by="key"
    ),
    "map_elements": lambda rows, kept: rows.select(
        kept=sw.col("n").map_elements(lambda n: lazily(n, kept), LAZY[kept][0])
    ),
}


@pytest.mark.parametrize("cut", [1, ROWS])
@pytest.mark.parametrize("kept", LAZY)
@pytest.mark.parametrize("how", OF_LAZY)
def test_a_view_is_read_before_the_function_is_called_again(how: str, kept: str, cut: int) -> None:
    expected = [{"kept": n if kept == "number" else [n]} for n in range(ROWS)]
    assert results(lambda rows: OF_LAZY[how](rows, kept), cut=cut) == expected


class OwnArray:
    """An array as only NumPy reads it."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.values


class Torn(OwnArray):
    """An array that cannot be read."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise LookupError("torn")


def test_an_object_that_only_numpy_reads_is_a_column() -> None:
    def build(rows: sw.Stream) -> sw.Stream:
        return rows.map_batches(lambda given: {"n": OwnArray(given["n"])}, {"n": "int64"})

    assert results(build, cut=5) == [{"n": n} for n in range(ROWS)]


@pytest.mark.parametrize("value", [Torn([1] * ROWS), Shows(ROWS)], ids=["array", "view"])
def test_a_column_that_cannot_be_read_is_refused_with_its_step(value: Any) -> None:
    NOW.clear()
    with pytest.raises(OperatorError, match=r"step .map-1.: its function raised (Look|Key)"):
        results(lambda rows: rows.map_batches(lambda _: {"n": value}, {"n": "int64"}), cut=ROWS)


ENDLESS: list[Any] = [1]
ENDLESS.append(ENDLESS)
OF_LISTS = pa.schema([("n", pa.int64()), ("list", pa.list_(pa.int64()))])


class GivesEndless:
    """Returns a row whose list contains itself."""

    def on_rows(self, key: int, rows: Any) -> Any:
        del key, rows
        return [{"n": 1, "list": ENDLESS}]


CIRCLES: dict[str, Callable[[sw.Stream], sw.Stream]] = {
    "map_rows": lambda rows: rows.map_rows(lambda _: {"n": 1, "list": ENDLESS}, OF_LISTS),
    "map_batches": lambda rows: rows.map_batches(
        lambda given: {"n": given["n"], "list": [ENDLESS] * len(given["n"])}, OF_LISTS
    ),
    "on_rows": lambda rows: rows.process(GivesEndless, OF_LISTS, within="1m", by="key"),
    "map_elements": lambda rows: rows.select(
        list=sw.col("n").map_elements(lambda _: ENDLESS, OF_LISTS.field("list").type)
    ),
}


@pytest.mark.parametrize("build", CIRCLES.values(), ids=CIRCLES.keys())
def test_a_list_that_contains_itself_is_refused_with_its_step(
    build: Callable[[sw.Stream], sw.Stream],
) -> None:
    with pytest.raises(OperatorError, match=r"step '.*(?s:.*)contains itself, or nests too deep"):
        results(build, cut=5)
