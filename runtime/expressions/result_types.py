"""Types of expressions, from those of their operands, checked when a flow is built.

Integers are computed in int64, so that `int8 + int8` cannot overflow at 127; uint64 stays
uint64, and mixes with whole literals ≥ 0 and with floats only. float32 stays float32 beside
a literal and another float32; any other mix with floats is float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from slackwater.runtime.errors import SchemaError, TypeMismatch
from slackwater.runtime.expressions.comparable import Operand, check_comparable, family
from slackwater.runtime.expressions.decimals import (
    DECIMAL_FUNCTIONS,
    arithmetic,
    decimal_of,
    literal_of,
)
from slackwater.runtime.expressions.functions import MAP_ELEMENTS, OfFunction
from slackwater.runtime.expressions.holding import cast_of_both, holding_type
from slackwater.runtime.expressions.nested_methods import NESTED
from slackwater.runtime.expressions.text_methods import TEXT
from slackwater.runtime.expressions.time_methods import TIMES, OfType
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
        raise TypeMismatch(f"{name!r} is no type; {near}")
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


def result_type(op: str, operands: Sequence[Operand], option: Any = None) -> pa.DataType:
    """Return the type of `op` over the operands.

    Args:
        op: a key of the rules below, the same as in `kernels.py`.
        operands: operands, as many as the operation takes.
        option: an argument that is no expression: the values of is_in, the type of cast.

    Raises:
        TypeMismatch: the operation does not take these types; the text does not name the step.
    """
    return _RULES[op](op, operands, option)


_Rule = Callable[[str, Sequence[Operand], Any], pa.DataType]


def _compare(op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    for other in operands[1:]:
        check_comparable(op, operands[0], other)
    return pa.bool_()


def _is_in(op: str, operands: Sequence[Operand], option: Sequence[Operand]) -> pa.DataType:
    return _compare(op, (*operands, *option), None)


def _logic(op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    if any(family(operand.type) != "bool" for operand in operands):
        raise TypeMismatch(
            f"{op} takes true/false columns, not {_listed(operands)}; "
            "put comparisons in parentheses: (a < 1) & (b > 2)"
        )
    return pa.bool_()


def _add(op: str, operands: Sequence[Operand], option: Any) -> pa.DataType:
    left, right = operands
    if family(left.type) == "timestamp" and _is_signed(right):
        return left.type
    if family(right.type) == "timestamp" and _is_signed(left):
        return right.type
    if family(left.type) == family(right.type) == "text":
        return pa.string()
    return _arithmetic(op, operands, option)


def _subtract(op: str, operands: Sequence[Operand], option: Any) -> pa.DataType:
    left, right = operands
    if family(left.type) == "timestamp":
        if family(right.type) == "timestamp":
            return pa.int64()
        if _is_signed(right):
            return left.type
    return _arithmetic(op, operands, option)


def _divide(op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    if _has_decimal(operands):
        return pa.float64()
    _check_numbers(op, operands)
    if all(pa.types.is_integer(operand.type) for operand in operands):
        return pa.float64()
    return common_number(*operands)


def _power(op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    _check_numbers(op, operands)
    base, exponent = operands
    if pa.types.is_integer(base.type) and pa.types.is_integer(exponent.type):
        is_whole = exponent.is_literal and not base.is_literal and int(exponent.value or 0) >= 0
        return common_number(base, exponent) if is_whole else pa.float64()
    return common_number(base, exponent)


def _arithmetic(op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    if op in DECIMAL_FUNCTIONS and _has_decimal(operands):
        return _of_decimals(op, operands)
    _check_numbers(op, operands)
    return common_number(*operands)


FLOATS = {
    **{op: op for op in ("sqrt", "cbrt", "exp", "log", "log2", "log10", "degrees", "radians")},
    **{op: op for op in ("sin", "cos", "tan", "arcsin", "arccos", "arctan", "tanh")},
}
"""Functions of a number that give a float: {operation: its name in NumPy}."""


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


def _negate(op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    if _has_decimal(operands):
        return operands[0].type
    _check_numbers(op, operands)
    if operands[0].type == pa.uint64():
        raise TypeMismatch("uint64 has no negative numbers; write .cast('decimal128(20, 0)') first")
    return widened(operands[0].type)


def _of_floats(op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    _check_numbers(op, operands)
    if not pa.types.is_floating(operands[0].type):
        raise TypeMismatch(f"{op} takes floats, not {operands[0].type}, which has no NaN")
    return pa.bool_()


def _hash(op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    if family(operands[0].type) == "nested":
        raise TypeMismatch(f"{op} takes no {operands[0].type}; hash what is in it")
    return pa.uint64()


def _widened_number(op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    _check_numbers(op, operands)
    return widened(operands[0].type)


def _abs(op: str, operands: Sequence[Operand], option: Any) -> pa.DataType:
    return operands[0].type if _has_decimal(operands) else _widened_number(op, operands, option)


def _as_floats(op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    _check_numbers(op, operands)
    return pa.float64() if pa.types.is_integer(operands[0].type) else operands[0].type


def _is_null(_op: str, _operands: Sequence[Operand], _option: Any) -> pa.DataType:
    return pa.bool_()


def _coalesce(op: str, operands: Sequence[Operand], option: Any) -> pa.DataType:
    first, *others = operands
    for one in others:
        first = Operand(_fill_null(op, (first, one), option))
    return first.type


def _fill_null(_op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    values, filling = operands
    _check_same_family("fills", values, "with", filling)
    if "decimal" in (family(values.type), family(filling.type)) or (
        family(values.type) != "number"
    ):
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


def _when(op: str, operands: Sequence[Operand], option: Any) -> pa.DataType:
    chosen = operands[-1]
    for place in range(len(operands) - 3, -1, -2):
        chosen = Operand(_where(op, (*operands[place : place + 2], chosen), option))
    return chosen.type


def _where(op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    condition, yes, no = operands
    if family(condition.type) != "bool":
        raise TypeMismatch(f"{op} chooses by a true/false column, not by {condition.type}")
    _check_same_family("chooses between", yes, "and", no)
    if family(yes.type) == family(no.type) == "number":
        return common_number(yes, no)
    _check_same_decimals("chooses between", yes, "and", no)
    return no.type if yes.is_literal else yes.type


def _cast(op: str, operands: Sequence[Operand], option: OfType) -> pa.DataType:
    source, target = operands[0].type, type_named(option.argument)
    source_family, target_family = family(source), family(target)
    is_whole = pa.types.is_integer(source)
    of_times = {"timestamp", "time", "duration"}
    if target_family == "time" and option.kind is not None and pa.types.is_date(option.kind):
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
        raise TypeMismatch(f"cannot {op} {source} to {option.argument}; {way_out}")
    return target


def common_number(left: Operand, right: Operand) -> pa.DataType:
    """Return the common type of two numbers; a literal takes the column's type.

    Raises:
        TypeMismatch: they are uint64 and a signed integer.
    """
    types = (left.type, right.type)
    if all(pa.types.is_integer(each) for each in types):
        if pa.uint64() not in types:
            return pa.int64()
        for one, other in ((left, right), (right, left)):
            gives_way = one.is_literal and not other.is_literal and int(one.value or 0) >= 0
            if one.type != pa.uint64() and not gives_way:
                raise TypeMismatch(f"mixes uint64 with {one.type}; {cast_of_both(left, right)}")
        return pa.uint64()
    deciding = [each.type for each in (left, right) if not each.is_literal]
    is_single = deciding and all(each == pa.float32() for each in deciding)
    return pa.float32() if is_single else pa.float64()


def widened(of: pa.DataType) -> pa.DataType:
    """Return the type in which a number is computed."""
    return pa.int64() if pa.types.is_integer(of) and of != pa.uint64() else of


def _is_signed(operand: Operand) -> bool:
    return bool(pa.types.is_integer(operand.type)) and operand.type != pa.uint64()


def _of_text(op: str, operands: Sequence[Operand], option: Any) -> pa.DataType:
    (text,) = operands
    if family(text.type) != "text":
        raise TypeMismatch(f"{op} takes text, not {text.type}; write .cast('string') first")
    kind = TEXT[op].type
    return pa.timestamp("ns", option[1]) if kind is None else kind  # in the zone that is given


def _of_time(op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    (times,) = operands
    of_day = family(times.type) == "time" and op in ("dt.hour", "dt.minute", "dt.second")
    if family(times.type) != "timestamp" and not of_day:
        raise TypeMismatch(
            f"{op} takes a timestamp or a date, not {times.type}; of text write .str.to_time(…)"
        )
    kind = TIMES[op].type
    return times.type if kind is None else kind


def _of_nested(op: str, operands: Sequence[Operand], option: Any) -> pa.DataType:
    return NESTED[op].type_of(op, operands[0].type, option)


def _check_numbers(op: str, operands: Sequence[Operand]) -> None:
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
    is_whole = any(isinstance(one.value, int) for one in (left, right))
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
    raise TypeMismatch(
        f"{does} {left.type} {joint} {right.type}; both must be of one type; "
        f"{cast_of_both(left, right)}"
    )


def _listed(operands: Sequence[Operand]) -> str:
    return " and ".join(str(operand.type) for operand in operands)


def _declared(_op: str, _operands: Sequence[Operand], option: OfFunction) -> pa.DataType:
    return option.returns


_RULES: dict[str, _Rule] = {
    **dict.fromkeys(TEXT, _of_text),
    **dict.fromkeys(TIMES, _of_time),
    **dict.fromkeys(NESTED, _of_nested),
    **dict.fromkeys(FLOATS, _as_floats),
    "is_nan": _of_floats,
    "hash": _hash,
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "between"), _compare),
    **dict.fromkeys(("&", "|", "~"), _logic),
    **dict.fromkeys(("*", "//", "%"), _arithmetic),
    "abs": _abs,
    **dict.fromkeys(("floor", "ceil", "sign", "round"), _widened_number),
    "+": _add,
    "-": _subtract,
    "/": _divide,
    "**": _power,
    "negative": _negate,
    "is_in": _is_in,
    "is_null": _is_null,
    "fill_null": _fill_null,
    "coalesce": _coalesce,
    "when": _when,
    "cast": _cast,
    "try_cast": _cast,
    "where": _where,
    MAP_ELEMENTS: _declared,
}
