"""Late rows of a stage, on their way to the stream that takes them (`Stream.late`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from slackwater.runtime.model import Batch, Columns
from slackwater.runtime.model.nullable import as_dtype
from slackwater.runtime.model.row_marks import CHANGE_BITS, change_words
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.ground.late_rows import LateRows
from slackwater.runtime.plan.plan import Channel
from slackwater.runtime.schedule.side_outputs import SideOutputs

SIDES = ("left", "right")


class LateOutputs(SideOutputs):
    """Channels of rows that were too late for a stage's operator.

    Such a row happened when it was found, so it is never older than was promised.
    """

    STATE = Fields("_promise_ns", "_outputs")

    def __init__(self, channels: Sequence[Channel], *, start_ns: int) -> None:
        super().__init__(channels, start_ns=start_ns)
        self._promise_ns = 0
        self._rows: Sequence[LateRows] = []

    def take(self, rows: Sequence[LateRows], *, promise_ns: int) -> bool:
        """Take rows that were found late; return whether there are any.

        Args:
            rows: rows that are late, see `LateRows`.
            promise_ns: promise of the stage before.
        """
        self._rows, self._promise_ns = rows, promise_ns
        return bool(rows)

    def batches(self, channel: Channel, now_ns: int) -> list[Batch]:  # noqa: D102
        del now_ns
        return [batch for row in self._rows if (batch := self._batch(channel, row)) is not None]

    def clear(self) -> None:  # noqa: D102
        self._rows = []

    def _batch(self, channel: Channel, rows: LateRows) -> Batch | None:
        late = channel.late
        assert late is not None
        came_under = late.columns[rows.port]
        if came_under is None:
            return None
        batch, size, marks = rows.batch, len(rows.batch), rows.batch.marks
        columns: Columns = {}
        for field in channel.schema:
            if field.name in came_under:
                column = batch.columns[came_under[field.name]]
                if pa.types.is_integer(field.type):
                    # Keys of two sides may differ in their width.
                    column = as_dtype(column, field.type.to_pandas_dtype())
                columns[field.name] = column
            elif field.name == "late_step":
                columns[field.name] = pa.array([late.step] * size, field.type)
            elif field.name == "late_side":
                columns[field.name] = pa.array([SIDES[rows.port]] * size, field.type)
            elif field.name == "late_event_time":
                columns[field.name] = batch.event_time_ns
            elif field.name == "late_by_ns":
                columns[field.name] = rows.late_by_ns
            elif field.name == "late_change":
                columns[field.name] = change_words(marks, size)
            else:
                columns[field.name] = rows.is_dropped
        late_at_ns = max(self._promise_ns, rows.found_ns)
        event_time_ns = np.maximum(batch.event_time_ns, late_at_ns)
        if marks is not None:
            marks = marks & ~CHANGE_BITS
        return batch.with_(event_time_ns=event_time_ns, columns=columns, marks=marks, arrivals=None)
