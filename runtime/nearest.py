"""Errors about a wrong name have the nearest right one."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, signature
from typing import ParamSpec, TypeVar

from slackwater.runtime.errors import ColumnError, SettingError

_P = ParamSpec("_P")
_R = TypeVar("_R")

_SHOWN = 20
_ELSEWHERE = {
    **dict.fromkeys(("delimiter", "separator", "delim"), "sep"),
    **dict.fromkeys(("quotechar", "quote_char"), "quote"),
    **dict.fromkeys(("na_values", "null_values", "nullstr"), "nulls"),
    **dict.fromkeys(("dtype", "dtypes", "schema_overrides", "column_types"), "types"),
    "usecols": "columns",
    **dict.fromkeys(("comment_prefix", "comment_char"), "comment"),
    **dict.fromkeys(("allowed_lateness", "grace", "watermark", "wait"), "slack"),
    **dict.fromkeys(("ignore_errors", "on_bad_lines"), "on_bad"),
}
"""{option of another library: ours}."""


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


def known_options(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Refuse options that a function does not have, with the nearest that it has.

    The function that is returned raises SettingError for such an option.
    """
    named = [
        name
        for name, parameter in signature(function).parameters.items()
        if parameter.kind in (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        and name != "self"
    ]
    who = function.__qualname__.removesuffix(".__init__").rpartition(".")[2]

    @wraps(function)
    def checked(*args: _P.args, **options: _P.kwargs) -> _R:
        for option in options:
            if option not in named:
                raise SettingError(
                    f"{who}() has no option {option!r}; the nearest is "
                    f"{nearest_option(option, named)!r}; there are: {listed(named)}"
                )
        return function(*args, **options)

    return checked


def nearest_option(option: str, named: Iterable[str]) -> str | None:
    """Return the option most like this one, or its equal of another library."""
    ours = _ELSEWHERE.get(option)
    every = list(named)
    return ours if ours in every else nearest(option, every)
