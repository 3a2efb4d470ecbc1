"""Work of a stage on rows: its operator, then steps row by row.

```
Node ─▶ Chain ─▶ outputs            each counts, step by step,
join    filter ▸ select               what went in and what came out
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from slackwater.runtime.expressions.row_tests import RowTests
from slackwater.runtime.measure.outcomes import FILTERED
from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.measure.step_report import StepReport
from slackwater.runtime.model import Batch
from slackwater.runtime.model.diverted import DivertedRow
from slackwater.runtime.model.row_marks import REVISED, without
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.step import EachRowStep, Step
from slackwater.runtime.plan.traits import Role
from slackwater.runtime.registry.operators import make_stateless


class Failed(NamedTuple):
    """Rows that a step's function could not use.

    Attributes:
        step: its name.
        is_diverted: whether they leave by a stream of their own; else they are omitted.
        rows: the rows.
    """

    step: str
    is_diverted: bool
    rows: list[DivertedRow]


class Applied(NamedTuple):
    """Rows after a chain, and their account.

    Attributes:
        batch: rows that remain.
        rows: number of these.
        added: number of rows that steps added.
        combined: number of rows that count in partial results.
    """

    batch: Batch
    rows: int
    added: int
    combined: int


class Chain:
    """Steps that look at each row alone, one after the other.

    Attributes:
        counts: counts of each step.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.counts = [StepReport(step.name, step.traits.kind, [0]) for step in steps]
        self._steps = list(zip(map(make_stateless, steps), self.counts, strict=True))
        self._splits = {
            step.name for step in steps if isinstance(step, EachRowStep) and step.splits_updates
        }
        self._combines = {step.name for step in steps if step.traits.combines}
        self._failing = [
            (counts.name, machine.failed)
            for machine, counts in self._steps
            if machine.failed is not None
        ]

    @property
    def row_tests(self) -> RowTests | None:
        """First step row by row, if it is such a filter."""
        return self._steps[0][0].row_tests if self._steps else None

    def tested(self, passed: int, left_out: int, report: StageReport) -> None:
        """Count rows that have been through the first step's tests already, and for the stage."""
        first = self.counts[0]
        first.rows_in[0] += passed + left_out
        first.rows_out += passed
        report.counts[FILTERED] += left_out

    def failed(self) -> Sequence[Failed]:
        """Return the rows for which users' functions raised, once, by step."""
        if not self._failing:
            return ()
        return [Failed(name, rows.is_diverted, rows.take()) for name, rows in self._failing]

    def apply(self, batch: Batch, first: int = 0) -> Applied:
        """Return what the steps make of rows.

        Args:
            batch: rows of the source.
            first: the number of the step that they reach first.
        """
        rows, added, combined = len(batch.event_time_ns), 0, 0
        for machine, counts in self._steps[first:] if first else self._steps:
            before, copies = rows, machine.copies
            counts.rows_in[0] += rows
            batch = machine.apply(batch)
            if batch.marks is not None and counts.name in self._splits:
                batch = batch.with_(marks=without(REVISED, batch.marks))
            rows = len(batch.event_time_ns)
            counts.rows_out += rows
            if copies is not None and machine.copies is not None:
                added += machine.copies - copies
            elif rows > before:
                added += rows - before
            elif rows < before and counts.name in self._combines:
                combined += before - rows
            if not rows:
                break
        return Applied(batch, rows, added, combined)


def steps_counted(stage: Stage, own: StepReport | None, chain: Chain) -> list[StepReport]:
    """Return the counts of a stage's steps: of its operator, then those after it."""
    if own is not None:
        return [own, *chain.counts]
    if stage.step.traits.role is Role.EACH_ROW:
        return list(chain.counts)
    ports = [0] if stage.inputs else []
    return [StepReport(stage.name, stage.step.traits.kind, ports), *chain.counts]


def count_alone(report: StageReport) -> None:
    """Count the step of a source, gate or sink by the rows of its stage."""
    own = report.steps[0]
    own.rows_in, own.rows_out = [report.used for _ in own.rows_in], report.used


def restore_report(report: StageReport, state: Mapping[str, Any]) -> None:
    """Continue the counts of a snapshot; names, and the objects that count steps, stay."""
    steps, restored = report.steps, StageReport.from_json(state)
    names = {name: getattr(report, name) for name in ("name", "kind", "node", "slot")}
    vars(report).update({**vars(restored), **names, "steps": steps})
    for own, counted in zip(steps, restored.steps, strict=True):
        own.rows_in[:], own.rows_out = counted.rows_in, counted.rows_out
