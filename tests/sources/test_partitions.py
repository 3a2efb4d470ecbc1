"""Partitions of an input: each a writer of its source; read in 1, 2 or 5, the rows are the same."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.ingest import memory
from slackwater.runtime.errors import IngestError, OrderError, SchemaError, SettingError
from slackwater.runtime.model import START_NS
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.sources.spec import Partition
from tests.support.chance import Seeded
from tests.support.sources import machine, take

NUMBERS = range(400)
ROWS = pa.table({"t": NUMBERS, "k": [n % 7 for n in NUMBERS], "x": [n * 3 for n in NUMBERS]})


@dataclass
class Split:
    """A table whose rows are in partitions: row n in partition n modulo their number."""

    data: pa.Table
    parts: int
    batch_rows: int = 7
    silent: int = 0
    """Polls without rows before each block."""
    unknown: int = 0
    """Partitions that are listed only when it is asked again."""
    asked: int = 0
    opened: list[tuple[str, bytes | None]] = field(default_factory=list)
    is_history: ClassVar[bool] = True
    blocks_stay: ClassVar[bool] = True
    reads_inline: ClassVar[bool] = True
    replay: ClassVar[str] = "exact"
    grows: ClassVar[bool] = True

    def describe(self) -> str:
        return f"a table in {self.parts} partitions"

    def schema(self) -> pa.Schema:
        return self.data.schema

    def partitions(self) -> list[Partition]:
        self.asked += 1
        listed = self.parts - (self.unknown if self.asked == 1 else 0)
        return [Partition(f"p{n}") for n in range(listed)]

    def open(self, name: str, at: bytes | None) -> Any:
        self.opened.append((name, at))
        mine = self.data.take(list(range(int(name[1:]), len(self.data), self.parts)))
        reader = memory.table(mine, batch_rows=self.batch_rows).open("", at)
        left = self.silent

        class Halting:
            close = reader.close

            def poll(self) -> Any:
                nonlocal left
                left = -left
                return None if left < 0 else reader.poll()

        return Halting()


def rows_of(source: Any, chance: random.Random, given: Any = None) -> list[tuple[int, ...]]:
    """Return all rows; check that promises hold, and restore it on the way if `given`."""
    rows: list[tuple[int, ...]] = []
    promised_ns = START_NS
    while not source.is_over:
        message = take(source, 0, max_rows=chance.randrange(1, 30))
        if message is None:
            continue
        if message.batch is not None:
            columns = message.batch.columns
            assert message.batch.event_time_ns.min() >= promised_ns
            rows += list(zip(*(np.asarray(columns[one]).tolist() for one in columns), strict=True))
        assert message.progress.promise_ns >= promised_ns
        promised_ns = message.progress.promise_ns
        if given is not None and chance.random() < 0.2:
            again = machine(given)
            restore(again, save(source))
            source.close()
            source = again
    return rows


@pytest.mark.parametrize("silent", [0, 1])
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_in_any_number_of_partitions_the_rows_are_one_multiset(parts: int, silent: int) -> None:
    expected = Counter(rows_of(machine(ROWS), Seeded(1)))
    assert sum(expected.values()) == 400
    assert Counter(rows_of(machine(Split(ROWS, parts, silent=silent)), Seeded(2))) == expected
    for seed in range(5):
        given = Split(ROWS, parts, silent=silent)
        assert Counter(rows_of(machine(given), Seeded(seed), given)) == expected
        assert any(at is not None for _, at in given.opened), "it was opened at a position"


def test_a_partition_that_appears_joins_the_source() -> None:
    given = Split(ROWS, 5, unknown=2)
    source, rows = machine(given), 0
    while not source.is_over:
        if (message := take(source, 0)) is not None:
            rows += message.rows
    assert rows == 400
    assert {name for name, _ in given.opened} == {f"p{n}" for n in range(5)}


@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("parts", [1, 2, 5])
def test_a_flow_over_partitions_has_the_results_of_one(parts: int, replicas: int) -> None:
    assert results(Split(ROWS, parts), replicas) == results(memory.table(ROWS), replicas)


def results(given: Any, replicas: int) -> list[dict[str, Any]]:
    flow = sw.Dataflow("parts")
    rows = flow.source("rows", given, event_time="t", time_unit="s")
    sums = rows.key_by("k").aggregate(window=sw.tumbling("20s"), x=sw.sum("x"), replicas=replicas)
    sums.sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        out: list[dict[str, Any]] = job.result("out").to_pylist()
    return sorted(out, key=str)


def test_each_partition_has_an_order_of_its_own() -> None:
    data = pa.table({"t": [0, 100, 1, 101, 2, 99]})  # of two: 0, 1, 2 and 100, 101, 99
    with pytest.raises(OrderError, match="event time"):
        rows_of(machine(Split(data, 2)), Seeded(1))
    source = machine(Split(data, 2), out_of_order="late")
    assert sorted(rows_of(source, Seeded(1))) == [(0,), (1,), (2,), (100,), (101,)]
    assert source.late_dropped == 1
    source = machine(Split(data, 2), out_of_order="sort", disorder_ns=5)
    assert rows_of(source, Seeded(1)) == [(0,), (1,), (2,), (99,), (100,), (101,)]


def test_rows_say_which_partition_they_are_of() -> None:
    batches = []
    source = machine(Split(ROWS, 2, batch_rows=100))
    while not source.is_over:
        if (message := take(source, 0)) is not None and message.batch is not None:
            batches.append(message.batch)
    writers = {int(n) for batch in batches for n in batch.writers}
    assert len(writers) == 2
    assert {one >> 48 for one in writers} == {3}, "the rank of the source"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"speed": 1.0}, "speed= is of one order of rows, and Split has partitions"),
        ({"ahead_ns": 5}, "ahead= is of one order of rows"),
    ],
)
def test_options_of_one_order_are_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(SettingError, match=why):
        machine(Split(ROWS, 2), **options)


def test_partitions_need_positions_and_names_of_their_own() -> None:
    class Again(Split):
        replay = "again"  # type: ignore[misc]

    with pytest.raises(SettingError, match="each is opened by its name and a position"):
        machine(Again(ROWS, 2))


class Listing(Split):
    """A table whose partitions are what a test says."""

    listed: Any = None

    def partitions(self) -> Any:
        if isinstance(self.listed, Exception):
            raise self.listed
        return self.listed


@pytest.mark.parametrize(
    ("listed", "said"),
    [
        ([Partition("a"), Partition("a")], "has two partitions named 'a'; it must return a list"),
        ([], r"returned \[\]; it must return a list of sw\.connectors\.Partition"),
        (None, "returned None; it must"),
        (["a", "b"], r"returned \['a', 'b'\]; it must"),
        ([Partition(3)], r"returned \[.*3.*\]; it must"),  # type: ignore[arg-type]
        ([Partition("\udc80")], r"returned \[.*\]; it must"),
        (Partition("a"), "returned .*'a'.*; it must"),
        ({"a": Partition("a")}, "returned .*; it must"),
    ],
)
def test_what_partitions_returns_is_checked_by_name(listed: Any, said: str) -> None:
    given = Listing(ROWS, 2)
    given.listed = listed
    with pytest.raises(SchemaError, match=rf"source 's': Listing\.partitions {said}"):
        take(machine(given), 0)


def test_an_error_of_partitions_names_the_source() -> None:
    given = Listing(ROWS, 2)
    given.listed = ConnectionError("no broker")
    with pytest.raises(
        IngestError, match=r"'s': Listing\.partitions raised ConnectionError: no br"
    ):
        take(machine(given), 0)


def test_a_partition_that_cannot_be_closed_keeps_no_other_open() -> None:
    closed = []

    class Stuck(Split):
        def open(self, name: str, at: bytes | None) -> Any:
            reader = super().open(name, at)

            def close() -> None:
                closed.append(name)
                raise OSError(f"{name} is stuck")

            reader.close = close
            return reader

    source = machine(Stuck(ROWS, 3, silent=1, batch_rows=1))
    take(source, 0)
    source.close()
    assert closed == ["p0", "p1", "p2"]
    assert "p0 is stuck" in str(source.close_problem)
