"""What each step did of a stage's work: several stateless ones may share a stage."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass
class StepReport:
    """What one step of a stage did so far.

    Attributes:
        name: of the step; of a replica that of its stage.
        kind: such as filter or join.
        rows_in: for each of its ports the rows that it was given; late ones too. A source has none.
        rows_out: rows that it gave to the next step, or to the stages behind.
    """

    name: str
    kind: str
    rows_in: list[int]
    rows_out: int = 0

    def copy(self) -> StepReport:
        """Return the counts as they stand."""
        return replace(self, rows_in=[*self.rows_in])

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain values, and what follows from it."""
        return asdict(self) | {"selectivity": self.selectivity}

    @property
    def selectivity(self) -> float:
        """Rows out for each row in."""
        taken = sum(self.rows_in)
        return self.rows_out / taken if taken else 0.0
