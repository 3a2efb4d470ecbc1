"""Comparison of plain values: types, kinds of sequences, and bits of numbers count."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["are_same"]


def are_same(first: Any, second: Any) -> bool:  # noqa: PLR0911 - one for each kind
    """Return whether two plain values are equal; NaN equals NaN, 1 neither 1.0 nor True."""
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return (
            first.dtype == second.dtype
            and first.shape == second.shape
            and first.tobytes() == second.tobytes()
        )
    if isinstance(first, pa.Array) and isinstance(second, pa.Array):
        return bool(first.type.equals(second.type, check_metadata=True) and first.equals(second))
    if type(first) is not type(second):
        return False
    if isinstance(first, dict):
        return [*first] == [*second] and all(are_same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(are_same, first, second))
    if isinstance(first, float):
        return (first != first and second != second) or (  # noqa: PLR0124 - NaN
            struct.pack("d", first) == struct.pack("d", second)
        )
    return bool(first == second)
