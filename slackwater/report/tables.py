"""Columns and numbers of a report's tables."""

from __future__ import annotations

from collections.abc import Sequence

_MOST_DIGITS = 6
Column = tuple[str, Sequence[str]]
"""(heading, cells); names are left-aligned, other cells right-aligned."""


def turned(columns: Sequence[Column]) -> list[Column]:
    """Return a table whose rows are the columns of another: many figures of few things."""
    (heading, names), *figures = columns
    labels = [figure.replace("\n", " ") for figure, _ in figures]
    cells = zip(*(cells for _, cells in figures), strict=True)
    return [(heading, labels if names else []), *zip(names, cells, strict=True)]


def percent(share: float, *, digits: int = 3) -> str:
    """Return a share as '99.97 %'; less than all never reads '100 %'."""
    value = 100 * share
    text = f"{value:.{digits}g}"
    while value < 100 and float(text) >= 100 and digits < _MOST_DIGITS:
        digits += 1
        text = f"{value:.{digits}g}"
    return f"{text if 'e+' not in text else f'{value:,.0f}'} %"


def format_count(rows: float) -> str:
    """Return a number of rows in at most 8 characters: '0', '999,999', '12.35 M'."""
    for limit, scale, unit in ((1e6, 1, ""), (1e9, 1e6, " M"), (1e12, 1e9, " G")):
        if abs(rows) < limit:
            return f"{rows:,.0f}" if scale == 1 else f"{rows / scale:.2f}{unit}"
    return f"{rows:.1e}"
