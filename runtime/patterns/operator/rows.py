"""The rows that matches may be made of, found by their place in the stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from slackwater.runtime.model import Batch, BoolArray, Int64Array, concat_batches
from slackwater.runtime.model.state import OWNER, Field, Fields

_MOST_TOGETHER = 1 << 16
"""The most rows of a part: parts are joined up to this, and dropped as a whole."""


class Part(NamedTuple):
    """Rows that follow each other. Its arrays are read-only: a cut shares them.

    Attributes:
        codes: shape (rows,), the codes of their keys.
        turns: shape (rows,), their places in the stream, ascending.
        rows: rows, with the columns that matches need.
    """

    codes: Int64Array
    turns: Int64Array
    rows: Batch

    @classmethod
    def of(cls, codes: Int64Array, turns: Int64Array, rows: Batch) -> Part:
        """Return rows as a part; the arrays are read-only from now on."""
        codes.flags.writeable = turns.flags.writeable = False
        return cls(codes, turns, rows)

    def keep(self, which: BoolArray) -> Part:
        """Return the rows where `which`, shape (rows,), is true."""
        return Part.of(self.codes[which], self.turns[which], self.rows.keep(which))


def _joined(parts: Sequence[Part]) -> Part:
    codes, turns, rows = zip(*parts, strict=True)
    return Part.of(np.concatenate(codes), np.concatenate(turns), concat_batches(rows))


class Rows:
    """Rows holds rows in order, in parts."""

    STATE = Fields(Field("_parts", of=OWNER, each=True), elements={"_parts": Part.of})

    def __init__(self) -> None:
        self._parts: list[Part] = []

    def __len__(self) -> int:
        return sum(len(part.turns) for part in self._parts)

    def add(self, part: Part) -> None:
        """Add rows that follow all others."""
        parts = self._parts
        parts.append(part)
        while len(parts) > 1:
            before, later = (len(piece.turns) for piece in parts[-2:])
            if before > 2 * later or before + later > _MOST_TOGETHER:
                return
            parts[-2:] = [_joined(parts[-2:])]

    def at(self, turns: Int64Array) -> Batch:
        """Return rows by their places, shape (n,), in any order, also repeatedly."""
        firsts = np.array([part.turns.item(0) for part in self._parts])
        of_part = np.searchsorted(firsts, turns, side="right") - 1
        if (of_part == of_part[0]).all():
            _, places, rows = self._parts[of_part.item(0)]
            return rows.take(np.searchsorted(places, turns))
        order = np.argsort(of_part, kind="stable")
        batches = []
        for number in np.unique(of_part).tolist():
            _, places, rows = self._parts[number]
            batches.append(rows.take(np.searchsorted(places, turns[of_part == number])))
        back = np.empty(len(turns), dtype=np.int64)
        back[order] = np.arange(len(turns))
        return concat_batches(batches).take(back)

    def forget_before(self, time_ns: int) -> None:
        """Forget parts all of whose rows are older."""
        gone = 0
        while gone < len(self._parts) and self._parts[gone].rows.event_time_ns.item(-1) < time_ns:
            gone += 1
        del self._parts[:gone]

    def keep(self, turns: Int64Array, *, since_ns: int) -> None:
        """Forget all other rows; `turns` ascend, and older rows go as well."""
        parts = []
        for part in self._parts:
            is_wanted = np.isin(part.turns, turns, assume_unique=True)
            is_wanted &= part.rows.event_time_ns >= since_ns
            if is_wanted.any():
                parts.append(part.keep(is_wanted))
        self._parts = [_joined(parts)] if parts else []
