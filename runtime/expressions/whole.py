"""Arithmetic of whole numbers: a result beyond 64 bits is refused, never wrapped.

The types, or the least and the greatest value of each operand, mostly prove that all results fit;
that costs little. Otherwise each result is compared with the same result in floats: a wrapped one
is 2**64 away.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.expressions.function import Call, Operand
from slackwater.runtime.model import Column
from slackwater.runtime.model.exact_casts import EXACT_POWER

Kernel = Callable[..., Column]
_FAR = 2.0**62
_MOST_DIGITS = 20  # half of that power of ten is beyond 64 bits: all is rounded to 0
_FIRST_WITHOUT_FRACTION = 2.0**52
_LIMITS = {"i": (-(2**63), 2**63 - 1), "u": (0, 2**64 - 1)}  # {kind of the result: its ends}
_SHORT = (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16())
_AT_CORNERS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
}


def of_numbers(operation: Callable[..., Any]) -> Callable[[Call], Kernel]:
    """Return the choice of a kernel of numbers that computes shorter integers in 64 bits."""

    def compute(*operands: Any) -> Column:
        return operation(*map(widened, operands))

    def kernel(call: Call) -> Kernel:
        is_short = any(
            pa.types.is_integer(each.type) and each.type.bit_width < 64 for each in call.operands
        )
        return compute if is_short else operation

    return kernel


def widened(values: Any) -> Any:
    """Return shorter integers as int64; other values unchanged."""
    if isinstance(values, np.ndarray) and values.dtype.kind in "iu" and values.dtype.itemsize < 8:
        return values.astype(np.int64)
    return values


def ends_of(values: Any) -> tuple[int, int]:
    """Return the least and the greatest of whole numbers: one, or shape (rows >= 1,)."""
    if not isinstance(values, np.ndarray):
        return int(values), int(values)
    # Half the time of min() and max(), for one row as for 10,000.
    return values.item(values.argmin()), values.item(values.argmax())


def checked(op: str, ufunc: np.ufunc, call: Call) -> Kernel:
    """Return the kernel of +, - or *, which refuses results beyond 64 bits."""
    if pa.types.is_floating(call.gives):
        return of_numbers(ufunc)(call)
    if all(map(_is_short, call.operands)):
        return lambda left, right: ufunc(widened(left), widened(right))
    at, (least, most) = _AT_CORNERS[op], _limits(call)

    def compute(left: Any, right: Any) -> Column:
        left, right = widened(left), widened(right)
        result: npt.NDArray[Any] = ufunc(left, right)
        if not result.size:
            return result
        (low, high), ends = ends_of(left), ends_of(right)
        corners = [at(side, end) for side in (low, high) for end in ends]
        if min(corners) < least or max(corners) > most:
            _refuse_wrapped(op, ufunc, left, right, result)
        return result

    return compute


def divided(op: str, ufunc: np.ufunc) -> Callable[[Call], Kernel]:
    """Return the choice of the kernel of // or %, which refuses 0."""

    def kernel(call: Call) -> Kernel:
        divisor = call.operands[1].value
        if op == "%" and isinstance(divisor, int) and divisor > 0 and call.gives == pa.int64():
            return rest
        if pa.types.is_floating(call.gives) or (divisor is not None and divisor not in (0, -1)):
            return of_numbers(ufunc)(call)
        return compute

    def rest(left: Any, right: int) -> Column:
        """Return what a division by a fixed number leaves, by NumPy's vectors."""
        left = widened(left)
        if left.size and np.minimum.reduce(left) >= 0:  # without a sign it takes half the time
            unsigned = np.floor_divide(left.view(np.uint64), np.uint64(right))
            wholes: npt.NDArray[Any] = unsigned.view(np.int64)
        else:
            wholes = np.floor_divide(left, right)
        wholes *= right
        return np.subtract(left, wholes, out=wholes)

    def compute(left: Any, right: Any) -> Column:
        left, right = widened(left), widened(right)
        result: npt.NDArray[Any] = ufunc(left, right)
        if not result.size:
            return result
        if np.count_nonzero(right) < np.size(right):
            place = int(np.argmin(np.broadcast_to(right, result.shape) != 0))
            raise refused(
                f"{_at(left, place)} {op} 0 is not a whole number; filter out such rows first, "
                "choose with where(), or compute in floats, .cast('float64')",
                place,
            )
        if op == "//" and ends_of(left)[0] == _LIMITS["i"][0]:  # by −1 the result is too great by 1
            _refuse_wrapped(op, ufunc, left, right, result)
        return result

    return kernel


def power(call: Call) -> Kernel:
    """Return the kernel of a power: whole where both operands are, else a float.

    Such an exponent is one fixed number. A whole result that does not fit is refused.
    """
    if pa.types.is_floating(call.gives):
        if all(pa.types.is_integer(each.type) for each in call.operands):
            return lambda *both: np.power(*(np.asarray(each, np.float64) for each in both))
        return of_numbers(np.power)(call)

    def compute(base: Any, exponent: Any) -> Column:
        base = widened(base)
        result: npt.NDArray[Any] = np.power(base, exponent)
        if result.size:
            largest = float(max(map(abs, ends_of(base))))
            if not np.power(largest, float(exponent)) < _FAR:
                _refuse_wrapped("**", np.power, base, exponent, result)
        return result

    return compute


def unsigned(op: str, ufunc: np.ufunc, call: Call) -> Kernel:
    """Return the kernel of negative or abs, which refuses the least number of a type."""
    if call.gives != pa.int64():
        return of_numbers(ufunc)(call)

    def compute(values: Any) -> Column:
        values = widened(values)
        if values.size and ends_of(values)[0] == _LIMITS["i"][0]:
            place = int(values.argmin())
            raise refused(f"{op} of {values[place]} does not fit int64; {_WAY_OUT}", place)
        result: Column = ufunc(values)
        return result

    return compute


def rounded(call: Call) -> Kernel:
    """Return the kernel that rounds to some digits, halves to even; whole numbers exactly."""
    digits: int = call.option
    if pa.types.is_floating(call.gives):
        return lambda values: _rounded_floats(digits, values)
    if digits >= 0:
        return widened
    least, most = _limits(call)
    digits = max(digits, -_MOST_DIGITS)  # Python makes the power of ten, however large

    def compute(values: Any) -> Column:
        values = widened(values)
        exact = [round(value, digits) for value in values.tolist()]
        for place, value in enumerate(exact):
            if not least <= value <= most:
                raise refused(
                    f"{values[place]} rounded is {value}, which does not fit {values.dtype}", place
                )
        return np.array(exact, values.dtype)

    return compute


def _rounded_floats(digits: int, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return floats rounded to `digits`; one without such digits stays as it is."""
    floats = values.astype(np.float64)
    if abs(digits) > EXACT_POWER:
        rounded = np.array([_rounded_float(value, digits) for value in floats.tolist()])
    else:
        power = 10.0 ** abs(digits)
        with np.errstate(over="ignore", invalid="ignore"):  # those are not finite, and stay
            scaled = floats * power if digits >= 0 else floats / power
            whole = np.rint(scaled)
            rounded = whole / power if digits >= 0 else whole * power
        has_fraction = np.abs(scaled) < _FIRST_WITHOUT_FRACTION
        rounded = np.where(has_fraction, rounded, floats)
        for place in np.flatnonzero(_may_differ(scaled)).tolist() if digits else ():
            rounded[place] = _rounded_float(float(floats[place]), digits)
    with np.errstate(over="ignore"):  # beyond float32 is infinity there
        return rounded.astype(values.dtype)


def _may_differ(scaled: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return which products are so near a half that their own rounding decides."""
    size = np.abs(scaled)
    with np.errstate(invalid="ignore"):  # inf - inf
        from_half = np.abs(size - np.floor(size) - 0.5)
    near: npt.NDArray[np.bool_] = (from_half <= size * _TWO_ROUNDINGS) & (size < _FIRST_EVEN)
    return near


_TWO_ROUNDINGS = 2.0**-51
"""More than a product is off, relative to it."""
_FIRST_EVEN = 4 * _FIRST_WITHOUT_FRACTION
"""From here on, a float's neighbours are further away than a digit."""


def _rounded_float(value: float, digits: int) -> float:
    try:
        return round(value, digits)
    except OverflowError:
        return math.copysign(math.inf, value)


def refused(problem: str, place: int) -> OperatorError:
    """Return an error about one row of a batch."""
    error = OperatorError(problem)
    error.place = place
    return error


_WAY_OUT = "compute in floats, .cast('float64'), or filter out such rows first"


def _refuse_wrapped(
    op: str, ufunc: np.ufunc, left: Any, right: Any, result: npt.NDArray[Any]
) -> None:
    with np.errstate(all="ignore"):
        about = ufunc(np.asarray(left, np.float64), np.asarray(right, np.float64))
        fits = np.abs(about - result.astype(np.float64)) < _FAR
    if not fits.all():
        place = int(fits.argmin())
        raise refused(
            f"{_at(left, place)} {op} {_at(right, place)} does not fit {result.dtype}; {_WAY_OUT}",
            place,
        )


def _is_short(operand: Operand) -> bool:
    # Two whole numbers of 32 bits fit 64 bits by +, - and *.
    value = operand.value
    if value is not None:
        return isinstance(value, int) and -(2**31) <= value < 2**31
    return operand.type in _SHORT


def _limits(call: Call) -> tuple[int, int]:
    """Return the least and the greatest whole result."""
    return _LIMITS["u" if call.gives == pa.uint64() else "i"]


def _at(values: Any, place: int) -> Any:
    return values[place] if isinstance(values, np.ndarray) else values
