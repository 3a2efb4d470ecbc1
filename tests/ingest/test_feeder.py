"""A feeder whose reader is over real sockets on loopback, and whose Spark is played by the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest
import zmq

from slackwater.ingest.push.feeder import Feeder, Query
from slackwater.ingest.push.wire import Frame, Hello, Keys, Kind, close, connected, frame_of
from slackwater.runtime.errors import IngestError
from tests.support.waiting import until

HOST = "127.0.0.1"
SPARK, SOURCE = Keys.new(), Keys.new()
GONE_S = 10.0


class FakeSpark:
    """A frame, its writer, its session and its query, as far as a feeder asks for them.

    Its stop waits for a job that began a moment too late, until that is cancelled.
    """

    isActive = True  # noqa: N815 Spark's names, here and below
    runId = "run-7"  # noqa: N815

    def __init__(self) -> None:
        self.writeStream = self.sparkSession = self.sparkContext = self
        self.jobs = 0
        self.id = "query-1"
        self.folders: list[str] = []
        self.is_gone = False
        self.cancelled: list[str] = []
        self.is_stopped = threading.Event()
        self.may_stop = threading.Event()

    def foreachBatch(self, deliver: Any) -> FakeSpark:  # noqa: N802
        self.deliver = deliver
        return self

    def trigger(self, **settings: Any) -> FakeSpark:
        del settings
        return self

    def option(self, name: str, value: str) -> FakeSpark:
        assert name == "checkpointLocation"
        self.folders.append(value)
        return self

    def start(self) -> FakeSpark:
        if self.is_gone:
            raise ConnectionRefusedError(111, "Connection refused")
        self.is_stopped.clear()
        return self

    def exception(self) -> None:
        return None

    def mapInArrow(self, function: Any, schema: str) -> FakeSpark:  # noqa: N802
        del function, schema
        self.jobs += 1
        raise AssertionError("a job has begun")

    def cancelJobGroup(self, group: str) -> None:  # noqa: N802
        self.cancelled.append(group)
        self.may_stop.set()

    def stop(self) -> None:
        assert self.may_stop.wait(GONE_S)
        self.is_stopped.set()


@pytest.fixture
def spark() -> FakeSpark:
    return FakeSpark()


@pytest.fixture
def feeder(spark: FakeSpark) -> Iterator[Feeder]:
    frame: Any = spark
    query = Query(frame, pa.schema([("n", pa.int64())]), {}, ())
    feeder = Feeder(query, host=HOST, keys=SPARK, peer=SOURCE.public)
    yield feeder
    feeder.stop()


def come_and_go(feeder: Feeder) -> None:
    with zmq.Context() as context:
        line, monitor = connected(context, feeder.endpoint, keys=SOURCE, peer=SPARK.public)
        line.send_multipart(Frame(Kind.HELLO, body=b"tcp://127.0.0.1:1").parts())
        line.send_multipart(Frame(Kind.BYE).parts())
        close(line, monitor)


def test_a_job_that_begins_as_the_query_is_stopped_is_cancelled_too(
    feeder: Feeder, spark: FakeSpark
) -> None:
    come_and_go(feeder)
    until(spark.is_stopped.is_set, within_s=GONE_S, what="the query to stop")
    assert set(spark.cancelled) == {spark.runId}


def test_no_job_is_begun_for_a_source_that_has_gone(feeder: Feeder, spark: FakeSpark) -> None:
    spark.may_stop.set()
    come_and_go(feeder)
    until(spark.is_stopped.is_set, within_s=GONE_S, what="the query to stop")
    frame: Any = spark
    with pytest.raises(IngestError, match="was stopped, or its source has gone"):
        feeder._deliver(frame, 3)
    assert spark.jobs == 0


def hello(feeder: Feeder, after: str | None) -> Iterator[tuple[zmq.Socket[bytes], Any]]:
    """A reader that has said hello, until it is closed."""
    with zmq.Context() as context:
        line, monitor = connected(context, feeder.endpoint, keys=SOURCE, peer=SPARK.public)
        line.send_multipart(Hello("tcp://127.0.0.1:1", after).frame().parts())
        yield line, monitor
        close(line, monitor)


def heard(line: zmq.Socket[bytes]) -> Frame:
    assert line.poll(int(GONE_S * 1e3))
    return frame_of(line.recv_multipart())


def test_a_reader_that_spools_is_followed_by_another_from_the_same_folder(
    feeder: Feeder, spark: FakeSpark
) -> None:
    spark.may_stop.set()
    for number in range(3):
        with contextmanager(hello)(feeder, "query-1 4" if number else "") as (line, _):
            started = heard(line)
            assert (started.kind, started.text) == (Kind.STARTED, "query-1")
            line.send_multipart(Frame(Kind.BYE).parts())
        until(spark.is_stopped.is_set, within_s=GONE_S, what="the query to stop")
    assert len(spark.folders) == 3
    assert len({*spark.folders}) == 1


def test_the_newest_reader_that_spools_has_the_stream(feeder: Feeder, spark: FakeSpark) -> None:
    spark.may_stop.set()
    with contextmanager(hello)(feeder, "") as (old, _):
        assert heard(old).kind is Kind.STARTED
        with contextmanager(hello)(feeder, "query-1 2") as (new, _):
            assert heard(new).kind is Kind.STARTED
            assert "is read by another source" in heard(old).text


def test_a_reader_that_does_not_spool_is_not_replaced(feeder: Feeder, spark: FakeSpark) -> None:
    spark.may_stop.set()
    with (
        contextmanager(hello)(feeder, None) as (_, _),
        contextmanager(hello)(feeder, None) as (other, _),
    ):
        refused = heard(other)
    assert (refused.kind, len(spark.folders)) == (Kind.FAILED, 1)


def test_rows_that_were_spooled_of_another_query_are_refused(
    feeder: Feeder, spark: FakeSpark
) -> None:
    spark.may_stop.set()
    with contextmanager(hello)(feeder, "query-0 4") as (line, _):
        failed = heard(line)
    assert failed.kind is Kind.GONE
    assert "spooled as those of query query-0, and this is query-1" in failed.text
    assert "new folders for offsets and checkpoints" in failed.text


def test_the_end_of_a_session_is_not_the_end_of_a_stream_that_is_spooled(
    feeder: Feeder, spark: FakeSpark
) -> None:
    spark.may_stop.set()
    with contextmanager(hello)(feeder, "") as (line, _):
        assert heard(line).kind is Kind.STARTED
        feeder.stop()
        last = heard(line)
    assert last.kind is Kind.GONE
    assert "submit the flow again" in last.text


def test_a_jvm_that_has_ended_is_named_with_the_way_on(feeder: Feeder, spark: FakeSpark) -> None:
    spark.may_stop.set()
    spark.is_gone = True
    with contextmanager(hello)(feeder, "") as (line, _):
        failed = heard(line)
    assert failed.kind is Kind.GONE
    assert "the JVM of Spark's driver has ended" in failed.text
    assert "run the same command again" in failed.text
