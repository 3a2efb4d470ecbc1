"""Losses by shedding: the share of matches that the tried windows have lost.

Windows that begin while rows are passed over fare unlike the others, and how many rows came in
either state is known: so each state is estimated from its own tried rows.

```
matches = Σ  rows that came · matches of tried windows / rows of blocks      over both states
lost    = Σ  rows that came · lost    of tried windows / rows of blocks
```

Windows of a block lie over each other and fare alike, so the error counts blocks. It is the
standard error of the ratio of these two sums, by linearisation (Cochran 1977, §6).
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np

from slackwater.runtime.model.state import Fields
from slackwater.runtime.shedding.draws import FloatArray

_ROWS, _MATCHES, _LOST, _FALSE = range(4)
_OPEN_BLOCKS = 16
"""The most blocks with windows that may still be open."""


class Judged(NamedTuple):
    """Matches of a window with and without shedding.

    Attributes:
        matches: matches that it has if nothing is dropped.
        lost: matches of these that were not found.
        false: matches that were found, and are none.
    """

    matches: int
    lost: int
    false: int


class Losses:
    """Sums over blocks of tried windows, for rows looked at and passed over.

    Attributes:
        windows: windows that were judged.
        matches: their matches, had nothing been dropped.
    """

    STATE = Fields(
        "windows", "matches", "_came", "_sums", "_products", "_open", "_blocks", "_omitted"
    )

    def __init__(self) -> None:
        self.windows = self.matches = 0
        self._came = np.zeros(2)  # rows: looked at, and passed over
        # Weighted sums of blocks: rows, matches, lost, false; and the sums of their products.
        self._sums = np.zeros((2, 4))
        self._products = np.zeros((2, 4, 4))
        self._open: dict[int, FloatArray] = {}  # {number of a block: its part of the sums}
        self._blocks = 0  # blocks that had a match
        self._omitted: list[int] = []  # blocks of which a window was not judged

    def came(self, rows: int, *, in_gap: bool) -> None:
        """Count rows of the stream, tried or not; those in a gap were passed over."""
        self._came[int(in_gap)] += rows

    def block_rows(self, block: int, stands_for: float, rows: int, *, in_gap: bool) -> None:
        """Count rows of a block."""
        if block not in self._omitted:
            self._of(block)[int(in_gap), _ROWS] += stands_for * rows

    def omit(self, block: int) -> None:
        """Leave a block out, as one of its windows is not judged.

        Its other windows represent none.
        """
        if block not in self._omitted:
            self._omitted = [*self._omitted[1 - _OPEN_BLOCKS :], block]
        own = self._open.pop(block, None)
        self._blocks -= own is not None and bool(own[:, _MATCHES].any())

    def add(
        self,
        block: int,
        stands_for: float,
        *,
        matches: int,
        lost: int,
        false: int,
        in_gap: bool = False,
    ) -> None:
        """Count a window that began with a row of a block."""
        if block in self._omitted:
            return
        self.windows += 1
        self.matches += matches
        own = self._of(block)
        self._blocks += matches > 0 and not own[:, _MATCHES].any()
        own[int(in_gap), _MATCHES:] += stands_for * np.array([matches, lost, false])

    def _of(self, block: int) -> FloatArray:
        own = self._open.get(block)
        if own is None:
            own = self._open[block] = np.zeros((2, 4))
            if len(self._open) > _OPEN_BLOCKS:
                oldest = self._open.pop(min(self._open))
                self._sums += oldest
                self._products += oldest[:, :, np.newaxis] * oldest[:, np.newaxis, :]
        return own

    def _sums_of_all(self) -> FloatArray:
        return self._sums + sum(self._open.values(), np.zeros((2, 4)))

    def _scales(self, sums: FloatArray) -> FloatArray:
        rows = sums[:, _ROWS]
        return np.divide(self._came, rows, out=np.zeros(2), where=rows > 0)

    def _share_of(self, what: int) -> float:
        sums = self._sums_of_all()
        totals = self._scales(sums) @ sums
        return float(totals[what] / totals[_MATCHES]) if totals[_MATCHES] else 0.0

    @property
    def lost_share(self) -> float:
        """Share of the matches that were not found."""
        return self._share_of(_LOST)

    @property
    def false_share(self) -> float:
        """The share of matches that were found and are false, by true ones."""
        return self._share_of(_FALSE)

    @property
    def error(self) -> float:
        """Standard error of the share that was lost."""
        sums = self._sums_of_all()
        scales = self._scales(sums)
        matches = scales @ sums[:, _MATCHES]
        is_untried = (self._came > 0) & (sums[:, _ROWS] == 0)
        if not matches or is_untried.any():
            return 1.0
        share = scales @ sums[:, _LOST] / matches
        own = np.array(list(self._open.values())).reshape(-1, 2, 4)
        products = self._products + np.einsum("bsi,bsj->sij", own, own)
        variance = 0.0
        for state in np.flatnonzero(sums[:, _ROWS]).tolist():
            # The excess of a block over its rows' part: lost - share · matches - r · rows.
            by = np.array([0.0, -share, 1.0, 0.0])
            by[_ROWS] = -(by @ sums[state]) / sums[state, _ROWS]
            variance += scales[state] ** 2 * max(float(by @ products[state] @ by), 0.0)
        # If all matches were found, or none, so few blocks do not tell a few from none.
        return sqrt(variance / matches**2 + (1 / (self._blocks + 2)) ** 2)
