"""A bool or text that Python makes of an expression, before there are rows, is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import slackwater as sw
from slackwater.runtime.errors import FlowError, TypeMismatch

S, T = sw.col("s"), sw.col("t")
NONE: Any = S is None


def rows() -> sw.Stream:
    flow = sw.Dataflow("f")
    return flow.source("s", sw.table({"t": [1], "s": ["a"]}), event_time="t", time_unit="s")


BARE: dict[str, Callable[[], Any]] = {
    "filter": lambda: rows().filter(NONE),
    "when": lambda: sw.when(NONE),
    "second when": lambda: sw.when(T > 1).then(1).when(NONE),
    "where": lambda: sw.where(NONE, 1, 2),
    "and": lambda: (T > 1) & NONE,
    "and before": lambda: NONE & (T > 1),
    "or": lambda: (T > 1) | NONE,
    "or before": lambda: NONE | (T > 1),
    "numpy": lambda: rows().filter(np.bool_(True)),  # type: ignore[arg-type]
    "join": lambda: (one := rows()).join(one, on="s", within="1s", where=NONE),
    "count": lambda: sw.count(where=NONE),
    "sum": lambda: sw.sum("t", where=NONE),
    "custom": lambda: sw.custom(list, max, max, max, "int64", where=NONE),
    "first": lambda: rows().followed_by(first=NONE, then=T > 1, within="1s"),
}


@pytest.mark.parametrize("call", BARE.values(), ids=BARE)
def test_a_bool_in_place_of_a_condition_is_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeMismatch, match=r"Python has made it (True|False) .*\.is_null\(\)"):
        call()


def test_a_literal_may_choose_all_rows_or_none() -> None:
    assert "keeps    lit(True)" in rows().filter(sw.lit(True)).flow.explain()
    assert str((T > 1) & sw.lit(False)) == '(col("t") > 1) & lit(False)'


TEXTS: list[Callable[[Any], str]] = [
    lambda x: f"{x}-x",
    lambda x: f"{x:>5}",
    "{}-x".format,
    format,
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("given", [S, S + "b", sw.lit(1), sw.event_time(), S.str.upper()], ids=str)
def test_an_f_string_of_an_expression_is_refused(text: Callable[[Any], str], given: Any) -> None:
    with pytest.raises(
        FlowError, match=re.escape(f"{given!s} has a value for each row") + r".* write \+ "
    ):
        text(given)


def test_texts_of_expressions_are_had_by_words() -> None:
    assert f"{S!s}, {S!r}" == 'col("s"), <col("s")>'
