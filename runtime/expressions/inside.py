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
from slackwater.runtime.expressions.function import Results, Times
from slackwater.runtime.expressions.functions import OfFunction


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
        part.function.times is Times.COMPARED
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
    refuses = part.function.refuses
    return refuses is Results.NONE or not refuses.has(part.type_in(schema, step="a predicate"))


def alike(first: Expr, other: Expr) -> bool:
    """Return whether two expressions are equal in text, and so in value for each row."""
    if type(first) is not type(other):
        return False
    if isinstance(first, Operation) and isinstance(other, Operation):
        return (
            first.op == other.op
            and bool(first.option == other.option)
            and len(first.operands) == len(other.operands)
            and all(map(alike, first.operands, other.operands))
        )
    if isinstance(first, ColumnRef) and isinstance(other, ColumnRef):
        return (first.name, first.unit) == (other.name, other.unit)
    if isinstance(first, Literal) and isinstance(other, Literal):
        same = first.type == other.type and type(first.value) is type(other.value)
        return bool(same and repr(first.value) == repr(other.value))  # 0.0 is not −0.0
    if isinstance(first, NullLiteral) and isinstance(other, NullLiteral):
        return bool(first.type == other.type)
    return isinstance(first, EventTime)
