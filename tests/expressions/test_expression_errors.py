"""What expressions refuse, in whose words; and how they read."""

from __future__ import annotations

import pytest

from slackwater.runtime.errors import ColumnError, FlowError, SettingError, TypeMismatch
from slackwater.runtime.expressions import expressions
from slackwater.runtime.expressions.expressions import (
    Expr,
    coalesce,
    col,
    duration,
    lit,
    when,
    where,
)
from tests.support.rows import SCHEMA


def type_error(expression: Expr) -> str:
    with pytest.raises(TypeMismatch) as caught:
        expression.type_in(SCHEMA, step="slow")
    return str(caught.value)


def test_a_missing_column_is_named_with_the_step_the_nearest_and_all_there_are() -> None:
    with pytest.raises(ColumnError) as caught:
        (col("sped") < 8).type_in(SCHEMA, step="slow")
    assert str(caught.value) == (
        "step 'slow': there is no column 'sped'; the nearest is 'speed'; there are: "
        "speed, single, count, small, hash, stopped, line, seen, planned"
    )
    with pytest.raises(ColumnError, match="nearest is 'line'"):
        col("LINE").type_in(SCHEMA, step="slow")


def test_a_mismatch_names_the_step_the_expression_and_the_types() -> None:
    assert type_error(col("line") < 8) == (
        "step 'slow': col(\"line\") < 8: compares string with int64; "
        "cast the text, .cast('int64'), or write the number as text"
    )


DECIMAL = col("count").cast("decimal128(5, 2)")


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (col("seen") > 5, "compare a timestamp with a datetime"),
        (col("stopped") < True, "does not order true and false"),
        (col("count") & col("stopped"), "put comparisons in parentheses: (a < 1) & (b > 2)"),
        (~col("count"), "~ takes true/false columns, not int64"),
        (col("line") + 1, "+ takes numbers, not string and int64; of two texts + makes one"),
        (col("seen") + col("seen"), "from a timestamp subtract another one"),
        (col("seen") + 1.5, "not timestamp[ns, tz=UTC] and double"),
        (col("seen") + col("hash"), "not timestamp[ns, tz=UTC] and uint64"),
        (col("hash") + col("count"), "mixes uint64 with int64"),
        (col("hash") - -1, "mixes uint64 with int64"),
        (col("hash") % col("count"), "with int64; cast one where its values fit the other"),
        (-col("hash"), "uint64 has no negative numbers"),
        (col("line").sqrt(), "sqrt takes numbers, not string"),
        (where(col("count"), 1, 2), "chooses by a true/false column, not by int64"),
        (where(col("stopped"), 1, "a"), "chooses between int64 and string"),
        (col("line").fill_null(0), "fills string with int64"),
        (coalesce(col("line"), 0), 'coalesce(col("line"), 0): fills string with int64'),
        (coalesce(DECIMAL, col("count")), "write .cast('decimal128(21, 2)') on both"),
        (coalesce(DECIMAL, col("speed")), "write .cast('double') on both"),
        (
            when(col("stopped")).then(DECIMAL).when(col("count") > 1).then(DECIMAL).otherwise("a"),
            '.when(col("count") > 1).then(col("count").cast("decimal128(5, 2)")).otherwise("a"): '
            "chooses between decimal128(5, 2) and string",
        ),
        (where(col("stopped"), DECIMAL * 2, DECIMAL), "write .cast('decimal128(7, 2)') on both"),
        (col("count").is_in(["a"]), "compares int64 with string"),
        (col("count").between(1, "b"), "compares int64 with string"),
        (col("seen").cast("bool"), "cannot cast timestamp[ns, tz=UTC] to bool; write != 0"),
        (col("count").cast("bool"), "cannot cast int64 to bool; write != 0"),
        (col("speed").cast("timestamp"), "cast it to int64 first"),
    ],
    ids=str,
)
def test_types_that_do_not_meet_are_refused(expression: Expr, words: str) -> None:
    assert words in type_error(expression)


def test_a_long_list_of_values_is_cut_in_errors_and_whole_in_fingerprints() -> None:
    long = col("line").is_in(list(range(20_000)))
    for text in (type_error(long), str(long), repr(long)):
        assert len(text) < 5_000
    assert "19999]" in str(long)
    other = col("line").is_in([*range(10_000), -1, *range(10_001, 20_000)])
    assert str(long) == str(other)
    assert long.full_text() != other.full_text()


def test_the_text_of_a_set_of_values_has_one_order() -> None:
    words = {f"{number}{letter}" for number in range(9) for letter in "ab"}
    written = str(col("line").is_in(sorted(words)))
    assert str(col("line").is_in(words)) == str(col("line").is_in(frozenset(words))) == written


def test_a_choice_without_otherwise_is_refused_with_the_way_out() -> None:
    with pytest.raises(TypeMismatch, match=r"when\(.*\)\.then\(1\) .*; write \.otherwise\(value\)"):
        col("count") + when(col("stopped")).then(1)  # type: ignore[operator]


def test_what_cannot_stand_in_an_expression_is_refused_with_the_way_out() -> None:
    with pytest.raises(TypeMismatch, match=r"None cannot .* write \.is_null\(\)"):
        col("line") == None  # noqa: B015, E711 - the mistake that is meant
    with pytest.raises(TypeMismatch, match=r"write \.is_in"):
        col("line") == ["a"]  # noqa: B015 - the mistake that is meant
    with pytest.raises(TypeMismatch, match=r"is_in\(\['ab'\]\)"):
        col("line").is_in("ab")
    with pytest.raises(TypeMismatch, match="does not fit in 64 bits"):
        lit(2**64)
    with pytest.raises(TypeMismatch, match=r"no type 'flaot64'; the nearest is 'float64'"):
        col("count").cast("flaot64")
    with pytest.raises(TypeMismatch, match="takes a column's name"):
        col(3)  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="not a length of time"):
        duration("soon")


def test_python_cannot_ask_whether_an_expression_is_true() -> None:
    for ask in (
        lambda: col("a") < 1 and col("b") < 2,
        lambda: not col("a"),
        lambda: 1 < col("a") < 3,
        lambda: col("a") < 3 & col("b") > 4,  # type: ignore[operator]
        lambda: col("a") in [col("b")],
    ):
        with pytest.raises(FlowError, match=r"write & \| ~ .*\.between\(a, b\).*\.is_in"):
            ask()


WRITTEN = [
    'col("speed") < 8',
    '(col("a") < 8) & (col("b") >= 2) | ~(col("c") == "x")',
    'col("a") - (col("b") - col("c")) - 1',
    '(col("a") + 1) * 2 / 3 // 4 % 5',
    '(col("a") ** 2) ** 3',
    '-col("a") ** 2',
    '(-col("a")) ** 2',
    'abs(col("a") - 3).floor()',
    '(col("a") / 7).round(2).cast("int64")',
    'col("a").is_in([1, 2.5])',
    'col("a").between(1, col("b") + 1)',
    'col("a").fill_null(0).is_null()',
    'where(col("a") > 0, col("b"), "none")',
    'event_time() - duration("30s")',
    'lit(3) - col("a")',
    '(col("a") < 1) == (col("b") < 2)',
]


@pytest.mark.parametrize("text", WRITTEN)
def test_an_expression_reads_as_it_was_written(text: str) -> None:
    assert str(eval(text, vars(expressions))) == text  # noqa: S307 - our own text
