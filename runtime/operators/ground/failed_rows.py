"""Rows for which a user's function raised, where `on_error=` lets the others go on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model import Batch, concat_batches
from slackwater.runtime.model.diverted import DivertedRow, OnBad
from slackwater.runtime.model.json_text import values_as_json
from slackwater.runtime.operators.ground.user_code import Units, given, rows_of
from slackwater.runtime.shown import in_words, is_of, text_of
from slackwater.runtime.shown_rows import cell_shown

__all__ = ["FailedRows", "errors_text", "failed_rows"]


_STEP = re.compile("^step '[^']*': ")  # a diverted row has it in a column


def failed_rows(on_error: OnBad) -> FailedRows | None:
    """Return where rows are kept that fail; None if the first ends the job."""
    return None if on_error == "error" else FailedRows(is_diverted=on_error == "divert")


def errors_text(on_error: OnBad) -> Iterator[str]:
    """Yield the line of `explain` on rows that may fail without an end."""
    if on_error != "error":
        yield f"errors   rows for which it raises: {on_error}"


class FailedRows:
    """Rows of one step that its function could not use, until the stage takes them.

    Args:
        is_diverted: whether they leave by a stream of their own; else they are omitted.

    Attributes:
        is_diverted: whether rows leave by a stream of their own.
    """

    def __init__(self, *, is_diverted: bool) -> None:
        self.is_diverted = is_diverted
        self._rows: list[DivertedRow] = []

    def take(self) -> list[DivertedRow]:
        """Return the rows, once."""
        rows, self._rows = self._rows, []
        return rows

    def add(
        self, rows: Sequence[dict[str, Any]], problem: OperatorError, *, event_time_ns: int
    ) -> None:
        """Keep rows of one event time that a user's code could not use."""
        cause = problem.__cause__
        error = _STEP.sub("", text_of(problem).partition("\n")[0])
        if cause is not None and not is_of(cause, OperatorError):
            error = in_words(cause)
        self._rows += [
            DivertedRow(error, values_as_json(row), event_time_ns=event_time_ns) for row in rows
        ]

    def applied(self, work: Callable[[Batch], Batch], batch: Batch, units: Units) -> Batch:
        """Return what `work` makes of a batch, without the rows for which it raises.

        Rows that fail are found by halves, so `work` may see a row more than once.

        Args:
            work: the step's function of a batch.
            batch: rows, some of which may fail.
            units: units of times in the batch; rows that fail are kept with times in nanoseconds.
        """
        try:
            return work(batch)
        except OperatorError as problem:
            if len(batch) == 1:
                time_ns = batch.event_time_ns.item(0)
                self.add([_row_of(batch, units)], problem, event_time_ns=time_ns)
                return batch.slice(0, 0)
        middle = len(batch) // 2
        halves = batch.slice(0, middle), batch.slice(middle, len(batch))
        done = [self.applied(work, half, units) for half in halves]
        worked = [part for part in done if len(part)]
        return concat_batches(worked) if worked else batch.slice(0, 0)


def _row_of(batch: Batch, units: Units) -> dict[str, Any]:
    """Return one row as a function gets it; a time too far is text."""
    row: dict[str, Any] = {}
    for name, column in batch.columns.items():
        own = tuple(pair for pair in units if pair[0] == name)
        try:
            alone = given(Batch.like(batch, {name: column}), own, step="")
            row |= rows_of(alone, step="")[0]
        except OperatorError:
            row[name] = " ".join([cell_shown(column, 0), *(unit for _, unit in own)])
    return row
