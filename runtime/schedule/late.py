"""Late rows of a stage, on their way to the stream that takes them (`Stream.late`).

```
join ──┬──▶ results                   a late row travels as an event of its own: it happened when
       └──▶ late rows ──▶ …           it was found late, so never older than was promised
```
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from slackwater.runtime.model import Batch, Columns, Message, concat_batches
from slackwater.runtime.model.nullable import as_dtype
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.ground import LateRows
from slackwater.runtime.plan.plan import Channel
from slackwater.runtime.schedule.outputs import StageOutputs

SIDES = ("left", "right")


class LateOutputs:
    """Output channels of a stage for late rows. Between slices no row waits here.

    Args:
        channels: those with `late`.
        start_ns: of the job.
    """

    STATE = Fields("_promise_ns", "_outputs")

    def __init__(self, channels: Sequence[Channel], *, start_ns: int) -> None:
        self._channels = list(channels)
        self._outputs = [StageOutputs([channel], start_ns=start_ns) for channel in channels]
        self._rows: Sequence[LateRows] = []
        self._promise_ns = 0

    def take(self, rows: Sequence[LateRows], *, promise_ns: int) -> bool:
        """Take rows that were found late; return whether there are any.

        Args:
            rows: see there.
            promise_ns: what the stage had promised before.
        """
        self._rows, self._promise_ns = rows, promise_ns
        return bool(rows)

    def parts(self, message: Message, now_ns: int) -> list[tuple[Channel, Message]]:
        """Return what goes on each channel: late rows, once, and the stage's promise."""
        sends: list[tuple[Channel, Message]] = []
        rows, self._rows = self._rows, []
        for channel, outputs in zip(self._channels, self._outputs, strict=True):
            batches = [batch for one in rows if (batch := self._batch(channel, one)) is not None]
            batch = concat_batches(batches) if batches else None
            part = Message(batch, message.promise_ns, message.promise_stimulus_ns)
            sends += outputs.parts(part, now_ns)
        return sends

    def _batch(self, channel: Channel, rows: LateRows) -> Batch | None:
        late = channel.late
        assert late is not None
        came_under = late.columns[rows.port]
        if came_under is None:
            return None
        batch, size = rows.batch, len(rows.batch)
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
            else:
                columns[field.name] = rows.is_dropped
        event_time_ns = np.maximum(batch.event_time_ns, self._promise_ns)
        return Batch(event_time_ns, batch.stimulus_time_ns, columns, marks=batch.marks)
