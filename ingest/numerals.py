"""Parse numbers of a CSV file's text exactly, or refuse them as numbers.

`00501`, `+48123` and `0x1F` are often codes, so a guess keeps them as text. Whole numbers that no
type holds exactly stay text too: as floats, ids would merge.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.exact_casts import cast_of_decimals, first_refused
from slackwater.runtime.model.zones import instants_in

__all__ = [
    "Misfit",
    "cast_all",
    "cast_text",
    "code_as",
    "codes",
    "guessed_type",
    "inexact_as",
    "is_same",
    "numbers_of",
    "text_as",
]

NULLS = (
    "",
    "#N/A",
    "#N/A N/A",
    "#NA",
    "-1.#IND",
    "-1.#QNAN",
    "-NaN",
    "-nan",
    "1.#IND",
    "1.#QNAN",
    "N/A",
    "NA",
    "NULL",
    "NaN",
    "n/a",
    "nan",
    "null",
)
"""Texts of a missing number: those of Arrow and of pandas."""
_EXACT = 1 << 53
"""Whole numbers up to here are exact as float64."""
_NONZERO = "^[^eE]*[1-9]"
"""Texts of numbers that are not zero."""
_ZERO, _NINE, _PLUS, _MINUS, _X, _x = b"09+-Xx"


class Misfit(NamedTuple):
    """A value that is none of its column's type.

    Attributes:
        row: its row, from 0.
        why: reason of the refusal.
    """

    row: int
    why: str


def guessed_type(
    text: pa.StringArray, guess: pa.DataType, *, nulls: tuple[str, ...] = NULLS
) -> pa.DataType:
    """Return the type of numbers whose type Arrow guessed; text if inexact.

    Args:
        text: text of the file.
        guess: type, int64 or float64.
        nulls: texts of a missing number.
    """
    if _first_code(arrow_functions().utf8_trim_whitespace(text)) is not None:
        return pa.string()
    if pa.types.is_integer(guess):
        return guess
    # Arrow guesses floats of whole numbers beyond int64.
    inexact = _first_inexact(text, numbers_of(text, guess, is_guess=False, nulls=nulls))
    if inexact is None and not _are_whole(text, nulls):
        return guess
    whole = numbers_of(text, pa.uint64(), is_guess=False, nulls=nulls)
    return pa.string() if isinstance(whole, Misfit) else pa.uint64()


def numbers_of(
    text: pa.StringArray, to: pa.DataType, *, is_guess: bool, nulls: tuple[str, ...] = NULLS
) -> pa.Array | Misfit:
    """Return text as numbers or durations, or its first misfit.

    Args:
        text: text of the file.
        to: a type of these.
        is_guess: whether the type is a guess, not given by the user: then no value is rounded.
        nulls: texts of a missing number.
    """
    trimmed = text
    try:
        numbers = text_as(text, to)
        if pa.types.is_floating(to) and _has_nan(numbers):  # some words of which may be null
            trimmed = arrow_functions().utf8_trim_whitespace(text)
    except pa.ArrowInvalid:
        trimmed = arrow_functions().utf8_trim_whitespace(text)
    code = _first_code(trimmed) if is_guess else None
    if code is not None:
        return Misfit(code, code_as(to))
    if trimmed is not text:
        is_null = arrow_functions().is_in(trimmed, value_set=pa.array(nulls, pa.string()))
        try:
            numbers = text_as(arrow_functions().if_else(is_null, None, trimmed), to)
        except pa.ArrowInvalid:
            row = _first_refused(arrow_functions().if_else(is_null, None, trimmed), to, text_as)
            return Misfit(row, f"is no {to}")
    inexact = _first_inexact(text, numbers) if is_guess and pa.types.is_floating(to) else None
    return numbers if inexact is None else Misfit(inexact, inexact_as(to))


def code_as(to: pa.DataType) -> str:
    """Return why a text that looks like a code is bad."""
    return f"begins like a code, and the column is {to} so far"


def inexact_as(to: pa.DataType) -> str:
    """Return why a number that a float would change is bad."""
    return f"would be another number as {to}"


def _has_nan(numbers: pa.Array) -> bool:
    values = np.frombuffer(numbers.buffers()[1], numbers.type.to_pandas_dtype())
    return bool(np.isnan(values[numbers.offset : numbers.offset + len(numbers)]).any())


def cast_text(text: pa.StringArray, to: pa.DataType) -> pa.Array | Misfit:
    """Return text as Arrow casts it, or its first misfit."""
    return cast_all(text, to, text_as)


def text_as(text: pa.StringArray, to: pa.DataType) -> pa.Array:
    """Cast text by Arrow, but times of day, durations and zoned times by our rules.

    Raises:
        ArrowInvalid: a text is not such a value.
    """
    if pa.types.is_duration(to):
        return durations_in(text, to)
    if pa.types.is_timestamp(to) and to.tz is not None:
        return instants_in(text, to)
    if not pa.types.is_time(to):
        return cast_of_decimals(text, to)
    of_first_day = arrow_functions().binary_join_element_wise("1970-01-01T", text, "")
    return of_first_day.cast(pa.timestamp(to.unit)).cast(to)


def cast_all(
    values: pa.Array, to: pa.DataType, cast: Callable[[pa.Array, pa.DataType], pa.Array]
) -> pa.Array | Misfit:
    """Return cast values, or the first misfit.

    Args:
        values: column of numerals, as text.
        to: type of the result.
        cast: returns them, or raises ArrowInvalid.
    """
    try:
        return cast(values, to)
    except pa.ArrowInvalid as problem:
        reason = _UNPARSED.sub("", str(problem))
        row = _first_refused(values, to, cast)
        return Misfit(row, f"is no {to}{': ' if reason else ''}{reason}")


_UNPARSED = re.compile(r"^Failed to parse string: .* as a scalar of type [^:]*(: )?", re.S)


def _first_code(text: pa.StringArray) -> int | None:
    """Return the first text that starts like a code."""
    are = codes(text)
    return int(are.argmax()) if are.any() else None


def codes(text: pa.StringArray) -> npt.NDArray[np.bool_]:
    """Return which texts start like a code: `+1`, `01` or `0x`."""
    are = np.zeros(len(text), np.bool_)
    if not len(text):
        return are
    _, ends, data = text.buffers()
    if data is None or not data.size:
        return are
    places = np.frombuffer(ends, np.int32)[text.offset : text.offset + len(text) + 1]
    starts, sizes = places[:-1], places[1:] - places[:-1]
    of_bytes = np.frombuffer(data, np.uint8)
    first = of_bytes.take(starts, mode="clip")
    rows = ((first <= _ZERO) & (sizes > 1)).nonzero()[0]  # signs are below, other digits above
    if not len(rows):
        return are
    starts, sizes, first = starts[rows], sizes[rows], first[rows]
    is_signed = first == _MINUS
    starts, sizes = starts + is_signed, sizes - is_signed
    zero = of_bytes.take(starts, mode="clip") == _ZERO
    then = of_bytes.take(starts + 1, mode="clip")
    is_led = zero & (sizes > 1) & (_is_digit(then) | (then == _X) | (then == _x))
    are[rows] = (first == _PLUS) | is_led
    return are


def _is_digit(of_bytes: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
    return (of_bytes >= _ZERO) & (of_bytes <= _NINE)


def _first_inexact(text: pa.StringArray, numbers: pa.Array) -> int | None:
    """Return the first number that a float would change.

    That is a whole number that it rounds (`9007199254740993.0` is whole), or one that becomes inf
    or 0.
    """
    values = np.abs(numbers.to_numpy(zero_copy_only=False))
    suspects = values >= _EXACT
    zeros = (values == 0).nonzero()[0]
    if not len(zeros) and not suspects.any():
        return None
    if len(zeros):
        nonzero = arrow_functions().match_substring_regex(text.take(pa.array(zeros)), _NONZERO)
        suspects[zeros] = nonzero.to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(suspects).tolist():
        if not is_same(text[row].as_py().strip(), float(numbers[row].as_py())):
            return int(row)
    return None


def _are_whole(text: pa.StringArray, nulls: tuple[str, ...]) -> bool:
    trimmed = arrow_functions().utf8_trim_whitespace(text)
    is_null = arrow_functions().is_in(trimmed, value_set=pa.array(nulls, pa.string()))
    is_whole = arrow_functions().match_substring_regex(trimmed, "^-?[0-9]+$")
    return bool(arrow_functions().all(arrow_functions().or_kleene(is_null, is_whole)).as_py())


def is_same(written: str, number: float) -> bool:
    """Return whether a float is the written number; numbers with a fraction may round.

    Args:
        written: text of the file.
        number: float nearest to it.
    """
    try:
        exact = Decimal(written)
    except InvalidOperation:
        return True  # a word, such as inf
    if not exact.is_finite():
        return True
    if math.isinf(number) or number == 0:
        return bool(exact == number)
    is_written_out = "e" not in written.lower() and exact == exact.to_integral_value()
    return not is_written_out or int(exact) == int(number)


def _first_refused(
    values: pa.Array, to: pa.DataType, cast: Callable[[pa.Array, pa.DataType], pa.Array]
) -> int:
    """Return the place of the first value that cannot be cast; one must exist."""
    return first_refused(
        lambda start, stop: cast(values.slice(start, stop - start), to), len(values)
    )


_DURATION = r"^(?P<number>[+-]?[0-9]+)(?P<unit>s|ms|us|ns|)$"


def durations_in(text: pa.Array, to: pa.DataType) -> pa.Array:
    """Return text as durations of a type.

    A text is "5s", "-250ms" or, in the unit of the type, "5".

    Raises:
        ArrowInvalid: a text is not a duration, or not one of the type.
    """
    of_arrow = arrow_functions()
    parts = of_arrow.extract_regex(of_arrow.utf8_trim_whitespace(text), _DURATION)
    if parts.null_count > text.null_count:
        raise pa.ArrowInvalid("write a whole number and its unit, such as 5s, 250ms, 7us or 9ns")
    numbers, units = parts.flatten()
    whole = of_arrow.replace_substring_regex(numbers, r"^\+", "").cast(pa.int64())
    made = pa.nulls(len(text), to)
    for unit in of_arrow.unique(units).drop_null().to_pylist():
        is_so = of_arrow.equal(units, unit)
        own = of_arrow.if_else(is_so, whole, None).view(pa.duration(unit or to.unit))
        made = of_arrow.if_else(is_so, own.cast(to), made)
    return made
