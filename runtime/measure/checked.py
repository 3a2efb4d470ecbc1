"""Check that fields read from JSON have their dataclass's types: JSON is untrusted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from slackwater.runtime.measure.outcomes import Counts
from slackwater.runtime.shown import shown

_MOST_BITS = 100
"""Most bits of a number: sums of times over rows may need more than 64."""

Made = TypeVar("Made")


def checked(made: Made) -> Made:
    """Return a dataclass made of JSON, once its fields have their declared types.

    Numbers must be finite, and of at most 100 bits.

    Raises:
        TypeError, ValueError: a field has another type, or such a number.
    """
    kind: Any = type(made)
    for name, hint in _hints(kind).items():
        _check(f"{kind.__name__}.{name}", getattr(made, name), hint)
    return made


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {part.name: hints[part.name] for part in fields(kind)}


def _check(where: str, value: object, hint: Any) -> None:  # noqa: PLR0912 - a branch for each kind
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any or (value is None and NoneType in inside):
        return
    if origin in (Union, UnionType):
        (hint,) = (kind for kind in inside if kind is not NoneType)
        _check(where, value, hint)
    elif origin in (list, tuple):  # a tuple of any length
        for element in _typed(where, value, origin):
            _check(where, element, inside[0])
    elif origin in (dict, Mapping):
        for key, element in _typed(where, value, dict).items():
            _check(where, key, inside[0])
            _check(where, element, inside[1])
    elif origin is Literal:
        if value not in inside:
            raise ValueError(f"{where}={shown(value)} is none of {', '.join(map(repr, inside))}")
    elif hint is float:
        if type(value) not in (float, int) or not math.isfinite(float(value)):  # type: ignore[arg-type]
            raise TypeError(f"{where}={shown(value)} is not a number")
    elif hint is Counts:
        for outcome, rows in _typed(where, value, Counts).items():
            _check(f"{where}[{outcome}]", rows, int)
    elif is_dataclass(_typed(where, value, hint)):
        checked(value)
    elif isinstance(value, int) and value.bit_length() > _MOST_BITS:
        raise ValueError(f"{where} is a number of more than {_MOST_BITS} bits")


def _typed(where: str, value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{where}={shown(value)} is not of type {kind.__name__}")
    return value
