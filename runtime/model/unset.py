"""Nulls of NumPy and pandas among Python's values, at any depth."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["is_unset", "times_with_nulls", "with_nulls"]

_SET = (str, int, float, bytes)


def is_unset(value: Any) -> bool:
    """Return whether a value is null in NumPy or pandas; NaN is none."""
    if value is None or isinstance(value, _SET):
        return False
    if isinstance(value, np.ma.MaskedArray):
        return value.ndim == 0 and bool(np.ma.getmaskarray(value))
    pandas = sys.modules.get("pandas")  # who returns its values has imported it
    return pandas is not None and (value is pandas.NaT or value is pandas.NA)


def with_nulls(value: Any) -> Any:
    """Return a value whose unset parts are None, with lists for masked arrays."""
    match value:
        case str() | int() | float() | bytes() | None:
            return value
        case list() | tuple():
            return type(value)(map(with_nulls, value)) if _is_plain(value) else value
        case Mapping():
            return {name: with_nulls(own) for name, own in value.items()}
    if is_unset(value):
        return None
    return _of_masked(value) if isinstance(value, np.ma.MaskedArray) else value


def _of_masked(values: Any) -> Any:
    if values.dtype.kind in "mM":
        return times_with_nulls(values)
    return values.item() if values.ndim == 0 else [with_nulls(own) for own in values]


def times_with_nulls(values: Any) -> Any:
    """Return a masked array of times as an array with NaT for what is masked."""
    return np.where(np.ma.getmaskarray(values), values.dtype.type("NaT"), values.data)


def _is_plain(value: Any) -> bool:
    return type(value) in (list, tuple)  # no named tuple, which is made of its parts otherwise
