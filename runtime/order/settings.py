"""Checks of a setting's type: a wrong type is refused like a wrong value."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any


def is_number(value: Any) -> bool:
    """Return whether a value is a number, of any size."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number, of any size."""
    return isinstance(value, Integral) and not isinstance(value, bool)
