"""Whether a setting is a number at all: what is none is refused like one that is out of range."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any


def is_number(given: Any) -> bool:
    """Return whether it is a number, of any size."""
    return isinstance(given, Real) and not isinstance(given, bool)


def is_whole(given: Any) -> bool:
    """Return whether it is a whole number, of any size."""
    return isinstance(given, Integral) and not isinstance(given, bool)
