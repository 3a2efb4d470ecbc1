"""Run in the source actor: receive pushed rows, and show whole epochs only.

All work happens in `poll`: while a source does not poll, nothing is acknowledged, the executors run
out of credit, and Spark waits. An epoch's commit is answered when all rows of earlier epochs have
been handed over. So at most two epochs are in memory: one being read and one arriving.

Where rows are spooled, an epoch is one block, whose position is its number. Its commit is answered
by the poll after it, so once it is spooled. Epochs that were spooled before are passed over.
"""

from __future__ import annotations

from collections import deque

import pyarrow as pa
import zmq

from slackwater.ingest.push.epochs import Epochs, Finished
from slackwater.ingest.push.wire import (
    MANIFEST,
    Frame,
    Hello,
    Keys,
    Kind,
    close,
    connected,
    epoch_at,
    epoch_position,
    frame_of,
    listening,
    lost,
    rows_of,
)
from slackwater.runtime.errors import FrameError, IngestError, InputGone
from slackwater.runtime.sources.spec import END_OF_INPUT, Block, EndOfInput

FRAMES_PER_POLL = 8
"""Frames taken in by one poll, at most, which keeps it short."""


class PushReader:
    """Reads the rows of an unbounded Spark frame, as they are committed.

    Args:
        feeder: endpoint of the feeder in Spark's driver.
        host: address of our node to listen on.
        keys: keys of the reader.
        peer: public key of feeder and senders.
        schema: schema of the rows.
        max_epoch_bytes: most bytes that may wait for a commit.
        after: position of the last epoch that was spooled, empty before the first; None if rows
            are not spooled.
    """

    def __init__(
        self,
        feeder: str,
        *,
        host: str,
        keys: Keys,
        peer: bytes,
        schema: pa.Schema,
        max_epoch_bytes: int,
        after: bytes | None = None,
    ) -> None:
        self._schema = schema
        self._feeder_at = feeder
        self._is_spooled, self._query = after is not None, ""
        self._epochs = Epochs(
            max_bytes=max_epoch_bytes, after=None if after is None else epoch_at(after)
        )
        self._visible: deque[tuple[int, pa.RecordBatch]] = deque()  # (epoch, rows)
        self._unanswered: int | None = None  # epoch whose commit waits for our answer
        self._is_ended = False
        self._failure: IngestError | None = None
        self._is_closed = False
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._rows, endpoint, self._door = listening(self._context, host, keys=keys, peer=peer)
        try:
            self._feeder, self._monitor = connected(self._context, feeder, keys=keys, peer=peer)
        except IngestError as problem:
            self._hang_up()
            raise IngestError(
                f"the driver of this Spark stream: {problem}; or the stream was read before, and "
                "one source reads it, once: make another with sw.spark_stream(…)"
            ) from problem
        hello = Hello(endpoint, None if after is None else after.decode())
        self._feeder.send_multipart(hello.frame().parts())

    def poll(self) -> Block | pa.RecordBatch | EndOfInput | None:
        """Return rows of a committed epoch, None if there are none now, or END_OF_INPUT.

        Raises:
            IngestError: the query failed (with the user's own cause), or its driver is gone;
                    rows committed before have been handed over.
            InputGone: its session, or the JVM of that, has ended: no later reader gets rows.
        """
        if self._is_closed:
            return END_OF_INPUT
        if self._is_spooled and not self._visible:
            self._answer()
        self._listen()
        epoch, batch = self._visible.popleft() if self._visible else (0, None)
        if self._is_spooled and batch is not None:
            return Block(batch, epoch_position(self._query, epoch))
        if not self._is_spooled:
            self._answer()
        if batch is not None:
            return batch
        if self._failure is not None:
            raise self._failure
        return END_OF_INPUT if self._is_ended else None

    def close(self) -> None:
        """Tell Spark to stop, and disconnect. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        self._visible.clear()
        self._feeder.send_multipart(Frame(Kind.BYE).parts())
        close(self._feeder, self._monitor)
        self._hang_up()

    def _hang_up(self) -> None:
        self._rows.close(0)
        self._door.stop()
        self._context.term()

    def _listen(self) -> None:
        for _ in range(FRAMES_PER_POLL):
            if not self._rows.poll(0):
                break
            sender, *parts = self._rows.recv_multipart()
            self._reply(sender, self._receive(parts))
        is_lost = lost(self._monitor)  # asked first: its last frames are read below
        while self._failure is None and self._feeder.poll(0):
            try:
                self._obey(frame_of(self._feeder.recv_multipart()))
            except FrameError as problem:
                self._failure = IngestError(f"the driver sent a wrong frame: {problem}")
            except IngestError as problem:
                self._failure = problem
        if is_lost and not self._is_ended and self._failure is None:
            self._failure = IngestError(
                f"the driver that feeds this stream from {self._feeder_at} is gone; start the "
                "job again"
            )

    def _receive(self, parts: list[bytes]) -> Frame:
        try:
            frame = frame_of(parts)
            if frame.kind is not Kind.DATA:
                raise FrameError(f"a sender sent {frame.kind.name} to a source")
            if not frame.rows:
                raise FrameError("a DATA frame has no rows")
            rows = rows_of(frame, self._schema)
            self._epochs.add(frame.epoch, frame.partition, frame.attempt, frame.sequence, rows)
        except (FrameError, IngestError) as problem:
            return Frame(Kind.FAILED, body=str(problem).encode())
        return Frame(Kind.ACK, frame.epoch, frame.partition, frame.attempt, frame.sequence)

    def _reply(self, sender: bytes, answer: Frame) -> None:
        try:
            self._rows.send_multipart([sender, *answer.parts()], zmq.DONTWAIT)
        except zmq.ZMQError as problem:
            if problem.errno != zmq.EHOSTUNREACH:
                raise
            # The task was killed meanwhile; Spark runs it again if it still needs its rows.

    def _obey(self, frame: Frame) -> None:
        if frame.kind is Kind.COMMIT:
            is_new = frame.epoch > self._epochs.last_committed
            batches = self._epochs.commit(frame.epoch, manifest_of(frame))
            if self._is_spooled:
                batches = [self._joined(batches)] if is_new else []
            self._visible.extend((frame.epoch, batch) for batch in batches)
            self._unanswered = frame.epoch
        elif frame.kind is Kind.STARTED:
            self._query = frame.text
        elif frame.kind is Kind.END:
            self._is_ended = True
        elif frame.kind is Kind.FAILED:
            self._failure = IngestError(frame.text)
        elif frame.kind is Kind.GONE:
            self._failure = InputGone(frame.text)

    def _joined(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        if not batches:
            return pa.RecordBatch.from_pylist([], self._schema)
        return pa.concat_batches(batches)

    def _answer(self) -> None:
        epoch = self._unanswered
        if epoch is not None and (not self._visible or self._visible[0][0] >= epoch):
            self._feeder.send_multipart(Frame(Kind.COMMITTED, epoch).parts())
            self._unanswered = None


def manifest_of(frame: Frame) -> list[Finished]:
    """Return the claims of an epoch's tasks.

    Raises:
        FrameError: the body is not a manifest.
    """
    tasks = rows_of(frame, MANIFEST).to_pylist()
    for task in tasks:
        if any(number is None or number < 0 for number in task.values()):
            raise FrameError(f"the manifest of micro-batch {frame.epoch} has a wrong task {task}")
    return [Finished(**task) for task in tasks]
