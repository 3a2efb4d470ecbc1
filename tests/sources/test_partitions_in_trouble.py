"""Partitions of custom inputs that raise, vanish, appear, say a wrong time, or have nothing now."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from slackwater.ingest import memory
from slackwater.runtime.errors import IngestError, OrderError, SchemaError, SettingError
from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.sources.spec import END_OF_INPUT, Partition
from tests.support.sources import machine, take

MS = 1_000_000


@dataclass
class Parts:
    """Partitions {name: event times} of a custom input, each with troubles of its own.

    Attributes:
        fails: {name: how often its polls, or its openings, raise}.
        silent: {name: how many polls have nothing}.
        firsts: {name: its first event time, as the input says}.
        calls: what was called, in order.
    """

    parts: dict[str, list[int]]
    fails: dict[str, int] = field(default_factory=dict)
    silent: dict[str, int] = field(default_factory=dict)
    firsts: dict[str, int] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    most_open: int | None = None
    fails_at_open: bool = False
    calls: list[tuple[str, str]] = field(default_factory=list)
    is_open: Counter[str] = field(default_factory=Counter)
    is_history: ClassVar[bool] = True
    blocks_stay: ClassVar[bool] = True
    reads_inline: ClassVar[bool] = True
    grows: ClassVar[bool] = False
    replay: ClassVar[str] = "exact"

    def describe(self) -> str:
        return "parts"

    def schema(self) -> pa.Schema:
        return pa.schema([("t", pa.int64())])

    def partitions(self) -> list[Partition]:
        self.calls.append(("list", ""))
        names = [name for name in self.parts if name not in self.hidden]
        return [Partition(name, first_ns=self.firsts.get(name)) for name in names]

    def open(self, name: str, at: bytes | None) -> Any:
        self.calls.append(("open", name))
        if self.fails_at_open:
            self.fail(name)
        if name not in self.parts:
            raise KeyError(name)
        self.is_open[name] += 1
        return Reader(self, name, at)

    def fail(self, name: str) -> None:
        if self.fails.get(name, 0):
            self.fails[name] -= 1
            raise ConnectionError(f"{name} is gone")


class Reader:
    def __init__(self, parts: Parts, name: str, at: bytes | None) -> None:
        self.parts, self.name = parts, name
        self.inner = memory.table({"t": parts.parts[name]}, batch_rows=1).open("", at)

    def poll(self) -> Any:
        self.parts.calls.append(("poll", self.name))
        if not self.parts.fails_at_open:
            self.parts.fail(self.name)
        if self.parts.silent.get(self.name, 0):
            self.parts.silent[self.name] -= 1
            return None
        return self.inner.poll()

    def close(self) -> None:
        self.parts.is_open[self.name] -= 1


class Growing(Parts):
    grows: ClassVar[bool] = True


def times_of(source: Any, *, now_ns: int = 0, step_ns: int = 0) -> list[int]:
    """Return all event times; the clock goes on by a step at each take without rows."""
    times: list[int] = []
    for _ in range(1_000):
        if source.is_over:
            return times
        message = take(source, now_ns)
        if message is None:
            now_ns += step_ns
        elif message.batch is not None:
            times += message.batch.event_time_ns.tolist()
    raise AssertionError("the source has no end")


def counts_of(source: Any) -> dict[str, int]:
    report = StageReport("s", "source", "a", "a/0")
    source.count(report, 0)
    return {what: n for what, n in report.counted.items() if n}


# -- one that raises --------------------------------------------------------------------


@pytest.mark.parametrize("at_open", [False, True])
def test_one_that_raises_ends_the_job_by_name_and_row(at_open: bool) -> None:
    given = Parts({"a": [1, 4], "b": [2, 3]}, fails={"b": 1}, fails_at_open=at_open)
    with pytest.raises(
        IngestError, match=r"^source 's', partition 'b' after 0 rows: .* raised ConnectionError: b"
    ):
        times_of(machine(given))


@pytest.mark.parametrize("at_open", [False, True])
def test_with_retry_it_is_opened_again_and_others_go_on(at_open: bool) -> None:
    given = Parts({"a": [1, 4, 6], "b": [2, 3, 5]}, fails={"b": 3}, fails_at_open=at_open)
    source = machine(given, retry=3)
    assert sorted(times_of(source, step_ns=10 * MS)) == [1, 2, 3, 4, 5, 6]
    assert counts_of(source) == {"retries": 3, "partitions": 2}
    assert given.is_open.total() == 0


def test_pauses_double_and_the_clock_wakes_the_source() -> None:
    given = Parts({"a": [1]}, fails={"a": 4})
    source, now_ns, pauses = machine(given, retry=4), 0, []
    while not source.is_over:
        if take(source, now_ns) is not None:
            continue
        again_ns = source.wait_ends_ns
        assert again_ns is not None
        assert take(source, again_ns - 1) is None, "no sooner"
        pauses.append((again_ns - now_ns) // MS)
        now_ns = again_ns
    assert pauses == [100, 200, 400, 800]


@pytest.mark.parametrize(("retry", "most_ms"), [(3, 700), (8, 22_700), (12, 62_700)])
def test_a_partition_that_only_raises_ends_the_job_in_a_known_time(
    retry: int, most_ms: int
) -> None:
    source, now_ns = machine(Parts({"a": [1]}, fails={"a": 99}), retry=retry), 0
    for _ in range(retry):
        assert take(source, now_ns) is None
        assert source.wait_ends_ns is not None
        now_ns = source.wait_ends_ns
    with pytest.raises(IngestError, match=f"opened again {retry} times"):
        take(source, now_ns)
    assert now_ns == most_ms * MS, "the sum of the pauses, however slow the machine is"


def test_rows_in_between_begin_the_count_again() -> None:
    given = Parts({"a": [1, 2, 3]})
    source, times, now_ns = machine(given, retry=1), [], 0
    given.fails["a"] = 1
    while not source.is_over:
        message = take(source, now_ns)
        now_ns += 1_000 * MS
        if message is not None and message.batch is not None:
            times += message.batch.event_time_ns.tolist()
            given.fails["a"] = 1
    assert times == [1, 2, 3]
    assert counts_of(source) == {"retries": 4, "partitions": 1}


def test_after_the_last_retry_the_error_ends_the_job() -> None:
    given = Parts({"a": [1], "b": [2]}, fails={"b": 9})
    with pytest.raises(IngestError, match="partition 'b' after 0 rows, opened again 2 times: "):
        times_of(machine(given, retry=2), step_ns=1_000 * MS)
    assert given.fails["b"] == 9 - 3


def test_an_input_without_partitions_is_tried_again_too() -> None:
    class Once(Parts):
        partitions = None  # type: ignore[assignment]

        def open(self, name: str = "", at: bytes | None = None) -> Any:
            return super().open(name or "a", at)

    source = machine(Once({"a": [1, 2, 3]}, fails={"a": 2}), retry=2)
    assert times_of(source, step_ns=500 * MS) == [1, 2, 3]
    assert counts_of(source) == {"retries": 2}


def test_a_report_says_how_many_rows_an_input_has_still_to_give_again() -> None:
    class Feed(Parts):
        """Gives all from its start, with a poll of nothing after each row."""

        partitions = None  # type: ignore[assignment]
        replay = "again"

        def open(self, name: str = "", at: bytes | None = None) -> Any:
            del name, at
            reader, turns = super().open("a", None), count()
            poll = reader.poll
            reader.poll = lambda: poll() if next(turns) % 2 == 0 else None
            return reader

    def to_come(source: Any) -> int:
        report = StageReport("s", "source", "node-1", "node-1")
        source.count(report, 0)
        return report.to_pass_over

    given = Feed({"a": [1, 2, 3, 4]})
    source, again = machine(given), machine(given)
    while source.taken < 3:
        take(source, 0)
    assert to_come(source) == 0
    restore(again, save(source))
    seen = [to_come(again)]
    while again.taken < 4:
        take(again, 0)
        seen.append(to_come(again))
    assert seen == sorted(seen, reverse=True)
    assert set(seen) == {0, 1, 2, 3}


def test_an_input_that_is_read_once_cannot_be_tried_again() -> None:
    class Stream(Parts):
        partitions = None  # type: ignore[assignment]
        replay: ClassVar[str] = "none"

    with pytest.raises(
        SettingError, match=r"retry=1 opens an input again, and .*Stream is read once"
    ):
        machine(Stream({"a": [1]}), retry=1)
    with pytest.raises(SettingError, match="retry=-1 must be zero or more"):
        machine(Parts({"a": [1]}), retry=-1)


# -- ones that vanish or appear ---------------------------------------------------------


def test_one_that_vanished_before_it_is_opened_is_named() -> None:
    given = Parts({"a": [1, 2], "b": [3]}, firsts={"a": 1, "b": 3})
    source = machine(given)
    assert take(source, 0).rows == 1
    del given.parts["b"]
    with pytest.raises(IngestError, match=r"partition 'b' after 0 rows: Parts\.open raised KeyErr"):
        times_of(source)


def test_one_that_appears_is_taken_up_within_a_second_and_said() -> None:
    given = Growing({"a": list(range(10)), "b": [5, 6]}, hidden={"b"})
    source = machine(given)
    assert take(source, 0).rows == 1
    given.hidden.clear()
    assert take(source, 999 * MS).rows == 1
    assert given.calls.count(("list", "")) == 1
    assert take(source, 1_000 * MS).rows == 1
    assert given.calls.count(("list", "")) == 2
    assert ("open", "b") in given.calls
    assert len(times_of(source, now_ns=1_000 * MS)) == 9
    assert counts_of(source) == {"partitions": 2, "partitions_appeared": 1}


def test_those_that_have_ended_may_vanish() -> None:
    given = Growing({"a": [1], "b": [2]})
    source = machine(given)
    assert take(source, 0).rows == 1
    given.hidden = {"a", "b"}
    assert times_of(source) == [2]


def test_its_promise_never_steps_back_for_one_that_appears() -> None:
    given = Growing({"a": [10, 20, 30], "b": [1, 2]}, hidden={"b"})
    source, promises, times = machine(given), [], []
    while not source.is_over:
        message = take(source, 1_000 * MS * len(promises))
        given.hidden.clear()
        if message is not None:
            promises.append(message.progress.promise_ns)
            if message.batch is not None:
                times += message.batch.event_time_ns.tolist()
    assert promises == sorted(promises)
    assert sorted(times) == [1, 2, 10, 20, 30], "no row is lost: a gate says what is late"


# -- when each is opened ----------------------------------------------------------------


def test_one_is_opened_no_sooner_than_its_rows_are_wanted() -> None:
    given = Parts({"c": [7, 8], "a": [1, 2], "b": [3, 9]}, firsts={"a": 1, "b": 3, "c": 7})
    source, seen = machine(given), []
    while not source.is_over:
        message = take(source, 0)
        if message is not None and message.batch is not None:
            seen += message.batch.event_time_ns.tolist()
        opened = [name for call, name in given.calls if call == "open"]
        begun = {"a": 1, "b": 3, "c": 7}
        assert all(begun[name] <= max(seen) for name in opened), "opened too soon"
    assert sorted(seen) == [1, 2, 3, 7, 8, 9]
    assert opened == ["a", "b", "c"]


def test_the_promise_counts_those_that_are_not_open() -> None:
    given = Parts({"a": [1, 50], "b": [9, 60]}, firsts={"a": 1, "b": 9})
    source = machine(given)
    assert take(source, 0).progress.promise_ns == 1
    assert take(source, 0).progress.promise_ns == 9, "a has come to 50, b begins at 9"


def test_a_row_out_of_order_is_named_with_its_partition() -> None:
    given = Parts({"a": [5, 20], "b": [5, 9, 8]}, firsts={"a": 5, "b": 5})
    with pytest.raises(OrderError, match=r"row 2 .* of partition 'b' .* Sort the input") as raised:
        times_of(machine(given))
    assert "first_ns" not in str(raised.value)


def test_rows_older_than_the_first_that_was_said_are_late() -> None:
    given = {"parts": {"a": [5, 20], "b": [2, 30]}, "firsts": {"a": 5, "b": 10}}
    with pytest.raises(OrderError, match=r"row 0 .* of partition 'b' .*: let first_ns="):
        times_of(machine(Parts(**given)))
    source = machine(Parts(**given), out_of_order="late")
    assert sorted(times_of(source)) == [5, 20, 30]
    assert source.late_dropped == 1


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_are_open_than_may_be(most: int) -> None:
    parts = {f"p{n}": list(range(n, 60, 5)) for n in range(5)}
    given = Parts(parts, silent={"p1": 4, "p2": 3}, most_open=most)
    source, times, opened = machine(given), [], 0
    while not source.is_over:
        message = take(source, 0)
        opened = max(opened, given.is_open.total())
        if message is not None and message.batch is not None:
            times += message.batch.event_time_ns.tolist()
    assert sorted(times) == list(range(60))
    assert (opened, given.is_open.total()) == (most, 0)


def test_those_that_have_ended_are_closed_at_once() -> None:
    given = Parts({"a": [1], "b": [2, 3, 4, 5]})
    source = machine(given)
    while given.is_open["b"] == 0 or given.is_open["a"]:
        assert take(source, 0) is not None
    assert not source.is_over


@dataclass
class Counted(Parts):
    """Partitions that say how many rows they have: `more` than they have."""

    more: int = 0

    def partitions(self) -> list[Partition]:
        return [Partition(name, len(times) + self.more) for name, times in self.parts.items()]


def test_after_the_number_of_its_rows_a_poll_without_rows_is_its_end() -> None:
    class Endless(Counted):
        def open(self, name: str, at: bytes | None) -> Any:
            reader = super().open(name, at)
            poll = reader.poll
            reader.poll = lambda: None if (polled := poll()) is END_OF_INPUT else polled
            return reader

    given = Endless({"a": [1, 2], "b": []})
    assert times_of(machine(given)) == [1, 2]
    assert given.calls.count(("poll", "a")) == 3


@pytest.mark.parametrize("out", ["at once", "restored"])
@pytest.mark.parametrize(("more", "fault"), [(-1, "1 row more"), (2, "2 rows fewer")])
def test_a_number_of_rows_that_is_not_true_ends_the_job(more: int, fault: str, out: str) -> None:
    given = Counted({"a": [1, 4, 6], "b": [2, 3, 5]}, more=more)
    source, rows = machine(given), 0
    if out == "restored":
        rows = sum(take(source, 0).rows for _ in range(3))
        again = machine(given)
        restore(again, save(source))
        source = again
    with pytest.raises(
        IngestError,
        match=rf"'[ab]' after {3 + min(more, 0)} rows: Reader\.poll returned {fault} than "
        r"rows= of its partition says; let partitions\(\) say",
    ):
        times_of(source)
    assert rows == (3 if out == "restored" else 0)


def test_a_number_of_rows_below_zero_is_refused_with_the_partition() -> None:
    given = Counted({"a": [1, 4], "b": [2, 3]}, more=-3)
    with pytest.raises(
        SchemaError, match=r"Counted\.partitions says that partition 'a' has rows=-1; write how"
    ):
        times_of(machine(given))


def test_a_number_of_rows_that_changes_is_refused() -> None:
    class Longer(Counted):
        grows: ClassVar[bool] = True

    given = Longer({"a": [1, 4]})
    source = machine(given)
    assert take(source, 0).rows == 1
    given.parts["a"].append(5)
    with pytest.raises(
        SchemaError, match=r"partition 'a': partitions\(\) said rows=2, and says rows=3 now; omit"
    ):
        times_of(source)


@pytest.mark.parametrize("most", [0, -1, 1.5, "2", True])
def test_most_open_is_a_number(most: Any) -> None:
    with pytest.raises(SettingError, match=r"Parts\.most_open is .*; it must be 1 or more"):
        machine(Parts({"a": [1]}, most_open=most))
