"""`stamped` rows have the time of their reading, once, also after a restore."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.actors.checkpoints.spool import SpoolName
from slackwater.actors.slot.spooled import SpoolReader
from slackwater.ingest.stamped import StampedInput
from slackwater.runtime.config import Limits
from slackwater.runtime.errors import SchemaError, SettingError
from slackwater.runtime.sources.spec import traits_of
from tests.support.flows import simulated

SCHEMA = pa.schema([("n", pa.int64())])


@dataclass(eq=False)
class Numbers:
    """Numbers in blocks of three, and a record that cannot be read after each block."""

    replay: str
    skips_spooled: bool = False
    on_bad: str = "skip"
    acks: list[bytes] = field(default_factory=list)
    live: int = 0
    """The next number of an input that is read once."""

    def describe(self) -> str:
        return "numbers"

    def schema(self) -> pa.Schema:
        return SCHEMA

    def open(self, name: str = "", at: bytes | None = None) -> Any:
        del name
        start = int(at or b"0") if self.replay in ("exact", "retained") else 0
        return Reader(self, self.live if self.replay == "none" else start)


class Reader:
    def __init__(self, of: Numbers, start: int) -> None:
        self.of, self.next, self.is_bad = of, start, False

    def poll(self) -> Any:
        if self.is_bad:
            self.is_bad = False
            return sw.connectors.BadRows(
                pa.record_batch({"file": ["f"], "line": [self.next - 1], "reason": [""]})
            )
        at, self.next, self.is_bad = self.next, self.next + 3, True
        self.of.live = self.next
        rows = pa.record_batch({"n": pa.array(range(at, at + 3), pa.int64())})
        if self.of.replay == "again":
            return rows
        return sw.connectors.Block(rows, str(at).encode())

    def ack(self, at: bytes) -> None:
        self.of.acks.append(at)

    def close(self) -> None: ...


def stamped(of: Numbers, clock: Any) -> StampedInput:
    return replace(sw.stamped(of), clock_ns=lambda: 0, steady_ns=chain([0], clock).__next__)


def took(reader: Any, blocks: int) -> tuple[list[tuple[int, int]], list[int], bytes | None]:
    """Return {number: stamp} of the next blocks, the lines of records, and the last position."""
    rows: list[tuple[int, int]] = []
    bad: list[int] = []
    at = None
    for _ in range(blocks):
        block = reader.poll()
        if block is None:
            continue
        at = block.at
        if isinstance(block.rows, sw.connectors.BadRows):
            bad += block.rows.rows["line"].to_pylist()
            continue
        stamps = block.rows["read_at"].cast(pa.int64()).to_pylist()
        rows += list(zip(block.rows["n"].to_pylist(), stamps, strict=True))
    return rows, bad, at


def test_rows_that_are_read_together_have_one_time_that_never_runs_back() -> None:
    reader = stamped(Numbers("again"), iter([5, 9, 7, 12])).open()
    rows, bad, _ = took(reader, 8)
    assert rows == [(n, t) for n, t in zip(range(12), [5] * 3 + [9] * 6 + [12] * 3, strict=True)]
    assert bad == [2, 5, 8, 11]


@pytest.mark.parametrize("replay", ["exact", "retained", "again", "none"])
@given(first=st.integers(0, 7), second=st.integers(0, 7), back=st.integers(0, 7))
def test_after_a_failure_each_row_comes_once_with_its_first_time(
    replay: str, first: int, second: int, back: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder: Path = tmp_path_factory.mktemp("spool")
    numbers, clock = Numbers(replay), count(100)
    name = SpoolName(folder, "f", "s")
    had = took(SpoolReader(name, stamped(numbers, clock), Limits(), None), first)
    # The job restores from its beginning, twice, first on a host whose clock is older.
    again = took(SpoolReader(name, stamped(numbers, count(100 - back)), Limits(), None), second)
    last = took(SpoolReader(name, stamped(numbers, count(300)), Limits(), None), 24)
    for part in (had, again):
        assert last[0][: len(part[0])] == part[0]
        assert last[1][: len(part[1])] == part[1]
    assert [n for n, _ in last[0]] == list(range(len(last[0])))
    assert len(last[0]) >= 30
    stamps = [stamp for _, stamp in last[0]]
    assert stamps == sorted(stamps)
    if replay != "none":  # what was read and not spooled is gone there
        assert last[1] == [3 * n + 2 for n in range(len(last[1]))]


def test_an_input_with_retention_hears_what_is_spooled(tmp_path: Path) -> None:
    numbers = Numbers("retained")
    took(SpoolReader(SpoolName(tmp_path, "f", "s"), stamped(numbers, count()), Limits(), None), 6)
    assert numbers.acks[-1] == b"6"
    unheard = Numbers("retained")
    took(stamped(unheard, count()).open(), 6)
    assert unheard.acks == []


def test_windows_of_a_simulation_are_by_its_own_clock() -> None:
    flow = sw.Dataflow("f")
    blocks = [pa.record_batch({"n": [1, 2]}), pa.record_batch({"n": [3]})]
    rows = flow.source("rows", sw.stamped(sw.connectors.blocks(blocks)), event_time="read_at")
    rows.aggregate(window=sw.tumbling("2ms"), n=sw.sum("n")).sink("out", sw.collect_sink())
    job, report = simulated(flow)
    assert job.result("out")["n"].to_pylist() == [3, 3]
    assert report.ledger.is_balanced
    assert "stamped when read" in flow.explain()


def test_a_stamped_input_is_live_and_read_once() -> None:
    traits = traits_of(sw.stamped(sw.table({"n": [1]})))
    assert (traits.is_history, traits.replay, traits.skips_spooled) == (False, "none", True)


def test_what_cannot_be_stamped_is_refused() -> None:
    with pytest.raises(SettingError, match=r"stamped: .* is not an input; write sw\.csv"):
        sw.stamped({"n": [1]})  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="has partitions, and rows are stamped in one order"):
        sw.stamped(sw.csv("*.csv", partitions="files"))
    with pytest.raises(SchemaError, match="stamped: its input has a column 'n' of its own"):
        sw.stamped(sw.table({"n": [1]}), column="n").schema()
