"""Work of a stage on rows: its operator, then steps row by row.

```
gate ─▶ StageOperator ─▶ Chain ─▶ outputs   each counts, step by step,
        join             filter ▸ select      what went in and what came out
```
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from slackwater.runtime.expressions.row_tests import RowTests
from slackwater.runtime.measure.outcomes import FILTERED, READY
from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.measure.step_report import StepReport
from slackwater.runtime.model import NO_PROGRESS, START_NS, Batch, GateRead
from slackwater.runtime.model.diverted import DivertedRow
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators import make_operator, make_stateless
from slackwater.runtime.operators.ground import Result
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.plan.step import GatedStep, Step
from slackwater.runtime.plan.traits import Role
from slackwater.runtime.schedule.accounts import count_in


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


class Chain:
    """Steps that look at each row alone, one after the other.

    Attributes:
        counts: of each step.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.counts = [StepReport(step.name, step.traits.kind, [0]) for step in steps]
        self._steps = list(zip(map(make_stateless, steps), self.counts, strict=True))
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
        report.counts[READY] += left_out
        report.counts[FILTERED] += left_out

    def failed(self) -> Sequence[Failed]:
        """Return the rows for which users' functions raised, once, by step."""
        if not self._failing:
            return ()
        return [Failed(name, rows.is_diverted, rows.take()) for name, rows in self._failing]

    def apply(self, batch: Batch, first: int = 0) -> tuple[Batch, int, int]:
        """Return the rows that remain, their number, and how many rows steps added.

        Args:
            batch: the rows.
            first: the number of the step that they reach first.
        """
        rows, added = len(batch.event_time_ns), 0
        for machine, counts in self._steps[first:] if first else self._steps:
            before = rows
            counts.rows_in[0] += rows
            batch = machine.apply(batch)
            rows = len(batch.event_time_ns)
            counts.rows_out += rows
            if rows > before:
                added += rows - before
            if not rows:
                break
        return batch, rows, added


class StageOperator:
    """Operator in its stage: its reads, its time by the clock, its counts.

    Args:
        step: of the operator.
        most_kept_rows: see Limits.

    Attributes:
        operator: its machine.
        counts: of the step.
    """

    STATE = Fields("operator", "_watermark_ns", "_progress", "due_ns")

    def __init__(self, step: GatedStep, *, most_kept_rows: int) -> None:
        self.operator = make_operator(step, most_kept_rows=most_kept_rows)
        self._ports = range(max(step.traits.ports) + 1)
        self.counts = StepReport(step.name, step.traits.kind, [0 for _ in self._ports])
        traits = step.traits
        self.passes_on, self._uses_clock = traits.passes_on, traits.uses_clock
        self._diverts = traits.diverts
        self._watermark_ns, self._progress = START_NS, NO_PROGRESS  # of the last read
        self.due_ns: int | None = None
        """When it has something to do by the clock; None: at no time that is known."""

    def work(self, released: GateRead, now_ns: int) -> tuple[Result, int]:
        """Hand a read to the operator.

        Returns:
            Its result; and of one that passes rows on how many it has kept to itself, those
            apart that were too late for it.
        """
        rows_in = self.counts.rows_in
        rows = 0
        for port in self._ports:
            in_order, late = released.ports[port], released.late[port]
            if in_order is not None:
                came = len(in_order.event_time_ns)
                rows_in[port] += came
                rows += came
            if late is not None:
                came = len(late.event_time_ns)
                rows_in[port] += came
                rows += came
        result = self.operator.work(released, now_ns)
        if self._uses_clock:
            self.due_ns = result.due_ns
            self._watermark_ns = released.watermark_ns
            self._progress = released.progress.with_arrived(None)
        left = 0 if result.rows is None else len(result.rows.event_time_ns)
        self.counts.rows_out += left
        return result, rows - left - result.late_dropped if self.passes_on else 0

    def failed(self, result: Result, *, step: str) -> Failed:
        """Return the rows that the user's code of a step could not use."""
        return Failed(step, self._diverts, list(result.failed))

    def nothing_new(self) -> GateRead:
        """Return a read without rows, as far as the last one."""
        none: list[Batch | None] = [None for _ in self._ports]
        return GateRead(none, none, self._watermark_ns, self._progress)

    def fill(self, report: StageReport) -> None:
        """Fill in what the operator holds and counts."""
        report.held = self.operator.rows_held
        for name, counted in self.operator.counts().items():
            count_in(report, name, counted)


def steps_counted(
    stage: Stage, operator_at: StageOperator | None, chain: Chain
) -> list[StepReport]:
    """Return the counts of a stage's steps: its own, then those after it."""
    if operator_at is not None:
        return [operator_at.counts, *chain.counts]
    if stage.step.traits.role is Role.EACH_ROW:
        return list(chain.counts)
    ports = [0] if stage.inputs else []
    return [StepReport(stage.name, stage.step.traits.kind, ports), *chain.counts]


def count_alone(report: StageReport) -> None:
    """Count the step of a source, gate or sink by the rows of its stage."""
    own = report.steps[0]
    own.rows_in, own.rows_out = [report.used for _ in own.rows_in], report.used


def restore_report(report: StageReport, state: Mapping[str, Any]) -> None:
    """Continue a report of a snapshot; the objects that count steps stay."""
    steps, found = report.steps, StageReport.from_plain(state)
    vars(report).update({**vars(found), "steps": steps})
    for own, counted in zip(steps, found.steps, strict=True):
        own.rows_in[:], own.rows_out = counted.rows_in, counted.rows_out
