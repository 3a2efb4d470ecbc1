"""Casts of Arrow that change no value in silence."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.model.arrow_functions import arrow_functions

__all__ = [
    "EXACT_POWER",
    "cast_exactly",
    "cast_of_decimals",
    "first_refused",
    "floats_of",
    "is_text_extension",
    "last_digits",
    "parts_of",
    "zero_for_null",
]

EXACT_POWER = 22
"""Powers of ten up to this one are floats without an error."""
_EXACT = 2**53
"""Whole numbers up to here are floats without an error."""
_EXACT_DECIMALS = Context(prec=200)
"""Context in which no decimal of Arrow is rounded."""
_WITHOUT_EXPONENT = 6
"""Most digits after the point of decimals that Arrow never writes with an exponent."""
_ROUNDED = 1e-6
"""More than floats of equal decimals differ, relative to their size."""


def first_refused(cast: Callable[[int, int], object], rows: int) -> int:
    """Return the place of the first value that a cast refuses; one must exist.

    Args:
        cast: casts the values from one place up to another, or raises ArrowInvalid.
        rows: number of the values.
    """
    start, stop = 0, rows
    while stop - start > 1:
        middle = (start + stop) // 2
        try:
            cast(start, middle)
            start = middle
        except pa.ArrowInvalid:
            stop = middle
    return start


def cast_exactly(values: pa.Array, to: pa.DataType) -> pa.Array:
    """Cast values if none changes; decimals become the nearest floats, floats narrower ones.

    Arrow takes 2 for true, 1e40 for an infinite float32, noon for a date, and 0.125 for 0.12.

    Raises:
        ArrowInvalid, ArrowNotImplementedError: a value would change, or there is no such cast.
    """
    if values.type == to:
        return values
    made = cast_of_decimals(values, to)
    _refuse_changed(values, made)
    return made


def _refuse_changed(values: pa.Array, made: pa.Array) -> None:
    if pa.types.is_nested(values.type) and pa.types.is_nested(made.type):
        of_values = parts_of(values)
        for name, part in parts_of(made).items():
            given = of_values.get(name, part)
            if pa.types.is_decimal(part.type) and not pa.types.is_floating(given.type):
                _refuse_wrapped(given, part)  # of a column alone, its cast has
            _refuse_changed(given, part)
    elif values.type != made.type:
        _refuse_changed_flat(values, made)


def parts_of(values: pa.Array) -> dict[str, pa.Array]:
    """Return the parts of structs, maps or lists by name."""
    if pa.types.is_struct(values.type):
        return dict(zip(values.type.names, values.flatten(), strict=True))
    if pa.types.is_map(values.type):
        values = pa.concat_arrays([values])  # without the offset of a slice
        return {"key": values.keys, "value": values.items}
    return {"element": values.flatten()}


def _refuse_changed_flat(values: pa.Array, made: pa.Array) -> None:
    of, to, types, of_arrow = values.type, made.type, pa.types, arrow_functions()
    if types.is_boolean(to) and (types.is_integer(of) or types.is_floating(of)):
        if of_arrow.not_equal(made.cast(pa.int8()).cast(of), values).true_count:
            raise pa.ArrowInvalid("numbers other than 0 and 1 are neither true nor false")
    elif types.is_timestamp(of) and types.is_date(to):
        if of_arrow.not_equal(made.cast(of), values).true_count:
            raise pa.ArrowInvalid("some times are not whole days, and a date has no time")
    elif types.is_floating(of) and types.is_floating(to):
        if of_arrow.and_(of_arrow.is_inf(made), of_arrow.is_finite(values)).true_count:
            raise pa.ArrowInvalid(f"some values are too large for {to}")
    elif types.is_floating(of) and types.is_decimal(to):
        if of_arrow.not_equal(pa.array(floats_of(made)).cast(of), values).true_count:
            raise pa.ArrowInvalid(f"some values have more than {to.scale} digits after the point")
    elif types.is_floating(to) and (types.is_string(of) or types.is_large_string(of)):
        is_written = of_arrow.match_substring(values, "inf", ignore_case=True)
        if of_arrow.and_not(of_arrow.is_inf(made), is_written).true_count:
            raise pa.ArrowInvalid(f"some values are too large for {to}")


def cast_of_decimals(values: pa.Array, to: pa.DataType) -> pa.Array:
    """Cast by Arrow, but decimals to the nearest floats, and uuids to text.

    To decimals, only what fits is cast.

    Raises:
        ArrowInvalid, ArrowNotImplementedError: a value does not fit, or there is no such cast.
    """
    of, types = values.type, pa.types
    if is_text_extension(of) and (types.is_string(to) or types.is_large_string(to)):
        return _text_of_extension(values).cast(to)
    if types.is_decimal(of) and types.is_floating(to):
        mask = values.is_null().to_numpy(zero_copy_only=False)
        return pa.array(floats_of(values), mask=mask).cast(to)
    if types.is_decimal(of) and (types.is_string(to) or types.is_large_string(to)):
        return _in_digits(values).cast(to)
    return _as_decimals(values, to) if types.is_decimal(to) else values.cast(to)


def _in_digits(decimals: pa.Array) -> pa.Array:
    """Return decimals as text without an exponent, which Arrow gives those below 0.000001."""
    text, of_arrow = decimals.cast(pa.string()), arrow_functions()
    if 0 <= decimals.type.scale <= _WITHOUT_EXPONENT:
        return text
    has_exponent = of_arrow.match_substring(text, "E")
    small = [format(value, "f") for value in decimals.filter(has_exponent).to_pylist()]
    return of_arrow.replace_with_mask(text, has_exponent, pa.array(small, pa.string()))


def _refuse_wrapped(given: pa.Array, made: pa.Array) -> None:
    """Refuse decimals that do not fit: Arrow takes many modulo 2**bits.

    Such a decimal is off by more than half of its value, so floats of both show it.
    """
    if given.type == made.type:
        return
    before, after = (
        each.cast(pa.float64()).to_numpy(zero_copy_only=False) for each in (given, made)
    )
    if (np.abs(before - after) > _ROUNDED * np.abs(before)).any():
        raise pa.ArrowInvalid(f"some values do not fit {made.type}")


def _as_decimals(values: pa.Array, to: pa.DataType) -> pa.Array:
    """Cast to decimals, and refuse those that do not fit."""
    if pa.types.is_integer(values.type):  # Arrow asks for a decimal of all digits
        values = values.cast(pa.decimal128(20, 0))
    # Arrow scales 32 and 64 bits by few digits only.
    wide = to if to.bit_width > 64 else pa.decimal128(38, to.scale)
    try:
        made = values.cast(wide).cast(to)
    except pa.ArrowInvalid:
        if not pa.types.is_decimal(values.type) or to.scale >= values.type.scale:
            raise
        made = _with_fewer_digits(values, wide).cast(to)
    if not pa.types.is_floating(values.type):  # Arrow checks those, and rounds them
        _refuse_wrapped(values, made)
    return made


def _with_fewer_digits(decimals: pa.Array, to: pa.DataType) -> pa.Array:
    """Cast decimals to a lesser scale: Arrow refuses some about powers of two that fit.

    Raises:
        ArrowInvalid: one does not fit.
    """
    last = _EXACT_DECIMALS.scaleb(Decimal(1), -to.scale)
    made = [
        None if value is None else value.quantize(last, context=_EXACT_DECIMALS)
        for value in decimals.to_pylist()
    ]
    if made != decimals.to_pylist():
        raise pa.ArrowInvalid(f"some values have more than {to.scale} digits after the point")
    return pa.array(made, to)


def is_text_extension(kind: pa.DataType) -> bool:
    """Return whether a type is Arrow's extension for uuids or JSON, which are text here."""
    is_extension = isinstance(kind, pa.BaseExtensionType)
    return is_extension and kind.extension_name in ("arrow.uuid", "arrow.json")


def _text_of_extension(values: pa.Array) -> pa.Array:
    if values.type.extension_name == "arrow.json":
        return values.storage
    uuids = values.storage.to_pylist()
    return pa.array(
        [None if uuid is None else str(UUID(bytes=uuid)) for uuid in uuids], pa.string()
    )


def floats_of(decimals: pa.Array) -> npt.NDArray[np.float64]:
    """Return the floats nearest to decimals, 0 for null: Arrow's may be others."""
    if not len(decimals):
        return np.empty(0, np.float64)
    there = zero_for_null(decimals)
    (low, fits), scale = last_digits(there), decimals.type.scale
    is_exact = fits & (low > -_EXACT) & (low < _EXACT) & (0 <= scale <= EXACT_POWER)
    power = 10.0 ** min(max(scale, 0), EXACT_POWER)
    floats: npt.NDArray[np.float64] = low / power  # one rounding, of exact numbers
    rest = np.flatnonzero(~is_exact)
    floats[rest] = [float(value) for value in there.take(pa.array(rest)).to_pylist()]
    return floats


def zero_for_null(decimals: pa.Array) -> pa.Array:
    """Return decimals, 0 for null."""
    return decimals.fill_null(pa.scalar(Decimal(0)).cast(decimals.type))


def last_digits(decimals: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return decimals without nulls as whole numbers, and which of them fit 64 bits."""
    words = decimals.type.bit_width // 64
    _, memory = decimals.buffers()
    parts = np.frombuffer(memory, np.int64, words * len(decimals), 8 * words * decimals.offset)
    parts = parts.reshape(-1, words)
    low = parts[:, 0]
    fits: npt.NDArray[np.bool_] = (parts[:, 1:] == (low >> 63)[:, np.newaxis]).all(axis=1)
    return low, fits
