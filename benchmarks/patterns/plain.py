"""A query in the simplest terms: what an engine is asked that does not have our language."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Plain:
    """A window from each event that opens one, and in each the first match behind that event.

    Either so many events of a sign, no two of a kind, or kinds in sequence, each with that sign;
    where there are two signs, one of both.

    Attributes:
        rows: in order: `time` in a unit of its own, `kind`, `sign` (−1, 0, 1), `opens`.
        within: a window has what comes less than that behind its event.
        count: how many; 0: kinds in sequence.
        steps: the kinds; what opens a window may be the first of them.
        signs: each is an alternative.
    """

    rows: pa.Table
    within: int
    count: int = 0
    steps: tuple[int, ...] = ()
    signs: tuple[int, ...] = (1,)

    def first(self, rows: int) -> Plain:
        """Return the same of the first rows."""
        return replace(self, rows=self.rows.slice(0, rows))

    def save(self, path: Path) -> None:
        """Write the rows: how many, then column by column; little-endian."""
        with path.open("wb") as file:
            file.write(np.array([self.rows.num_rows], "<i8").tobytes())
            for name, width in (("time", "<i8"), ("kind", "<i4"), ("sign", "i1"), ("opens", "i1")):
                file.write(self.rows[name].to_numpy().astype(width).tobytes())
