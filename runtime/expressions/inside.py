"""Parts of an expression, its columns renamed, and whether it can fail."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import pyarrow as pa

from slackwater.runtime.expressions.expressions import (
    ColumnRef,
    EventTime,
    Expr,
    Literal,
    NullLiteral,
    Operation,
)
from slackwater.runtime.expressions.functions import OfFunction
from slackwater.runtime.expressions.nested_methods import NESTED
from slackwater.runtime.expressions.result_types import FLOATS
from slackwater.runtime.expressions.text_methods import TEXT
from slackwater.runtime.expressions.time_methods import TIMES

_SURE = {
    *("<", "<=", ">", ">=", "==", "!=", "between", "is_in", "&", "|", "~"),
    *("is_null", "fill_null", "coalesce", "where", "when"),
    *("floor", "ceil", "sign", "/", "is_nan", "hash"),
    *FLOATS,
    *(NESTED.keys() - {"list.sum"}),
    *(TEXT.keys() - {"str.to_time"}),
    *TIMES,
}
"""Operations that have a value for all operands of their types."""
_OF_EQUALS = {"<", "<=", ">", ">=", "==", "!=", "between", "is_in", "is_null"}
"""Operations that have one result for values that are equal."""
_SURE_IN_FLOATS = {"+", "-", "*", "//", "%", "**", "negative", "abs", "round"}
"""The same, if the result is a float: a whole number may not fit, and is refused (`whole.py`)."""


def conjuncts(predicate: Expr) -> tuple[Expr, ...]:
    """Return the conjuncts of a predicate, in order: a & b & c has three."""
    if isinstance(predicate, Operation) and predicate.op == "&":
        return tuple(part for each in predicate.operands for part in conjuncts(each))
    return (predicate,)


def renamed(expression: Expr, names: Mapping[str, str]) -> Expr:
    """Return an expression with all its columns renamed, {old name: new name}."""
    if isinstance(expression, ColumnRef):
        return ColumnRef(names[expression.name], expression.unit)
    if isinstance(expression, Operation):
        return expression.over([renamed(each, names) for each in expression.operands])
    return expression


def parts(expression: Expr) -> Iterator[Expr]:
    """Yield an expression and all its parts."""
    yield expression
    if isinstance(expression, Operation):
        for each in expression.operands:
            yield from parts(each)


def functions_of(expression: Expr) -> tuple[Callable[..., Any], ...]:
    """Return the users' functions that an expression calls, in order."""
    options = [part.option for part in parts(expression) if isinstance(part, Operation)]
    return tuple(option.function for option in options if isinstance(option, OfFunction))


def reads_event_time(expression: Expr) -> bool:
    """Return whether an expression reads event times."""
    return any(isinstance(part, EventTime) for part in parts(expression))


def reads_only_in_comparisons(expression: Expr, columns: Collection[str]) -> bool:
    """Return whether these columns are only compared, so that equal values are not told apart.

    A float's −0.0 and 0.0 are equal, and `1 / x` differs.
    """
    return all(
        part.op in _OF_EQUALS
        for part in parts(expression)
        if isinstance(part, Operation)
        and any(isinstance(each, ColumnRef) and each.name in columns for each in part.operands)
    )


def never_fails(expression: Expr, schema: pa.Schema) -> bool:
    """Return whether an expression surely has a value for every row of a schema.

    False: a value may be refused (a whole number that does not fit, a cast), or it is unknown.
    """
    return all(_is_sure(part, schema) for part in parts(expression))


def _is_sure(part: Expr, schema: pa.Schema) -> bool:
    if isinstance(part, ColumnRef):
        return part.unit is None  # a time of another unit may be too far for nanoseconds
    if isinstance(part, Literal | NullLiteral | EventTime):
        return True
    if not isinstance(part, Operation):
        return False
    if part.op in _SURE:
        return True
    kind = part.type_in(schema, step="a predicate")
    return part.op in _SURE_IN_FLOATS and pa.types.is_floating(kind)


def alike(one: Expr, other: Expr) -> bool:
    """Return whether two expressions are equal in text, and so in value for each row."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Operation) and isinstance(other, Operation):
        return (
            one.op == other.op
            and bool(one.option == other.option)
            and len(one.operands) == len(other.operands)
            and all(map(alike, one.operands, other.operands))
        )
    if isinstance(one, ColumnRef) and isinstance(other, ColumnRef):
        return (one.name, one.unit) == (other.name, other.unit)
    if isinstance(one, Literal) and isinstance(other, Literal):
        same = one.type == other.type and type(one.value) is type(other.value)
        return bool(same and repr(one.value) == repr(other.value))  # 0.0 is not −0.0
    if isinstance(one, NullLiteral) and isinstance(other, NullLiteral):
        return bool(one.type == other.type)
    return isinstance(one, EventTime)
