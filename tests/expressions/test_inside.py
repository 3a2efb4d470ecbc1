"""What is inside an expression; what is called sure has a value for every row there can be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.errors import TypeMismatch
from slackwater.runtime.expressions.expressions import Expr, Operation, col, event_time, lit, where
from slackwater.runtime.expressions.inside import (
    alike,
    conjuncts,
    never_fails,
    reads_event_time,
    renamed,
)
from slackwater.runtime.model import Batch
from tests.support.rows import evaluated

WHOLE, UNSIGNED = np.iinfo(np.int64), np.iinfo(np.uint64)
COLUMNS: dict[str, Any] = {
    "i": np.array([WHOLE.min, -1, 0, 1, WHOLE.max]),
    "u": np.array([0, 1, 2, 3, UNSIGNED.max], dtype=np.uint64),
    "s": np.array([-128, -1, 0, 1, 127], dtype=np.int8),
    "f": np.array([-np.inf, -1e308, 0.0, np.nan, np.inf]),
    "h": np.array([-3e38, 0, np.nan, 1, 3e38], dtype=np.float32),
    "b": np.array([True, False, True, False, True]),
    "t": pa.array(["", "a", None, "12", "ü"]),
}
TYPES = {"i": "int64", "u": "uint64", "s": "int8", "f": "double", "h": "float", "b": "bool"}
SCHEMA = pa.schema([(name, TYPES.get(name, "string")) for name in COLUMNS])
TIMES = np.array([0, 1, 2, 3, 4])
BATCH = Batch(event_time_ns=TIMES, stimulus_time_ns=TIMES, columns=COLUMNS)

_UNARY = ("~", "negative", "abs", "floor", "sqrt", "is_null")
_BINARY = ("<", "<=", "==", "!=", "&", "|", "+", "-", "*", "/", "//", "%", "**", "fill_null")


def _combined(parts: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.one_of(
        st.builds(Operation, st.sampled_from(_UNARY), parts),
        st.builds(Operation, st.sampled_from(_BINARY), parts, parts),
        st.builds(Operation, st.sampled_from(("where", "between")), parts, parts, parts),
        st.builds(lambda part, to: part.cast(to), parts, st.sampled_from(("int8", "double"))),
        st.builds(lambda part: part.is_in([0, 1]), parts),
        st.builds(lambda part, digits: part.round(digits), parts, st.sampled_from((0, 1, -1))),
    )


expressions = st.recursive(
    st.one_of(
        st.sampled_from([col(name) for name in COLUMNS]),
        st.sampled_from([lit(0), lit(-1), lit(2.5), lit("a"), lit(2**62), event_time()]),
    ),
    _combined,
    max_leaves=6,
)


@given(expression=expressions)
def test_what_is_sure_has_a_value_for_every_row(expression: Expr) -> None:
    try:
        expression.type_in(SCHEMA, step="s")
    except TypeMismatch:
        return
    if never_fails(expression, SCHEMA):
        assert len(evaluated(expression, BATCH)) == len(TIMES)


@pytest.mark.parametrize(
    ("expression", "sure"),
    [
        (col("i") > 1, True),
        (col("f") * 2 - 1 > 0, True),
        (col("i") / 0 > 1, True),
        (col("t").is_in(["a"]) | ~col("b"), True),
        (where(col("b"), col("i"), 0) >= event_time(), True),
        (col("i") + 1 > 0, False),
        (1 // col("i") > 0, False),
        (abs(col("i")) > 0, False),
        (col("i").cast("int8") > 0, False),
        (col("f").cast("int64") > 0, False),
    ],
)
def test_whole_arithmetic_and_casts_may_be_refused(expression: Expr, sure: bool) -> None:
    assert never_fails(expression, SCHEMA) is sure


def test_conditions_that_must_all_hold_are_told_apart() -> None:
    a, b, c = col("i") > 1, col("f") < 2, col("b") | (col("i") == 0)
    assert [str(each) for each in conjuncts(a & (b & c))] == [str(a), str(b), str(c)]
    assert conjuncts(c) == (c,)


def test_columns_get_other_names_and_nothing_else_changes() -> None:
    expression = (col("a").round(2) + 1 > col("b")) & col("c").is_in([1, 2]) & (event_time() > 0)
    found = renamed(expression, {"a": "x", "b": "y", "c": "a"})
    assert found.columns() == {"x", "y", "a"}
    assert str(found) == str(
        (col("x").round(2) + 1 > col("y")) & col("a").is_in([1, 2]) & (event_time() > 0)
    )
    assert reads_event_time(found)
    assert not reads_event_time(col("a") > 1)


@given(expression=expressions)
def test_an_expression_is_like_itself_renamed_to_its_own_names(expression: Expr) -> None:
    same = renamed(expression, {name: name for name in COLUMNS})
    assert alike(same, expression)


def test_unlike_are_other_columns_values_types_and_options() -> None:
    some = [
        *(col("a"), col("b"), lit(1), lit(1.0), lit(True), lit(0.0), lit(-0.0), event_time()),
        *(col("a").cast("int8"), col("a").cast("int16"), col("a").is_in([1]), col("a").is_in([2])),
        *(col("a").round(1), col("a").round(2), col("a") > 1, col("a") > 2, col("b") > 1),
    ]
    for place, one in enumerate(some):
        assert [alike(one, other) for other in some] == [at == place for at in range(len(some))]
