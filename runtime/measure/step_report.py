"""Reports of the steps of a stage: several stateless ones may share a stage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from slackwater.runtime.json_form import JsonObject


@dataclass
class StepReport(JsonObject):
    """Report of one step of a stage so far.

    Attributes:
        name: name of the step; of a replica that of its stage.
        kind: such as filter or join.
        rows_in: rows into each of its ports, late ones too; empty for a source.
        rows_out: rows that it gave to the next step, or to the next stages.
    """

    name: str
    kind: str
    rows_in: list[int]
    rows_out: int = 0

    DERIVED: ClassVar = {"selectivity": "selectivity"}

    def copy(self) -> StepReport:
        """Return a copy of the counts."""
        return replace(self, rows_in=[*self.rows_in])

    @property
    def selectivity(self) -> float:
        """Rows out for each row in."""
        rows_in = sum(self.rows_in)
        return self.rows_out / rows_in if rows_in else 0.0
