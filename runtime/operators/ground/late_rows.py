"""What came too late to count in full."""

from __future__ import annotations

from dataclasses import dataclass

from slackwater.runtime.model import Batch, BoolArray, Int64Array


@dataclass(frozen=True, slots=True)
class LateRows:
    """Rows of one port that missed a result of theirs.

    Attributes:
        port: which one.
        batch: the rows, as they came.
        late_by_ns: shape (rows,), > 0: how far what the operator was done with was ahead of each.
        is_dropped: shape (rows,): whether it counts nowhere; else it missed some windows only.
    """

    port: int
    batch: Batch
    late_by_ns: Int64Array
    is_dropped: BoolArray
