"""Rows for which a user's function raised, where `on_error=` lets the others go on."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from slackwater.runtime.errors import OperatorError
from slackwater.runtime.model import Batch, concat_batches
from slackwater.runtime.model.diverted import DivertedRow, OnBad
from slackwater.runtime.model.json_text import plain, values_as_json
from slackwater.runtime.operators.ground.user_code import rows_of_columns
from slackwater.runtime.shown import in_words, is_of, text_of

__all__ = ["FailedRows", "failed_rows"]


_STEP = re.compile("^step '[^']*': ")  # a diverted row has it in a column


def failed_rows(on_error: OnBad) -> FailedRows | None:
    """Return where rows are kept that fail; None if the first ends the job."""
    return None if on_error == "error" else FailedRows(is_diverted=on_error == "divert")


class FailedRows:
    """Rows of one step that its function could not use, until the stage takes them.

    Args:
        is_diverted: whether they leave by a stream of their own; else they are omitted.

    Attributes:
        is_diverted: as above.
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

    def applied(self, work: Callable[[Batch], Batch], batch: Batch) -> Batch:
        """Return what `work` makes of a batch, without the rows for which it raises.

        Rows that fail are found by halves, so `work` may see a row more than once.
        """
        try:
            return work(batch)
        except OperatorError as problem:
            if len(batch) == 1:
                time_ns = batch.event_time_ns.item(0)
                self.add(_rows_of(batch), problem, event_time_ns=time_ns)
                return batch.slice(0, 0)
        middle = len(batch) // 2
        halves = batch.slice(0, middle), batch.slice(middle, len(batch))
        done = [self.applied(work, half) for half in halves]
        worked = [one for one, half in zip(done, halves, strict=True) if len(one)]
        return concat_batches(worked) if worked else batch.slice(0, 0)


def _rows_of(batch: Batch) -> list[dict[str, Any]]:
    """Return rows with values that JSON has: Python has no nanoseconds in lists and structs."""
    columns: dict[str, Any] = {
        name: plain(column) if isinstance(column, pa.Array) else column
        for name, column in batch.columns.items()
    }
    return rows_of_columns(columns) if columns else [{} for _ in range(len(batch))]
