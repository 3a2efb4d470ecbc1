"""Parts of lists, structs and maps: `col("a")["b"]`, `col("readings").list.mean()`.

```
column        [3, 5]   []   null   [7]     values of all lists, one after the other: 3 5 7
.list.sum()    8      null  null    7      offsets, where each list begins:          0 2 2 2 3
```

A result is null where the list is null, or has no such element, or nothing to aggregate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Self, TypeVar

import numpy as np
import pyarrow as pa

from slackwater.runtime.calls import checked_methods
from slackwater.runtime.errors import TypeMismatch
from slackwater.runtime.expressions.comparable import check_comparable, computed_type
from slackwater.runtime.expressions.compared import comparison
from slackwater.runtime.expressions.function import (
    Call,
    Function,
    Operand,
    Results,
    anything,
    own_type,
    with_call,
)
from slackwater.runtime.expressions.literals import Writable, quoted, read_literal
from slackwater.runtime.expressions.notation import INDEX
from slackwater.runtime.expressions.nulls import over_values
from slackwater.runtime.expressions.text_methods import WithText, check_place
from slackwater.runtime.expressions.times import in_nanoseconds, literal_in
from slackwater.runtime.expressions.whole import Kernel, refused
from slackwater.runtime.model import BoolArray, Column, Int64Array
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.nullable import is_true, nulled, valid_bits
from slackwater.runtime.model.schema import (
    inside_type,
    is_list,
    is_text,
    is_time,
    keeper_of,
    storage_type,
    time_unit,
)
from slackwater.runtime.nearest import choices
from slackwater.runtime.other_names import SaysItHasNoParts, answer_to
from slackwater.runtime.shown import shown, text_of

__all__ = ["NESTED_FUNCTIONS", "ListMethods", "WithLists", "element", "lists_of"]

_E = TypeVar("_E", bound=WithText)


class WithLists(WithText):
    """An expression with methods of lists, of text and of times."""

    @property
    def list(self) -> ListMethods[Self]:
        """Methods of lists: `col("readings").list.length()`."""
        return ListMethods(self)


@checked_methods
class ListMethods(SaysItHasNoParts, Generic[_E]):
    """Methods of an expression that is a list.

    A result is null where the list is.

    Args:
        of: expression of the values.
    """

    _called = ".list of an expression"
    _place = "list"

    def __init__(self, of: _E) -> None:
        self._of = of

    def length(self) -> _E:
        """Return the number of elements, nulls too."""
        return self._made("list.length")

    def get(self, place: int) -> _E:
        """Return the element at a place; below 0 counts from the end, outside is null."""
        return element(self._of, place)

    def first(self) -> _E:
        """Return the first element; null of an empty list."""
        return element(self._of, 0)

    def last(self) -> _E:
        """Return the last element; null of an empty list."""
        return element(self._of, -1)

    def slice(self, start: int, length: int | None = None) -> _E:
        """Return `length` elements from `start` on; all if it is None.

        Raises:
            TypeMismatch: one is below 0.
        """
        for what, value in (("start", start), ("length", length)):
            if value is not None and value < 0:
                raise TypeMismatch(f"list.slice: {what}={value} must be 0 or more")
        check_place("list.slice", start=start, length=length)
        written = str(start) if length is None else f"{start}, {length}"
        return self._made("list.slice", option=(start, length), shown=written)

    def contains(self, value: Writable) -> _E:
        """Return whether one of the elements equals the value, as `==` says."""
        if isinstance(value, WithText):
            raise TypeMismatch(f"list.contains takes one value for all rows, not {shown(value)}")
        literal, kind, written = read_literal(value)
        return self._made("list.contains", option=Operand(kind, literal), shown=written)

    def join(self, by: str) -> _E:
        """Return the elements, which are text, as one text; nulls are omitted."""
        return self._made("list.join", option=(by,), shown=quoted(by))

    def sum(self) -> _E:
        """Return the sum of the elements that are not null; null without any."""
        return self._made("list.sum")

    def mean(self) -> _E:
        """Return the mean of the elements that are not null, a float; null without any."""
        return self._made("list.mean")

    def min(self) -> _E:
        """Return the least element; null without any."""
        return self._made("list.min")

    def max(self) -> _E:
        """Return the greatest element; null without any. NaN is greater than all others."""
        return self._made("list.max")

    def _made(self, op: str, *, option: Any = (), shown: str = "") -> _E:
        made: _E = self._of.operation(op, option=option, shown=shown)
        return made


def element(of: _E, key: object) -> _E:
    """Return a part of a nested expression: a field, a value, or an element.

    Raises:
        TypeMismatch: `key` is not a value, but a column, say.
    """
    try:
        literal, kind, written = read_literal(key)
    except TypeMismatch:
        way_out = f"; {answer_to('expression', 'brackets')}" if isinstance(key, slice) else ""
        raise TypeMismatch(
            f"{of!s}[{shown(key)}] takes the name of a field, a key of a map, or an element's place"
            f"{way_out}"
        ) from None
    made: _E = of.operation("[]", option=Operand(kind, literal), shown=written)
    return made


# -- types ------------------------------------------------------------------------------


def _type_inside(op: str, operands: Sequence[Operand], option: Operand) -> pa.DataType:
    kind, key = operands[0].type, option.value
    if pa.types.is_struct(kind):
        if not isinstance(key, str):
            raise TypeMismatch(f"{op} of a struct takes the name of a field, such as ['x']")
        places = kind.get_all_field_indices(key)
        if len(places) != 1:
            names = [field.name for field in kind]
            many = (
                f"has {len(places)} fields {shown(key)}" if places else f"has no field {shown(key)}"
            )
            raise TypeMismatch(f"{kind} {many}; {choices(key, names)}")
        return inside_type(key, kind.field(places[0]).type)
    if pa.types.is_map(kind):
        _check_equal(f"{kind} has no such key", kind.key_type, option)
        return inside_type("value", kind.item_type)
    if is_list(kind):
        if option.type != pa.int64():
            raise TypeMismatch(f"{op} of a list takes an element's place, such as [0] or [-1]")
        return inside_type("element", kind.value_type)
    raise TypeMismatch(f"[{shown(key)}] takes a list, a struct or a map, not {kind}")


def _check_equal(fact: str, inside: pa.DataType, value: Operand) -> None:
    try:
        check_comparable("==", Operand(computed_type(inside)), value)
    except TypeMismatch as problem:
        raise TypeMismatch(f"{fact}: {text_of(problem)}") from None


def _elements(op: str, operands: Sequence[Operand], _option: Any = None) -> pa.DataType:
    kind = operands[0].type
    if not is_list(kind):
        raise TypeMismatch(f"{op} takes a list, not {kind}")
    return inside_type("element", kind.value_type)


def _list_or_map(op: str, operands: Sequence[Operand]) -> None:
    if not pa.types.is_map(operands[0].type):
        _elements(op, operands)


def _list_of_texts(op: str, operands: Sequence[Operand]) -> None:
    if not is_text(_elements(op, operands)):
        raise TypeMismatch(f"{op} takes a list of text, not {operands[0].type}")


def _list_of_numbers(op: str, operands: Sequence[Operand]) -> None:
    inside, kind = _elements(op, operands), operands[0].type
    if not (pa.types.is_integer(inside) or pa.types.is_floating(inside)):
        raise TypeMismatch(f"{op} takes a list of numbers, not {kind}; write .explode(…) first")


def _type_of_contains(op: str, operands: Sequence[Operand], option: Operand) -> pa.DataType:
    fact = f"{operands[0].type} has no such element"
    _check_equal(fact, _elements(op, operands), option)
    return pa.bool_()


def _type_of_sum(op: str, operands: Sequence[Operand], _option: Any) -> pa.DataType:
    return pa.int64() if pa.types.is_integer(_elements(op, operands)) else pa.float64()


# -- kernels ----------------------------------------------------------------------------


def _part(call: Call) -> Kernel:
    kind, key = call.operands[0].type, call.option.value
    if pa.types.is_struct(kind):
        keep, field = keeper_of(kind.field(key).type), arrow_functions().struct_field
        return lambda column: keep(field(column, [key]))
    if pa.types.is_map(kind):
        is_key, keep = _equality(call.option, kind.key_type), keeper_of(kind.item_type)
        return lambda column: keep(_item(is_key, column))
    keep = keeper_of(kind.value_type)
    return lambda column: keep(_element_at(key, column))


def _item(is_key: Callable[[pa.Array], BoolArray], column: pa.Array) -> pa.Array:
    values, starts, ends = lists_of(column)
    places, rows = _rows_of(starts, ends)
    equal = np.flatnonzero(is_key(column.keys.take(pa.array(places))))
    has_key, first = np.unique(rows[equal], return_index=True)
    place_of = np.full(len(column), -1)
    place_of[has_key] = places[equal[first]]
    return values.take(pa.array(place_of, mask=place_of < 0))


def _element_at(place: int, column: pa.Array) -> pa.Array:
    values, starts, ends = lists_of(column)
    places = starts + place if place >= 0 else ends + place
    missing = (places < starts) | (places >= ends)
    return values.take(pa.array(places, mask=missing))


def lists_of(column: pa.Array) -> tuple[pa.Array, Int64Array, Int64Array]:
    """Return all elements, and where each list begins and ends; a null list is empty."""
    if pa.types.is_fixed_size_list(column.type):
        column = column.cast(pa.list_(column.type.value_type))
    offsets = np.asarray(column.offsets).astype(np.int64)
    starts, ends = offsets[:-1], offsets[1:]
    values = column.items if pa.types.is_map(column.type) else column.values
    return values, starts, np.where(valid_bits(column), ends, starts)


@with_call
def _length(_call: Call, column: pa.Array) -> Column:
    _, starts, ends = lists_of(column)
    return ends - starts


@with_call
def _slice(call: Call, column: pa.Array) -> Column:
    start, length = call.option
    values, starts, ends = lists_of(column)
    begins = starts + np.minimum(start, ends - starts)
    stops = ends if length is None else begins + np.minimum(length, ends - begins)
    sizes = stops - begins
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    rows = np.repeat(begins - offsets[:-1], sizes) + np.arange(offsets[-1])
    list_class = pa.LargeListArray if pa.types.is_large_list(column.type) else pa.ListArray
    index = np.int64 if pa.types.is_large_list(column.type) else np.int32
    sliced = list_class.from_arrays(pa.array(offsets.astype(index)), values.take(pa.array(rows)))
    return sliced if sliced.type == column.type else sliced.cast(column.type)


def _rows_of(starts: Int64Array, ends: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return for each element of the lists its place among all values, and its list."""
    sizes = ends - starts
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    places = np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])
    return places, np.repeat(np.arange(len(starts)), sizes)


def _equality(literal: Operand, kind: pa.DataType) -> Callable[[pa.Array], BoolArray]:
    """Return the test which elements of a type equal a literal, shape (elements,).

    A null equals nothing.
    """
    value, unit, keep = literal.value, "", keeper_of(kind)
    if pa.types.is_duration(kind):
        unit = time_unit(kind)
    elif is_time(kind):
        _, value = literal_in(literal.type, value, time_unit(kind))
    compared = Call((Operand(storage_type(kind)), Operand(literal.type, value)), None, pa.bool_())
    equal = over_values(comparison("==")(compared))

    def is_equal(elements: pa.Array) -> BoolArray:
        column = keep(elements)
        if unit:
            column = in_nanoseconds(column, unit, "an element")
        return is_true(equal(column, value))

    return is_equal


def _contains(call: Call) -> Kernel:
    is_equal = _equality(call.option, call.operands[0].type.value_type)

    def kernel(column: pa.Array) -> Column:
        values, starts, ends = lists_of(column)
        places, lists = _rows_of(starts, ends)
        has_it: BoolArray = np.zeros(len(column), np.bool_)
        has_it[lists[is_equal(values.take(pa.array(places)))]] = True
        return has_it

    return kernel


@with_call
def _join(call: Call, column: pa.Array) -> Column:
    (by,) = call.option
    texts = [[each for each in some or () if each is not None] for some in column.to_pylist()]
    return pa.array([by.join(some) for some in texts], pa.string())


def _numbers(column: pa.Array) -> tuple[Any, Int64Array, Int64Array]:
    """Return elements without nulls, and where each list begins, and its number of them."""
    values, starts, ends = lists_of(column)
    places, lists = _rows_of(starts, ends)
    some = values.take(pa.array(places))
    is_there = valid_bits(some)
    numbers = np.asarray(some.drop_null())
    sizes = np.bincount(lists[is_there], minlength=len(starts))
    return numbers, np.concatenate(([0], np.cumsum(sizes)[:-1])), sizes


def _reduced(ufunc: np.ufunc, column: pa.Array, dtype: Any = None) -> tuple[Any, Int64Array]:
    """Return each list reduced to one value, 0 without any, and its number of elements."""
    numbers, begins, sizes = _numbers(column)
    dtype = numbers.dtype if dtype is None else dtype
    result = np.zeros(len(column), dtype)
    has = sizes > 0
    if has.any():
        result[has] = ufunc.reduceat(numbers.astype(dtype, copy=False), begins[has])
    return result, sizes


@with_call
def _sum(call: Call, column: pa.Array) -> Column:
    is_whole = pa.types.is_integer(call.gives)
    sums, sizes = _reduced(np.add, column, np.int64 if is_whole else np.float64)
    if is_whole:
        rough, _ = _reduced(np.add, column, np.float64)
        wrong = np.abs(rough - sums) > 2.0**62
        if wrong.any():
            place = int(wrong.argmax())
            raise refused(f".list.sum() of {shown(column[place])} does not fit int64", place)
    return nulled(sums, sizes > 0)


@with_call
def _mean(_call: Call, column: pa.Array) -> Column:
    sums, sizes = _reduced(np.add, column, np.float64)
    return nulled(sums / np.maximum(sizes, 1), sizes > 0)


@with_call
def _least(_call: Call, column: pa.Array) -> Column:
    least, sizes = _reduced(np.fmin, column)
    return nulled(least, sizes > 0)


@with_call
def _greatest(_call: Call, column: pa.Array) -> Column:
    greatest, sizes = _reduced(np.maximum, column)
    return nulled(greatest, sizes > 0)


NESTED_FUNCTIONS = (
    Function("[]", anything, _type_inside, _part, INDEX),
    Function("list.length", _list_or_map, pa.int64(), _length),
    Function("list.slice", _elements, own_type, _slice),
    Function("list.contains", _elements, _type_of_contains, _contains),
    Function("list.join", _list_of_texts, pa.string(), _join),
    Function(
        "list.sum", _list_of_numbers, _type_of_sum, _sum, warns=Results.ALL, refuses=Results.ALL
    ),
    Function("list.mean", _list_of_numbers, pa.float64(), _mean, warns=Results.ALL),
    Function("list.min", _list_of_numbers, _elements, _least),
    Function("list.max", _list_of_numbers, _elements, _greatest),
)
"""Rows of the table: functions of an Arrow array of lists, structs or maps."""
