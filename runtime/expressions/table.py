"""The table of functions: each function of expressions is one row.

| part of a row | content |
| --- | --- |
| name | `"str.length"`; what `Operation` is made of |
| takes, gives | operands, and the type of the results (`result_types.py`) |
| kernel | choice of a kernel for known types, made once, before rows come |
| the rest | notation, and traits that differ from those of most functions (`function.py`) |

Rows of text, times and nested values stand beside their methods and kernels, the others are here.
A method has its docstring where it stands, and makes an `Operation` of the name. To add a function,
write its row, its method, and its kernel if NumPy and Arrow have none.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from slackwater.runtime.expressions import kernels
from slackwater.runtime.expressions import result_types as types
from slackwater.runtime.expressions.casts import cast, try_cast
from slackwater.runtime.expressions.compared import COMPARISONS, comparison
from slackwater.runtime.expressions.compute import choice, logic
from slackwater.runtime.expressions.function import Function, Over, Results, Times, anything
from slackwater.runtime.expressions.functions import MAPPING
from slackwater.runtime.expressions.kernels import always
from slackwater.runtime.expressions.nested_methods import NESTED_FUNCTIONS
from slackwater.runtime.expressions.notation import CALL, CHOICE, infix, prefix
from slackwater.runtime.expressions.nulls import not_true
from slackwater.runtime.expressions.result_types import (
    check_conditions,
    check_flat,
    check_float,
    check_numbers,
)
from slackwater.runtime.expressions.text_methods import TEXT_FUNCTIONS
from slackwater.runtime.expressions.time_methods import TIME_FUNCTIONS
from slackwater.runtime.expressions.whole import divided, of_numbers, power, rounded
from slackwater.runtime.model.hashes import hashed

__all__ = ["FUNCTIONS"]

_BOOL = pa.bool_()
_FLOATS, _EXACT, _ALL = Results.FLOATS, Results.EXACT, Results.ALL
_COLUMNS, _BATCHES, _COMPARED = Over.COLUMNS, Over.BATCHES, Times.COMPARED
_MINUS = kernels.arithmetic_of("-", np.subtract)
_TIMES = kernels.arithmetic_of("*", np.multiply)
_BY = kernels.arithmetic_of("/", np.true_divide)
_WHOLE_BY, _REST_BY = divided("//", np.floor_divide), divided("%", np.remainder)
_NEGATIVE = kernels.of_sign("negate", "the negative", np.negative)
_ABSOLUTE = kernels.of_sign("abs", "abs", np.abs)
_FIRST, _FILLED = always(kernels.first_value), always(kernels.filled)


def _sides(operands: int) -> frozenset[int]:
    """Return the places of the values of a choice: condition, value, condition, value, …, value."""
    return frozenset((*range(1, operands, 2), operands - 1))


_OPERATORS = (
    *(
        Function(op, anything, types.compare, comparison(op), infix(1), times=_COMPARED)
        for op in COMPARISONS
    ),
    Function("|", check_conditions, _BOOL, logic("|"), infix(2), over=_BATCHES),
    Function("&", check_conditions, _BOOL, logic("&"), infix(3), over=_BATCHES),
    Function("~", check_conditions, _BOOL, always(not_true), prefix("~"), over=_COLUMNS),
    Function("+", anything, types.add, kernels.plus, infix(4), warns=_FLOATS, refuses=_EXACT),
    Function("-", anything, types.subtract, _MINUS, infix(4), warns=_FLOATS, refuses=_EXACT),
    Function("*", anything, types.of_numbers, _TIMES, infix(5), warns=_FLOATS, refuses=_EXACT),
    Function("/", anything, types.divide, _BY, infix(5), warns=_ALL),
    Function("//", anything, types.of_numbers, _WHOLE_BY, infix(5), warns=_ALL, refuses=_EXACT),
    Function("%", anything, types.of_numbers, _REST_BY, infix(5), warns=_ALL, refuses=_EXACT),
    Function("**", anything, types.power, power, infix(7), warns=_ALL, refuses=_EXACT),
    Function("negative", anything, types.of_sign, _NEGATIVE, prefix("-"), refuses=_EXACT),
    Function("abs", anything, types.of_sign, _ABSOLUTE, CALL, refuses=_EXACT),
)
_CHOICES = (
    Function("where", anything, types.where, choice, CALL, over=_BATCHES, null_places=_sides),
    Function("when", anything, types.when, choice, CHOICE, over=_BATCHES, null_places=_sides),
    Function("coalesce", anything, types.coalesce, _FIRST, CALL, over=_COLUMNS, null_places=range),
    Function("fill_null", anything, types.fill_null, _FILLED, over=_COLUMNS, null_places=range),
)
_VALUES = (
    Function("between", anything, types.compare, kernels.between, over=_COLUMNS, times=_COMPARED),
    Function("is_in", anything, types.is_in, kernels.is_in, times=_COMPARED),
    Function("is_null", anything, _BOOL, always(kernels.is_null), over=_COLUMNS, times=_COMPARED),
    Function("hash", check_flat, pa.uint64(), always(hashed), over=_COLUMNS),
    Function("cast", anything, types.cast, cast, times=Times.OWN, warns=_ALL, refuses=_ALL),
    Function("try_cast", anything, types.cast, try_cast, times=Times.OWN, warns=_ALL, refuses=_ALL),
)
_NUMBERS = (
    Function("floor", check_numbers, types.widened_number, of_numbers(np.floor)),
    Function("ceil", check_numbers, types.widened_number, of_numbers(np.ceil)),
    Function("sign", check_numbers, types.widened_number, of_numbers(np.sign)),
    Function("round", check_numbers, types.widened_number, rounded, warns=_ALL, refuses=_EXACT),
    Function("is_nan", check_float, _BOOL, always(np.isnan)),
    *(
        Function(ufunc.__name__, check_numbers, types.as_float, of_numbers(ufunc), warns=_ALL)
        for ufunc in (
            *(np.sqrt, np.cbrt, np.exp, np.log, np.log2, np.log10, np.degrees, np.radians),
            *(np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.tanh),
        )
    ),
)
_HERE = (*_OPERATORS, *_CHOICES, *_VALUES, *_NUMBERS)
_ELSEWHERE = (*TEXT_FUNCTIONS, *TIME_FUNCTIONS, *NESTED_FUNCTIONS, MAPPING)

FUNCTIONS = {function.name: function for function in (*_HERE, *_ELSEWHERE)}
"""{name: the function}"""
