"""Words of joins: rows that leave, and keys as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Literal

import pyarrow as pa

from slackwater.runtime.plan.step import Side

How = Literal["inner", "left", "right", "outer", "semi", "anti"]
"""Rows that leave a join: pairs; and those of the left, the right or both without a partner; or of
the left alone, with a partner ("semi") or without ("anti")."""
_LEFT, _RIGHT = (0,), (1,)
_ALONE: dict[How, tuple[int, ...]] = {
    "inner": (),
    "left": _LEFT,
    "right": _RIGHT,
    "outer": (0, 1),
    "semi": (),
    "anti": _LEFT,
}
_TEXTS: dict[How, str] = {
    "inner": "pairs",
    "left": "pairs, and left rows without a partner",
    "right": "pairs, and right rows without a partner",
    "outer": "pairs, and rows of both sides without a partner",
    "semi": "left rows with a partner, once",
    "anti": "left rows without a partner",
}


class IfTables(Enum):
    """The type of IF_TABLES."""

    IF_TABLES = "if tables"


IF_TABLES = IfTables.IF_TABLES
"""No `within=` was written: partners have any distance if the rows of a side change."""


def alone_of(how: How) -> tuple[int, ...]:
    """Return the sides whose rows leave without a partner: 0 left, 1 right."""
    return _ALONE[how]


def how_text(how: How) -> str:
    """Return the text of the rows that leave."""
    return _TEXTS[how]


def keys_text(left_on: Sequence[str], right_on: Sequence[str]) -> str:
    """Return the text of equal keys in `explain`."""
    keys = zip(left_on, right_on, strict=True)
    return ", ".join(left if left == right else f"{left} = {right}" for left, right in keys)


def late_columns_of(
    left_on: Sequence[str],
    right_on: Sequence[str],
    inputs: Sequence[pa.Schema],
    side: Side | None,
) -> tuple[Mapping[str, str] | None, ...]:
    """Return {column of late rows: column that came} of each side."""
    if side is None:
        return tuple(dict(zip(left_on, keys, strict=True)) for keys in (left_on, right_on))
    return tuple(
        {column: column for column in schema.names} if side == own else None
        for own, schema in zip(("left", "right"), inputs, strict=True)
    )
