"""Run beside Spark's driver: start the query once the source listens; commit its epochs.

A separate thread holds the connection to the reader. The query starts with the reader's HELLO.
Spark calls `_deliver` for every micro-batch, in one of its threads. That makes the executors push
the rows, and hands the manifest to our thread. It returns, and so lets Spark go on, when the reader
has answered.

A reader that spools rows may be replaced: its HELLO says up to which micro-batch it has them. Then
the query is stopped, and starts again from its folder: Spark runs again what was not answered.
"""

from __future__ import annotations

import contextlib
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
    Hello,
    Keys,
    Kind,
    frame_of,
    listening,
)
from slackwater.ingest.session import STOP_LIMIT_S
from slackwater.ingest.spark_failure import is_lost_jvm, user_cause
from slackwater.ingest.spark_process import within
from slackwater.ingest.temporary import TemporaryFolder
from slackwater.runtime.errors import IngestError

LOOK_MS = 100
"""Time between two checks of the query and of a stop."""
CANCEL_AGAIN_S = 0.5
"""Time between two cancellations of the jobs of a query that is to stop."""
SUSPICION = 10
"""Number of loops in which the reader is pinged after a connection broke."""
_COMMITS = "inproc://commits"
_NO_END = (
    "the session of this Spark stream ended before the stream; submit the flow again, with the "
    "same folders, and it goes on"
)
_ANOTHER = "this stream is read by another source; give each its own spark_stream()"


@dataclass(frozen=True)
class Query:
    """An unbounded frame and how to run it.

    Attributes:
        columns: Arrow schema of the frame.
        trigger: arguments of Spark's `DataStreamWriter.trigger`.
        order_by: columns to sort each micro-batch by.
        offsets: folder of its offsets, which stays; None if it is removed with the feeder.
    """

    frame: DataFrame
    columns: pa.Schema
    trigger: dict[str, Any]
    order_by: tuple[str, ...]
    offsets: str | None = None


class Feeder:
    """Feeds one reader, or several, one after the other, that spool rows.

    Ends with the query or with the reader, unless that spools rows; and with `stop`.

    Args:
        host: the driver's address to listen on.
        keys: keys of feeder and senders.
        peer: public key of the reader.
    """

    def __init__(self, query: Query, *, host: str, keys: Keys, peer: bytes) -> None:
        self._query = query
        self._keys = keys
        self._peer = peer
        self._reader: bytes | None = None  # its routing id, once it has sent HELLO
        self._source_at = ""
        self._is_spooled = False  # so that another reader may follow
        self._next: tuple[bytes, Hello] | None = None  # reader that replaces the present one
        self._task = b""  # routing id of the micro-batch that waits for its commit
        self._running: StreamingQuery | None = None
        self._temporary = TemporaryFolder("slackwater-stream-")
        self._is_left = False  # the reader is gone, or has sent BYE
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
        """Stop the query; the reader gets the end of the stream. Idempotent."""
        self._stopping.set()
        self._thread.join(2 * STOP_LIMIT_S)

    def _run(self) -> None:
        try:
            while True:
                self._serve_reader()
                if self._stopping.is_set() or not self._is_spooled:
                    return
        finally:
            self._end()

    def _serve_reader(self) -> None:
        """Serve one reader, and stop its query."""
        last = Frame(Kind.END)
        try:
            self._serve()
            if self._running is not None and self._is_wanted:
                problem = self._running.exception()
                if problem is not None:
                    raise problem
        except Exception as problem:  # any error of the user's code or the JVM
            cause, kind = user_cause(problem), Kind.FAILED
            if is_lost_jvm(problem):
                kind = Kind.GONE
                cause = (
                    f"the JVM of Spark's driver has ended ({cause}); see spark.log for why, and "
                    "run the same command again"
                )
            elif isinstance(problem, IngestError):  # of `_welcome`: the next reader has it, too
                kind = Kind.GONE
            reason = f"the Spark stream failed: {cause}"
            last = Frame(kind, body=reason.encode())
        finally:
            self._finish(last)

    def _serve(self) -> None:
        poller = zmq.Poller()
        poller.register(self._control, zmq.POLLIN)
        poller.register(self._commits, zmq.POLLIN)
        suspicion, self._is_left = 0, False
        if self._next is not None:
            self._welcome(*self._next)
        while self._is_wanted:
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

    @property
    def _is_wanted(self) -> bool:
        return not self._stopping.is_set() and not self._is_left

    def _obey(self, sender: bytes, frame: Frame) -> None:
        if frame.kind is Kind.HELLO:
            hello = Hello.of(frame)
            if self._reader is None:
                self._welcome(sender, hello)
                return
            is_next = self._is_spooled and hello.after is not None
            self._fail(self._reader if is_next else sender, _ANOTHER)
            if is_next:
                self._next, self._is_left = (sender, hello), True
        elif sender == self._reader and frame.kind is Kind.COMMITTED:
            self._commits.send_multipart([self._task, *frame.parts()])
        elif sender == self._reader and frame.kind is Kind.BYE:
            self._is_left = True

    def _welcome(self, reader: bytes, hello: Hello) -> None:
        """Start the query for a reader.

        Raises:
            IngestError: the rows that were spooled are of another query.
        """
        self._reader, self._source_at, self._next = reader, hello.endpoint, None
        self._is_spooled = hello.after is not None
        writer = self._query.frame.writeStream.foreachBatch(self._deliver)
        writer = writer.trigger(**self._query.trigger)
        folder = self._query.offsets or str(self._temporary.path)
        self._running = writer.option("checkpointLocation", folder).start()
        if not self._is_spooled:
            return
        query = str(self._running.id)
        if hello.query not in ("", query):
            raise IngestError(
                f"its rows were spooled as those of query {hello.query}, and this is {query}, so "
                "numbers of micro-batches differ; give spark_stream(offsets=) the folder that it "
                "had, or begin with new folders for offsets and checkpoints"
            )
        self._tell(Frame(Kind.STARTED, body=query.encode()))

    def _deliver(self, frame: DataFrame, epoch: int) -> None:
        """Make the executors push a micro-batch; return when the reader has room for the next.

        Spark calls this in one of its threads; an error here ends the query.
        """
        self._check_wanted()  # else tasks would retry to reach a lost source
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
        if not self._is_wanted:
            raise IngestError(
                "the stream was stopped, or its source has gone; submit the flow again"
            )

    def _tell(self, frame: Frame) -> None:
        """Send the reader a frame; record if the reader is gone."""
        if self._reader is None:
            return
        try:
            self._control.send_multipart([self._reader, *frame.parts()])
        except zmq.ZMQError as problem:
            if problem.errno != zmq.EHOSTUNREACH:
                raise
            self._is_left = True

    def _fail(self, reader: bytes, reason: str) -> None:
        with contextlib.suppress(zmq.ZMQError):  # it has gone
            self._control.send_multipart(
                [reader, *Frame(Kind.FAILED, body=reason.encode()).parts()]
            )

    def _finish(self, last: Frame) -> None:
        """Stop the query of a reader, and tell the reader, unless it is gone."""
        has_reader, self._is_left = not self._is_left, True  # so that a micro-batch under way ends
        if self._running is not None:
            with contextlib.suppress(Exception):  # the query, or its JVM, may have ended
                self._stop(self._running)
        if has_reader:
            if self._is_spooled and self._stopping.is_set():
                last = Frame(Kind.GONE, body=_NO_END.encode())
            self._tell(last)
        self._running = self._reader = None
        with contextlib.suppress(zmq.Again):
            while True:  # manifests of micro-batches that Spark runs again
                self._commits.recv_multipart(zmq.DONTWAIT)

    def _end(self) -> None:
        self._stopping.set()
        self._control.close(LINGER_MS)
        self._commits.close(0)
        self._door.stop()
        self._context.term()
        self._temporary.close()

    def _stop(self, query: StreamingQuery) -> None:
        """Stop a query: cancel its running job, and any job that starts later.

        Raises:
            TimeoutError: the query has not stopped within `STOP_LIMIT_S`.
        """
        context = self._query.frame.sparkSession.sparkContext
        has_stopped = threading.Event()

        def cancel_again() -> None:
            while not has_stopped.wait(CANCEL_AGAIN_S):
                with contextlib.suppress(Exception):  # its JVM may have ended
                    context.cancelJobGroup(str(query.runId))  # the group of all its jobs

        threading.Thread(target=cancel_again, name="spark-canceller", daemon=True).start()
        try:
            within(STOP_LIMIT_S, query.stop)
        finally:
            has_stopped.set()
