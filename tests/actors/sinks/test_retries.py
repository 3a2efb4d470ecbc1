"""Calls of a sink that are tried again while its target is away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from examples import exactly_once
from slackwater.runtime.errors import SettingError, SinkError
from tests.support.flows import simulated
from tests.support.sinks import RUN, Driven, rows


class Away:
    """Raises some times, at the call of a number and the ones after it."""

    def __init__(self, at: int, times: int) -> None:
        self.at, self.times, self.calls = at, times, 0

    def __call__(self) -> None:
        self.calls += 1
        if self.at <= self.calls < self.at + self.times:
            raise ConnectionError("the database is away")


class Table(sw.connectors.Output):
    """A table that survives its connections; it raises before a call, or after it was done."""

    def __init__(self, away: Away, *, raises_late: bool = False, **traits: Any) -> None:
        self.traits = sw.connectors.SinkTraits(**traits)
        self.away, self.raises_late = away, raises_late
        self.committed: list[int] = []
        self.opened = 0

    def describe(self) -> str:
        return "a table"

    def open(self, schema: pa.Schema, context: sw.connectors.OutputContext) -> Connection:
        del schema, context
        self.away()
        self.opened += 1
        return Connection(self)


class Connection(sw.connectors.Sink):
    def __init__(self, table: Table) -> None:
        self.table, self.open_rows, self.is_broken = table, list[int](), False

    def last_ordinal(self) -> int:
        return len(self.table.committed) - 1 if self.table.traits.resumes else -1

    def write(self, rows: pa.RecordBatch, first_ordinal: int) -> None:
        assert not (self.is_broken and self.table.traits.resumes), "a connection is broken for good"
        if self.table.traits.resumes:
            assert first_ordinal == len(self.table.committed) + len(self.open_rows)
        self._call(lambda: self.open_rows.extend(rows["n"].to_pylist()))

    def commit(self) -> None:
        self._call(self._commit)

    def _commit(self) -> None:
        self.table.committed += self.open_rows
        self.open_rows = []

    def _call(self, happen: Any) -> None:
        try:
            if not self.table.raises_late:
                self.table.away()
            happen()
            if self.table.raises_late:
                self.table.away()
        except ConnectionError:
            self.is_broken = True
            raise


def driven(output: Any, pauses: list[float]) -> Driven:
    return Driven(output, run=RUN, pause=pauses.append)


def write_all(sink: Driven) -> None:
    for first in range(0, 30, 3):
        sink.write(rows(first, 3))
    sink.close()


@pytest.mark.parametrize("raises_late", [False, True], ids=["before", "after"])
def test_each_row_is_there_once_whichever_call_raised(raises_late: bool) -> None:
    for at in range(1, 18):
        pauses: list[float] = []
        table = Table(Away(at, 2), raises_late=raises_late, resumes=True, rows=7, retry=3)
        sink = driven(table, pauses)
        write_all(sink)
        assert table.committed == list(range(30)), f"call {at}"
        assert pauses == [0.1, 0.2], f"call {at}"


def test_an_output_without_ordinals_gets_the_same_call_again_on_its_connection() -> None:
    pauses: list[float] = []
    table = Table(Away(4, 2), rows=7, retry=3)
    write_all(driven(table, pauses))
    assert (table.committed, table.opened) == (list(range(30)), 1)
    assert pauses == [0.1, 0.2]


def test_after_the_last_try_the_error_says_how_often_and_how_long() -> None:
    pauses: list[float] = []
    table = Table(Away(3, 99), rows=7, retry=4)
    sink = driven(table, pauses)
    said = r"Connection\.write raised ConnectionError: the database is away.*; tried 5 times with "
    with pytest.raises(SinkError, match=rf"{said}pauses of 1\.5 s \(retry=4\)\n"):
        write_all(sink)
    assert pauses == [0.1, 0.2, 0.4, 0.8]


def test_an_output_that_has_lost_committed_rows_is_not_tried_again() -> None:
    pauses: list[float] = []
    table = Table(Away(99, 0), resumes=True, rows=7, retry=4)
    sink = driven(table, pauses)
    for first in (0, 3, 6):
        sink.write(rows(first, 3))
    assert len(table.committed) == 7
    table.committed.clear()  # so it refuses the next rows, too
    with pytest.raises(SinkError, match=r"last_ordinal\(\) is -1 after it was opened again"):
        sink.write(rows(9, 3))
    assert pauses == [0.1]


def test_a_callback_is_called_again_with_the_same_batch_and_the_report_says_so() -> None:
    away, got = Away(1, 2), list[int]()

    def take(batch: pa.RecordBatch) -> None:
        away()
        got.extend(batch["t"].to_pylist())

    flow = sw.Dataflow("calls")
    numbers = flow.source("numbers", sw.table({"t": [1, 2, 3]}), event_time="t", time_unit="s")
    numbers.sink("out", sw.callback_sink(take, retry=2))
    _, report = simulated(flow)
    assert len(got) == 3
    assert any("was tried again 2 times" in note for note in report.notes)
    away.at, away.calls = 1, 0
    flow = sw.Dataflow("calls")
    numbers = flow.source("numbers", sw.table({"t": [1]}), event_time="t", time_unit="s")
    numbers.sink("out", sw.callback_sink(take))
    with pytest.raises(sw.SlackwaterError, match="the database is away"):
        simulated(flow)


def test_a_database_that_is_locked_for_a_while_gets_each_row_once(tmp_path: Path) -> None:
    path = str(tmp_path / "out.db")

    class Patient(exactly_once.ExactlyOnce):
        traits = sw.connectors.SinkTraits(rows=7, resumes=True, retry=2)

    def broken(_: float) -> None:
        pauses.append(1)

    pauses: list[int] = []
    sink = Driven(Patient(path, "out"), run=RUN, pause=broken)
    sink.write(rows(0, 9))
    sink.sink._sink._sink._database.close()  # the connection is lost
    sink.write(rows(9, 9))
    sink.close()
    assert exactly_once.rows_of(path, "out") == [(n,) for n in range(18)]
    assert pauses == [1]


@pytest.mark.parametrize(
    ("traits", "said"),
    [
        ({"retry": -1}, "retry=-1 must be a whole number, 0 or more"),
        ({"retry": True}, "retry=True must be a whole number"),
        ({"retry": 3, "resumes": True}, "keeps the rows since the last commit.*; add rows= or"),
    ],
)
def test_traits_that_make_no_sense_are_refused(traits: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        sw.connectors.SinkTraits(**traits)
