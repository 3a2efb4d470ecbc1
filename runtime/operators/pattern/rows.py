"""The rows that matches may be made of, found by their place in the stream."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import Batch, Int64Array, concat_batches
from slackwater.runtime.model.state import Fields

_MOST_TOGETHER = 1 << 16
"""The most rows of a part: parts are joined up to this, and dropped as a whole."""


class Rows:
    """Rows holds rows in order, in parts."""

    STATE = Fields("_parts")

    def __init__(self) -> None:
        self._parts: list[tuple[Int64Array, Batch]] = []  # turns ascending, and their rows

    def __len__(self) -> int:
        return sum(len(turns) for turns, _ in self._parts)

    def add(self, turns: Int64Array, rows: Batch) -> None:
        """Add rows that follow all others.

        Args:
            turns: shape (rows,), their places in the stream, ascending.
            rows: with the columns that matches need.
        """
        parts = self._parts
        parts.append((turns, rows))
        while len(parts) > 1:
            (before, old), (later, new) = parts[-2:]
            if len(before) > 2 * len(later) or len(before) + len(later) > _MOST_TOGETHER:
                return
            parts[-2:] = [(np.concatenate([before, later]), concat_batches([old, new]))]

    def at(self, turns: Int64Array) -> Batch:
        """Return rows by their places, shape (n,), in any order, also repeatedly."""
        firsts = np.array([part[0].item(0) for part in self._parts])
        of_part = np.searchsorted(firsts, turns, side="right") - 1
        if (of_part == of_part[0]).all():
            places, rows = self._parts[of_part.item(0)]
            return rows.take(np.searchsorted(places, turns))
        order = np.argsort(of_part, kind="stable")
        batches = []
        for one in np.unique(of_part).tolist():
            places, rows = self._parts[one]
            batches.append(rows.take(np.searchsorted(places, turns[of_part == one])))
        back = np.empty(len(turns), dtype=np.int64)
        back[order] = np.arange(len(turns))
        return concat_batches(batches).take(back)

    def forget_before(self, time_ns: int) -> None:
        """Forget parts all of whose rows are older."""
        gone = 0
        while gone < len(self._parts) and self._parts[gone][1].event_time_ns.item(-1) < time_ns:
            gone += 1
        del self._parts[:gone]

    def keep(self, turns: Int64Array, *, since_ns: int) -> None:
        """Forget all other rows; `turns` ascend, and older rows go as well."""
        parts = []
        for places_of_part, rows in self._parts:
            kept = np.isin(places_of_part, turns, assume_unique=True) & (
                rows.event_time_ns >= since_ns
            )
            if kept.any():
                parts.append((places_of_part[kept], rows.keep(kept)))
        self._parts = []
        if parts:
            places, batches = zip(*parts, strict=True)
            self._parts = [(np.concatenate(places), concat_batches(batches))]
