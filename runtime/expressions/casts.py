"""Casts of expressions, `.cast(type)` and `.try_cast(type)`.

```
from            to                how
numbers         whole numbers     cut towards zero; outside the type refused
whole numbers   times             counted in the unit of the new type
times           times, dates      the begin of the unit; a date, a time of day: in its own zone
text            any               as Arrow parses it: ISO 8601, numbers, "true"
times           text              ISO 8601, without the zeros at the end of a fraction
```

Times reach a cast in their own unit; the type of their column travels as `OfType.kind`.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.expressions.nulls import refused_rows, spread
from slackwater.runtime.expressions.result_types import type_named
from slackwater.runtime.expressions.time_methods import OfType
from slackwater.runtime.expressions.times import rescaled
from slackwater.runtime.expressions.whole import refused
from slackwater.runtime.model import Column
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.decimal_types import MOST_WIDE_DIGITS
from slackwater.runtime.model.exact_casts import (
    cast_of_decimals,
    first_refused,
    last_digits,
    zero_for_null,
)
from slackwater.runtime.model.nullable import valid_bits
from slackwater.runtime.model.schema import (
    TIME_UNIT_NS,
    column_of_arrow,
    counted,
    is_binary,
    is_text,
    is_time,
    storage_type,
    time_unit,
    values_of,
)
from slackwater.runtime.model.zones import clock_of, instants_in, zoned_text
from slackwater.runtime.shown import MOST_SHOWN, shown, text_of
from slackwater.runtime.shown_rows import cell_shown

__all__ = ["cast", "try_cast"]

_MOST_POWER = 18
"""Powers of ten up to this one fit 64 bits."""
_FRACTION = r"(\.[0-9]*?)0+(Z|[+-][0-9:]{4,8}|)$"
_PLUS = r"^\+([0-9]+)$"
_ZONE = r":[0-9]{2}.*(Z|[+-][0-9]{2}(:?[0-9]{2}){0,2})$"
_NO_FRACTION = r"\.(Z|[+-][0-9:]{4,8}|)$"


def cast(option: OfType, values: Column) -> Column:
    """Return the values as another type, kept as columns of it are.

    Args:
        option: the name of the type, and the type of the operand's column.
        values: shape (rows,), no nulls.

    Raises:
        OperatorError: a value does not fit, such as NaN as an integer, 300 as int8, "abc" as a
            number; with its place.
    """
    try:
        return _as_type(option, values)
    except pa.ArrowInvalid as problem:
        place = first_refused(lambda start, stop: _as_type(option, values[start:stop]), len(values))
        raise refused(
            f".cast({shown(option.argument)}) of {cell_shown(values, place)}: "
            f"{text_of(problem, MOST_SHOWN)}; filter out such rows first, or write .try_cast",
            place,
        ) from problem


def try_cast(option: OfType, values: Column) -> Column:
    """Return the values as another type, null where one does not fit; see `cast`."""
    try:
        return _as_type(option, values)
    except pa.ArrowInvalid:
        fits = np.ones(len(values), np.bool_)
        fits[
            refused_rows(
                lambda start, stop: _as_type(option, values[start:stop]),
                len(values),
                pa.ArrowInvalid,
            )
        ] = False
        rows = fits.nonzero()[0]
        return spread(_as_type(option, values.take(rows)), fits, rows)


def _as_type(option: OfType, values: Any) -> Column:
    """Return values as another type.

    Raises:
        ArrowInvalid: one does not fit.
    """
    target = type_named(option.argument)
    if option.kind is not None and is_time(option.kind):
        return _of_times(option.kind, values, target)
    if is_time(target) and isinstance(values, np.ndarray):  # whole numbers of its unit
        return counted(values, target)
    if is_time(target):
        return _time_in_text(values, target)
    if isinstance(values, np.ndarray):
        return _of_numbers(values, target)
    return _of_arrow(values, target)


def _of_numbers(values: Any, target: pa.DataType) -> Column:
    if not (is_text(target) or pa.types.is_decimal(target)):
        dtype = np.dtype(target.to_pandas_dtype())
        if target == pa.bool_() and values.dtype.kind == "f" and np.isnan(values).any():
            raise pa.ArrowInvalid("NaN is neither true nor false")
        if target == pa.bool_() or dtype.kind == "f" or np.can_cast(values.dtype, dtype):
            return values.astype(dtype, copy=False)
        if values.dtype.kind == "f":
            values = np.trunc(values)
    is_counted = pa.types.is_decimal(target) and values.dtype.kind == "b"
    return _of_arrow(pa.array(values.astype(np.int8) if is_counted else values), target)


def _of_arrow(values: pa.Array, target: pa.DataType) -> Column:
    if pa.types.is_decimal(values.type) and pa.types.is_integer(target):  # cut, as floats are
        values = _cut(values)
    if is_text(target) and is_binary(values.type):
        values = values.cast(pa.binary())  # of fixed size, or large
    if is_text(values.type) and pa.types.is_integer(target):
        return _whole_in_text(values, target)
    return column_of_arrow(cast_of_decimals(values, target))


def _cut(decimals: pa.Array) -> pa.Array:
    """Return decimals cut to whole numbers.

    Arrow's own trunc is off by one, and by more, for some numbers about powers of two.
    """
    low, fits = last_digits(zero_for_null(decimals))
    scale = decimals.type.scale
    if fits.all() and scale <= _MOST_POWER:
        power = np.int64(10**scale)
        whole = low // power + ((low < 0) & (low % power != 0))
        return pa.array(whole, mask=~valid_bits(decimals))
    exact = [None if one is None else Decimal(int(one)) for one in decimals.to_pylist()]
    return pa.array(exact, pa.decimal256(MOST_WIDE_DIGITS, 0))


def _whole_in_text(text: pa.Array, target: pa.DataType) -> Column:
    """Return whole numbers of texts such as "-7", "+7" and "0x1F"."""
    of_arrow = arrow_functions()
    try:
        numbers = text.cast(target)
    except pa.ArrowInvalid:  # Arrow takes no plus
        numbers = of_arrow.replace_substring_regex(text, _PLUS, r"\1").cast(target)
    if pa.types.is_signed_integer(target) and (of_arrow.min(numbers).as_py() or 0) < 0:
        is_wrapped = of_arrow.and_not(of_arrow.less(numbers, 0), of_arrow.starts_with(text, "-"))
        if is_wrapped.true_count:  # Arrow reads "0xFF" as the int8 of these bits
            raise pa.ArrowInvalid(f"a hexadecimal number is outside {target}")
    return column_of_arrow(numbers)


def _time_in_text(text: pa.Array, target: pa.DataType) -> Column:
    if pa.types.is_time(target):  # Arrow has no such cast
        first_day = arrow_functions().binary_join_element_wise("1970-01-01", text, " ")
        since = values_of(first_day.cast(pa.timestamp(target.unit)).view(pa.int64()))
        return since.astype(storage_type(target).to_pandas_dtype(), copy=False)
    if not pa.types.is_timestamp(target) or target.tz is None:
        return column_of_arrow(text.cast(target))
    # A text without a zone is UTC, as all times without one are.
    of_arrow = arrow_functions()
    has_zone = of_arrow.match_substring_regex(text, _ZONE)
    with_zone = instants_in(of_arrow.if_else(has_zone, text, None), target)
    without = of_arrow.if_else(has_zone, None, text).cast(pa.timestamp(target.unit))
    return column_of_arrow(of_arrow.coalesce(with_zone, without.view(target)))


def _of_times(kind: pa.DataType, values: Any, target: pa.DataType) -> Column:
    """Return times of a column of type `kind`, in its unit, as another type."""
    if is_text(target) and not pa.types.is_duration(kind):
        return _as_text(kind, values)
    unit = time_unit(kind)
    if not is_time(target):
        return _of_numbers(rescaled(values, unit, "ns"), target)
    to = time_unit(target)
    if pa.types.is_date(target):
        whole = rescaled(rescaled(_local(kind, values), unit, "D"), "D", to)
    elif pa.types.is_time(target):
        day = np.int64(TIME_UNIT_NS["D"] // TIME_UNIT_NS[unit])
        whole = rescaled(_local(kind, values) % day, unit, to)
    else:
        whole = rescaled(values, unit, to)
    return whole if target.bit_width == 64 else counted(whole, target)


def _local(kind: pa.DataType, values: Any) -> Any:
    """Return times as the clock of their zone shows them."""
    try:
        return clock_of(kind, values)
    except OperatorError as problem:
        raise pa.ArrowInvalid(f"in {kind.tz} it is beyond nanoseconds, 1677 to 2262") from problem


def _as_text(kind: pa.DataType, values: Any) -> pa.Array:
    _local(kind, values)  # Arrow's text has the clock of the zone, and wraps around
    times = pa.array(values, storage_type(kind)).view(kind)
    if pa.types.is_date(kind):
        return times.cast(pa.date32()).cast(pa.string())
    of_arrow = arrow_functions()
    shown = zoned_text(times) if pa.types.is_timestamp(kind) else times.cast(pa.string())
    text = of_arrow.replace_substring_regex(shown, _FRACTION, r"\1\2")
    return of_arrow.replace_substring_regex(text, _NO_FRACTION, r"\1")
