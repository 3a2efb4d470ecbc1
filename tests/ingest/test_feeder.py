"""A feeder whose reader is over real sockets on loopback, and whose Spark is played by the test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
import zmq

from slackwater.ingest.push.feeder import Feeder, Query
from slackwater.ingest.push.streaming import spark_stream
from slackwater.ingest.push.wire import Frame, Keys, Kind, close, connected
from slackwater.runtime.errors import IngestError, SettingError
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
        self.cancelled: list[str] = []
        self.is_stopped = threading.Event()
        self.may_stop = threading.Event()

    def foreachBatch(self, deliver: Any) -> FakeSpark:  # noqa: N802
        del deliver
        return self

    def trigger(self, **settings: Any) -> FakeSpark:
        del settings
        return self

    def option(self, name: str, value: str) -> FakeSpark:
        del name, value
        return self

    def start(self) -> FakeSpark:
        return self

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


def test_a_checkpoint_is_refused_since_a_read_row_is_not_yet_a_published_one() -> None:
    frame: Any = FakeSpark()
    with pytest.raises(SettingError, match=r"checkpoint='seen' is not supported; .*overwrite=True"):
        spark_stream(frame, checkpoint="seen")
