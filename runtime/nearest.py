"""Errors about a wrong name have the nearest right one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from slackwater.runtime.errors import ColumnError

_SHOWN = 20
_LIKE = 0.4
"""Names are told as the nearest only from here, of difflib's ratio."""


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name most like `name`, case aside; None if none is like it."""
    by_fold: dict[str, str] = {}  # {folded name: its first name}
    for each in names:
        by_fold.setdefault(each.casefold(), each)
    close = difflib.get_close_matches(name.casefold(), by_fold, n=1, cutoff=_LIKE)
    return by_fold[close[0]] if close else None


def choices(name: str, names: Iterable[str]) -> str:
    """Return the way out after a wrong name: the nearest, and all names."""
    every = list(names)
    near = nearest(name, every)
    there_are = f"there are: {listed(every)}" if every else "the list is empty"
    return there_are if near is None else f"the nearest is {near!r}; {there_are}"


def listed(names: Iterable[str]) -> str:
    """Return at most the first twenty names, as text."""
    every = list(names)
    more = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more


def no_column(column: str, names: Iterable[str], *, step: str) -> ColumnError:
    """Return an error that names the step, the column, the nearest one and all others."""
    return ColumnError(f"step {step!r}: there is no column {column!r}; {choices(column, names)}")
