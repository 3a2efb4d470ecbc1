"""A source of one's own in its thread: bounded, in order, and nobody waits for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.actors.slot import read_ahead as module
from slackwater.actors.slot.read_ahead import ReadAhead, ReadAheadInput
from slackwater.runtime.errors import IngestError, SchemaError
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.sources.spec import Block, EndOfInput, Partition, traits_of
from tests.support import waiting
from tests.support.endless import EndlessInput
from tests.support.own_inputs import Feed, FeedReader, rows
from tests.support.readers import next_rows
from tests.support.sources import NOW, machine, take, times


class Reading:
    """A feed read ahead, and how often the reading slot was woken."""

    def __init__(self, feed: Any) -> None:
        self.woken = threading.Event()
        self.input = ReadAheadInput("feed", feed, self.woken.set)
        self.reader: ReadAhead = self.input.open()

    def next(self) -> Any:
        """Poll until there is something, as a slot does."""
        while (polled := next_rows(self.reader)) is None:
            assert self.woken.wait(5), "a reader that has something wakes the slot"
            self.woken.clear()
        return polled


def test_blocks_come_in_order_then_the_end_for_ever() -> None:
    feed = Feed(lambda: iter([rows(0, 2), None, rows(2, 0), rows(2, 1)]))
    reading = Reading(feed)
    got: list[int] = []
    while not isinstance(polled := reading.next(), EndOfInput):
        got += polled["t"].to_pylist()
    assert got == [0, 1, 2]
    assert isinstance(reading.reader.poll(), EndOfInput)
    reading.reader.close()
    assert feed.closed == [1]


def test_blocks_that_wait_are_put_together_unless_their_columns_differ() -> None:
    came = threading.Event()
    other = pa.record_batch({"t": pa.array([5], pa.int64()), "more": pa.array([1])})

    def script() -> Iterator[Any]:
        yield from (rows(0, 2), rows(2, 1), rows(3, 2), other, other)
        came.set()

    reading = Reading(Feed(script))
    assert came.wait(5)
    assert reading.next()["t"].to_pylist() == [0, 1, 2, 3, 4]
    assert reading.next()["t"].to_pylist() == [5, 5]
    assert isinstance(reading.next(), EndOfInput)


class Numbers(Feed):
    """Numbers up to 40 in blocks of three, which know where they are."""

    replay = "exact"

    def __init__(self) -> None:
        super().__init__(lambda: iter([]))
        self.opened: list[bytes | None] = []

    def open(self, name: str = "", at: bytes | None = None) -> Any:
        del name
        self.opened.append(at)
        first = int(at or b"0")

        def script() -> Iterator[Any]:
            for n in range(first, 40, 3):
                yield Block(rows(n, min(3, 40 - n)), b"%d" % n)

        return FeedReader(Feed(script))


def test_blocks_that_are_joined_keep_the_position_of_the_first() -> None:
    numbers = Numbers()
    reading = Reading(numbers)
    waiting.until(lambda: reading.reader._end is not None, within_s=5, what="the end")
    block = reading.reader.poll()
    assert isinstance(block, Block)
    assert (len(block.rows), block.at) == (40, b"0")
    again = ReadAheadInput("feed", numbers, lambda: None).open("", b"33")
    waiting.until(lambda: again._end is not None, within_s=5, what="the end")
    block = again.poll()
    assert isinstance(block, Block)
    assert (block.rows["t"].to_pylist(), block.at) == (list(range(33, 40)), b"33")
    assert numbers.opened == [None, b"33"]


def test_a_source_read_ahead_goes_on_at_a_position_of_its_input() -> None:
    for stop in range(1, 41, 3):
        numbers = Numbers()
        begun, taken = read_ahead(numbers), list[list[int]]()
        while sum(map(len, taken)) < stop:
            if (message := take(begun, NOW, max_rows=stop)) is not None:
                taken.append(times([message]))
        again = read_ahead(numbers)
        restore(again, save(begun))
        begun.close()
        while not again.is_over:
            if (message := take(again, NOW)) is not None:
                taken.append(times([message]))
        assert [one for some in taken for one in some] == list(range(40))
        again.close()


def read_ahead(numbers: Numbers) -> Any:
    return machine(ReadAheadInput("feed", numbers, lambda: None))


def test_each_partition_is_read_ahead_in_a_thread_of_its_own() -> None:
    class Parts(Numbers):
        """Ends of one range: those from a number on."""

        def partitions(self) -> list[Partition]:
            return [Partition("0"), Partition("30")]

        def open(self, name: str = "", at: bytes | None = None) -> Any:
            return super().open("", name.encode() if at is None else at)

    parts = Parts()
    threaded = ReadAheadInput("feed", parts, lambda: None)
    source, taken = machine(threaded), list[int]()
    while not source.is_over:
        if (message := take(source, NOW)) is not None:
            taken += times([message])
    assert sorted(taken) == sorted([*range(40), *range(30, 40)])
    source.close()
    assert len(threaded.readers) == 2
    assert not any(reader._thread.is_alive() for reader in threaded.readers)
    assert threaded.cpu_ns > 0


class Ends(Numbers):
    """Partitions of one range: those from a number on."""

    fails = 0
    most_open: int | None = None

    def partitions(self) -> list[Partition]:
        return [Partition(str(number)) for number in (0, 10, 20, 30)]

    def open(self, name: str = "", at: bytes | None = None) -> Any:
        if name == "20" and self.fails:
            self.fails -= 1
            raise ConnectionError("not yet")
        return super().open("", name.encode() if at is None else at)


@pytest.mark.parametrize(("more", "fault"), [(-1, "1 row more"), (1, "1 row fewer")])
def test_a_thread_reads_on_to_see_whether_a_number_of_rows_is_true(more: int, fault: str) -> None:
    class Said(Ends):
        def partitions(self) -> list[Partition]:
            return [Partition("30", 10 + more)]

    parts = Said()
    threaded = ReadAheadInput("feed", parts, lambda: None)
    source = machine(threaded)
    with pytest.raises(IngestError, match=rf"partition '30' after \d+ rows: .* {fault} than rows="):
        read_whole(source)
    source.close()


def read_whole(source: Any) -> None:
    while not source.is_over:
        take(source, NOW)


@pytest.mark.parametrize("most", [1, 2])
def test_no_more_threads_read_than_partitions_may_be_open(most: int) -> None:
    ends, woken = Ends(), threading.Event()
    ends.most_open = most
    threaded = ReadAheadInput("feed", ends, woken.set)
    source, taken = machine(threaded), list[int]()
    while not source.is_over:
        if (message := take(source, NOW)) is None:
            assert woken.wait(5)
            woken.clear()
            continue
        taken += times([message])
        reading = [reader for reader in threaded.readers if not reader._is_released]
        assert len(reading) <= most
    assert sorted(taken) == sorted([n for first in (0, 10, 20, 30) for n in range(first, 40)])
    source.close()
    assert threaded.standstill(is_over=True) is None, "no row was left"
    assert threaded.cpu_ns > 0


def test_a_partition_whose_thread_ended_in_an_error_is_read_by_another() -> None:
    ends, woken, now_ns = Ends(), threading.Event(), NOW
    ends.fails = 2
    threaded = ReadAheadInput("feed", ends, woken.set)
    source, taken = machine(threaded, retry=2), list[int]()
    while not source.is_over:
        if (message := take(source, now_ns)) is not None:
            taken += times([message])
        elif source.wait_ends_ns is not None:
            now_ns = source.wait_ends_ns
        else:
            assert woken.wait(5)
            woken.clear()
    assert sorted(taken) == sorted([n for first in (0, 10, 20, 30) for n in range(first, 40)])
    assert ends.fails == 0
    source.close()


def test_an_error_of_partitions_names_the_input_that_is_read_ahead() -> None:
    parts = Numbers()
    vars(parts)["partitions"] = lambda: None
    threaded = ReadAheadInput("feed", parts, lambda: None)
    with pytest.raises(SchemaError, match=r"Numbers\.partitions returned None"):
        take(machine(threaded), NOW)


def test_partitions_that_do_not_return_are_waited_for_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release, now_s = threading.Event(), 0.0

    class Silent(Numbers):
        def partitions(self) -> list[Partition]:
            return [Partition(str(number)) for number in range(5)]

        def open(self, name: str = "", at: bytes | None = None) -> Any:
            del name
            release.wait()
            return super().open("", at)

    def join(timeout: float) -> None:
        nonlocal now_s
        now_s += timeout

    silent = Silent()
    threaded = ReadAheadInput("feed", silent, lambda: None)
    source = machine(threaded)
    assert take(source, NOW) is None
    monkeypatch.setattr(module.time, "monotonic", lambda: now_s)
    for reader in threaded.readers:
        monkeypatch.setattr(reader._thread, "join", join)
    source.close()
    assert len(threaded.readers) == 5
    assert now_s == module.CLOSE_S
    release.set()


def test_blocks_with_dictionaries_stay_apart() -> None:
    """Two of these may have more values together than their type of index can tell."""
    came = threading.Event()
    kind = pa.dictionary(pa.int8(), pa.string())

    def block(first: int) -> pa.RecordBatch:
        words = pa.array([f"word {n}" for n in range(first, first + 100)]).dictionary_encode()
        return pa.record_batch({"t": pa.array(range(100)), "word": words.cast(kind)})

    def script() -> Iterator[Any]:
        yield from (block(0), block(100))
        came.set()

    reading = Reading(Feed(script))
    assert came.wait(5)
    assert [len(reading.next()), len(reading.next())] == [100, 100]
    assert isinstance(reading.next(), EndOfInput)


def test_an_error_comes_behind_the_rows_read_before_it() -> None:
    def script() -> Iterator[Any]:
        yield rows(0, 2)
        raise ValueError("cut off")

    reading = Reading(Feed(script))
    assert len(reading.next()) == 2
    with pytest.raises(IngestError, match=r"source 'feed': FeedReader\.poll raised Value"):
        reading.next()
    with pytest.raises(IngestError, match="cut off"):
        reading.reader.poll()


def test_a_feed_without_end_is_read_no_further_than_the_queue_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 10)
    read: list[int] = []

    def script() -> Iterator[Any]:
        while True:
            read.append(1)
            yield rows(0, 4)

    reading = Reading(Feed(script))
    full = 4  # blocks of 4 until there are 10 rows: three; the fourth waits in hand
    waiting.until(lambda: len(read) == full, within_s=5, what="the queue to be full")
    for taken in range(1, 20):
        assert len(reading.next()) == 12, "the three that wait, as one"
        more = 3 * taken
        waiting.until(lambda: len(read) == full + more, within_s=5, what="more")  # noqa: B023
    reading.reader.close()
    assert not reading.reader._thread.is_alive()


def test_a_poll_that_never_returns_holds_up_nobody_and_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CLOSE_S", 0.05)
    release = threading.Event()

    def script() -> Iterator[Any]:
        yield rows(0, 1)
        release.wait()

    feed = Feed(script)
    reading = Reading(feed)
    assert len(reading.next()) == 1
    waiting.until(lambda: reading.reader.waits_since_s is not None, within_s=5, what="the wait")
    assert reading.reader.poll() is None
    assert reading.input.standstill(is_over=False) is None, "it may wait for a while"
    monkeypatch.setattr(module, "STANDS_S", 0.0)
    assert "source 'feed': Feed, a custom input" in str(reading.input.standstill(is_over=False))
    reading.reader.close()
    assert "has ended without it" in str(reading.input.standstill(is_over=True))
    assert feed.closed == []
    release.set()
    waiting.until(lambda: feed.closed == [1], within_s=5, what="its close, once it returns")


def test_a_close_that_raises_is_said() -> None:
    class BadReader:
        def poll(self) -> EndOfInput:
            return EndOfInput()

        def close(self) -> None:
            raise OSError("not connected")

    class Bad(Feed):
        def open(self) -> Any:
            return BadReader()

    reading = Reading(Bad(lambda: iter([])))
    assert isinstance(reading.next(), EndOfInput)
    reading.reader.close()
    assert "BadReader.close raised OSError" in str(reading.input.standstill(is_over=True))


def test_a_close_that_never_returns_keeps_no_job_and_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "CLOSE_S", 0.0)
    monkeypatch.setattr(module, "STANDS_S", 0.0)
    release = threading.Event()

    class Hangs(Feed):
        def open(self) -> Any:
            reader = super().open()
            reader.close = release.wait
            return reader

    reading = Reading(Hangs(lambda: iter([rows(0, 2)])))
    assert len(reading.next()) == 2
    assert isinstance(reading.next(), EndOfInput)
    waiting.until(lambda: reading.reader.call == "close", within_s=5, what="the close")
    reading.reader.close()
    for is_over in (True, False):
        note = str(reading.input.standstill(is_over=is_over))
        assert "has been in one call of close for 0 s; all its rows are read" in note
    release.set()


def test_inputs_of_ours_are_read_by_the_slot_itself() -> None:
    table = pa.table({"t": [1]})
    ours = [traits_of(one) for one in (sw.table(table), sw.parquet("x"), sw.csv("x"))]
    assert [one.reads_inline for one in ours] == [True] * 3
    assert not traits_of(EndlessInput()).reads_inline


def test_rows_that_nobody_took_before_the_end_are_counted() -> None:
    came = threading.Event()

    def script() -> Iterator[Any]:
        yield rows(0, 2)
        yield rows(2, 3)
        came.set()
        while True:
            yield None

    reading = Reading(Feed(script))
    assert came.wait(5)
    assert reading.input.standstill(is_over=False) is None
    reading.reader.close()
    said = reading.input.standstill(is_over=True)
    assert said == (
        "source 'feed': 5 rows of its input were read ahead, but not taken before the job ended"
    )


@pytest.mark.parametrize(("took_s", "rests"), [(0.0, 1), (0.09, 1), (0.11, 0)])
def test_a_poll_that_has_waited_itself_is_called_again_at_once(
    took_s: float, rests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Reading(Feed(lambda: iter([rows(0, 1)])))
    reading.next()
    reader = reading.reader
    reader.close()
    waits: list[float] = []
    monkeypatch.setattr(reader, "_is_closed", False)
    monkeypatch.setattr(reader._changed, "wait", waits.append)
    monkeypatch.setattr(module.time, "monotonic", lambda: 100.0)
    reader._rest(last_rows_s=90.0, polled_s=100.0 - took_s)
    assert waits == [module.LONGEST_REST_S] * rests


def test_a_reader_is_told_in_its_own_thread_that_rows_are_safe() -> None:
    told: list[tuple[bytes, str]] = []

    class Telling(EndlessInput):
        def open(self, name: str = "", at: bytes | None = None) -> Any:
            del name, at
            reader: Any = super().open()
            reader.ack = lambda at: told.append((at, threading.current_thread().name))
            return reader

    reader = ReadAheadInput("feed", Telling(), lambda: None).open()
    reader.ack(b"7")
    while not told:
        reader.poll()  # which makes room for the thread
    reader.close()
    assert told == [(b"7", "source-feed")]
