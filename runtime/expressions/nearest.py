"""Nearest name to a wrong one, for errors."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from slackwater.runtime.errors import ColumnError

_SHOWN = 20


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name most like `name`, case aside; None if `names` is empty."""
    by_fold: dict[str, str] = {}  # {folded name: its first name}
    for each in names:
        by_fold.setdefault(each.casefold(), each)
    close = difflib.get_close_matches(name.casefold(), by_fold, n=1, cutoff=0.0)
    return by_fold[close[0]] if close else None


def listed(names: Iterable[str]) -> str:
    """Return at most the first twenty names, as text."""
    every = list(names)
    more = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more


def no_column(column: str, names: Iterable[str], *, step: str) -> ColumnError:
    """Return an error that names the step, the column, the nearest one and all others."""
    every = list(names)
    if not every:
        return ColumnError(f"step {step!r}: there is no column {column!r}; there are no columns")
    return ColumnError(
        f"step {step!r}: there is no column {column!r}; the nearest is "
        f"{nearest(column, every)!r}; there are: {listed(every)}"
    )
