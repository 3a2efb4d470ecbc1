"""Plain values come back from an Arrow record as they were, bit by bit."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from slackwater.runtime.model.plain import to_plain
from slackwater.runtime.recovery.packed import FEW, LINE, OWN_COLUMN, pack, unpack
from tests.support.plain_values import are_same

ANY_TEXT = st.text(st.characters(), max_size=6)  # half characters, and \0, too
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    ANY_TEXT,
    st.binary(max_size=9),
    st.sampled_from([2**53 + 1, -(2**63), 2**63, 2**64, 2**9_000, -0.0, math.nan, -math.inf]),
)
NUMPY = hnp.arrays(
    st.one_of(
        hnp.boolean_dtypes(),
        hnp.integer_dtypes(endianness="?"),
        hnp.floating_dtypes(),
        hnp.complex_number_dtypes(),
        hnp.datetime64_dtypes(),
        hnp.timedelta64_dtypes(),
        hnp.unicode_string_dtypes(max_len=4),
        hnp.byte_string_dtypes(max_len=4),
        st.just(np.dtype([("row", "<i8"), ("share", "<f4", (2,))])),
    ),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
)
ARROW: dict[pa.DataType, list[Any]] = {
    pa.int8(): [1, -3, None],
    pa.uint64(): [2**64 - 1, None, 0],
    pa.float64(): [0.5, None, -0.0, math.inf],
    pa.bool_(): [True, None, False, True, True],
    pa.string(): ["ü", None, "", "text"],
    pa.large_string(): ["ü", None, "", "text"],
    pa.binary(): [b"\0", None, b"", b"bytes"],
    pa.timestamp("us", "UTC"): [dt.datetime(2026, 11, 30, tzinfo=dt.UTC), None],
    pa.date32(): [dt.date(2026, 11, 30), None],
    pa.decimal128(20, 3): [Decimal("1.250"), None],
    pa.null(): [None, None],
    pa.list_(pa.string()): [["a", None], None, [], ["b"]],
    pa.struct([("a", pa.int64()), ("b", pa.list_(pa.bool_()))]): [{"a": 1, "b": [True]}, None],
    pa.dictionary(pa.int32(), pa.string()): ["a", "b", None, "a"],
    pa.map_(pa.string(), pa.int64()): [[("a", 1)], None, []],
}
"""{type: some of its values}."""


def array_of(kind: pa.DataType, rows: int) -> pa.Array:
    values = ARROW[kind]
    return pa.array([values[n % len(values)] for n in range(rows)], kind)


@st.composite
def arrow_arrays(draw: st.DrawFn) -> pa.Array:
    array = array_of(draw(st.sampled_from([*ARROW])), draw(st.integers(0, 9)))
    return array.slice(draw(st.integers(0, len(array))))


PLAIN = st.recursive(
    st.one_of(SCALARS, NUMPY, arrow_arrays()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.one_of(ANY_TEXT, st.sampled_from(["\0", "\0is"])), inner, max_size=4),
        st.tuples(inner, st.integers(FEW, FEW + 9)).map(lambda drawn: [drawn[0]] * drawn[1]),
    ),
    max_leaves=12,
)


def through_a_file(plain: Any) -> Any:
    """Return values as they come back from the bytes of a file."""
    record, sink = pack(plain), pa.BufferOutputStream()
    with pa.ipc.new_file(sink, record.schema) as writer:
        writer.write_batch(record)
    return unpack(pa.ipc.open_file(sink.getvalue()).get_batch(0))


@given(PLAIN)
def test_any_plain_values_come_back_as_they_were(plain: Any) -> None:
    assert are_same(through_a_file(plain), plain)


@pytest.mark.parametrize("kind", ARROW, ids=str)
@pytest.mark.parametrize("rows", [0, 1, 40])
def test_arrow_arrays_come_back_with_their_type(kind: pa.DataType, rows: int) -> None:
    array = array_of(kind, rows)
    plain = [array, array_of(kind, rows + 1), array.slice(rows // 2), array]
    assert are_same(through_a_file(plain), plain)


def test_arrays_of_one_type_may_have_other_dictionaries() -> None:
    kind = pa.dictionary(pa.int8(), pa.string())
    plain = [pa.array(values, kind) for values in (["a", "b"], ["c"], ["b", "a"])]
    assert are_same(through_a_file(plain), plain)


@pytest.mark.parametrize(
    "values",
    [
        [*range(FEW)],
        [2**62, None] * FEW,
        [2**63] * FEW,
        [0.5, -0.0, math.nan] * FEW,
        ["ü", None, "\0"] * FEW,
        ["\ud800"] * FEW,
        [True, 1] * FEW,
        [None] * FEW,
        [(n, str(n), (n, 0.5)) for n in range(FEW)],
        [(n,) * (n % 2) for n in range(FEW)],
        [()] * FEW,
        [[n, [n] * FEW] for n in range(3 * LINE)],
        [{"n": n, "at": (n, n)} for n in range(LINE + 1)],
    ],
    ids=lambda values: str(values[:3])[:30],
)
def test_long_sequences_come_back_as_they_were(values: list[Any]) -> None:
    plain = {
        "list": values,
        "tuple": tuple(values),
        "dict": {str(n): v for n, v in enumerate(values)},
    }
    assert are_same(through_a_file(plain), plain)


def test_large_arrays_are_not_copied_into_a_record() -> None:
    large, small = np.zeros(OWN_COLUMN, np.uint8), np.ones(9)
    record = pack([large, small])
    places = [column.values.buffers()[1].address for column in record.columns]
    assert large.ctypes.data in places
    assert small.ctypes.data in places  # nothing else of its type is there


def test_arrays_that_come_back_can_be_changed_and_hold_no_others() -> None:
    array, text = through_a_file([np.arange(9), pa.array(["a", "b"])])
    array[0] = 7
    assert array.flags.aligned
    assert array.base is None
    assert text.get_total_buffer_size() < 1_000


@pytest.mark.parametrize(
    "value", [object(), {1: 2}, {3}, np.array([object()]), np.zeros(1, [("a", object)])]
)
def test_what_is_not_plain_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"not plain|not a plain value|not text"):
        pack([value])


@pytest.mark.parametrize("array", [np.array([object()]), np.zeros(1, [("a", object)])])
def test_the_owner_of_an_array_of_objects_is_named(array: Any) -> None:
    with pytest.raises(TypeError, match=r"jams\.rows is a ndarray, .* let its owner's snapshot"):
        to_plain({"rows": array}, where="jams")
