"""Families of types, and the operands that can be compared."""

from __future__ import annotations

import pyarrow as pa

from slackwater.runtime.errors import TypeMismatch
from slackwater.runtime.expressions.decimals import decimal_of
from slackwater.runtime.expressions.function import Operand
from slackwater.runtime.model.decimal_types import MOST_WIDE_DIGITS, digits_of_both
from slackwater.runtime.model.schema import (
    is_binary,
    is_nested,
    is_text,
    is_time,
    nanoseconds_type,
    read_type,
)

__all__ = ["check_comparable", "computed_type", "family"]


def computed_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which operations take a column of a type: times in nanoseconds."""
    if pa.types.is_duration(kind):
        return pa.int64()
    return nanoseconds_type(kind) if is_time(kind) else read_type(kind)


def family(of: pa.DataType) -> str:  # noqa: PLR0911 - one for each
    """Return the family of a type: types of one can be compared with each other.

    "number", "decimal", "bool", "text", "timestamp", "time", "duration", "bytes" or "nested".
    """
    if pa.types.is_boolean(of):
        return "bool"
    if pa.types.is_timestamp(of) or pa.types.is_date(of):
        return "timestamp"
    if pa.types.is_time(of) or pa.types.is_duration(of):
        return "time" if pa.types.is_time(of) else "duration"
    if pa.types.is_decimal(of):
        return "decimal"
    if is_binary(of):
        return "bytes"
    if is_nested(of):
        return "nested"
    return "text" if is_text(of) else "number"


def check_comparable(op: str, left: Operand, right: Operand) -> None:
    """Check that a comparison takes two operands.

    Raises:
        TypeMismatch: their types differ in kind, or have no order; the text does not name the step.
    """
    families = {family(left.type), family(right.type)}
    if "decimal" in families and families <= {"number", "decimal"}:
        _check_digits(op, left, right)
        return
    if "nested" in families:
        raise TypeMismatch(f"compares {left.type} with {right.type}; compare what is in it")
    if len(families) == 2:
        way_out = "cast one of them, such as .cast('string')"
        if families == {"text", "number"}:
            number = right if family(right.type) == "number" else left
            way_out = f"cast the text, .cast('{number.type}'), or write the number as text"
        if "timestamp" in families:
            way_out = "compare a timestamp with a datetime or with another timestamp"
        raise TypeMismatch(f"compares {left.type} with {right.type}; {way_out}")
    if families == {"bool"} and op not in ("==", "!=", "is_in"):
        raise TypeMismatch(f"{op} does not order true and false; use == or !=")


def _check_digits(op: str, left: Operand, right: Operand) -> None:
    """Check that decimals can be compared exactly; `is_in` omits values that do not fit."""
    if op == "is_in" or any(pa.types.is_floating(each.type) for each in (left, right)):
        return
    digits, _ = digits_of_both(*[decimal_of(each.type, each.value) for each in (left, right)])
    if digits > MOST_WIDE_DIGITS:
        raise TypeMismatch(
            f"compares {left.type} with {right.type}, which takes {digits} digits, and a decimal "
            f"has {MOST_WIDE_DIGITS} at most; cast one to fewer digits where its values fit"
        )
