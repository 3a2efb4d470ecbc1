"""The source machine: rows due by now go out, each once, with their times."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from slackwater.runtime.errors import SchemaError
from slackwater.runtime.expressions.expressions import col
from slackwater.runtime.model import EARLIEST_NS, END_NS, LATEST_NS, START_NS
from tests.support.sources import NOW, Stuttering, block, drain, machine, next_due_ns, take, times


def test_rows_leave_in_order_with_their_own_time_as_promise_then_the_end() -> None:
    source = machine({"t": [1, 2, 2, 5]})
    first, end = drain(source)
    assert first.batch is not None
    assert first.batch.event_time_ns.tolist() == [1, 2, 2, 5]
    assert first.batch.stimulus_time_ns.tolist() == [NOW] * 4
    assert (first.progress.promise_ns, first.progress.stimulus_ns) == (5, NOW)
    assert (end.batch, end.progress.promise_ns) == (None, END_NS)
    assert source.is_ended
    assert take(source, NOW) is None
    assert next_due_ns(source, NOW) is None


def test_the_end_comes_once_from_an_empty_input() -> None:
    source = machine(pa.table({"t": pa.array([], pa.int64())}))
    assert next_due_ns(source, NOW) == NOW
    assert [message.progress.promise_ns for message in drain(source)] == [END_NS]
    assert source.rows_in == 0


def test_one_event_is_enough_for_a_source() -> None:
    first, end = drain(machine({"t": [7]}))
    assert (first.rows, first.progress.promise_ns, end.progress.is_end) == (1, 7, True)


def test_a_take_is_never_larger_than_asked_or_set() -> None:
    source = machine({"t": list(range(10))}, max_rows=4)
    assert [message.rows for message in drain(source)] == [4, 4, 2, 0]
    source = machine({"t": list(range(10))}, max_rows=4)
    assert [message.rows for message in drain(source, max_rows=3)] == [3, 3, 3, 1, 0]
    assert take(machine({"t": [1]}), NOW, max_rows=0) is None


def test_only_needed_columns_are_carried() -> None:
    source = machine({"t": [1], "a": [2], "b": ["x"]}, needed={"b"})
    batch = drain(source)[0].batch
    assert batch is not None
    assert list(batch.columns) == ["b"]


def test_nothing_is_known_to_come_while_the_input_has_nothing() -> None:
    given = Stuttering(None, None, block(t=[1]), block(t=pa.array([], pa.int64())), None)
    source = machine(given)
    assert next_due_ns(source, NOW) is None
    assert take(source, NOW) is None
    assert next_due_ns(source, NOW) == NOW
    assert times([take(source, NOW)]) == [1]
    assert next_due_ns(source, NOW) is None
    assert take(source, NOW).progress.is_end


def test_close_lets_go_of_the_input_and_nothing_follows() -> None:
    given = Stuttering(block(t=[1, 2]))
    source = machine(given)
    assert take(source, NOW, max_rows=1).rows == 1
    source.close()
    source.close()
    assert given.closed == 2
    assert next_due_ns(source, NOW) is None
    assert take(source, NOW) is None
    assert not source.is_ended


def test_an_input_that_cannot_be_closed_is_noted_and_its_rows_stay() -> None:
    given = Stuttering(block(t=[1, 2]))
    source = machine(given)
    assert take(source, NOW).rows == 2

    def close() -> None:
        raise OSError("the disk is gone")

    given.close = close  # type: ignore[method-assign]
    assert source.close_problem is None
    source.close()
    assert "Stuttering.close raised OSError: the disk is gone" in str(source.close_problem)


def test_the_input_is_not_opened_before_it_is_needed() -> None:
    given = Stuttering()
    given.open = lambda: pytest.fail("opened")  # type: ignore[method-assign]
    machine(given).close()


# Times


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1_000, 2_000], pa.timestamp("ms")),
        pa.array([1_000, 2_000], pa.timestamp("ms", tz="Europe/Warsaw")),
        pa.array([1, 2], pa.timestamp("s")),
        pa.array([10**9, 2 * 10**9], pa.timestamp("ns")),
        pa.array([10**9, 2 * 10**9], pa.uint64()),
    ],
)
def test_event_time_is_nanoseconds_whatever_it_came_as(values: pa.Array) -> None:
    assert times(drain(machine({"t": values}, time_unit="ns"))) == [10**9, 2 * 10**9]


@pytest.mark.parametrize(("unit", "scale"), [("ns", 1), ("us", 10**3), ("ms", 10**6), ("s", 10**9)])
def test_integer_event_time_is_in_its_unit(unit: str, scale: int) -> None:
    values = pa.array([-3, 5], pa.int16())
    assert times(drain(machine({"t": values}, time_unit=unit))) == [-3 * scale, 5 * scale]


@pytest.mark.parametrize(
    ("first", "unit"),
    [(1_700_000_000, "s"), (1_700_000_000_123, "ms"), (1_700_000_000 * 10**6, "us")],
)
def test_whole_times_of_january_1970_are_refused_with_the_unit_that_is_likely(
    first: int, unit: Any
) -> None:
    data = {"t": [first, first + 5]}
    with pytest.raises(
        SchemaError, match=f"'t' begins with {first}, .*1970-01.*'{unit}' 2023-11-14"
    ):
        drain(machine(data))
    assert times(drain(machine(data, time_unit="ns"))) == [first, first + 5]
    assert len(times(drain(machine(data, time_unit=unit)))) == 2
    assert times(drain(machine({"t": [0, 5]}))) == [0, 5]  # a test's, no clock's
    assert times(drain(machine({"t": pa.array(data["t"], pa.timestamp("ns"))}))) == data["t"]


@pytest.mark.parametrize("unknown", [0, -1])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_time_of_nothing_among_them_does_not_hide_that_whole_times_are_of_another_unit(
    unknown: int, place: int
) -> None:
    data = {"t": [1_700_000_000, 1_700_000_005]}
    data["t"].insert(place, unknown)
    row = 1 if place == 0 else 0
    said = "has 1700000000 in row 1" if row else "begins with 1700000000"
    with pytest.raises(SchemaError, match=rf"'t' {said}.*'s' 2023-11-14"):
        drain(machine(data, out_of_order="late"))


@pytest.mark.parametrize("step", [1, 10**6, 10**9, 10**12])
def test_whole_times_that_count_from_nothing_are_nobodys_clock(step: int) -> None:
    counted = [step * n for n in range(5)]
    assert times(drain(machine({"t": counted}))) == counted


@pytest.mark.parametrize("time_ns", [END_NS, END_NS - 1, LATEST_NS + 1, EARLIEST_NS - 1, START_NS])
@pytest.mark.parametrize("role", ["t", "a"])
def test_a_time_at_the_ends_of_int64_is_refused_with_its_row(time_ns: int, role: str) -> None:
    data = {"t": [0, 1, 2], "a": [0, 1, 2]}
    data[role][1] = time_ns
    with pytest.raises(SchemaError, match=rf"source 's': '{role}' is {time_ns} ns \(.*in row 1 "):
        drain(machine(data, arrival="a", speed=1.0, out_of_order="late"))


def test_a_time_that_does_not_fit_is_refused_with_its_row_and_unit() -> None:
    with pytest.raises(SchemaError, match=r"17000000000000 s in row 1 .*time_unit='s'"):
        drain(machine({"t": [5, 17_000_000_000_000]}, time_unit="s"))
    with pytest.raises(SchemaError, match="outside the years"):
        drain(machine({"t": pa.array([2**63], pa.uint64())}))
    with pytest.raises(SchemaError, match="'t' is 3170843-11-07T09:46:40 in row 0"):
        drain(machine({"t": pa.array([10**14], pa.timestamp("s"))}))


def test_null_event_time_is_refused_with_its_count_and_row() -> None:
    given = Stuttering(block(t=[1, 2]), block(t=pa.array([3, None, None])))
    source = machine(given)
    assert times([take(source, NOW)]) == [1, 2]
    for _ in range(2):
        with pytest.raises(SchemaError, match=r"source 's'.*2 of the 3 rows.*row 3 .*na.drop"):
            take(source, NOW)


def test_null_arrival_and_null_writer_are_refused() -> None:
    data = {"t": [1, 2], "x": pa.array([1, None])}
    with pytest.raises(SchemaError, match="arrival column 'x' is null in 1"):
        drain(machine(data, arrival="x", speed=1.0))
    with pytest.raises(SchemaError, match="writer column 'x' is null in 1"):
        drain(machine(data, writer="x"))


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({"event_time": "tt"}, "column 'tt' is not there; the nearest is 't'"),
        ({"event_time": "f"}, "type double, .*a float cannot hold"),
        ({"event_time": "w"}, "type string, .*to_time"),
        ({"arrival": "f"}, "arrival column 'f'"),
        ({"arrival": "nope"}, "arrival column 'nope' is not there"),
        ({"writer": "f"}, "writer column 'f' has type double"),
        ({"promise": col("pp")}, "column 'pp' is not there"),
        ({"needed": {"zz"}}, "column 'zz' is not there"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_read(spec: Any, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        machine({"t": [1], "f": [0.5], "w": ["x"]}, **spec)


def test_a_block_unlike_its_schema_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"source 's'.*'t' is missing; the nearest is 'T'"):
        drain(machine(Stuttering(block(T=[1]))))
    with pytest.raises(SchemaError, match=r"source 's'.*'t' .*int64"):
        drain(machine(Stuttering(block(t=["soon"]))))
    with pytest.raises(SchemaError, match=r"source 's'.*'t' .*int64"):
        drain(machine(Stuttering(block(t=[[1]]))))


# Pacing


def test_a_paced_row_is_due_at_its_arrival_and_that_is_its_stimulus() -> None:
    data = {"t": [0, 5, 10, 20], "a": [100, 140, 120, 200]}
    source = machine(data, arrival="a", speed=2.0, start_ns=1_000, out_of_order="error")
    assert take(source, 999) is None
    assert next_due_ns(source, 0) == 1_000
    first = take(source, 1_000)
    assert first.batch is not None
    assert first.batch.stimulus_time_ns.tolist() == [1_000]
    assert next_due_ns(source, 1_000) == 1_020
    assert take(source, 1_019) is None
    second = take(source, 1_049)  # row 2 arrived before row 1, so it is due with it
    assert second.batch is not None
    assert second.batch.stimulus_time_ns.tolist() == [1_020, 1_020]
    assert (second.progress.promise_ns, second.progress.stimulus_ns) == (10, 1_020)
    third, end = drain(source, now_ns=5_000)
    assert third.batch is not None
    assert third.batch.stimulus_time_ns.tolist() == [1_050]
    assert (end.progress.is_end, end.progress.stimulus_ns) == (True, 1_050)


@pytest.mark.parametrize("due", [1, 2, 15, 16, 17, 18, 40, 49, 50])
def test_a_take_gives_all_rows_that_are_due_however_many(due: int) -> None:
    source = machine({"t": [-1, *range(50)]}, speed=1.0, start_ns=-1)
    assert times([take(source, -1)]) == [-1]
    assert next_due_ns(source, 0) == 0
    assert times([take(source, due - 1)]) == list(range(due))
    assert next_due_ns(source, due - 1) == (due if due < 50 else due - 1)


def test_rows_left_over_by_a_small_take_are_due_at_once() -> None:
    source = machine(
        {"t": [0, 1, 2, 50, 90]}, speed=1.0, out_of_order="sort", disorder_ns=10, start_ns=0
    )
    assert times([take(source, 2)]) == []
    assert next_due_ns(source, 2) == 50
    assert times([take(source, 60, max_rows=1)]) == [0]
    assert next_due_ns(source, 60) == 1  # as urgent as the row is
    assert times([take(source, 60, max_rows=1)]) == [1]
    assert times([take(source, 60)]) == [2]
    assert next_due_ns(source, 60) == 90


def test_at_speed_one_due_times_are_exact_to_the_nanosecond() -> None:
    far = 10**18 + 1
    source = machine({"t": [0, far]}, speed=1.0, start_ns=7)
    take(source, 7)
    assert next_due_ns(source, 7) == far + 7


def test_arrivals_of_any_distance_have_a_due_time() -> None:
    source = machine({"t": [EARLIEST_NS, LATEST_NS]}, speed=1.0, start_ns=7)
    take(source, 7)
    assert next_due_ns(source, 7) == 2**62 + 7


def test_a_clock_that_steps_back_gives_nothing_twice() -> None:
    source = machine({"t": [0, 10, 20]}, speed=1.0)
    assert times([take(source, 10)]) == [0, 10]
    assert take(source, 5) is None
    assert times([take(source, 30)]) == [20]


def test_the_promise_is_timed_by_the_row_that_made_it() -> None:
    data = {"t": [5, 5, 5], "p": [3, 4, 4]}
    source = machine({**data, "a": [0, 10, 20]}, arrival="a", speed=1.0, promise=col("p"))
    message = take(source, 99)
    assert (message.progress.promise_ns, message.progress.stimulus_ns) == (4, 10)


def test_rows_that_raise_no_promise_leave_its_time_as_it_was() -> None:
    source = machine({"t": [9, 7, 8]}, out_of_order="late", disorder_ns=5)
    assert [take(source, now, max_rows=1).progress.stimulus_ns for now in (10, 20, 30)] == [10] * 3
