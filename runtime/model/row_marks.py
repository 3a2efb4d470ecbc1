"""Marks that rows carry from an operator on, such as a revision.

A batch has one array of marks beside its times, a bit for each mark; None if no row has any,
which is nearly always, and costs nothing. What is made of several rows has the marks of them all.
A sink counts its rows by mark. A new mark is one line below, and `marked(…)` where rows get it.

Two marks are the kind of a change:

```
-           insert: one row more
REVISED     update: takes the place of an earlier row of its key
RETRACTED   delete: one equal row goes
both        the old half of an update; the new half, REVISED, is the next row
```
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = [
    "CHANGES",
    "CHANGE_BITS",
    "RETRACTED",
    "REVISED",
    "UNCERTAIN",
    "Marks",
    "RowMark",
    "all_bits",
    "are_old_halves",
    "are_retracted",
    "change_words",
    "marked",
    "registered",
    "row_marks",
    "rows_by_mark",
    "without",
]

Marks: TypeAlias = npt.NDArray[np.uint8]
"""Shape (rows,): the bits of each row's marks."""


@dataclass(frozen=True, slots=True)
class RowMark:
    """Mark of a row.

    Attributes:
        name: its key in a sink's JSON.
        bit: its place in `Marks`, one of 8.
        heading: heading of its column in the table of sinks.
    """

    name: str
    bit: int
    heading: str


_known: dict[str, RowMark] = {}


def registered(name: str, *, heading: str) -> RowMark:
    """Register a mark, and return it. Bits follow the order.

    Raises:
        ValueError: there is one of this name, or there are 8.
    """
    if name in _known or len(_known) == 8:
        raise ValueError(f"no room for a mark {name!r} beside {[*_known]}: 8 names, each once")
    _known[name] = RowMark(name, 1 << len(_known), heading)
    return _known[name]


def row_marks() -> list[RowMark]:
    """Return all marks, in the order of telling."""
    return list(_known.values())


def all_bits() -> int:
    """Return the bits of all marks."""
    return (1 << len(_known)) - 1


def marked(mark: RowMark, mask: npt.NDArray[np.bool_], known: Marks | None = None) -> Marks | None:
    """Return the marks of rows with one more where `mask`, shape (rows,), is true.

    None if no row has one after that either.
    """
    if not mask.any():
        return known
    own = mask.astype(np.uint8) * np.uint8(mark.bit)
    return own if known is None else own | known


def rows_by_mark(marks: Marks) -> dict[str, int]:
    """Return {mark's name: rows that have it}, of marks that some row has."""
    counts = {mark.name: int(np.count_nonzero(marks & mark.bit)) for mark in _known.values()}
    return {name: rows for name, rows in counts.items() if rows}


REVISED = registered("revision", heading="revi-\nsions")
UNCERTAIN = registered("uncertain", heading="uncer-\ntain")
RETRACTED = registered("deletion", heading="dele-\ntions")
CHANGE_BITS = np.uint8(REVISED.bit | RETRACTED.bit)
"""Bits of the kind of a change."""
CHANGES = {
    "insert": 0,
    "update": REVISED.bit,
    "old": REVISED.bit | RETRACTED.bit,
    "delete": RETRACTED.bit,
}
"""{word for a kind of change: its bits}; "old" is a row that the next one replaces."""


def change_words(marks: Marks | None, rows: int) -> pa.StringArray:
    """Return the word for the kind of each row, shape (rows,)."""
    words = sorted(CHANGES, key=CHANGES.__getitem__)
    bits = np.zeros(rows, np.uint8) if marks is None else marks & CHANGE_BITS
    places = np.searchsorted([CHANGES[word] for word in words], bits)
    return pa.array(words).take(pa.array(places))


def without(mark: RowMark, marks: Marks | None) -> Marks | None:
    """Return marks of rows without one of them; None if no row has any then."""
    if marks is None:
        return None
    rest = marks & np.uint8(255 - mark.bit)
    return rest if rest.any() else None


def are_retracted(marks: Marks) -> npt.NDArray[np.bool_]:
    """Return whether each row takes an equal one out, shape (rows,)."""
    retracted: npt.NDArray[np.bool_] = (marks & RETRACTED.bit) != 0
    return retracted


def are_old_halves(marks: Marks) -> npt.NDArray[np.bool_]:
    """Return whether each row is the old half of an update, shape (rows,)."""
    old: npt.NDArray[np.bool_] = (marks & CHANGE_BITS) == CHANGE_BITS
    return old
