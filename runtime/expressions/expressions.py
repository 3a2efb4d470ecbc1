"""Expressions over a row's columns, computed for a whole batch at once.

    slow = (col("speed") < 8) & col("line").is_in(["20", "26"])

Building an expression computes nothing. When a step is made, `type_in` checks it against a schema,
and `bound` chooses the kernels for its types. When rows come, `evaluate` computes it in NumPy
(text: Arrow). `table.py` has each function, `kernels.py` describes numbers at their limits.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from slackwater.runtime.calls import checked_call, checked_methods
from slackwater.runtime.errors import FlowError, TypeMismatch
from slackwater.runtime.expressions.comparable import computed_type
from slackwater.runtime.expressions.compute import Types, computation
from slackwater.runtime.expressions.function import Operand, Times
from slackwater.runtime.expressions.functions import MAP_ELEMENTS, OfFunction
from slackwater.runtime.expressions.literals import Value, Writable, quoted, read_literal
from slackwater.runtime.expressions.nested_methods import WithLists, element
from slackwater.runtime.expressions.notation import ATOM, UNARY
from slackwater.runtime.expressions.result_types import type_declared, type_named, type_read
from slackwater.runtime.expressions.table import FUNCTIONS
from slackwater.runtime.expressions.times import in_nanoseconds, literal_in
from slackwater.runtime.model import Batch, Column, Duration, duration_ns
from slackwater.runtime.model.schema import coarse_unit, is_time, nulls_of, time_unit
from slackwater.runtime.nearest import no_column
from slackwater.runtime.other_names import SaysOurName
from slackwater.runtime.shown import MOST_TEXT, cut, shown, text_of


@checked_methods
class Expr(WithLists, SaysOurName, ABC):
    """Expression: a value for each row, computed from columns. Immutable; pickles."""

    _called = "an expression"
    _place = "expression"
    _inner = frozenset(
        (
            *("as_operand", "bound", "columns", "computed", "evaluate", "full_text", "in_own_unit"),
            *("binds", "may_warn", "operand", "operation", "runs_users_code", "type_in", "value"),
        )
    )

    __array_ufunc__ = None  # so that np.float64(2) * col("x") calls our __rmul__
    __hash__ = object.__hash__
    __iter__ = None  # Python would iterate by [0], [1], …
    binds = ATOM
    value: Value | None = None
    """Value of a literal; None for other expressions."""
    may_warn = False
    """Whether NumPy could warn about the expression, or a part of it."""
    runs_users_code = False
    """Whether it, or a part of it, calls a user's function."""

    @abstractmethod
    def columns(self) -> frozenset[str]:
        """Return the names of the columns that the expression reads."""

    @abstractmethod
    def type_in(self, schema: pa.Schema, *, step: str) -> pa.DataType:
        """Return the type over rows of `schema`; `step` names the step in errors.

        Raises:
            ColumnError: a column is missing; names the nearest one.
            TypeMismatch: an operation does not take these types.
        """

    @abstractmethod
    def evaluate(self, batch: Batch) -> Column:
        """Return the values of a bound expression, shape (rows,), perhaps a column of the batch.

        Raises:
            OperatorError: a value does not fit the type of a cast.
        """

    @abstractmethod
    def full_text(self) -> str:
        """Return the expression as the user wrote it, however long."""

    def __str__(self) -> str:
        return cut(self.full_text(), MOST_TEXT)

    def operand(self, batch: Batch) -> Any:
        """Return the values, or a literal's plain value, for a kernel."""
        return self.evaluate(batch)

    def computed(self, batch: Batch) -> Column:
        """Return the values as an operation would take them, times in nanoseconds."""
        if self.value is not None:
            return self.evaluate(batch)
        with np.errstate(all="ignore"):
            return self.operand(batch)

    def as_operand(self, schema: pa.Schema, *, step: str) -> Operand:
        """Return the operand that the type rules take."""
        own = self.type_in(schema, step=step)
        return Operand(computed_type(own), own=own)

    def bound(self, schema: pa.Schema) -> Expr:
        """Return the same expression, with kernels for the types of its columns."""
        del schema
        return self

    def in_own_unit(self) -> Expr:
        """Return the same expression, which as an operand leaves times in their unit."""
        return self

    def __repr__(self) -> str:
        return f"<{self!s}>"

    def __bool__(self) -> NoReturn:
        raise FlowError(
            f"the expression {self!s} has a value for each row, so Python cannot ask whether it "
            "is true; write & | ~ for and or not, with each comparison in parentheses, "
            ".between(a, b) for a <= x <= b, and .is_in([...]) for in"
        )

    def __format__(self, form: str) -> NoReturn:
        del form
        raise FlowError(
            f"the expression {self!s} has a value for each row, so no f-string can have it; "
            "write + for text of each row, col('s') + '-x', and .cast('string') of other types; "
            "{…!r} shows the expression itself"
        )

    def __getitem__(self, key: str | int) -> Expr:
        """Return a part: a struct's field, a map's value, or a list's element.

        An element's place counts from 0, and below 0 from the end; without such a part
        the result is null.
        """
        return element(self, key)

    def __lt__(self, other: Expr | Writable) -> Expr:
        return Operation("<", self, other)

    def __le__(self, other: Expr | Writable) -> Expr:
        return Operation("<=", self, other)

    def __gt__(self, other: Expr | Writable) -> Expr:
        return Operation(">", self, other)

    def __ge__(self, other: Expr | Writable) -> Expr:
        return Operation(">=", self, other)

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return Operation("==", self, other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return Operation("!=", self, other)

    def __and__(self, other: Expr) -> Expr:
        return Operation("&", self, checked_condition(other, "&"))

    def __rand__(self, other: Expr) -> Expr:
        return Operation("&", checked_condition(other, "&"), self)

    def __or__(self, other: Expr) -> Expr:
        return Operation("|", self, checked_condition(other, "|"))

    def __ror__(self, other: Expr) -> Expr:
        return Operation("|", checked_condition(other, "|"), self)

    def __invert__(self) -> Expr:
        return Operation("~", self)

    def __add__(self, other: Expr | Writable) -> Expr:
        return Operation("+", self, other)

    def __radd__(self, other: Expr | Writable) -> Expr:
        return Operation("+", other, self)

    def __sub__(self, other: Expr | Writable) -> Expr:
        return Operation("-", self, other)

    def __rsub__(self, other: Expr | Writable) -> Expr:
        return Operation("-", other, self)

    def __mul__(self, other: Expr | Writable) -> Expr:
        return Operation("*", self, other)

    def __rmul__(self, other: Expr | Writable) -> Expr:
        return Operation("*", other, self)

    def __truediv__(self, other: Expr | Writable) -> Expr:
        return Operation("/", self, other)

    def __rtruediv__(self, other: Expr | Writable) -> Expr:
        return Operation("/", other, self)

    def __floordiv__(self, other: Expr | Writable) -> Expr:
        return Operation("//", self, other)

    def __rfloordiv__(self, other: Expr | Writable) -> Expr:
        return Operation("//", other, self)

    def __mod__(self, other: Expr | Writable) -> Expr:
        return Operation("%", self, other)

    def __rmod__(self, other: Expr | Writable) -> Expr:
        return Operation("%", other, self)

    def __pow__(self, other: Expr | Writable) -> Expr:
        return Operation("**", self, other)

    def __rpow__(self, other: Expr | Writable) -> Expr:
        return Operation("**", other, self)

    def __neg__(self) -> Expr:
        return Operation("negative", self)

    def __abs__(self) -> Expr:
        return Operation("abs", self)

    def __round__(self, digits: int = 0) -> Expr:
        return self.round(digits)

    def operation(self, op: str, *, option: Any = None, shown: str = "") -> Expr:
        """Return an operation over the expression alone."""
        return Operation(op, self, option=option, shown=shown)

    def is_in(self, values: Iterable[Writable | None]) -> Expr:
        """Return whether the expression equals one of the values.

        If one of these is None, the result is true or null, as in SQL.
        """
        if isinstance(values, Expr):
            raise TypeMismatch(
                f"is_in({values!s}) takes values; of a list column: .list.contains(x)"
            )
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            written = shown(values)
            raise TypeMismatch(f"is_in({written}) takes a list of values; write is_in([{written}])")
        given = list(values)
        literals = [_literal(value) for value in given if value is not None]
        if isinstance(values, set | frozenset):  # its order differs from process to process
            literals.sort(key=Literal.full_text)
        written = f"[{', '.join(each.full_text() for each in literals)}]"
        operands = tuple(Operand(each.type, each.value) for each in literals)
        among = Operation("is_in", self, option=operands, shown=written)
        return among | lit(None, "bool") if len(literals) < len(given) else among

    def between(self, low: Expr | Writable, high: Expr | Writable) -> Expr:
        """Return whether the expression is in [low, high]."""
        return Operation("between", self, low, high)

    def is_null(self) -> Expr:
        """Return whether the expression is null; NaN is a value."""
        return Operation("is_null", self)

    def fill_null(self, value: Expr | Writable | None) -> Expr:
        """Return the expression with `value` in place of nulls."""
        return Operation("fill_null", self, value)

    def cast(self, to: str) -> Expr:
        """Return the expression as another type.

        Floats are cut towards zero. Whole numbers are counted in the unit of a time, such as
        nanoseconds since 1970 UTC. Text of times is ISO 8601. A timestamp as a date, or as a time
        of day, is what the clock of its zone shows. A value that does not fit raises an error when
        its row comes.

        Args:
            to: such as "int64", "string", "decimal128(10, 2)", "date", "time", "duration[ms]",
                "timestamp" or "timestamp[ms, tz=Europe/Berlin]".
        """
        type_named(to)
        return Operation("cast", self, option=to, shown=quoted(to))

    def try_cast(self, to: str) -> Expr:
        """Return the expression as another type, null where a value does not fit; see `cast`."""
        type_named(to)
        return Operation("try_cast", self, option=to, shown=quoted(to))

    def map_elements(self, function: Callable[[Any], Any], returns: str | pa.DataType) -> Expr:
        """Return what a Python function makes of each value: slow, where rows are alone.

        A null stays null, without a call. Times are given as whole nanoseconds. The function may
        be called more than once for a value.

        Args:
            function: function of one value, which returns one, or None; must pickle.
            returns: type of the results, such as "float64".

        Raises:
            TypeMismatch: `function` cannot be called, or `returns` is not a type.
        """
        if not callable(function):
            raise TypeMismatch(
                f"{self!s}.map_elements({shown(function)}) takes a function of one value"
            )
        option = OfFunction(function, type_declared(MAP_ELEMENTS, returns))
        name = getattr(function, "__name__", type(function).__name__)
        written = f"{name}, {quoted(str(returns))}"
        return Operation(MAP_ELEMENTS, self, option=option, shown=written)

    def floor(self) -> Expr:
        """Return the largest whole number ≤ the expression; a float stays a float."""
        return Operation("floor", self)

    def round(self, digits: int = 0) -> Expr:
        """Return the expression rounded to `digits` after the point, halves to even.

        Raises:
            SettingError: `digits` is not a whole number.
        """
        return Operation("round", self, option=digits, shown=str(digits) if digits else "")

    def ceil(self) -> Expr:
        """Return the least whole number ≥ the expression; a float stays a float."""
        return Operation("ceil", self)

    def sign(self) -> Expr:
        """Return −1, 0 or 1, in the expression's type."""
        return Operation("sign", self)

    def is_nan(self) -> Expr:
        """Return whether a float is NaN; null where it is null."""
        return Operation("is_nan", self)

    def hash(self) -> Expr:
        """Return a whole number of 64 bits, equal for equal values, in each process.

        Equal whole numbers of two types have one hash; so have null and 0.
        """
        return Operation("hash", self)

    def sqrt(self) -> Expr:
        """Return the square root; NaN below zero."""
        return Operation("sqrt", self)

    def cbrt(self) -> Expr:
        """Return the cube root."""
        return Operation("cbrt", self)

    def exp(self) -> Expr:
        """Return e to the power of the expression."""
        return Operation("exp", self)

    def log(self) -> Expr:
        """Return the natural logarithm; NaN below zero, −inf at zero."""
        return Operation("log", self)

    def log2(self) -> Expr:
        """Return the logarithm to base 2; as `log`."""
        return Operation("log2", self)

    def log10(self) -> Expr:
        """Return the logarithm to base 10; as `log`."""
        return Operation("log10", self)

    def sin(self) -> Expr:
        """Return the sine of an angle in radians."""
        return Operation("sin", self)

    def cos(self) -> Expr:
        """Return the cosine of an angle in radians."""
        return Operation("cos", self)

    def tan(self) -> Expr:
        """Return the tangent of an angle in radians."""
        return Operation("tan", self)

    def arcsin(self) -> Expr:
        """Return the angle in radians that has this sine; NaN beyond −1 to 1."""
        return Operation("arcsin", self)

    def arccos(self) -> Expr:
        """Return the angle in radians that has this cosine; NaN beyond −1 to 1."""
        return Operation("arccos", self)

    def arctan(self) -> Expr:
        """Return the angle in radians that has this tangent."""
        return Operation("arctan", self)

    def tanh(self) -> Expr:
        """Return the hyperbolic tangent."""
        return Operation("tanh", self)

    def degrees(self) -> Expr:
        """Return an angle in radians as degrees."""
        return Operation("degrees", self)

    def radians(self) -> Expr:
        """Return an angle in degrees as radians."""
        return Operation("radians", self)


class ColumnRef(Expr):
    """Expression of one column's values.

    Alone it gives the column as it is kept; as an operand, times in nanoseconds.

    Args:
        name: name of the column.
        unit: unit of a column of times, once it is bound to a schema; None if it has
            nanoseconds, or no times.
    """

    def __init__(self, name: str, unit: str | None = None) -> None:
        self.name, self.unit = name, unit

    def columns(self) -> frozenset[str]:
        """Return the column's name alone."""
        return frozenset((self.name,))

    def type_in(self, schema: pa.Schema, *, step: str) -> pa.DataType:
        """Return the column's type."""
        if self.name not in schema.names:
            raise no_column(self.name, schema.names, step=step)
        return type_read(schema.field(self.name), step=step)

    def bound(self, schema: pa.Schema) -> Expr:
        """Return the column with its unit."""
        return ColumnRef(self.name, coarse_unit(schema.field(self.name).type))

    def in_own_unit(self) -> Expr:
        """Return the column without its unit."""
        return ColumnRef(self.name)

    def evaluate(self, batch: Batch) -> Column:
        """Return the column itself."""
        return batch.columns[self.name]

    def operand(self, batch: Batch) -> Column:
        """Return the column itself, or times in nanoseconds.

        Raises:
            OperatorError: a time is too far away for nanoseconds.
        """
        column = batch.columns[self.name]
        return column if self.unit is None else in_nanoseconds(column, self.unit, str(self))

    def full_text(self) -> str:  # noqa: D102 - as every expression
        return f"col({quoted(self.name)})"


class Literal(Expr):
    """Expression of one value for every row; times as nanoseconds, or in their type's unit."""

    def __init__(self, value: Value, type: pa.DataType, text: str) -> None:  # noqa: A002 - its Arrow type
        self.value: Value = value
        self.type = type
        self._text = text
        self.binds = UNARY if text.startswith("-") else ATOM

    def in_unit(self, unit: str) -> Literal:
        """Return the literal, if it is a time, in another unit."""
        kind, value = literal_in(self.type, self.value, unit)
        return Literal(value, kind, self._text)

    def columns(self) -> frozenset[str]:
        """Return the empty set: a literal reads no column."""
        return frozenset()

    def type_in(self, schema: pa.Schema, *, step: str) -> pa.DataType:  # noqa: ARG002 - the same everywhere
        """Return the value's own type.

        Raises:
            TypeMismatch: a time does not fit 64 bits, so that it can be compared only.
        """
        is_far = isinstance(self.value, int | Fraction) and not -(2**63) <= self.value < 2**63
        if is_far and is_time(self.type):
            raise TypeMismatch(
                f"step {step!r}: {self!s} is beyond nanoseconds, 1677 to 2262; use it only "
                "to compare times with it"
            )
        return self.type

    def as_operand(self, schema: pa.Schema, *, step: str) -> Operand:  # noqa: ARG002 - as above
        """Return the type and the value."""
        return Operand(self.type, self.value)

    def operand(self, batch: Batch) -> Value:  # noqa: ARG002 - the same for every batch
        """Return the value, which NumPy and Arrow repeat for all rows."""
        return self.value

    def evaluate(self, batch: Batch) -> Column:
        """Return the value for each row."""
        if isinstance(self.value, str | bytes | Decimal):
            return pa.repeat(pa.scalar(self.value, self.type), len(batch))
        return np.full(len(batch), self.value)

    def full_text(self) -> str:  # noqa: D102 - as every expression
        return self._text


class NullLiteral(Expr):
    """Expression that is null in each row.

    Args:
        type: type of its column; None if it is that of the operand beside it.
        text: text of the literal, as the user wrote it.
    """

    def __init__(self, type: pa.DataType | None, text: str) -> None:  # noqa: A002 - its Arrow type
        self.type, self._text = type, text

    def of_type(self, kind: pa.DataType) -> NullLiteral:
        """Return the null in a type, unless it has one."""
        return self if self.type is not None else NullLiteral(kind, self._text)

    def columns(self) -> frozenset[str]:
        """Return the empty set: a null reads no column."""
        return frozenset()

    def type_in(self, schema: pa.Schema, *, step: str) -> pa.DataType:  # noqa: ARG002 - the same everywhere
        """Return the type that was given.

        Raises:
            TypeMismatch: none was.
        """
        if self.type is None:
            raise TypeMismatch(
                f"step {step!r}: {self!s} has no type, and nothing beside it has one; say it, such "
                "as sw.lit(None, 'int64')"
            )
        return self.type

    def cast(self, to: str) -> Expr:
        """Return the null in another type."""
        return NullLiteral(type_named(to), f"{self.full_text()}.cast({quoted(to)})")

    try_cast = cast

    def evaluate(self, batch: Batch) -> Column:
        """Return nulls of the type."""
        return nulls_of(self.type, len(batch))

    def operand(self, batch: Batch) -> Column:
        """Return nulls; of times in nanoseconds."""
        return nulls_of(computed_type(self.type), len(batch))

    def full_text(self) -> str:  # noqa: D102 - as every expression
        return self._text


class EventTime(Expr):
    """Expression of each row's event time."""

    def columns(self) -> frozenset[str]:
        """Return the empty set: every row has an event time."""
        return frozenset()

    def type_in(self, schema: pa.Schema, *, step: str) -> pa.DataType:  # noqa: ARG002 - the same everywhere
        """Return int64."""
        return pa.int64()

    def evaluate(self, batch: Batch) -> Column:
        """Return the batch's event times."""
        return batch.event_time_ns

    def full_text(self) -> str:  # noqa: D102 - as every expression
        return "event_time()"


class Operation(Expr):
    """Operation over other expressions.

    Args:
        op: name of a function in the table.
        operands: expressions, or values that can be literals.
        option: an argument that is not an expression, such as the type of a cast.
        shown: the option as the user wrote it.
        types: types of operands and results, once it is bound to a schema; else None.
        unit: unit of results that are times, once it is bound; None if nanoseconds, or no times.
    """

    def __init__(
        self,
        op: str,
        *operands: Any,
        option: Any = None,
        shown: str = "",
        types: Types | None = None,
        unit: str | None = None,
    ) -> None:
        self.op, self.function = op, FUNCTIONS[op]
        values = self.function.null_places(len(operands))
        self.operands = tuple(
            NullLiteral(None, "None") if operand is None and place in values else _as_expr(operand)
            for place, operand in enumerate(operands)
        )
        self.binds = self.function.text.binds
        self.option, self.types, self.unit = option, types, unit
        self._shown = shown
        self.runs_users_code = op == MAP_ELEMENTS or any(
            each.runs_users_code for each in self.operands
        )
        if types is not None:
            self.may_warn = self.function.warns.has(types.gives) or any(
                each.may_warn for each in self.operands
            )
            self._compute = computation(self.function, self.operands, option, types)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (
            *(self.op, self.operands, self.option),
            *(self._shown, self.types, self.unit),
        )

    def over(self, operands: Iterable[Expr]) -> Operation:
        """Return the same operation over other operands, of the same types."""
        return _rebuild(self.op, tuple(operands), self.option, self._shown, self.types, self.unit)

    def bound(self, schema: pa.Schema) -> Operation:
        """Return the same operation over bound operands, with the kernel for their types."""
        typed = self._typed(schema, step=self.op)
        operands, option = tuple(each.bound(schema) for each in typed), self.option
        known = [each.as_operand(schema, step=self.op) for each in typed]
        times, unit = self.function.times, "ns"
        if times is Times.COMPARED:
            unit = self._common_unit(typed, known)
            operands = tuple(
                each.in_unit(unit) if isinstance(each, Literal) else each for each in operands
            )
            if self.op == "is_in":
                option = tuple(Operand(*literal_in(each.type, each.value, unit)) for each in option)
        if times is Times.OWN or unit != "ns":
            operands = tuple(each.in_own_unit() for each in operands)
            kinds = tuple(each.own or each.type for each in known)
        else:
            kinds = tuple(each.type for each in known)
        gives = self._result_type(known, step=self.op)
        types = Types(kinds, gives)
        return _rebuild(self.op, operands, option, self._shown, types, coarse_unit(gives))

    def in_own_unit(self) -> Expr:
        """Return the operation, whose results stay in their unit."""
        return _rebuild(self.op, self.operands, self.option, self._shown, self.types, None)

    def _typed(self, schema: pa.Schema, *, step: str) -> tuple[Expr, ...]:
        """Return the operands, nulls in the type of the first that has one.

        Raises:
            TypeMismatch: none has.
        """
        if not any(isinstance(each, NullLiteral) and each.type is None for each in self.operands):
            return self.operands
        values = self.function.null_places(len(self.operands))
        kinds = [
            each.type_in(schema, step=step)
            for place, each in enumerate(self.operands)
            if (place in values or not values)
            and not (isinstance(each, NullLiteral) and each.type is None)
        ]
        if not kinds:
            raise TypeMismatch(
                f"step {step!r}: {self!s} has only nulls without a type; say one, such as "
                "sw.lit(None, 'int64')"
            )
        return tuple(
            each.of_type(kinds[0] if place in values or not values else pa.bool_())
            if isinstance(each, NullLiteral)
            else each
            for place, each in enumerate(self.operands)
        )

    def _common_unit(self, typed: Sequence[Expr], known: Sequence[Operand]) -> str:
        """Return the unit in which times are compared: of all columns, or nanoseconds."""
        kinds = [
            own.own or own.type
            for each, own in zip(typed, known, strict=True)
            if not isinstance(each, Literal)
        ]
        units = {
            time_unit(kind) if is_time(kind) and not pa.types.is_duration(kind) else "ns"
            for kind in kinds
        }
        is_literal_first = isinstance(self.operands[0], Literal)
        return "ns" if is_literal_first or len(units) > 1 else units.pop()

    def columns(self) -> frozenset[str]:
        """Return the columns of all operands."""
        return frozenset().union(*(each.columns() for each in self.operands))

    def type_in(self, schema: pa.Schema, *, step: str) -> pa.DataType:
        """Return the result's type, after checking the operands."""
        typed = self._typed(schema, step=step)
        for each in typed:
            if isinstance(each, Literal) and self.function.times is not Times.COMPARED:
                each.type_in(schema, step=step)
        known = [each.as_operand(schema, step=step) for each in typed]
        return self._result_type(known, step=step)

    def _result_type(self, operands: Sequence[Operand], *, step: str) -> pa.DataType:
        try:
            return self.function.type_of(operands, self.option)
        except TypeMismatch as problem:
            raise TypeMismatch(f"step {step!r}: {self!s}: {text_of(problem)}") from None

    def evaluate(self, batch: Batch) -> Column:
        """Return the result, without NumPy's warnings."""
        if self.may_warn:
            with np.errstate(all="ignore"):
                return self._compute(batch)
        return self._compute(batch)

    def operand(self, batch: Batch) -> Column:
        """Return the result, times in nanoseconds.

        `evaluate` of the whole expression has silenced NumPy.

        Raises:
            OperatorError: a time is too far away for nanoseconds.
        """
        values = self._compute(batch)
        return values if self.unit is None else in_nanoseconds(values, self.unit, str(self))

    def full_text(self) -> str:  # noqa: D102 - as every expression
        operands = [(each.full_text(), each.binds) for each in self.operands]
        return self.function.text.write(self.op, operands, self._shown)


@checked_call
def col(name: str) -> Expr:
    """Return the column of this name."""
    if not isinstance(name, str):
        raise TypeMismatch(f"col({shown(name)}) takes a column's name, as text")
    return ColumnRef(name)


@checked_call
def lit(value: Writable | None, to: str | None = None) -> Expr:
    """Return a value for every row; a datetime without a zone is UTC.

    Args:
        value: None is a null, of the type of the operand beside it.
        to: a type, as of `cast`; a null that stands alone needs it.

    Raises:
        TypeMismatch: `value` cannot be a literal, or `to` is not a type.
    """
    if value is None:
        kind = None if to is None else type_named(to)
        return NullLiteral(kind, "lit(None)" if to is None else f"lit(None, {quoted(to)})")
    literal = _literal(value)
    made = Literal(literal.value, literal.type, f"lit({literal.full_text()})")
    return made if to is None else made.cast(to)


@checked_call
def duration(value: Duration) -> Expr:
    """Return a duration ("30s", "500ms") as int64 nanoseconds.

    Raises:
        SettingError: `value` is not a duration.
    """
    return Literal(duration_ns(value), pa.int64(), f"duration({quoted(value)})")


@checked_call
def event_time() -> Expr:
    """Return each row's event time, int64 nanoseconds since 1970 UTC.

    To compare it with a timestamp, or subtract one, write event_time().cast("timestamp").
    """
    return EventTime()


def checked_condition(value: Any, what: str) -> Any:
    """Return a condition, but refuse a bool: Python has computed that, before there were rows.

    Raises:
        TypeMismatch: it is a bool.
    """
    if isinstance(value, bool | np.bool_):
        raise TypeMismatch(
            f"{what} takes a condition over columns, and Python has made it {value} for all rows; "
            "write .is_null() for `is None`, == for `is`, .is_in([…]) for `in`; for all rows or "
            f"none sw.lit({value})"
        )
    return value


@checked_call
def where(condition: Expr, yes: Expr | Writable | None, no: Expr | Writable | None) -> Expr:
    """Return `yes` where the condition is true, else `no`; None is a null."""
    return Operation("where", checked_condition(condition, "where"), yes, no)


@checked_call
def coalesce(first: Expr | Writable | None, *others: Expr | Writable | None) -> Expr:
    """Return the first of these that is not null, in each row."""
    return Operation("coalesce", first, *others)


@checked_methods
class When(SaysOurName):
    """Choice by conditions: `sw.when(a).then(x).when(b).then(y).otherwise(z)`.

    The first condition that is true decides. `otherwise` ends it, and gives the expression.
    """

    _called, _place = "a choice without a value", "choice"

    def __init__(self, condition: Expr, before: tuple[tuple[Expr, Any], ...] = ()) -> None:
        self._condition, self._before = checked_condition(condition, "when"), before

    def __repr__(self) -> str:
        return f"when({self._condition!s})"

    def then(self, value: Expr | Writable | None) -> Then:
        """Give this value, or None, where the condition is the first that is true."""
        return Then((*self._before, (self._condition, value)))


@checked_methods
class Then(SaysOurName):
    """Choice by conditions that has a value for each so far; see `When`."""

    _called, _place = "a choice without its end", "choice"

    def __init__(self, branches: tuple[tuple[Expr, Any], ...]) -> None:
        self._branches = branches

    def __repr__(self) -> str:
        return ".".join(f"when({condition!s}).then({yes!s})" for condition, yes in self._branches)

    def when(self, condition: Expr) -> When:
        """Go on with another condition."""
        return When(condition, self._branches)

    def otherwise(self, value: Expr | Writable | None) -> Expr:
        """Return the expression, with this value, or None, where no condition is true."""
        return Operation("when", *itertools.chain(*self._branches), value)


@checked_call
def when(condition: Expr) -> When:
    """Begin a choice by conditions; see `When`."""
    return When(condition)


def _rebuild(
    op: str,
    operands: tuple[Expr, ...],
    option: Any,
    shown: str,
    types: Types | None,
    unit: str | None,
) -> Operation:
    return Operation(op, *operands, option=option, shown=shown, types=types, unit=unit)


def _as_expr(value: Any) -> Expr:
    return value if isinstance(value, Expr) else _literal(value)


def _literal(value: Any) -> Literal:
    if isinstance(value, When | Then):
        raise TypeMismatch(
            f"{shown(value)} has no value for other rows; write .otherwise(value), or "
            ".otherwise(None) for a null"
        )
    return Literal(*read_literal(value))
