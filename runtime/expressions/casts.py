"""Casts of expressions, `.cast(type)` and `.try_cast(type)`.

```
from            to                how
numbers         whole numbers     cut towards zero; outside the type refused
whole numbers   times             counted in the unit of the new type
times           times, dates      the begin of the unit; a date, a time of day: in its own zone
text            any               as Arrow parses it: ISO 8601, numbers, "true"
times           text              ISO 8601, without the zeros at the end of a fraction
```

Times reach a cast in their own unit.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.expressions.function import Call
from slackwater.runtime.expressions.nulls import refused_rows, spread
from slackwater.runtime.expressions.times import rescaled
from slackwater.runtime.expressions.whole import Kernel, refused
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
    keeper_of,
    number_dtype,
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


def cast(call: Call) -> Kernel:
    """Return the kernel of a cast to another type.

    The kernel raises OperatorError for a value that does not fit, such as NaN as an integer, 300 as
    int8, "abc" as a number; with its place.
    """
    convert = _conversion(call)

    def kernel(values: Column) -> Column:
        try:
            return convert(values)
        except pa.ArrowInvalid as problem:
            place = first_refused(lambda start, stop: convert(values[start:stop]), len(values))
            raise refused(
                f".cast({shown(call.option)}) of {cell_shown(values, place)}: "
                f"{text_of(problem, MOST_SHOWN)}; filter out such rows first, or write .try_cast",
                place,
            ) from problem

    return kernel


def try_cast(call: Call) -> Kernel:
    """Return the kernel of a cast, null where a value does not fit."""
    convert = _conversion(call)

    def kernel(values: Column) -> Column:
        try:
            return convert(values)
        except pa.ArrowInvalid:
            fits = np.ones(len(values), np.bool_)
            fits[
                refused_rows(
                    lambda start, stop: convert(values[start:stop]), len(values), pa.ArrowInvalid
                )
            ] = False
            rows = fits.nonzero()[0]
            return spread(convert(values.take(rows)), fits, rows)

    return kernel


_Conversion = Callable[[Any], Column]
"""Function from values of one type to those of another; raises ArrowInvalid if one does not fit."""


def _conversion(call: Call) -> _Conversion:
    arrow_functions()  # loaded now, not in the first row's latency: Arrow casts with them
    kind, target = call.operands[0].type, call.gives
    if is_time(kind):
        return _of_times(kind, target)
    dtype = number_dtype(kind)
    if is_time(target):
        # Whole numbers are of its unit.
        return partial(_time_in_text, target) if dtype is None else partial(_counted, target)
    return _of_arrow(kind, target) if dtype is None else _of_numbers(dtype, target)


def _counted(target: pa.DataType, numbers: Any) -> Column:
    return counted(numbers, target)


def _of_numbers(dtype: np.dtype[Any], target: pa.DataType) -> _Conversion:
    is_exact = is_text(target) or pa.types.is_decimal(target)
    if not is_exact:
        to = np.dtype(target.to_pandas_dtype())
        if to.kind in "bf" or np.can_cast(dtype, to):
            return lambda values: values.astype(to, copy=False)
    if pa.types.is_decimal(target) and dtype.kind == "b":
        counts = _of_arrow(pa.int8(), target)
        return lambda values: counts(pa.array(values.astype(np.int8)))
    of_arrow = _of_arrow(pa.from_numpy_dtype(dtype), target)
    if dtype.kind == "f" and not is_exact:
        return lambda values: of_arrow(pa.array(np.trunc(values)))
    return lambda values: of_arrow(pa.array(values))


def _of_arrow(kind: pa.DataType, target: pa.DataType) -> _Conversion:
    if is_text(kind) and pa.types.is_integer(target):
        return partial(_whole_in_text, target)
    is_cut = pa.types.is_decimal(kind) and pa.types.is_integer(target)  # as floats are
    is_bytes = is_text(target) and is_binary(kind)  # of fixed size, or large
    keep = keeper_of(target)

    def convert(values: pa.Array) -> Column:
        if is_cut:
            values = _cut(values)
        if is_bytes:
            values = values.cast(pa.binary())
        return keep(cast_of_decimals(values, target))

    return convert


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
    exact = [None if each is None else Decimal(int(each)) for each in decimals.to_pylist()]
    return pa.array(exact, pa.decimal256(MOST_WIDE_DIGITS, 0))


def _whole_in_text(target: pa.DataType, text: pa.Array) -> Column:
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


def _time_in_text(target: pa.DataType, text: pa.Array) -> Column:
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


def _of_times(kind: pa.DataType, target: pa.DataType) -> _Conversion:
    """Return the conversion of times of a column of type `kind`, in its unit."""
    if is_text(target) and not pa.types.is_duration(kind):
        return partial(_as_text, kind)
    unit = time_unit(kind)
    if not is_time(target):
        of_numbers = _of_numbers(np.dtype(np.int64), target)
        return lambda values: of_numbers(rescaled(values, unit, "ns"))
    to = time_unit(target)

    def convert(values: Any) -> Column:
        if pa.types.is_date(target):
            whole = rescaled(rescaled(_local(kind, values), unit, "D"), "D", to)
        elif pa.types.is_time(target):
            day = np.int64(TIME_UNIT_NS["D"] // TIME_UNIT_NS[unit])
            whole = rescaled(_local(kind, values) % day, unit, to)
        else:
            whole = rescaled(values, unit, to)
        return whole if target.bit_width == 64 else counted(whole, target)

    return convert


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
