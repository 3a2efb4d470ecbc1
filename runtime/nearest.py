"""Errors about a wrong name have the nearest right one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from slackwater.runtime.errors import ColumnError

_SHOWN = 20
_ELSEWHERE: dict[str, str | tuple[str, ...]] = {
    **dict.fromkeys(("delimiter", "separator", "delim"), "sep"),
    **dict.fromkeys(("quotechar", "quote_char"), "quote"),
    **dict.fromkeys(("na_values", "null_values", "nullstr"), "nulls"),
    **dict.fromkeys(("dtype", "dtypes", "schema_overrides", "column_types"), "types"),
    "usecols": "columns",
    "batch_size": "batch_rows",
    **dict.fromkeys(("comment_prefix", "comment_char"), "comment"),
    **dict.fromkeys(("allowed_lateness", "grace", "watermark", "wait"), ("slack", "disorder")),
    **dict.fromkeys(("max_out_of_orderness", "watermark_delay", "delay"), ("disorder", "slack")),
    **dict.fromkeys(("timestamp", "time_column", "timestamp_column", "rowtime"), "event_time"),
    **dict.fromkeys(("ignore_errors", "on_bad_lines"), "on_bad"),
}
"""{option of another library: ours, or those of several calls}."""
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
    return _choices(nearest(name, every), every)


def _choices(near: str | None, names: list[str]) -> str:
    there_are = f"there are: {listed(names)}" if names else "the list is empty"
    return there_are if near is None else f"the nearest is {near!r}; {there_are}"


def listed(names: Iterable[str]) -> str:
    """Return at most the first twenty names, as text."""
    every = list(names)
    more = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more


def no_column(column: str, names: Iterable[str], *, step: str) -> ColumnError:
    """Return an error that names the step, the column, the nearest one and all others."""
    return ColumnError(f"step {step!r}: there is no column {column!r}; {choices(column, names)}")


def option_choices(option: str, named: Iterable[str]) -> str:
    """Return the way out after a wrong option, which may be one of another library."""
    every, ours = list(named), _ELSEWHERE.get(option, ())
    equal = [one for one in ([ours] if isinstance(ours, str) else ours) if one in every]
    return _choices(equal[0] if equal else nearest(option, every), every)
