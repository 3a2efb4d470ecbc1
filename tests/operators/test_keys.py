"""Keys become dense codes in order of first appearance, and come back as they were."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.model import Column
from slackwater.runtime.model.nullable import Nullable, valid_of
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.operators.ground import codes as codes_page
from slackwater.runtime.operators.ground.codes import HashCodes, IntCodes
from slackwater.runtime.operators.ground.keys import KeyIndex, any_null
from tests.support.states import canonical

NAN = float("nan")
WHOLE = st.one_of(
    st.none(), st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1), st.integers(900_000, 900_009)
)
TEXT = st.sampled_from(["", "20", "26", "N°1", None])
FLOATS = st.sampled_from([None, 0.0, -0.0, NAN, 1.5, -np.inf])


def column_of(values: list[Any], kind: str) -> Column:
    if kind == "text":
        return pa.array(values, pa.string())
    if None in values:
        valid = np.array([value is not None for value in values])
        return Nullable(np.array([value or 0 for value in values], dtype=kind), valid)
    return np.array(values, dtype=kind)


def plain(columns: list[Column]) -> list[tuple[Any, ...]]:
    """Return the keys row by row; NaN as text and −0.0 as 0.0, so that equal keys are equal."""
    lists = [c.tolist() if isinstance(c, np.ndarray) else c.to_pylist() for c in columns]
    return [
        tuple("NaN" if isinstance(value, float) and np.isnan(value) else value for value in row)
        for row in zip(*lists, strict=True)
    ]


def check(rows: list[list[tuple[Any, ...]]], kinds: list[str]) -> None:
    """Code batches of rows, forget some keys, restore: against a dict."""
    index = KeyIndex(len(kinds))
    known: dict[tuple[Any, ...], int] = {}  # {key: code}
    for number, batch in enumerate(rows):
        columns = [
            column_of([row[place] for row in batch], kind) for place, kind in enumerate(kinds)
        ]
        expected = [known.setdefault(key, len(known)) for key in plain(columns)]
        found = index.codes(columns, len(batch))
        assert found.dtype == np.int64
        assert found.tolist() == expected
        assert len(index) == len(known)
        assert plain(index.columns(np.arange(len(known)))) == list(known)
        if number == 1:
            kept = np.arange(0, len(known), 2)
            moved = index.keep(kept)
            assert moved.tolist() == [c // 2 if c % 2 == 0 else -1 for c in range(len(known))]
            known = {key: code // 2 for key, code in known.items() if code % 2 == 0}
        if number == 2:
            restored = KeyIndex(len(kinds))
            restore(restored, save(index))
            index = restored


def batches_of(*columns: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(st.lists(st.tuples(*columns), max_size=30), min_size=2, max_size=5)


@given(batches_of(WHOLE))
def test_whole_keys_are_coded_in_order_of_first_appearance(rows: Any) -> None:
    check(rows, ["int64"])


@given(batches_of(st.integers(0, 2**64 - 1)))
def test_keys_beyond_int64_are_coded_too(rows: Any) -> None:
    check(rows, ["uint64"])


@given(batches_of(TEXT))
def test_text_keys_are_coded_in_order_of_first_appearance(rows: Any) -> None:
    check(rows, ["text"])


@given(batches_of(FLOATS))
def test_float_keys_are_equal_where_their_numbers_are_and_all_nan_are_one(rows: Any) -> None:
    check(rows, ["float32"])


@given(batches_of(WHOLE, TEXT, st.booleans()))
def test_several_columns_are_one_key(rows: Any) -> None:
    check(rows, ["int64", "text", "bool"])


@pytest.mark.parametrize("span", [1, 16, 1 << 20])
@given(values=st.lists(st.lists(st.none() | st.integers(-40, 40), max_size=20), min_size=2))
def test_table_and_dictionary_give_the_same_codes(
    span: int, values: list[list[int | None]]
) -> None:
    known: dict[int | None, int] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codes_page, "_TABLE_SPAN", span)
        index = IntCodes()
        for batch in values:
            column = column_of(batch, "int64")
            whole = column.values if isinstance(column, Nullable) else column
            found = index.codes(whole, valid_of(column))
            assert found.tolist() == [known.setdefault(value, len(known)) for value in batch]
            assert index.values.tolist() == [value or 0 for value in known]
            assert index.null == known.get(None)


def test_codes_stay_as_they_are_when_the_right_column_gets_many_keys() -> None:
    index = KeyIndex(2)
    first = index.codes([np.array([5, 6]), pa.array(["a", "b"])], 2)
    many = [str(number) for number in range(1_000)]
    index.codes([np.zeros(1_000, np.int64), pa.array(many)], 1_000)
    assert index.codes([np.array([5, 6]), pa.array(["a", "b"])], 2).tolist() == first.tolist()


def test_no_key_columns_are_one_key() -> None:
    assert KeyIndex(0).codes([], 3).tolist() == [0, 0, 0]


def test_negative_numbers_and_those_beyond_int64_are_not_equal() -> None:
    index = KeyIndex(1)
    assert index.codes([np.array([-1, 5])], 2).tolist() == [0, 1]
    assert index.codes([np.array([2**64 - 1, 5], np.uint64)], 2).tolist() == [2, 1]
    assert index.codes([np.array([-1], np.int8)], 1).tolist() == [0]


def test_snapshot_of_keys_of_two_widths_keeps_the_wide_ones() -> None:
    index = KeyIndex(1)
    index.codes([np.array([1], np.int8)], 1)
    index.codes([np.array([1_000], np.int64)], 1)
    restored = KeyIndex(1)
    restore(restored, save(index))
    assert restored.codes([np.array([1_000, 1])], 2).tolist() == [1, 0]


def test_null_keys_are_told_apart() -> None:
    text = pa.array(["a", None, "b", "c"])
    numbers = Nullable(np.array([1.0, 2.0, 0.0, NAN]), np.array([True, True, False, True]))
    found = any_null([text, numbers, np.array([1, 2, 3, 4])])
    assert found is not None
    assert found.tolist() == [False, True, True, False]
    assert any_null([pa.array(["a"]), np.array([1.0])]) is None


ANY_VALUE = st.one_of(st.none(), st.text(max_size=3), st.integers(2**63, 2**64 - 1))


@given(st.lists(st.lists(ANY_VALUE, max_size=70), max_size=6))
def test_values_saved_piece_by_piece_are_all_values(batches: list[list[Any]]) -> None:
    codes, earlier = HashCodes(), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codes_page, "PIECE", 8)
        for batch in batches:
            for value in batch:
                kind = pa.uint64() if isinstance(value, int) else pa.string()
                codes.codes(pa.array([value], kind))
            state = codes.snapshot()
            earlier.append((state, to_plain(state), [*codes.values]))
        for state, saved, values in earlier:  # none has changed since
            for each in (state, from_plain(saved)):
                again = HashCodes()
                again.restore(each)
                assert again.values == values
                assert again.find(values).tolist() == [*range(len(values))]
                assert canonical(again.snapshot()) == canonical(state)
        assert canonical(HashCodes(codes.values).snapshot()) == canonical(codes.snapshot())


def test_whole_pieces_of_texts_are_saved_once() -> None:
    codes = HashCodes()
    codes.codes(pa.array([f"text {n}" for n in range(codes_page.PIECE + 9)]))
    first = codes.snapshot()
    codes.codes(pa.array(["another"]))
    second = codes.snapshot()
    assert second[0] is first[0]
    assert [len(piece) for piece in second] == [codes_page.PIECE, 10]
