"""Marks that rows carry from an operator to a sink, such as a revision.

A batch has one array of marks beside its times, a bit for each mark; None if no row has any,
which is nearly always, and costs nothing. What is made of several rows has the marks of them all.
A sink counts its rows by mark. A new mark is one line below, and `marked(…)` where rows get it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "REVISED",
    "UNCERTAIN",
    "Marks",
    "RowMark",
    "all_bits",
    "marked",
    "registered",
    "row_marks",
    "rows_by_mark",
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
