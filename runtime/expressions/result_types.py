"""Types of expressions, from those of their operands, checked when a flow is built.

Integers are computed in int64, so that `int8 + int8` cannot overflow at 127; uint64 stays
uint64, and mixes with whole literals ≥ 0 and with floats only. float32 stays float32 beside
a literal and another float32; any other mix with floats is float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from slackwater.runtime.errors import SchemaError, TypeMismatch
from slackwater.runtime.expressions.comparable import check_comparable, family
from slackwater.runtime.expressions.decimals import (
    DECIMAL_FUNCTIONS,
    arithmetic,
    decimal_of,
    literal_of,
)
from slackwater.runtime.expressions.function import Operand
from slackwater.runtime.expressions.holding import cast_of_both, holding_type
from slackwater.runtime.model.decimal_types import usual_decimal
from slackwater.runtime.model.schema import (
    GUESSED,
    OF_SOURCE,
    inside_type,
    is_read,
    is_time,
)
from slackwater.runtime.model.type_names import arrow_type
from slackwater.runtime.other_names import answer_to, way_out_of

TYPES = {  # name in user code: type inside
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("ns"),
    "date": pa.date32(),
    "time": pa.time64("ns"),
    "float": pa.float32(),  # this and the next as Arrow prints them
    "double": pa.float64(),
}


def type_named(name: str) -> pa.DataType:
    """Return the type of a name in user code.

    Raises:
        TypeMismatch: no type has that name; names the nearest, or asks for the width of an integer.
    """
    if not isinstance(name, str):
        called = str(getattr(name, "__name__", name))  # int, numpy.int64, polars.Int64
        near = answer_to("type", called) or f"write one of: {', '.join(TYPES)}"
        raise TypeMismatch(f"{name!r} is not a type; {near}")
    if name not in TYPES:
        known = arrow_type(name)
        if known is not None and pa.types.is_decimal(known):
            return usual_decimal(known)
        if known is not None and is_time(known):
            return known
        raise TypeMismatch(f"there is no type {name!r}; {way_out_of('type', name, TYPES)}")
    return TYPES[name]


def type_declared(name: str, kind: str | pa.DataType) -> pa.DataType:
    """Return the type inside of values that a user's function returns.

    Args:
        name: name of the column, for errors.
        kind: a type of Arrow, or its name.

    Raises:
        TypeMismatch, SchemaError: there is no such type, or it does not travel.
    """
    known = arrow_type(kind) if isinstance(kind, str) and kind not in TYPES else kind
    return inside_type(name, known) if isinstance(known, pa.DataType) else type_named(kind)


def type_read(field: pa.Field, *, step: str) -> pa.DataType:
    """Return the type of a column that a step reads.

    Raises:
        SchemaError: channels cannot carry the type; names the column's source.
    """
    inside: pa.DataType = field.type
    if not is_read(field):
        source = (field.metadata or {}).get(OF_SOURCE, b"").decode()
        who = f"source {source!r}: " if source else ""
        why = (field.metadata or {}).get(GUESSED, b"").decode()
        if why:
            raise SchemaError(f"{who}column {field.name!r} {why}. Step {step!r} reads it")
        try:
            inside_type(field.name, inside)
        except SchemaError as problem:
            raise SchemaError(f"{who}{problem}. Step {step!r} reads it") from None
    return inside


def compare(op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    """Return the type of a comparison."""
    for other in operands[1:]:
        check_comparable(op, operands[0], other)
    return pa.bool_()


def is_in(op: str, operands: Sequence[Operand], option: Sequence[Operand]) -> pa.DataType:
    """Return the type of `is_in`, whose option has the values."""
    return compare(op, (*operands, *option), None)


def add(op: str, operands: Sequence[Operand], option: Any) -> pa.DataType:
    """Return the type of `+`: numbers, texts, or a timestamp and nanoseconds."""
    left, right = operands
    if family(left.type) == "timestamp" and _is_signed(right):
        return left.type
    if family(right.type) == "timestamp" and _is_signed(left):
        return right.type
    if family(left.type) == family(right.type) == "text":
        return pa.string()
    return of_numbers(op, operands, option)


def subtract(op: str, operands: Sequence[Operand], option: Any) -> pa.DataType:
    """Return the type of `-`: of numbers, of two timestamps, or of one and nanoseconds."""
    left, right = operands
    if family(left.type) == "timestamp":
        if family(right.type) == "timestamp":
            return pa.int64()
        if _is_signed(right):
            return left.type
    return of_numbers(op, operands, option)


def divide(op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    """Return the type of `/`: a float."""
    if _has_decimal(operands):
        return pa.float64()
    check_numbers(op, operands)
    if all(pa.types.is_integer(operand.type) for operand in operands):
        return pa.float64()
    return common_number(*operands)


def power(op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    """Return the type of `**`: whole only for literals of 0 or more."""
    check_numbers(op, operands)
    base, exponent = operands
    if pa.types.is_integer(base.type) and pa.types.is_integer(exponent.type):
        is_whole = exponent.is_literal and not base.is_literal and int(exponent.value or 0) >= 0
        return common_number(base, exponent) if is_whole else pa.float64()
    return common_number(base, exponent)


def of_numbers(op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    """Return the type of an operation of two numbers, or of decimals."""
    if op in DECIMAL_FUNCTIONS and _has_decimal(operands):
        return _of_decimals(op, operands)
    check_numbers(op, operands)
    return common_number(*operands, has_decimals=op in DECIMAL_FUNCTIONS)


def _has_decimal(operands: Sequence[Operand]) -> bool:
    families = {family(operand.type) for operand in operands}
    return "decimal" in families and families <= {"decimal", "number"}


def _of_decimals(op: str, operands: Sequence[Operand]) -> pa.DataType:
    """Return the decimal type of the results of +, - or *."""
    types = [operand.type for operand in operands]
    if any(map(pa.types.is_floating, types)):
        return pa.float64()
    sides = [decimal_of(operand.type, operand.value) for operand in operands]
    try:
        return arithmetic(op, *[pa.array([], side) for side in sides]).type
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as problem:
        raise TypeMismatch(
            f"{types[0]} {op} {types[1]} has no decimal that holds each result ({problem}); "
            "cast one of them to 'float64', or to a decimal of fewer digits"
        ) from None


def of_sign(op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    """Return the type of the negative or of `abs`."""
    if _has_decimal(operands):
        return operands[0].type
    check_numbers(op, operands)
    if op == "negative" and operands[0].type == pa.uint64():
        raise TypeMismatch("uint64 has no negative numbers; write .cast('decimal128(20, 0)') first")
    return widened(operands[0].type)


def widened_number(_op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    """Return the type of a number that stays one of its kind."""
    return widened(operands[0].type)


def as_float(_op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    """Return the type of a float that is computed from a number."""
    return pa.float64() if pa.types.is_integer(operands[0].type) else operands[0].type


def coalesce(op: str, operands: Sequence[Operand], option: Any) -> pa.DataType:
    """Return the type of `coalesce`."""
    first, *others = operands
    for each in others:
        first = Operand(fill_null(op, (first, each), option))
    return first.type


def fill_null(_op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    """Return the type of `fill_null`."""
    values, filling = operands
    _check_same_family("fills", values, "with", filling)
    if "decimal" in (family(values.type), family(filling.type)) or (
        family(values.type) != "number"
    ):
        if values.is_literal and family(values.type) != family(filling.type):
            raise TypeMismatch(_of_one_type("fills", values, "with", filling))
        _check_same_decimals("fills", values, "with", filling)
        return values.type
    if pa.types.is_integer(values.type) and pa.types.is_floating(filling.type):
        way_out = "fill with a whole number"
        if pa.float64() == holding_type(values, Operand(pa.float64())):
            way_out = "write .cast('float64') first, or a whole number"
        raise TypeMismatch(
            f"fills {values.type} with {filling.type}, which would make whole numbers floats; "
            f"{way_out}"
        )
    return common_number(
        Operand(values.type), filling
    )  # the first operand counts as a column, even if it is a literal


def when(op: str, operands: Sequence[Operand], option: Any) -> pa.DataType:
    """Return the type of a choice by conditions."""
    chosen = operands[-1]
    for place in range(len(operands) - 3, -1, -2):
        chosen = Operand(where(op, (*operands[place : place + 2], chosen), option))
    return chosen.type


def where(op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    """Return the type of a choice between two values."""
    condition, yes, no = operands
    if family(condition.type) != "bool":
        raise TypeMismatch(f"{op} chooses by a true/false column, not by {condition.type}")
    _check_same_family("chooses between", yes, "and", no)
    if family(yes.type) == family(no.type) == "number":
        return common_number(yes, no)
    _check_same_decimals("chooses between", yes, "and", no)
    return no.type if yes.is_literal else yes.type


def cast(op: str, operands: Sequence[Operand], option: str) -> pa.DataType:
    """Return the type of a cast, whose option is its name."""
    (operand,) = operands
    source, target = operand.type, type_named(option)
    source_family, target_family = family(source), family(target)
    is_whole = pa.types.is_integer(source)
    of_times = {"timestamp", "time", "duration"}
    if target_family == "time" and pa.types.is_date(operand.own or source):
        raise TypeMismatch(f"cannot {op} a date to {target}; a date has no time of day")
    allowed = {  # {family of the source: families that it can become}
        "number": {"number", "text", "decimal"} | (of_times if is_whole else set()),
        "bool": {"number", "text", "bool", "decimal"},
        "text": {"number", "text", "decimal", "bool", "bytes", "timestamp", "time"},
        "timestamp": {"text", "timestamp", "time"},
        "time": {"text", "time"},
        "decimal": {"number", "text", "decimal"},
        "bytes": {"text", "bytes"},
        "nested": set(),
    }[source_family]
    of_a_time = source_family in of_times and target in (pa.int64(), pa.float64())
    if target_family not in allowed and not of_a_time:
        way_out = {
            "bool": "write != 0",
        }.get(target_family, "cast it to int64 first, nanoseconds since 1970")
        if source_family == "nested":
            way_out = "take what is in it, such as col('a')['b'] or .list.get(0)"
        raise TypeMismatch(f"cannot {op} {source} to {option}; {way_out}")
    return target


def common_number(left: Operand, right: Operand, *, has_decimals: bool = True) -> pa.DataType:
    """Return the common type of two numbers; a literal takes the column's type.

    Args:
        left: operand on the left.
        right: operand on the right.
        has_decimals: whether decimals have the operation, too, as a way out.

    Raises:
        TypeMismatch: they are uint64 and a signed integer.
    """
    types = (left.type, right.type)
    if all(pa.types.is_integer(each) for each in types):
        if pa.uint64() not in types:
            return pa.int64()
        for side, other in ((left, right), (right, left)):
            gives_way = side.is_literal and not other.is_literal and int(side.value or 0) >= 0
            if side.type != pa.uint64() and not gives_way:
                way_out = "cast one where its values fit the other"
                if has_decimals:
                    way_out = cast_of_both(left, right)
                raise TypeMismatch(f"mixes uint64 with {side.type}; {way_out}")
        return pa.uint64()
    deciding = [each.type for each in (left, right) if not each.is_literal]
    is_single = deciding and all(each == pa.float32() for each in deciding)
    return pa.float32() if is_single else pa.float64()


def widened(of: pa.DataType) -> pa.DataType:
    """Return the type in which a number is computed."""
    return pa.int64() if pa.types.is_integer(of) and of != pa.uint64() else of


def _is_signed(operand: Operand) -> bool:
    return bool(pa.types.is_integer(operand.type)) and operand.type != pa.uint64()


def check_numbers(op: str, operands: Sequence[Operand]) -> None:
    """Check that all operands are numbers.

    Raises:
        TypeMismatch: one is not; says what to write instead.
    """
    families = {family(operand.type) for operand in operands}
    if families == {"number"}:
        return
    way_out = "cast it first, such as .cast('float64')"
    if op == "+" and "text" in families:
        way_out = "of two texts + makes one, so .cast('string') the other, or .cast('float64') text"
    if "decimal" in families:
        way_out = "of decimals there are + - * / abs and comparisons; .cast('float64') for more"
    if "timestamp" in families:
        way_out = (
            "from a timestamp subtract another one, or add or subtract int64 nanoseconds "
            "(duration('30s')); for more, .cast('int64')"
        )
    raise TypeMismatch(f"{op} takes numbers, not {_listed(operands)}; {way_out}")


def _check_same_family(does: str, left: Operand, joint: str, right: Operand) -> None:
    families = {family(left.type), family(right.type)}
    is_whole = any(isinstance(each.value, int) for each in (left, right))
    if len(families) == 2 and not (families == {"number", "decimal"} and is_whole):
        raise TypeMismatch(
            f"{does} {left.type} {joint} {right.type}; both must be numbers, text, "
            f"true/false, times, decimals or bytes; {cast_of_both(left, right)}"
        )


def _check_same_decimals(does: str, left: Operand, joint: str, right: Operand) -> None:
    """Check that two decimals have one type; a literal may fit the other's."""
    if "decimal" not in (family(left.type), family(right.type)) or left.type == right.type:
        return
    literal, column = (left, right) if left.is_literal else (right, left)
    try:
        if literal.is_literal:
            literal_of(column.type, literal.value)
            return
    except pa.ArrowInvalid:
        pass
    raise TypeMismatch(_of_one_type(does, left, joint, right))


def _of_one_type(does: str, left: Operand, joint: str, right: Operand) -> str:
    return (
        f"{does} {left.type} {joint} {right.type}; both must be of one type; "
        f"{cast_of_both(left, right)}"
    )


def _listed(operands: Sequence[Operand]) -> str:
    return " and ".join(str(operand.type) for operand in operands)


def check_conditions(op: str, operands: Sequence[Operand]) -> None:
    """Check that all operands are true or false."""
    if any(family(operand.type) != "bool" for operand in operands):
        raise TypeMismatch(
            f"{op} takes true/false columns, not {_listed(operands)}; "
            "put comparisons in parentheses: (a < 1) & (b > 2)"
        )


def check_float(op: str, operands: Sequence[Operand]) -> None:
    """Check that an operand is a float."""
    check_numbers(op, operands)
    if not pa.types.is_floating(operands[0].type):
        raise TypeMismatch(f"{op} takes floats, not {operands[0].type}, which has no NaN")


def check_flat(op: str, operands: Sequence[Operand]) -> None:
    """Check that an operand is not a list, a struct or a map."""
    if family(operands[0].type) == "nested":
        raise TypeMismatch(f"{op} takes no {operands[0].type}; hash what is in it")
