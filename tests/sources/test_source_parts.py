"""The parts of a source: writer ids and their order, and the buffer that sorts."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.errors import SchemaError, SettingError
from slackwater.runtime.model import START_NS, batch_of
from slackwater.runtime.order.sorting import SortBuffer
from slackwater.runtime.sources import writers
from slackwater.runtime.sources.spec import END_OF_INPUT
from slackwater.runtime.sources.writers import WriterTable


def test_an_integer_writer_keeps_its_value_and_others_are_hashed_into_48_bits() -> None:
    table = WriterTable("s", 2)
    given_ids = np.array([0, 2**48 - 1, -1, 2**48, 0], dtype=np.int64)
    ids = table.ids(table.number(given_ids))
    assert (ids >> 48).tolist() == [2] * 5
    assert (ids[:2] & (2**48 - 1)).tolist() == [0, 2**48 - 1]
    assert len(set(ids.tolist())) == 4


def test_ids_are_the_same_in_every_order_of_appearance() -> None:
    one, other = WriterTable("s", 1), WriterTable("s", 1)
    names = pa.array(["tram 1", "bus é", ""])
    backwards = names.take(pa.array([2, 1, 0]))
    other.number(pa.array(["somebody else"]))
    ids = one.ids(one.number(names))
    assert ids.tolist() == other.ids(other.number(backwards)).tolist()[::-1]
    assert (
        ids[0] == (1 << 48) + 0x1352634F4A01
    )  # so in every version: runs are compared across them


def test_two_writers_with_one_id_are_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "_value", lambda name: len(str(name)))
    table = WriterTable("s", 0)
    table.number(pa.array(["aa", "b"]))
    with pytest.raises(SchemaError, match="source 's': writers 'b' and 'c' have the same"):
        table.number(pa.array(["c"]))


def test_a_rank_beyond_15_bits_is_refused() -> None:
    WriterTable("s", 2**15 - 1)
    with pytest.raises(SettingError, match="rank 32768"):
        WriterTable("s", 2**15)


rows_of_writers = st.lists(st.tuples(st.integers(0, 4), st.integers(-20, 20)), max_size=60)


@given(rows_of_writers, st.integers(1, 60))
def test_newest_before_is_the_running_maximum_of_each_writer(
    rows: list[tuple[int, int]], cut: int
) -> None:
    newest: dict[int, int] = {}
    expected = []
    for writer, time in rows:
        expected.append(newest.get(writer, START_NS))
        newest[writer] = max(newest.get(writer, START_NS), time)
    table = WriterTable("s", 0)
    found: list[int] = []
    for start in range(0, len(rows), cut):
        part = np.array(rows[start : start + cut], dtype=np.int64)
        found += table.newest_before(table.number(part[:, 0]), part[:, 1]).tolist()
    assert found == expected


@given(st.lists(st.lists(st.integers(0, 30), max_size=8), max_size=30), st.data())
def test_the_buffer_releases_a_stable_sort(parts: list[list[int]], data: st.DataObject) -> None:
    buffer = SortBuffer()
    added: list[int] = []
    released: list[int] = []
    until = 0
    for steps in parts:
        part = [step + until for step in steps]  # nothing older than what was released
        buffer.add(batch_of(part, {"row": range(len(added), len(added) + len(part))}))
        added += part
        until += data.draw(st.integers(0, 10))
        out = buffer.release(until)
        released += [] if out is None else out.columns["row"].tolist()
        assert all(added[row] <= until for row in released)
        assert len(buffer) == len(added) - len(released)
        assert sum(time <= until for time in added) == len(released)
    rest = buffer.release()
    released += [] if rest is None else rest.columns["row"].tolist()
    assert released == sorted(range(len(added)), key=lambda row: (added[row], row))


def test_a_buffer_fed_row_by_row_stays_a_few_runs() -> None:
    buffer = SortBuffer()
    most = 0
    for row in range(3_000):
        buffer.add(batch_of([row * 7_919 % 3_000 + row]))
        if row > 500:
            buffer.release(row - 500)
        most = max(most, len(buffer._runs))
    assert most <= 13  # about log2 of what it holds


def test_the_end_of_input_stays_the_one_when_it_travels() -> None:
    assert pickle.loads(pickle.dumps(END_OF_INPUT)) is END_OF_INPUT  # noqa: S301 - our own bytes
