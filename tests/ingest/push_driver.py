"""Spark's driver without Spark, for the tests of the push wire beside."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow as pa
import zmq

from slackwater.ingest.push.reader import PushReader
from slackwater.ingest.push.sender import Push
from slackwater.ingest.push.wire import MANIFEST, Frame, Hello, Keys, Kind, frame_of, listening
from slackwater.runtime.errors import FrameError, IngestError

COLUMNS = pa.schema([("value", pa.int64()), ("name", pa.string())])
HOST = "127.0.0.1"
SPARK, SOURCE = Keys.new(), Keys.new()


def rows(*values: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"value": list(values), "name": [f"n{value}" for value in values]}, schema=COLUMNS
    )


class Driver:
    """Spark's driver, without Spark: commits what the test says, and has tasks push."""

    def __init__(self) -> None:
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.socket, self.endpoint, self.guard = listening(
            self.context, HOST, keys=SPARK, peer=SOURCE.public
        )
        self.reader = b""
        self.source_at = ""
        self.hello = Hello("")
        self.tasks: list[threading.Thread] = []
        self.done: dict[tuple[int, int], pa.RecordBatch] = {}  # {(epoch, partition): manifest}
        self.problems: list[Exception] = []

    def meet(self) -> None:
        self.reader, *parts = self.socket.recv_multipart()
        self.hello = Hello.of(frame_of(parts))
        self.source_at = self.hello.endpoint

    def push(self, epoch: int, partition: int, *batches: pa.RecordBatch, attempt: int = 0) -> None:
        push = Push(self.source_at, SPARK, SOURCE.public, epoch, COLUMNS.serialize().to_pybytes())

        def run() -> None:
            try:
                self.done[epoch, partition] = push.send(
                    batches, partition=partition, attempt=attempt
                )
            except (IngestError, FrameError) as problem:
                self.problems.append(problem)

        self.tasks.append(threading.Thread(target=run))
        self.tasks[-1].start()

    def commit(self, epoch: int) -> None:
        parts = [task for (of, _), task in self.done.items() if of == epoch]
        manifest = pa.Table.from_batches(parts, MANIFEST).combine_chunks().to_batches()[0]
        body = manifest.serialize().to_pybytes()
        self.say(Frame(Kind.COMMIT, epoch, rows=len(manifest), body=body))

    def say(self, frame: Frame) -> None:
        self.socket.send_multipart([self.reader, *frame.parts()])

    def heard(self, limit_ms: int = 0) -> list[Frame]:
        frames: list[Frame] = []
        while self.socket.poll(0 if frames else limit_ms):
            frames.append(frame_of(self.socket.recv_multipart()[1:]))
        return frames

    def leave(self) -> None:
        if not self.socket.closed:
            for task in self.tasks:
                task.join(10)
            self.socket.close(0)
            self.guard.stop()
            self.context.term()


def opened(driver: Driver, max_epoch_bytes: int = 2**20, after: bytes | None = None) -> PushReader:
    reader = PushReader(
        driver.endpoint,
        host=HOST,
        keys=SOURCE,
        peer=SPARK.public,
        schema=COLUMNS,
        max_epoch_bytes=max_epoch_bytes,
        after=after,
    )
    driver.meet()
    return reader


def poll_until(reader: PushReader, is_enough: Callable[[], bool]) -> list[pa.RecordBatch]:
    """Poll until enough has happened; return the rows that came."""
    seen: list[pa.RecordBatch] = []
    while not is_enough():
        block = reader.poll()
        if isinstance(block, pa.RecordBatch):
            seen.append(block)
    return seen
