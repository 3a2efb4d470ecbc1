"""What a user could have written: functions for map_rows and map_batches that pickle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.runtime.model import Columns


@dataclass(frozen=True)
class KeepSome:
    """Keeps `names` of a row, adds `to` made of `of`; drops the row where that is divisible."""

    names: tuple[str, ...]
    of: str
    to: str
    drops: int

    def __call__(self, row: dict[str, Any]) -> dict[str, Any] | None:
        """Return the row, or None."""
        if self.drops and row[self.of] % self.drops == 0:
            return None
        return {**{name: row[name] for name in self.names}, self.to: 2 * row[self.of] + 1}


@dataclass(frozen=True)
class Halved:
    """Keeps `names` of a batch, and adds `to`: half of `of`; text stays Arrow's."""

    names: tuple[str, ...]
    of: str
    to: str

    def __call__(self, columns: Columns) -> Columns:
        """Return the columns."""
        kept = {name: columns[name] for name in self.names}
        values = columns[self.of]
        assert isinstance(values, np.ndarray), "a number"
        assert all(len(each) == len(values) for each in kept.values()), "a value a row"
        assert all(isinstance(each, np.ndarray | pa.Array) for each in kept.values()), "a column"
        return {**kept, self.to: values / 2}


@dataclass(frozen=True)
class Several:
    """Keeps `names` of a row, as often as `of` says, 0 to 2 times; adds `to`, its number."""

    names: tuple[str, ...]
    of: str
    to: str

    def __call__(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the rows."""
        own = {name: row[name] for name in self.names}
        return [{**own, self.to: number} for number in range(row[self.of] % 3)]
