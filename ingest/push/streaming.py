"""Push each micro-batch of an unbounded Spark frame from executors straight to the source.

The rows never pass through Spark's driver. The input carries, through Ray's own channels, what
source and driver must know of each other: the driver's address, and the keys that let one talk to
the other. The source then tells the driver its endpoint.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from pyspark.sql import DataFrame

from slackwater.ingest.push.feeder import Feeder, Query
from slackwater.ingest.push.stream_input import StreamInput, own_address
from slackwater.ingest.push.wire import Keys
from slackwater.ingest.spark import arrow_schema_of, order_columns, owner_of
from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import IngestError, SettingError
from slackwater.runtime.model.times import Duration, duration_ns

MAX_EPOCH_BYTES = 512 * 2**20
"""Bytes of an incomplete micro-batch that a source keeps, at most."""


@checked_call
def spark_stream(
    frame: DataFrame,
    *,
    order_by: str | Sequence[str] | None = None,
    every: Duration | None = 0,
    offsets: str | os.PathLike[str] | None = None,
    host: str | None = None,
    max_epoch_bytes: int = MAX_EPOCH_BYTES,
) -> StreamInput:
    """Return the rows of an unbounded Spark frame as an input.

    The query starts when a source opens the input, which one source may do, once. Rows arrive a
    whole micro-batch at a time, exactly once, by partition. The stream ends with the query, or with
    the session; if the query fails, the source fails.

    Args:
        frame: frame of a session that `SparkOnRay` started; `isStreaming`.
        order_by: sort each micro-batch by these columns.
        every: least time between two micro-batches; None if it reads the rows present now, then
            ends.
        offsets: folder in which Spark keeps which rows each micro-batch has, on a path that its
            driver and executors reach. With it a job with checkpoints goes on after its driver
            died: micro-batches that were spooled are passed over. Each stream needs a folder of its
            own. None if a stream begins at its start in each session.
        host: address of the source's node on which to listen; None if it is its address in Ray.
        max_epoch_bytes: a larger micro-batch fails the stream.

    Raises:
        SchemaError: a column's type is unknown to Arrow, or two columns have one name.
        SettingError: `every` is not a length of time, or max_epoch_bytes < 1.
        IngestError: the frame is bounded, or of another session.
    """
    owner = owner_of(frame, "spark_stream")
    if not frame.isStreaming:
        raise IngestError("spark_stream() reads unbounded frames, and this is none; use spark()")
    if max_epoch_bytes < 1:
        raise SettingError(f"max_epoch_bytes={max_epoch_bytes} must be at least 1")
    if every is None:
        trigger: dict[str, bool | str] = {"availableNow": True}
    else:
        interval_ms = duration_ns(every, what="every") // 1_000_000
        trigger = {"processingTime": f"{interval_ms} milliseconds"}
    columns = arrow_schema_of(frame)
    by = order_columns(columns, order_by, who="spark_stream")
    ours, theirs = Keys.new(), Keys.new()
    feeder = Feeder(
        Query(frame, columns, trigger, by, None if offsets is None else os.fspath(offsets)),
        host=own_address(),
        keys=ours,
        peer=theirs.public,
    )
    owner.before_stop(feeder.stop)
    return StreamInput(
        feeder.endpoint,
        theirs,
        ours.public,
        columns,
        host,
        max_epoch_bytes,
        keeps_offsets=offsets is not None,
    )
