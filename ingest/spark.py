"""Prepare bounded Spark frames on the executors; keep Arrow blocks in Ray's object store.

The executors run the frame and keep its Arrow bytes; a few Ray tasks fetch each partition's bytes
from its executor into the object store. From then on the blocks need no Spark: they belong to the
driver, live as long as the input that holds them, and any node can read them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple
from uuid import uuid4

import pyarrow as pa
import ray
from pyspark import StorageLevel
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from slackwater.ingest.frame_input import FrameInput, FrameParts
from slackwater.ingest.session import SparkOnRay, current
from slackwater.ingest.spark_failure import user_cause
from slackwater.ingest.spark_process import within
from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import IngestError, SchemaError
from slackwater.runtime.model.times import NS_PER_SECOND, Duration, duration_ns
from slackwater.runtime.nearest import choices
from slackwater.runtime.shown import text_of

FETCHES_PER_EXECUTOR = 2
"""Partitions in flight from an executor: one in preparation, one on its way."""


@checked_call
def spark(
    frame: DataFrame,
    *,
    order_by: str | Sequence[str] | None = None,
    limit: Duration = "30min",
    partitions: Literal["frame"] | None = None,
) -> FrameInput | FrameParts:
    """Run a bounded Spark frame; return its rows as an input, in order.

    Blocks until all rows are in Ray's object store. The session may stop afterwards.

    Args:
        frame: frame of a session that `SparkOnRay` started.
        order_by: sort by these columns first; rows that tie come in any order.
        limit: how long Spark may take.
        partitions: "frame": each partition of the frame is in an order of its own, and `order_by`
            sorts within it, without a shuffle. If None, all are one order.

    Raises:
        SchemaError: a column's type is unknown to Arrow, two columns have one name, or no column to
            order by.
        IngestError: Spark failed (with the user's own cause), took longer than `limit`, or
            the frame is unbounded or of another session.
    """
    owner = owner_of(frame, "spark")
    if frame.isStreaming:
        raise IngestError("spark() reads bounded frames and this one streams; use spark_stream()")
    schema = arrow_schema_of(frame)
    by = order_columns(schema, order_by, who="spark")
    if by:
        frame = frame.orderBy(*by) if partitions is None else frame.sortWithinPartitions(*by)
    limit_s = duration_ns(limit, what="limit") / NS_PER_SECOND
    parts = _stored(frame, owner, limit_s=limit_s)
    rows = FrameInput(tuple(part.ref for part in parts), schema)
    if partitions is None or not parts:
        return rows
    return FrameParts(rows, tuple(part.rows for part in parts), tuple(part.first for part in parts))


class StoredPart(NamedTuple):
    """Partition of a frame in Ray's object store.

    Attributes:
        ref: reference to its Arrow table.
        rows: number of its rows.
        first: its first row.
    """

    ref: ray.ObjectRef[pa.Table]
    rows: int
    first: pa.RecordBatch


def owner_of(frame: DataFrame, who: str) -> SparkOnRay:
    """Return the running session that a frame belongs to.

    Raises:
        SchemaError: it is not a frame of Spark.
        IngestError: the frame is not of the running session.
    """
    if not isinstance(frame, DataFrame):
        raise SchemaError(
            f"{who}: {type(frame).__qualname__} is not a frame of Spark; pass "
            "spark.read.parquet(…), say, or write sw.table(…) for rows in memory"
        )
    owner = current()
    if owner is None or frame.sparkSession.sparkContext is not owner.session.sparkContext:
        raise IngestError(
            f"{who}() needs a frame of the Spark session that runs now; this one belongs to "
            "another session or to one that has stopped. Make it with cluster.spark().session"
        )
    return owner


def arrow_schema_of(frame: DataFrame) -> pa.Schema:
    """Return a frame's columns as Arrow types.

    Raises:
        SchemaError: a type is unknown to Arrow, or two columns have one name.
    """
    names = frame.columns
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SchemaError(
            f"the Spark frame has two columns named {twice[0]!r}; rename one before it is read: "
            "withColumnRenamed, or select with alias"
        )
    try:
        return to_arrow_schema(frame.schema)
    except TypeError as problem:  # such as PySpark's UNSUPPORTED_DATA_TYPE_FOR_ARROW
        raise SchemaError(
            f"the Spark frame does not fit Arrow: {text_of(problem)}; cast that column, or drop it"
        ) from problem


def order_columns(
    schema: pa.Schema, order_by: str | Sequence[str] | None, *, who: str
) -> tuple[str, ...]:
    """Return the columns to order by.

    Raises:
        SchemaError: a column is missing, or is not a name.
    """
    if isinstance(order_by, SparkColumn):
        raise SchemaError(
            f"{who}: order_by={order_by} is an expression, and names of columns are taken; name "
            "them, which sorts upwards"
        )
    by = (order_by,) if isinstance(order_by, str) else tuple(order_by or ())
    known = {name.casefold() for name in schema.names}
    for column in by:
        if not {column.casefold(), column.split(".")[0].casefold()} & known:
            raise SchemaError(
                f"{who}: order_by={column!r} is not a column; {choices(column, schema.names)}"
            )
    return by


def _stored(frame: DataFrame, owner: SparkOnRay, *, limit_s: float) -> list[StoredPart]:
    """Run the frame; return each partition that has rows."""
    job = f"slackwater-{uuid4().hex}"
    try:
        return within(limit_s, lambda: _run(frame, job, owner))
    except TimeoutError:
        raise IngestError(
            f"Spark has not finished the frame within {limit_s:g} s and was told to stop; give it "
            f"longer (limit=…), more executors, or fewer rows. The log is {owner.log_path}"
        ) from None
    except Exception as problem:  # any error of the user's code, the JVM or Ray
        raise IngestError(
            f"Spark could not prepare the frame: {user_cause(problem)}\nthe log is {owner.log_path}"
        ) from None
    finally:
        with contextlib.suppress(Exception):  # no job runs any more, or the JVM has ended
            frame.sparkSession.sparkContext.cancelJobGroup(job)


def _run(frame: DataFrame, job: str, owner: SparkOnRay) -> list[StoredPart]:
    """Make Spark keep the frame's Arrow bytes, fetch them, and make Spark drop them."""
    context: Any = frame.sparkSession.sparkContext
    context.setJobGroup(job, "slackwater: prepare a frame", interruptOnCancel=True)
    writer = context._jvm.org.apache.spark.sql.raydp.ObjectStoreWriter
    level = context._getJavaStorageLevel(StorageLevel.MEMORY_AND_DISK)
    cached = writer.prepareRecoverableRDD(frame._jdf, level)
    try:
        tables: list[Any] = []
        firsts: list[Any] = []
        in_flight: list[Any] = []
        for partition, executor in enumerate(cached.locations()):
            if len(in_flight) == FETCHES_PER_EXECUTOR * owner.executors:
                _, in_flight = ray.wait(in_flight, num_returns=1)
            table, first = _fetch.remote(
                f"raydp-executor-{executor}",
                cached.rddId(),
                partition,
                cached.schemaJson(),
                cached.driverAgentUrl(),
            )
            tables.append(table)
            firsts.append(first)
            in_flight.append(first)
        return [
            StoredPart(table, rows, first)
            for table, (rows, first) in zip(tables, ray.get(firsts), strict=True)
            if rows
        ]
    finally:
        writer.releaseRecoverableRDD(cached.rddId())


@ray.remote(num_cpus=0, num_returns=2, max_retries=2)
def _fetch(*where: Any) -> tuple[pa.Table, tuple[int, pa.RecordBatch | None]]:
    """Fetch a partition's Arrow bytes from its executor into the object store.

    The driver gets the number of its rows, and the first.

    RayDP's from_spark starts the same fetch. We do not call it. It fetches all partitions at once,
    and wraps them in a Ray Data set that prints on the terminal. It returns too early for Spark's
    copy to be released.
    """
    from raydp.spark.dataset import (  # noqa: PLC0415 - imports Ray Data, a second or two
        _fetch_arrow_table_from_executor,
    )

    table = _fetch_arrow_table_from_executor._function(*where)
    if not table.num_rows:
        return table, (0, None)
    return table, (table.num_rows, table.take([0]).combine_chunks().to_batches()[0])
