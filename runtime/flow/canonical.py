"""One text for all ways to write the same step: what two runs must share to have one output.

A function counts by its code, its defaults and what it closes over, not by its name, its file or
its line. What it calls by a global name counts by that name only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import pyarrow as pa

from runtime.flow.expressions import Expr
from runtime.flow.steps import Step

__all__ = ["canonical_step"]

_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic)
_PACE = frozenset({"input", "speed", "max_rows"})
"""Of a source: what its rows are, the input itself tells; how quickly they come is no matter."""
_DEEPEST = 20


def canonical_step(step: Step) -> str:
    """Return a step's settings; of a sink only where it is in the flow."""
    left_out = frozenset({"sink"})
    return _settings(step, without=left_out, depth=0)


def _settings(value: Any, *, without: Collection[str], depth: int) -> str:
    told = [
        f"{one.name}={_canonical(getattr(value, one.name), depth + 1)}"
        for one in fields(value)
        if one.name not in without
    ]
    return f"{type(value).__name__}({', '.join(told)})"


def _canonical(value: Any, depth: int) -> str:  # noqa: PLR0911 - one for each kind of value
    if depth > _DEEPEST:
        return type(value).__qualname__
    if isinstance(value, (Enum, *_PLAIN)):
        return repr(value)
    if isinstance(value, Expr):
        return f"<{value}>"
    if isinstance(value, pa.Schema):
        return _canonical([(one.name, str(one.type)) for one in value], depth)
    if isinstance(value, np.ndarray):
        return f"array({value.dtype}, {value.tolist()!r})"
    if isinstance(value, Mapping):
        pairs = ((_canonical(k, depth + 1), _canonical(v, depth + 1)) for k, v in value.items())
        return "{" + ", ".join(f"{k}: {v}" for k, v in pairs) + "}"
    if isinstance(value, set | frozenset):  # in no order, from one process to the next
        return "{" + ", ".join(sorted(_canonical(one, depth + 1) for one in value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_canonical(one, depth + 1) for one in value) + "]"
    if is_dataclass(value) and not isinstance(value, type):
        return _settings(value, without=_PACE, depth=depth)
    return f"({' '.join(_of_callable(value, depth))})"


def _of_callable(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, CodeType):
        yield value.co_code.hex()
        yield _canonical(value.co_consts, depth + 1)
        yield _canonical((value.co_names, value.co_varnames, value.co_freevars), depth + 1)
    elif isinstance(value, FunctionType):
        yield _canonical(value.__code__, depth + 1)
        yield _canonical((value.__defaults__, value.__kwdefaults__), depth + 1)
        for cell in value.__closure__ or ():
            yield _canonical(_inside(cell), depth + 1)
    elif isinstance(value, partial):
        yield _canonical((value.func, value.args, value.keywords), depth + 1)
    elif isinstance(value, MethodType):
        yield _canonical((value.__func__, value.__self__), depth + 1)
    elif isinstance(value, type | BuiltinFunctionType):
        yield f"{value.__module__}.{value.__qualname__}"
    elif isinstance(value, ModuleType):
        yield value.__name__
    elif isinstance(value, pa.DataType):
        yield str(value)
    else:
        yield f"{type(value).__module__}.{type(value).__qualname__}"
        yield _canonical(vars(type(value)).get("__call__"), depth + 1)
        yield _canonical(getattr(value, "__dict__", None), depth + 1)


def _inside(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty: a function that names itself before it is made
        return None
