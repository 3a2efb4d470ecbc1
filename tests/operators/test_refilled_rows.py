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
