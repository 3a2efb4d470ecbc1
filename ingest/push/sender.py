"""Run in the executors: send a task's rows, and wait for each answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
import zmq

from slackwater.ingest.push.wire import (
    MANIFEST,
    MAX_BODY_BYTES,
    Frame,
    Keys,
    Kind,
    close,
    connected,
    frame_of,
    lost,
)
from slackwater.runtime.errors import FrameError, IngestError

CREDITS = 4
"""Frames of a task that may be under way before one is acknowledged."""
LOOK_MS = 500
"""Time between two checks of the connection while a sender waits."""


@dataclass(frozen=True)
class Push:
    """Function that Spark maps over an epoch's partitions (`mapInArrow`). Pickles.

    Attributes:
        endpoint: endpoint of the source.
        keys: keys of the senders; the source admits only these.
        source: public key of the source.
        epoch: epoch of the micro-batch.
        columns: schema of the source, serialized.
    """

    endpoint: str
    keys: Keys
    source: bytes
    epoch: int
    columns: bytes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Send a partition's rows, wait for their acknowledgement, and yield their manifest."""
        from pyspark import TaskContext  # noqa: PLC0415 - the rest also runs where Spark is not

        task = TaskContext.get()
        assert task is not None
        yield self.send(batches, partition=task.partitionId(), attempt=task.taskAttemptId())

    def send(
        self, batches: Iterable[pa.RecordBatch], *, partition: int, attempt: int
    ) -> pa.RecordBatch:
        """Send rows as one task attempt; return its row of the manifest.

        Waits while the source lives and has not acknowledged: a slow source slows the task.

        Raises:
            IngestError: the source is gone, refuses us, or a single row is too long.
            FrameError: the source's answer is not valid.
        """
        schema = pa.ipc.read_schema(pa.py_buffer(self.columns))
        sent = rows = in_flight = 0
        with zmq.Context() as context:
            socket, monitor = connected(context, self.endpoint, keys=self.keys, peer=self.source)
            with closing(_Line(socket, monitor, self.endpoint)) as line:
                for batch in batches:
                    for body, count in _bodies(_fitted(batch, schema)):
                        frame = Frame(Kind.DATA, self.epoch, partition, attempt, sent, count, body)
                        socket.send_multipart(frame.parts())
                        sent, rows, in_flight = sent + 1, rows + count, in_flight + 1
                        while in_flight >= CREDITS:
                            line.wait()
                            in_flight -= 1
                for _ in range(in_flight):
                    line.wait()
        return pa.RecordBatch.from_pydict(
            {"partition": [partition], "attempt": [attempt], "frames": [sent], "rows": [rows]},
            schema=MANIFEST,
        )


class _Line:
    """A task's connection to the source."""

    def __init__(
        self, socket: zmq.Socket[bytes], monitor: zmq.Socket[bytes], endpoint: str
    ) -> None:
        self._socket = socket
        self._monitor = monitor
        self._endpoint = endpoint

    def wait(self) -> None:
        """Wait for the next acknowledgement."""
        while not self._socket.poll(LOOK_MS):
            if lost(self._monitor):
                raise IngestError(
                    f"the source at {self._endpoint} is gone, or refuses us; see whether its job "
                    "still runs"
                )
        answer = frame_of(self._socket.recv_multipart())
        if answer.kind is Kind.FAILED:
            raise IngestError(answer.text)
        if answer.kind is not Kind.ACK:
            raise FrameError(f"the source at {self._endpoint} answered {answer.kind.name} to rows")

    def close(self) -> None:
        """Disconnect."""
        close(self._socket, self._monitor)


def _fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch of Spark's in the source's types; time zones may differ."""
    if batch.schema.equals(schema):
        return batch
    cast = pa.Table.from_batches([batch]).cast(schema).combine_chunks()
    return cast.to_batches()[0] if cast.num_rows else pa.RecordBatch.from_pylist([], schema)


def _bodies(batch: pa.RecordBatch) -> Iterator[tuple[bytes, int]]:
    """Yield a batch as bodies of allowed length, with their numbers of rows."""
    if not batch.num_rows:
        return
    body = batch.serialize().to_pybytes()
    if len(body) <= MAX_BODY_BYTES:
        yield body, batch.num_rows
        return
    if batch.num_rows == 1:
        raise IngestError(
            f"a row is {len(body)} bytes long, and at most {MAX_BODY_BYTES} travel; "
            "drop or cut its longest column"
        )
    half = batch.num_rows // 2
    yield from _bodies(batch.slice(0, half))
    yield from _bodies(batch.slice(half))
