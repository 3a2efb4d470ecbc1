"""Groups of a pattern that have no part in a match, and days that a year lacks."""

from __future__ import annotations

import pyarrow as pa
import pytest

from slackwater.runtime.errors import OperatorError, TypeMismatch
from slackwater.runtime.expressions.expressions import Expr, col
from slackwater.runtime.model import batch_of
from tests.support.rows import evaluated

ABSENT = [
    (r"(x)|(y)", 1, ["x", None, None]),
    (r"(x)|(y)", 2, [None, "y", None]),
    (r"(z)?([xy]?)", 1, [None, None, "z"]),
    (r"(z)?([xy]?)", 2, ["x", "y", ""]),
    (r"(?:(x)|[yz])+", 1, ["x", None, None]),
    (r"(q*)", 1, ["", "", ""]),
    (r"(\pL)|(\d)", 1, ["x", "y", "z"]),
]


def texts_of(made: Expr, texts: list[str]) -> list[object]:
    return [
        one.as_py() for one in evaluated(made, batch_of(range(len(texts)), {"s": pa.array(texts)}))
    ]


@pytest.mark.parametrize(("pattern", "group", "right"), ABSENT)
def test_a_group_without_part_in_a_match_is_null(
    pattern: str, group: int, right: list[str | None]
) -> None:
    assert texts_of(col("s").str.extract(pattern, group), ["x", "y", "z"]) == right


NO_GROUPS = [
    (r"[](](\d+)", ["P5", "(5", "]5"], [None, "5", "5"]),
    (r"[^](](\d+)", ["P5", "(5"], ["5", None]),
    (r"[[:alpha:](](\d+)", ["?5", "(5", "a5"], [None, "5", "5"]),
    (r"[[:^alpha:]()](\d)?", ["?5", "(", "a"], ["5", "", None]),
    (r"\Q(\E(\d+)", ["(5", "5"], ["5", None]),
    (r"\\(\d)\((\d)", ["\\1(2"], ["1"]),
    (r"(?:x)(?<own>y)?", ["x", "xy"], [None, "y"]),
]


@pytest.mark.parametrize(("pattern", "texts", "right"), NO_GROUPS)
def test_a_parenthesis_in_a_class_or_quoted_is_no_group(
    pattern: str, texts: list[str], right: list[str | None]
) -> None:
    assert texts_of(col("s").str.extract(pattern), texts) == right


@pytest.mark.parametrize(
    ("pattern", "value"), [("(a)", r"\2"), ("a", r"C:\temp"), ("a", "\\"), ("(?P<x>a)", r"\g<x>")]
)
def test_a_replacement_that_no_match_can_have_is_refused_at_the_line(
    pattern: str, value: str
) -> None:
    with pytest.raises(TypeMismatch, match=r"str\.replace\(.*write \\\\ for a backslash"):
        col("s").str.replace(pattern, value)
    assert texts_of(col("s").str.replace("a", value, literal=True), ["a"]) == [value]


def test_places_beyond_64_bits_are_refused_and_long_slices_end_with_the_text() -> None:
    for place in (2**63, -(2**64)):
        with pytest.raises(TypeMismatch, match=r"str\.slice: start=.* must fit 64 bits"):
            col("s").str.slice(place)
    with pytest.raises(TypeMismatch, match=r"list\.slice: length=.* must fit 64 bits"):
        col("s").list.slice(0, 2**63)
    most = 2**63 - 1
    assert texts_of(col("s").str.slice(1, most), ["abc"]) == ["bc"]
    assert texts_of(col("s").str.slice(-2, most), ["abc"]) == ["bc"]
    lists = batch_of([0, 1], {"s": pa.array([["a"], ["b", "c"]])})
    for start, right in ((1, [[], ["c"]]), (most, [[], []])):
        assert evaluated(col("s").list.slice(start, most), lists).to_pylist() == right


NO_DAYS = [
    ("2023-366", "%Y-%j"),
    ("2023366", "%Y%j"),
    ("2023-53-1", "%G-%V-%u"),
    ("53 2023 1", "%W %Y %w"),
]
DAYS = [
    ("2024-366", "%Y-%j"),
    ("2023-365", "%Y-%j"),
    ("2020-53-5", "%G-%V-%u"),
    ("2024-1", "%Y-%j"),
]


@pytest.mark.parametrize(("text", "form"), NO_DAYS)
def test_a_day_that_its_year_lacks_is_refused(text: str, form: str) -> None:
    with pytest.raises(OperatorError, match="its year has no such day"):
        evaluated(col("s").str.to_time(form), batch_of([1], {"s": pa.array([text])}))


@pytest.mark.parametrize(("text", "form"), DAYS)
def test_the_last_day_of_a_year_is_a_time(text: str, form: str) -> None:
    evaluated(col("s").str.to_time(form), batch_of([1], {"s": pa.array([text])}))
