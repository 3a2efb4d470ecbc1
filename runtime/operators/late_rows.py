"""What came too late to count in full, and which window's row has left how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from runtime.model import Batch, BoolArray, Int64Array


@dataclass(frozen=True, slots=True)
class LateRows:
    """Rows of one port that missed a result of theirs.

    Attributes:
        port: which one.
        batch: the rows, as they came.
        late_by_ns: shape (rows,): how far what the operator had closed was ahead of each.
        is_dropped: shape (rows,): whether it counts nowhere; else it missed some windows only.
    """

    port: int
    batch: Batch
    late_by_ns: Int64Array
    is_dropped: BoolArray


class Late(NamedTuple):
    """Late rows that count after all: the pane and the key's code of each, shape (rows,)."""

    panes: Int64Array
    codes: Int64Array


class Revisions:
    """How often the row of a window and key has left, beyond the first time.

    Only what was corrected is kept, until the window is final: {(window, code): its revision}.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], int] = {}

    def next(
        self, windows: Int64Array, codes: Int64Array, *, is_first: BoolArray
    ) -> Int64Array:
        """Count rows that leave again, and return the revision of each.

        Args:
            windows: shape (results,), each by its k.
            codes: shape (results,), of the keys.
            is_first: shape (results,): nothing had come for it before, so none has left yet.
        """
        known, found = self._known, []
        for window, code, first in zip(
            windows.tolist(), codes.tolist(), is_first.tolist(), strict=True
        ):
            before = known.get((window, code), -1 if first else 0)
            known[window, code] = before + 1
            found.append(before + 1)
        return np.array(found, dtype=np.int64)

    def forget(self, last_final: int) -> None:
        """Let go of windows that are final."""
        if self._known:
            self._known = {key: n for key, n in self._known.items() if key[0] > last_final}

    def recode(self, moved: Int64Array) -> None:
        """Give each key its new code; `moved` has it for each old one, less than 0: gone."""
        if self._known:
            self._known = {
                (window, int(moved[code])): n
                for (window, code), n in self._known.items()
                if moved[code] >= 0
            }

    def snapshot(self) -> list[list[int]]:
        """Return all state: [window, code, revision] of each."""
        return [[window, code, n] for (window, code), n in self._known.items()]

    def restore(self, state: list[Any]) -> None:
        """Continue from a snapshot."""
        self._known = {(window, code): n for window, code, n in state}
