"""Runs beside Spark's driver: starts the query once the source listens, and commits its epochs.

A thread of its own holds the connection to the reader. The query starts with the reader's
HELLO. Spark calls `_deliver` for every micro-batch, in a thread of Spark's; that has the
executors push the rows, hands the manifest to our thread, and returns, which lets Spark go on
to the next, when the reader has answered.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import zmq
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.ingest.push.sender import Push
from slackwater.ingest.push.wire import (
    LINGER_MS,
    MANIFEST,
    MANIFEST_DDL,
    Frame,
    Keys,
    Kind,
    frame_of,
    listening,
)
from slackwater.ingest.session import STOP_LIMIT_S
from slackwater.ingest.spark_failure import user_cause
from slackwater.ingest.spark_process import within
from slackwater.runtime.errors import IngestError

LOOK_MS = 100
"""How often the query, and the wish to stop, are looked at."""
CANCEL_AGAIN_S = 0.5
"""How often a query that is to stop has its jobs cancelled."""
SUSPICION = 10
"""How many looks long the reader is asked for after some connection broke."""
_COMMITS = "inproc://commits"


@dataclass(frozen=True)
class Query:
    """How to run an unbounded frame.

    Attributes:
        columns: its Arrow schema.
        trigger: the arguments of Spark's `DataStreamWriter.trigger`.
        order_by: columns to sort each micro-batch by.
    """

    frame: DataFrame
    columns: pa.Schema
    trigger: dict[str, Any]
    order_by: tuple[str, ...]


class Feeder:
    """Feeds one reader. Ends with the query, with the reader, or when it is stopped.

    Args:
        host: the driver's address, to listen on.
        keys: of feeder and senders.
        peer: the reader's public key.
    """

    def __init__(self, query: Query, *, host: str, keys: Keys, peer: bytes) -> None:
        self._query = query
        self._keys = keys
        self._peer = peer
        self._reader: bytes | None = None  # its routing id, once it has said HELLO
        self._source_at = ""
        self._task = b""  # routing id of the micro-batch that waits for its commit
        self._running: StreamingQuery | None = None
        self._checkpoint = tempfile.mkdtemp(prefix="slackwater-stream-")  # goes with the query
        self._is_left = False  # the reader is gone, or wants no more
        self._stopping = threading.Event()
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._control, self.endpoint, self._door = listening(
            self._context, host, keys=keys, peer=peer
        )
        self._commits = self._context.socket(zmq.ROUTER)
        self._commits.bind(_COMMITS)
        self._thread = threading.Thread(target=self._run, name="spark-feeder", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the query; the reader sees the end of the stream. Idempotent."""
        self._stopping.set()
        self._thread.join(2 * STOP_LIMIT_S)

    def _run(self) -> None:
        last = Frame(Kind.END)
        try:
            self._serve()
            if self._running is not None and not self._stopping.is_set() and not self._is_left:
                problem = self._running.exception()
                if problem is not None:
                    raise problem
        except Exception as problem:  # whatever the user's code or the JVM found wrong
            told = f"the Spark stream failed: {user_cause(problem)}"
            last = Frame(Kind.FAILED, body=told.encode())
        finally:
            self._end(last)

    def _serve(self) -> None:
        poller = zmq.Poller()
        poller.register(self._control, zmq.POLLIN)
        poller.register(self._commits, zmq.POLLIN)
        suspicion = 0
        while not self._stopping.is_set() and not self._is_left:
            events = dict(poller.poll(LOOK_MS))
            if self._control in events:
                sender, *parts = self._control.recv_multipart()
                self._obey(sender, frame_of(parts))
            if self._commits in events:
                self._task, *parts = self._commits.recv_multipart()
                self._tell(frame_of(parts))
            suspicion = SUSPICION if self._door.has_lost() else max(0, suspicion - 1)
            if suspicion:
                self._tell(Frame(Kind.PING))
            if self._running is not None and not self._running.isActive:
                return

    def _obey(self, sender: bytes, frame: Frame) -> None:
        if frame.kind is Kind.HELLO:
            if self._reader is not None:
                told = "this stream is read by another source; give each its own spark_stream()"
                self._control.send_multipart(
                    [sender, *Frame(Kind.FAILED, body=told.encode()).parts()]
                )
                return
            self._reader = sender
            self._source_at = frame.text
            self._start()
        elif sender == self._reader and frame.kind is Kind.COMMITTED:
            self._commits.send_multipart([self._task, *frame.parts()])
        elif sender == self._reader and frame.kind is Kind.BYE:
            self._is_left = True

    def _start(self) -> None:
        writer = self._query.frame.writeStream.foreachBatch(self._deliver)
        writer = writer.trigger(**self._query.trigger)
        self._running = writer.option("checkpointLocation", self._checkpoint).start()

    def _deliver(self, frame: DataFrame, epoch: int) -> None:
        """Have the executors push a micro-batch; return when the reader has room for another.

        Spark calls this, in a thread of its own; what it raises ends the query.
        """
        self._check_wanted()  # or tasks would look, again and again, for a source that has gone
        if self._query.order_by:
            frame = frame.orderBy(*self._query.order_by)
        columns = self._query.columns.serialize().to_pybytes()
        push = Push(self._source_at, self._keys, self._peer, epoch, columns)
        sent = [row.asDict() for row in frame.mapInArrow(push, MANIFEST_DDL).collect()]
        manifest = pa.RecordBatch.from_pylist(sent, schema=MANIFEST)
        body = manifest.serialize().to_pybytes()
        with self._context.socket(zmq.DEALER) as line:
            line.linger = 0
            line.connect(_COMMITS)
            line.send_multipart(Frame(Kind.COMMIT, epoch, rows=len(sent), body=body).parts())
            while not line.poll(LOOK_MS):
                self._check_wanted()

    def _check_wanted(self) -> None:
        if self._stopping.is_set() or self._is_left:
            raise IngestError("the stream was stopped, or its source has gone")

    def _tell(self, frame: Frame) -> None:
        """Send the reader a frame; notice when it is not there any more."""
        if self._reader is None:
            return
        try:
            self._control.send_multipart([self._reader, *frame.parts()])
        except zmq.ZMQError as problem:
            if problem.errno != zmq.EHOSTUNREACH:
                raise
            self._is_left = True

    def _end(self, last: Frame) -> None:
        self._stopping.set()
        if self._running is not None:
            with contextlib.suppress(Exception):  # it, or its JVM, may have ended already
                self._stop(self._running)
        if not self._is_left:
            self._tell(last)
        self._control.close(LINGER_MS)
        self._commits.close(0)
        self._door.stop()
        self._context.term()
        shutil.rmtree(self._checkpoint, ignore_errors=True)

    def _stop(self, query: StreamingQuery) -> None:
        """Stop a query. Spark cancels the job that runs, and then waits for one that began later.

        Raises:
            TimeoutError: it has not stopped within `STOP_LIMIT_S`.
        """
        context = self._query.frame.sparkSession.sparkContext
        has_stopped = threading.Event()

        def cancel_again() -> None:
            while not has_stopped.wait(CANCEL_AGAIN_S):
                with contextlib.suppress(Exception):  # its JVM may be gone
                    context.cancelJobGroup(str(query.runId))  # the group of all of its jobs

        threading.Thread(target=cancel_again, name="spark-canceller", daemon=True).start()
        try:
            within(STOP_LIMIT_S, query.stop)
        finally:
            has_stopped.set()
