"""Senders and a reader over real sockets on loopback; Spark's driver is played by the test."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from slackwater.ingest.push import sender, wire
from slackwater.ingest.push.reader import PushReader
from slackwater.ingest.push.sender import CREDITS, Push
from slackwater.ingest.push.wire import (
    PIECE_BYTES,
    Frame,
    Keys,
    Kind,
    close,
    connected,
    frame_of,
)
from slackwater.runtime.errors import FrameError, IngestError, InputGone
from slackwater.runtime.sources.spec import END_OF_INPUT, Block
from tests.ingest.push_driver import COLUMNS, HOST, SOURCE, SPARK, Driver, opened, poll_until, rows
from tests.support.refused_peers import shouting


@pytest.fixture
def driver() -> Iterator[Driver]:
    driver = Driver()
    yield driver
    driver.leave()


@pytest.fixture
def reader(driver: Driver) -> Iterator[PushReader]:
    reader = opened(driver)
    yield reader
    reader.close()


def rest(reader: PushReader, seen: list[pa.RecordBatch] | None = None) -> list[pa.RecordBatch]:
    """Poll to the end of the stream, adding what comes."""
    seen = [] if seen is None else seen
    while (block := reader.poll()) is not END_OF_INPUT:
        if isinstance(block, pa.RecordBatch):
            seen.append(block)
    return seen


def test_rows_are_invisible_until_their_epoch_is_committed(
    driver: Driver, reader: PushReader
) -> None:
    driver.push(0, 1, rows(3), rows(4))
    driver.push(0, 0, rows(1, 2))
    assert poll_until(reader, lambda: len(driver.done) == 2) == []
    driver.commit(0)
    driver.say(Frame(Kind.END))
    assert [block.to_pylist() for block in rest(reader)] == [
        block.to_pylist() for block in (rows(1, 2), rows(3), rows(4))
    ]
    assert reader.poll() is END_OF_INPUT


def test_a_source_that_does_not_poll_stops_the_sender(driver: Driver, reader: PushReader) -> None:
    drawn: list[int] = []

    def endless() -> Iterator[pa.RecordBatch]:
        for number in range(20):
            drawn.append(number)
            yield rows(number)

    driver.push(0, 0, *[])  # a partition without rows still finishes, by itself
    driver.tasks[0].join(10)
    push = Push(driver.source_at, SPARK, SOURCE.public, 0, COLUMNS.serialize().to_pybytes())
    task = threading.Thread(target=lambda: push.send(endless(), partition=1, attempt=1))
    task.start()
    task.join(0.3)
    assert task.is_alive()
    assert len(drawn) <= CREDITS
    poll_until(reader, lambda: not task.is_alive())
    assert len(drawn) == 20


def test_the_second_epoch_is_answered_when_the_first_has_been_read(
    driver: Driver, reader: PushReader
) -> None:
    driver.push(0, 0, *[rows(number) for number in range(100)])
    driver.push(1, 0, rows(100), attempt=1)
    poll_until(reader, lambda: len(driver.done) == 2)
    driver.commit(0)
    seen: list[pa.RecordBatch] = []
    answers: list[Frame] = []
    while len(seen) < 101:
        block = reader.poll()
        if isinstance(block, pa.RecordBatch):
            seen.append(block)
        heard = driver.heard()  # once: an answer may come between two looks
        if heard and not answers:
            driver.commit(1)
        elif len(seen) < 100:
            assert heard == []
        answers += heard
    while len(answers) < 2 and (heard := driver.heard(limit_ms=5_000)):
        answers += heard
    assert [(answer.kind, answer.epoch) for answer in answers] == [
        (Kind.COMMITTED, 0),
        (Kind.COMMITTED, 1),
    ]
    assert [value for block in seen for value in block["value"].to_pylist()] == list(range(101))


@pytest.mark.parametrize(("kind", "error"), [(Kind.FAILED, IngestError), (Kind.GONE, InputGone)])
def test_a_failed_query_is_raised_after_what_it_had_committed(
    driver: Driver, reader: PushReader, kind: Kind, error: type[IngestError]
) -> None:
    driver.push(0, 0, rows(1))
    poll_until(reader, lambda: len(driver.done) == 1)
    driver.commit(0)
    driver.say(Frame(kind, body=b"ZeroDivisionError: division by zero"))
    seen: list[pa.RecordBatch] = []
    with pytest.raises(error, match="ZeroDivisionError") as raised:
        rest(reader, seen)
    assert raised.type is error
    assert [block["value"].to_pylist() for block in seen] == [[1]]


def test_a_driver_that_dies_is_an_error_and_not_a_wait_for_ever(
    driver: Driver, reader: PushReader
) -> None:
    driver.leave()
    with pytest.raises(IngestError, match="driver that feeds this stream"):
        rest(reader)


def test_a_reader_that_closes_says_bye_and_its_senders_give_up(driver: Driver) -> None:
    reader = opened(driver)
    driver.push(0, 0, *[rows(number) for number in range(10)])
    poll_until(reader, lambda: bool(reader._epochs.bytes_held))
    reader.close()
    reader.close()
    driver.tasks[0].join(10)
    assert [type(problem) for problem in driver.problems] == [IngestError]
    assert Kind.BYE in [frame.kind for frame in driver.heard(limit_ms=5_000)]
    assert reader.poll() is END_OF_INPUT


def test_a_micro_batch_that_is_too_large_fails_its_task_with_the_way_out(driver: Driver) -> None:
    reader = opened(driver, max_epoch_bytes=100)
    driver.push(0, 0, *[rows(number) for number in range(10)])
    poll_until(reader, lambda: bool(driver.problems))
    assert "maxFilesPerTrigger" in str(driver.problems[0])
    reader.close()


def test_a_stranger_is_not_let_in(
    driver: Driver, reader: PushReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "CONNECT_LIMIT_MS", 2_000)
    with zmq.Context() as context, pytest.raises(IngestError, match="know our key"):
        connected(context, driver.source_at, keys=Keys.new(), peer=SOURCE.public)


def test_shouting_strangers_cost_little_memory_and_do_not_keep_the_senders_out(
    driver: Driver, reader: PushReader
) -> None:
    with shouting(driver.source_at, longest=PIECE_BYTES) as (_, grown):
        assert grown < 64 * 2**20
        driver.push(0, 0, rows(1))
        poll_until(reader, lambda: len(driver.done) == 1)


def test_whoever_has_gone_is_missed_at_once_and_not_at_the_end_of_a_long_wait(
    driver: Driver, reader: PushReader
) -> None:
    reader.close()
    began_s = time.monotonic()
    driver.push(0, 0, rows(1))
    driver.tasks[0].join(20)
    assert "no listener at" in str(driver.problems[0])
    driver.leave()
    with pytest.raises(IngestError, match=r"no listener at .*one source reads it, once"):
        opened(driver)
    assert time.monotonic() - began_s < 2 * 5  # of 0.7 s each, on an idle machine


def test_who_hangs_up_is_not_taken_for_one_who_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "CONNECT_LIMIT_MS", 1_500)
    calls: list[int] = []
    with socket.create_server((HOST, 0)) as rude, zmq.Context() as context:

        def hang_up() -> None:
            with contextlib.suppress(OSError):  # it is closed: the test is over
                while True:
                    rude.accept()[0].close()
                    calls.append(1)

        threading.Thread(target=hang_up, daemon=True).start()
        address = f"tcp://{HOST}:{rude.getsockname()[1]}"
        with pytest.raises(IngestError, match="know our key"):
            connected(context, address, keys=SPARK, peer=SOURCE.public)
        rude.shutdown(socket.SHUT_RDWR)
    assert calls


def test_nonsense_is_refused_and_the_stream_goes_on(driver: Driver, reader: PushReader) -> None:
    nonsense: list[Any] = [
        [b"x"],
        Frame(Kind.BYE).parts(),
        Frame(Kind.DATA, rows=1, body=b"no arrow").parts(),
        Frame(Kind.DATA, rows=7, body=rows(1).serialize().to_pybytes()).parts(),
    ]
    with zmq.Context() as context:
        line, monitor = connected(context, driver.source_at, keys=SPARK, peer=SOURCE.public)
        for parts in nonsense:
            line.send_multipart(parts)
            while not line.poll(1):
                assert reader.poll() is None
            assert frame_of(line.recv_multipart()).kind is Kind.FAILED
        close(line, monitor)
    driver.push(0, 0, rows(1))
    poll_until(reader, lambda: len(driver.done) == 1)


def test_a_long_batch_travels_in_pieces_and_a_row_that_is_too_long_is_refused(
    driver: Driver, reader: PushReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "MAX_BODY_BYTES", 500)
    driver.push(0, 0, rows(*range(100)))
    poll_until(reader, lambda: bool(driver.done))
    assert driver.done[0, 0].to_pylist()[0]["frames"] > 1
    driver.commit(0)
    driver.say(Frame(Kind.END))
    assert pa.Table.from_batches(rest(reader))["value"].to_pylist() == list(range(100))
    long = pa.RecordBatch.from_pydict({"value": [1], "name": ["x" * 600]}, schema=COLUMNS)
    driver.push(1, 0, long)
    driver.tasks[-1].join(10)
    assert "a row is" in str(driver.problems[0])


def test_columns_are_cast_to_what_the_source_was_promised() -> None:
    berlin = pa.array([0, 10**6], pa.timestamp("us", tz="Europe/Berlin"))
    wanted = pa.schema([("at", pa.timestamp("us", tz="UTC"))])
    batch = pa.RecordBatch.from_arrays([berlin], names=["at"])
    assert sender._fitted(batch, wanted).schema == wanted
    assert sender._fitted(batch.slice(0, 0), wanted).num_rows == 0


@given(
    st.builds(
        Frame,
        st.sampled_from(Kind),
        st.integers(0, 2**63 - 1),
        st.integers(0, 2**31 - 1),
        st.integers(0, 2**63 - 1),
        st.integers(0, 2**63 - 1),
        st.integers(0, 2**63 - 1),
        st.binary(max_size=50),
    )
)
def test_a_frame_arrives_as_it_was_sent(frame: Frame) -> None:
    assert frame_of(frame.parts()) == frame


@given(st.lists(st.binary(max_size=60), max_size=4))
def test_no_bytes_at_all_crash_the_parser(parts: list[bytes]) -> None:
    with pytest.raises(FrameError):
        frame_of(parts)


def test_a_body_longer_than_announced_is_refused() -> None:
    header, body = Frame(Kind.DATA, body=b"four").parts()
    for wrong in (b"", body + b"!"):
        with pytest.raises(FrameError, match="announces 4 bytes"):
            frame_of([header, wrong])


def test_keys_keep_their_secret_when_printed() -> None:
    assert SPARK.secret.decode() not in repr(SPARK)


def spooled_until(reader: PushReader, is_enough: Any) -> list[Block]:
    """Poll until enough has happened, as one who spools; return the blocks that came."""
    seen: list[Block] = []
    while not is_enough():
        polled = reader.poll()
        if isinstance(polled, Block):
            seen.append(polled)
    return seen


def committed(driver: Driver) -> list[int]:
    return [frame.epoch for frame in driver.heard() if frame.kind is Kind.COMMITTED]


def test_an_epoch_that_is_spooled_is_one_block_and_is_answered_after_it(driver: Driver) -> None:
    with contextlib.closing(opened(driver, after=b"")) as reader:
        assert driver.hello.after == ""
        driver.say(Frame(Kind.STARTED, body=b"query-1"))
        driver.push(0, 1, rows(3), rows(4))
        driver.push(0, 0, rows(1, 2))
        poll_until(reader, lambda: len(driver.done) == 2)
        driver.commit(0)
        block = None
        while block is None:
            block = reader.poll()
        assert isinstance(block, Block)
        assert block.at == b"query-1 0"
        assert block.rows.to_pylist() == rows(1, 2, 3, 4).to_pylist()  # type: ignore[union-attr]
        assert committed(driver) == [], "it is not spooled yet"
        reader.poll()
        assert [frame.epoch for frame in driver.heard(5_000)] == [0]


def test_epochs_that_were_spooled_are_answered_and_passed_over(driver: Driver) -> None:
    with contextlib.closing(opened(driver, after=b"query-1 7")) as reader:
        assert driver.hello.query == "query-1"
        driver.say(Frame(Kind.STARTED, body=b"query-1"))
        driver.push(7, 0, rows(1))
        poll_until(reader, lambda: len(driver.done) == 1)
        driver.commit(7)
        assert spooled_until(reader, lambda: driver.socket.poll(0)) == []
        assert committed(driver) == [7]
        driver.push(8, 0, rows(2))
        poll_until(reader, lambda: len(driver.done) == 2)
        driver.commit(8)
        (block,) = spooled_until(reader, lambda: driver.socket.poll(0))
        assert block.at == b"query-1 8"


def test_a_gap_between_epochs_fails_with_both_numbers(driver: Driver) -> None:
    with contextlib.closing(opened(driver, after=b"query-1 7")) as reader:
        driver.push(9, 0, rows(1))
        poll_until(reader, lambda: len(driver.done) == 1)
        driver.commit(9)
        with pytest.raises(IngestError, match=r"micro-batch 9 came where 8 was due.*new folders"):
            spooled_until(reader, lambda: False)


def test_an_epoch_without_rows_is_spooled_too_so_that_no_gap_is_seen(driver: Driver) -> None:
    with contextlib.closing(opened(driver, after=b"query-1 7")) as reader:
        driver.say(Frame(Kind.STARTED, body=b"query-1"))
        driver.push(8, 0)
        poll_until(reader, lambda: len(driver.done) == 1)
        driver.commit(8)
        (block,) = spooled_until(reader, lambda: driver.socket.poll(0))
        assert (block.at, block.rows.num_rows) == (b"query-1 8", 0)  # type: ignore[union-attr]
