"""Sources whose rows are numbered: in order, given up in time, late and twice, and told apart."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import real_data
from slackwater.ingest import memory
from slackwater.runtime.errors import SchemaError, SettingError
from slackwater.runtime.model import END_NS, START_NS
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.order.sequence import by_sequence
from slackwater.runtime.schedule.source_node import SourceNode
from tests.support.examples import a_third
from tests.support.readers import JitterInput
from tests.support.sources import block, drain, machine, next_due_ns, take, times

HOUR = 3_600 * 10**9
COUNTS = ("late", "late_dropped", "duplicates", "given_up", "renumbered")


def numbered(numbers: list[int], arrivals: list[int], **given: Any) -> SourceNode:
    """A source of one writer whose events happen at 10 times their number, unless `t` says else."""
    told = {name: given.pop(name) for name in [*given] if name in POLICY}
    policy = by_sequence(**{"timeout": "100ns", "restart": "first", **told})
    times_ns = given.pop("t", [10 * number for number in numbers])
    data = {"n": numbers, "a": arrivals, "t": times_ns}
    columns = {name: given.pop(name) for name in ("w",) if name in given}
    spec = {"sequence": "n", "arrival": "a", "out_of_order": policy, **given}
    made: SourceNode = machine({**data, **columns}, **spec)
    return made


POLICY = ("timeout", "late", "restart", "wraps", "first", "merge", "silent", "learns_from_late")


def counts(source: SourceNode) -> dict[str, int]:
    return {word: number for word in COUNTS if (number := getattr(source, word))}


def by_row(source: SourceNode) -> list[list[int]]:
    return [times([message]) for message in drain(source, max_rows=1)]


def test_the_events_of_the_thesis_leave_when_the_missing_one_comes() -> None:
    source = numbered([1, 2, 4, 5, 6, 3, 7], [0, 10, 20, 21, 22, 25, 35])
    sent = drain(source, max_rows=100)
    assert times(sent) == [10, 20, 30, 40, 50, 60, 70]
    steps = numbered([1, 2, 4, 5, 6, 3, 7], [0, 10, 20, 21, 22, 25, 35])
    assert [m.progress.promise_ns for m in drain(steps, max_rows=1)][:5] == [10, 20, 20, 20, 20]
    assert counts(source) == {}


def test_a_gap_is_given_up_when_its_time_is_over_and_its_row_is_late_then() -> None:
    # Events come every 10: so is the timeout; 8 comes 60 after its gap, and once more.
    numbers, arrivals = [5, 6, 7, 9, 10, 11, 8, 8], [0, 10, 20, 30, 35, 45, 90, 91]
    source = numbered(numbers, arrivals, start_ns=0, speed=1.0)
    left, now = {}, 0
    while (due := next_due_ns(source, now)) is not None:
        now = max(now, due)
        left |= dict.fromkeys(times([m for m in [take(source, now)] if m]), now)
    assert left == {50: 0, 60: 10, 70: 20, 90: 41, 100: 41, 110: 45}, "41: behind all of 40"
    assert counts(source) == {"late_dropped": 1, "duplicates": 1, "given_up": 1}
    passed = numbered(numbers, arrivals, late="pass")
    assert times(drain(passed)) == [50, 60, 70, 90, 100, 110, 80]
    assert counts(passed) == {"late": 1, "duplicates": 1, "given_up": 1}
    assert (passed.rows_in, passed.held) == (8, 0)


def test_a_timer_that_starts_again_with_each_row_waits_as_long_as_rows_come() -> None:
    numbers = [1, 2, 3, 5, 6, 7, 8, 4, 9]
    arrivals = [0, 10, 20, 30, 40, 50, 60, 65, 70]
    assert counts(numbered(numbers, arrivals)) == {}
    first = numbered(numbers, arrivals)
    assert times(drain(first)) == [10, 20, 30, 50, 60, 70, 80, 90]
    added = numbered(numbers, arrivals, restart="added")
    assert times(drain(added)) == [10, 20, 30, 40, 50, 60, 70, 80, 90]
    in_all = numbered(numbers, arrivals, restart="added", timeout="30ns")
    assert counts_of(in_all) == {"given_up": 1, "late_dropped": 1}


def counts_of(source: SourceNode) -> dict[str, int]:
    drain(source)
    return counts(source)


def test_what_was_late_is_waited_for_the_next_time_if_that_is_learnt() -> None:
    numbers = [1, 2, 3, *range(5, 15), 4, 15, 17, 16, 18]
    arrivals = [*range(0, 130, 10), 130, 131, 140, 200, 201]
    assert counts_of(numbered(numbers, arrivals))["late_dropped"] == 2
    assert counts_of(numbered(numbers, arrivals, learns_from_late=True))["late_dropped"] == 1


def test_the_first_number_may_be_any_or_is_told() -> None:
    numbers, arrivals = [8, 7, 9], [0, 1, 2]
    source = numbered(numbers, arrivals)
    assert (times(drain(source)), counts(source)) == ([80, 90], {"late_dropped": 1})
    told = numbered(numbers, arrivals, first=7)
    assert (times(drain(told)), counts(told)) == ([70, 80, 90], {})


def test_a_device_that_starts_again_is_no_duplicate_and_its_old_rows_are_late() -> None:
    source = numbered([300, 301, 303, 0, 1, 302, 2, 3], list(range(8)), t=[1, 2, 4, 5, 6, 3, 7, 8])
    assert times(drain(source)) == [1, 2, 4, 5, 6, 7, 8]
    assert counts(source) == {"given_up": 1, "renumbered": 1, "late_dropped": 1}


def test_a_number_far_ahead_begins_a_new_numbering_and_waits_for_nothing() -> None:
    source = numbered([1, 2, 5_000_000, 5_000_001], [0, 1, 2, 3], t=[1, 2, 3, 4])
    assert times(drain(source)) == [1, 2, 3, 4]
    assert counts(source) == {"renumbered": 1}


def test_numbers_of_32_bits_begin_again_at_zero() -> None:
    last = 2**32 - 1
    numbers = [last - 1, 0, last, 2, 1, 1, 3]
    at = [1, 3, 2, 5, 4, 4, 6]
    source = numbered(numbers, list(range(7)), t=at, wraps=32)
    assert times(drain(source)) == [1, 2, 3, 4, 5, 6]
    assert counts(source) == {"duplicates": 1}


def test_after_an_hour_without_events_gaps_are_given_up_and_it_goes_on() -> None:
    source = numbered([1, 2, 4, 5, 6], [0, 10, 20, HOUR, HOUR + 10])
    assert times(drain(source)) == [10, 20, 40, 50, 60]
    assert counts(source) == {"given_up": 1}


def test_a_clock_that_jumps_makes_rows_late_and_nothing_breaks() -> None:
    back = numbered([1, 2, 3, 4, 5], [0, 1, 2, 3, 4], t=[10, 20, 5, 6, 30])
    assert (times(drain(back)), counts(back)) == ([10, 20, 30], {"late_dropped": 2})
    passed = numbered([1, 2, 3, 4, 5], [0, 1, 2, 3, 4], t=[10, 20, 5, 6, 30], late="pass")
    assert (times(drain(passed)), counts(passed)) == ([10, 20, 5, 6, 30], {"late": 2})
    ahead = numbered([1, 2, 3, 4], [0, 1, 2, 3], t=[10, HOUR, 30, HOUR + 1])
    assert (times(drain(ahead)), counts(ahead)) == ([10, HOUR, HOUR + 1], {"late_dropped": 1})


def test_arrivals_that_run_back_or_lie_before_their_events_are_no_trouble() -> None:
    source = numbered([1, 2, 4, 3, 5], [100, 90, 95, 3, 110], t=[500, 510, 530, 520, 540])
    assert times(drain(source)) == [500, 510, 520, 530, 540]
    assert counts(source) == {}


def test_each_writer_has_its_own_numbers_and_the_least_of_those_that_speak_is_promised() -> None:
    data = {
        "w": ["a", "b", "a", "b", "a", "a", "a", "b"],
        "n": [1, 7, 2, 8, 3, 4, 5, 9],
        "a": [0, 1, 10, 11, 20, 30, 45, 46],
        "t": [0, 1, 10, 11, 20, 30, 40, 12],
    }
    policy = by_sequence(timeout="15ns", silent="25ns")
    source = machine(data, writer="w", sequence="n", arrival="a", out_of_order=policy)
    told = [(m.progress.promise_ns, times([m])) for m in drain(source, max_rows=1)]
    # Nothing is promised while others may not have been heard yet, until 25; b is silent from 36
    # on: it holds nobody back, and what it says then goes on, to be late at a gate.
    assert told == [
        (START_NS, [0]),
        (START_NS, [1]),
        (START_NS, [10]),
        (START_NS, [11]),
        (START_NS, [20]),
        (11, [30]),
        (30, []),
        (40, [40]),
        (40, [12]),
        (END_NS, []),
    ]
    assert counts(source) == {}


def test_a_source_may_put_its_writers_in_one_order_itself() -> None:
    data = {
        "w": ["a", "b", "a", "b", "a", "b"],
        "n": [1, 1, 2, 2, 3, 3],
        "a": [0, 1, 40, 41, 42, 43],
        "t": [5, 3, 9, 7, 11, 12],
    }
    policy = by_sequence(timeout="20ns", merge=True, silent="1s")
    source = machine(data, writer="w", sequence="n", arrival="a", out_of_order=policy)
    assert times(drain(source)) == [3, 5, 7, 9, 11, 12]


class Slow:
    """An input of one row at a time, which comes when it is told to."""

    def __init__(self, rows: list[pa.RecordBatch]) -> None:
        self.rows, self.there = rows, 0

    def describe(self) -> str:
        return "slow"

    def schema(self) -> pa.Schema:
        return self.rows[0].schema

    def open(self) -> Slow:
        return self

    def poll(self) -> Any:
        if self.there == 0:
            return None
        self.there -= 1
        return self.rows.pop(0)

    def close(self) -> None:
        pass


def test_without_arrivals_a_gap_is_given_up_by_the_clock() -> None:
    slow = Slow([block(t=[at], n=[number]) for at, number in [(1, 1), (2, 2), (4, 4), (5, 5)]])
    source = machine(slow, sequence="n", out_of_order=by_sequence(timeout="40ns"))
    assert next_due_ns(source, 0) is None
    left = []
    for now in (100, 110, 120):
        slow.there = 1
        left.append(times([take(source, now)]))
    assert left == [[1], [2], []]
    assert next_due_ns(source, 120) == 131, "10 apart, so 10 behind"
    assert take(source, 130) is None
    assert times([take(source, 131)]) == [4]
    assert counts(source) == {"given_up": 1}
    slow.there = 1
    assert next_due_ns(source, 140) == 140
    assert times([take(source, 140)]) == [5]


@a_third
@given(st.integers(0, 2**32), st.booleans(), st.booleans(), st.sampled_from([None, 1.0, 0.7]))
def test_however_it_is_read_taken_paced_and_restored_the_same_rows_leave(
    seed: int, merge: bool, has_writers: bool, speed: float | None
) -> None:
    table = lossy(random.Random(seed), writers=3 if has_writers else 1)  # noqa: S311 - a draw
    policy = by_sequence(timeout="60ns", late="pass" if seed % 2 else "drop", merge=merge)
    spec = {
        "sequence": "n",
        "arrival": "a",
        "out_of_order": policy,
        "writer": "w" if has_writers else None,
    }
    whole = machine(table, **spec)
    expected = times(drain(whole))
    chance, now = random.Random(seed), 0  # noqa: S311 - jitter
    promised_ns = START_NS

    def made() -> SourceNode:
        jittered = JitterInput(memory.table(table, batch_rows=9), chance.randrange(2**32))
        again: SourceNode = machine(jittered, speed=speed, **spec)
        return again

    source, rows = made(), []
    for _ in range(3_000):
        now += chance.choice([0, 1, 20])
        due = next_due_ns(source, now)
        message = take(source, now, max_rows=chance.choice([1, 2, 9, None]))
        assert source.rows_in == source.rows_out + source.held + source.late_dropped + (
            source.duplicates
        )
        if message is not None:
            assert due is None or due <= now
            assert message.progress.promise_ns >= promised_ns
            promised_ns = message.progress.promise_ns
            rows += times([message])
            if message.progress.is_end:
                break
        if chance.random() < 0.1:
            state = save(source)
            source = made()
            restore(source, state)
    assert rows == expected
    assert (counts(source), source.held) == (counts(whole), 0)


def lossy(chance: random.Random, *, writers: int) -> pa.Table:
    rows = []
    for writer in range(writers):
        at = 0
        for number in range(20):
            at += chance.choice([1, 5, 5, 40])
            for _ in range(chance.choice([1, 1, 1, 1, 1, 1, 0, 2])):
                came = at + chance.choice([0, 0, 0, 12, 90])
                rows.append((came, number, at, f"w{writer}"))
    rows.sort()
    names = ("a", "n", "t", "w")
    return pa.table({name: [row[at] for row in rows] for at, name in enumerate(names)})


def test_numbers_that_are_none_are_named() -> None:
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        ([0, -1], {}, "'n' is -1 in row 1 .*a number in a sequence is 0 or more"),
        ([0, 2**32], {"wraps": 32}, r"is 4294967296 in row 1 .*wraps=32, below 4294967296"),
        ([0, -(2**31)], {}, r"is -2147483648 in row 1 .*add 2\*\*32 to them, and set wraps=32"),
        ([0, -(2**31)], {"wraps": 32}, r"wraps=32, below 4294967296; .*add 2\*\*32 to them"),
        (pa.array([0, 2**64 - 1], pa.uint64()), {}, "is 0 or more and below 9223372036854775807"),
        ([0, None], {}, "sequence column 'n' is null in 1 of the 2 rows"),
        ([0.0, 1.0], {}, "sequence column 'n' has type double, .* is an integer"),
    ]
    for numbers, given_settings, said in wrong:
        data = {"t": [1, 2], "a": [1, 2], "n": numbers}
        spec = {"sequence": "n", "arrival": "a", "out_of_order": by_sequence(**given_settings)}
        with pytest.raises(SchemaError, match=said):
            drain(machine(pa.table(data), **spec))


def test_settings_that_do_not_go_together_are_refused() -> None:
    data = {"t": [1], "n": [1], "a": [1]}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"sequence": "n"}, "sequence='n' is for out_of_order='sequence'"),
        ({"out_of_order": "sequence"}, "out_of_order='sequence' needs sequence="),
        (
            {"out_of_order": "sequence", "sequence": "n", "ahead_ns": 1, "arrival": "a"},
            "ahead= uses event time",
        ),
        ({"out_of_order": "sequence", "sequence": "n", "disorder_ns": 1}, "disorder= is for"),
    ]
    for spec, said in wrong:
        with pytest.raises(SettingError, match=said):
            machine(data, **spec)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"alpha": 1.0}, "alpha=1.0 must be at least 0 and below 1"),
        ({"late": "keep"}, "late='keep' must be 'drop' or 'pass'"),
        ({"wraps": 64}, "wraps=64 must be the bits"),
        ({"first": -1}, "first=-1 is not a number"),
        ({"timeout": "0s"}, "timeout='0s' must be more than zero"),
        ({"farthest": 0}, "by_sequence: farthest=0 must be a whole number, 1 or more"),
        ({"alpha": "much"}, "by_sequence: alpha='much' must be at least 0 and below 1"),
        ({"beta": float("nan")}, "beta=nan must be"),
        ({"wraps": "32"}, "wraps='32' must be the bits"),
        ({"wraps": 32.0}, "wraps=32.0 must be the bits"),
        ({"first": 1.5}, r"first=1.5 is not a number that a writer can have: .* None for whatever"),
        ({"farthest": "far"}, "farthest='far' must be a whole number"),
        ({"merge": "yes"}, "merge='yes' must be True or False"),
    ]
    for given_settings, said in refused:
        with pytest.raises(SettingError, match=said):
            by_sequence(**given_settings)


def test_an_input_without_rows_ends() -> None:
    empty = machine(
        {"t": np.empty(0, np.int64), "n": np.empty(0, np.int64)},
        sequence="n",
        out_of_order="sequence",
    )
    assert [m.progress.promise_ns for m in drain(empty)] == [END_NS]


@pytest.mark.data
@pytest.mark.parametrize("session", range(1, 6))
def test_phone_network_leave_in_order_each_and_all_are_accounted_for(session: int) -> None:
    try:
        folder: Path = real_data.phone_network()
    except real_data.NoRealData as problem:
        pytest.skip(str(problem))
    rows = pq.read_table(folder / "umts_d1_d5.parquet")
    rows = rows.filter(pc.equal(rows["session"], f"d-{session}"))
    source = machine(
        rows,
        event_time="detect_time_ms",
        time_unit="ms",
        arrival="server_recv_time_ms",
        sequence="message_id",
        writer="device",
        out_of_order=by_sequence(timeout="5s"),
    )
    left: dict[int, list[int]] = {}
    for message in drain(source):
        if message.batch is not None:
            writers = message.batch.writers
            assert writers is not None
            numbers = message.batch.columns["message_id"].tolist()
            for writer, number in zip(writers.tolist(), numbers, strict=True):
                left.setdefault(writer, []).append(number)
    assert all(numbers == sorted(set(numbers)) for numbers in left.values())
    out = sum(map(len, left.values()))
    assert len(rows) == out + source.late_dropped + source.duplicates
    assert source.late_dropped <= 7, "numbers step back 7 times in a session at most"
