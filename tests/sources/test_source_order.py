"""The source machine: order, promises, writers, and going on after a restart."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from slackwater.ingest import memory
from slackwater.runtime.errors import IngestError, OrderError, SchemaError
from slackwater.runtime.expressions.expressions import col
from slackwater.runtime.model import EARLIEST_NS, END_NS, START_NS, Batch, Message, concat_batches
from slackwater.runtime.model.state import restore, save
from tests.support.sources import NOW, Stuttering, block, drain, machine, take, times
from tests.support.states import differences


def test_error_hands_over_the_rows_before_and_then_names_the_row() -> None:
    source = machine({"t": [10**9, 3 * 10**9, 2 * 10**9]}, time_unit="ns")
    assert times([take(source, NOW)]) == [10**9, 3 * 10**9]
    for _ in range(2):
        with pytest.raises(OrderError) as caught:
            take(source, NOW)
    told = str(caught.value)
    assert "source 's': row 2 " in told
    assert "1970-01-01T00:00:02.000000000Z (event_time_ns=2000000000)" in told
    assert "1970-01-01T00:00:03.000000000Z (3000000000)" in told
    assert "too old" in told
    assert "out_of_order='sort'" in told
    assert source.rows_in == 2


def test_late_drops_and_counts_what_is_older_than_promised() -> None:
    source = machine({"t": [3, 5, 4, 9, 6, 7]}, out_of_order="late", disorder_ns=2)
    first, _ = drain(source)
    assert times([first]) == [3, 5, 4, 9, 7]  # not sorted, only what was promised
    assert first.progress.promise_ns == 7
    assert (source.rows_in, source.late_dropped, source.held) == (6, 1, 0)
    assert source.newest_ns == 9


def test_sort_holds_rows_for_the_disorder_and_sends_them_in_order() -> None:
    source = machine({"t": [3, 5, 4, 9, 6, 8]}, out_of_order="sort", disorder_ns=2)
    assert [(times([m]), m.progress.promise_ns, m.rows) for m in drain(source, max_rows=1)] == [
        ([], 1, 0),
        ([3], 3, 1),
        ([], 3, 0),
        ([4], 5, 1),
        ([5], 7, 1),
        ([], 7, 0),
        ([], 7, 0),
        ([8], 9, 1),
        ([9], END_NS, 1),
    ]
    assert (source.rows_in, source.late_dropped, source.held) == (6, 1, 0)


def test_sort_counts_what_it_holds() -> None:
    source = machine({"t": [3, 5, 4, 9]}, out_of_order="sort", disorder_ns=100)
    take(source, NOW)
    assert (source.rows_in, source.held) == (4, 4)
    assert times(drain(source)) == [3, 4, 5, 9]
    assert source.held == 0


def test_ties_keep_the_order_of_the_input() -> None:
    data = {"t": [5, 4, 5, 4, 9], "i": [0, 1, 2, 3, 4]}
    source = machine(data, out_of_order="sort", disorder_ns=3)
    taken = [m.batch for m in drain(source, max_rows=2) if m.batch is not None]
    assert concat_batches(taken).columns["i"].tolist() == [1, 3, 0, 2, 4]


def test_a_disorder_beyond_all_time_promises_nothing() -> None:
    source = machine({"t": [EARLIEST_NS, 5]}, out_of_order="late", disorder_ns=2**62)
    assert take(source, NOW).progress.promise_ns == 5 - 2**62
    source = machine({"t": [EARLIEST_NS]}, out_of_order="late", disorder_ns=2**62)
    assert take(source, NOW).progress.promise_ns == START_NS


def test_a_promise_of_the_end_of_time_does_not_end_the_stream() -> None:
    first, end = drain(machine({"t": [5], "p": [END_NS]}, promise=col("p")))
    assert (first.progress.promise_ns, end.progress.promise_ns) == (END_NS - 1, END_NS)


def test_a_promise_that_does_not_fit_names_source_and_row() -> None:
    data = {"t": [5, 6], "p": [1, END_NS]}
    with pytest.raises(SchemaError, match=r"source 's': its promise col\(\"p\"\) \+ 1 .*in row 1 "):
        drain(machine(data, promise=col("p") + 1))


# Promises of the source's own


def test_a_spoken_promise_runs_ahead_of_event_time_and_never_back() -> None:
    data = {"t": [10, 4, 12, 7], "p": [3, 4, 8, 6]}
    source = machine(data, promise=col("p"), out_of_order="late")
    taken = drain(source, max_rows=1)
    assert [m.progress.promise_ns for m in taken] == [3, 4, 8, 8, END_NS]
    assert times(taken) == [10, 4, 12]
    assert source.late_dropped == 1


def test_a_spoken_promise_may_be_a_timestamp() -> None:
    data = {"t": pa.array([5], pa.timestamp("ms")), "p": pa.array([3], pa.timestamp("ms"))}
    assert take(machine(data, promise=col("p")), NOW).progress.promise_ns == 3_000_000


def test_a_spoken_promise_of_floats_or_text_is_refused() -> None:
    data = {"t": [1], "f": [0.5], "w": ["x"]}
    for name in ("f", "w"):
        with pytest.raises(SchemaError, match="its promise has type"):
            drain(machine(data, promise=col(name)))


def test_sort_releases_as_soon_as_the_source_promises() -> None:
    data = {"t": [10, 8, 11], "p": [0, 9, 9]}
    source = machine(data, promise=col("p"), out_of_order="sort", disorder_ns=100)
    taken = drain(source, max_rows=1)
    assert [(times([m]), m.progress.promise_ns) for m in taken] == [
        ([], 0),
        ([8], 9),
        ([], 9),
        ([10], 11),
        ([11], END_NS),
    ]


# Writers


def test_a_source_of_several_writers_promises_nothing_for_all_of_them() -> None:
    source = machine({"t": [5, 1, 6, 2], "w": ["a", "b", "a", "b"]}, writer="w")
    first, end = drain(source)
    assert times([first]) == [5, 1, 6, 2]
    assert (first.progress.promise_ns, end.progress.promise_ns) == (START_NS, END_NS)


def test_with_a_disorder_several_writers_promise_the_newest_less_that() -> None:
    source = machine({"t": [5, 3], "w": ["a", "b"]}, writer="w", disorder_ns=3)
    assert take(source, NOW).progress.promise_ns == 2


def test_each_writer_must_be_in_order() -> None:
    data = {"t": [5, 1, 4], "w": ["a", "b", "a"]}
    source = machine(data, writer="w")
    assert times([take(source, NOW)]) == [5, 1]
    with pytest.raises(OrderError, match=r"row 2 .*of writer 'a' has event time"):
        take(source, NOW)
    source = machine(data, writer="w", out_of_order="late")
    assert times(drain(source)) == [5, 1]
    assert source.late_dropped == 1


@pytest.mark.parametrize("out_of_order", ["late", "error"])
def test_a_writer_may_be_out_by_the_disorder_too(out_of_order: Any) -> None:
    data = {"t": [10, 30, 21, 12, 31, 22], "w": ["a", "a", "b", "b", "a", "b"]}
    source = machine(data, writer="w", out_of_order=out_of_order, disorder_ns=20)
    assert times(drain(source, max_rows=2)) == data["t"]
    assert source.late_dropped == 0


def test_with_a_promise_beside_it_a_writer_may_be_out_by_the_disorder() -> None:
    data = {"t": [10, 30, 21, 9, 31], "w": ["a"] * 5, "p": [0] * 5}
    spec: dict[str, Any] = {"promise": col("p"), "out_of_order": "late", "disorder_ns": 20}
    source = machine(data, writer="w", **spec)
    assert times(drain(source, max_rows=2)) == [10, 30, 21, 31], "9 is 21 out"
    assert source.late_dropped == 1


def test_sort_puts_each_writer_in_order() -> None:
    source = machine(
        {"t": [5, 1, 4], "w": ["a", "b", "a"]}, writer="w", out_of_order="sort", disorder_ns=4
    )
    taken = drain(source)
    assert times(taken) == [1, 4, 5]
    assert source.late_dropped == 0


def test_writer_ids_carry_the_rank_of_the_source_and_the_writer() -> None:
    data = {"t": [1, 2, 3], "w": pa.array([7, 0, 7]), "x": ["a", "b", "a"]}
    batch: Batch = take(machine(data, writer="w"), NOW).batch
    assert batch.writers is not None
    assert batch.writers.tolist() == [(3 << 48) + 7, 3 << 48, (3 << 48) + 7]
    texts = take(machine(data, writer="x"), NOW).batch.writers
    assert texts[0] == texts[2] != texts[1]
    assert (texts >> 48).tolist() == [3, 3, 3]


# Restart


@pytest.mark.parametrize("spec", [{}, {"out_of_order": "sort", "disorder_ns": 6}])
def test_a_restored_source_goes_on_as_if_nothing_had_happened(spec: dict[str, Any]) -> None:
    data = {"t": list(range(40))} if not spec else {"t": [x ^ 5 for x in range(40)]}
    for stop in range(0, 60, 3):
        whole = machine(data, speed=1.0, start_ns=50, **spec)
        expected = [describe(take(whole, 30 + step, max_rows=3)) for step in range(120)]
        begun = machine(data, speed=1.0, start_ns=50, **spec)
        taken = [describe(take(begun, 30 + step, max_rows=3)) for step in range(stop)]
        state = save(begun)
        again = machine(data, speed=1.0, start_ns=9_999, **spec)
        restore(again, state)
        assert differences(again, begun) == []
        taken += [describe(take(again, 30 + step, max_rows=3)) for step in range(stop, 120)]
        assert taken == expected
        assert differences(again, whole) == []


@pytest.mark.parametrize("spec", [{}, {"promise": col("t") + 0}])
def test_the_rest_of_a_block_is_read_again_and_not_saved(spec: dict[str, Any]) -> None:
    given = memory.table({"t": list(range(40)), "x": [n % 3 for n in range(40)]}, batch_rows=15)
    whole = machine(given, **spec)
    expected = [describe(take(whole, NOW, max_rows=4)) for _ in range(13)]
    for stop in range(1, 13):
        begun = machine(given, **spec)
        taken = [describe(take(begun, NOW, max_rows=4)) for _ in range(stop)]
        state = save(begun)
        assert state["block_left"] is None
        again = machine(given, **spec)
        restore(again, state)
        assert differences(again, begun) == []
        taken += [describe(take(again, NOW, max_rows=4)) for _ in range(stop, 13)]
        assert taken == expected
        assert differences(again, whole) == []


IN_ORDER, LATE = {"t": [1, 5, 6, 7], "x": [1, 1, 2, 2]}, {"t": [5, 6, 1, 7]}


@pytest.mark.parametrize(
    ("data", "spec"),
    [
        (IN_ORDER, {"speed": 1.0}),
        (IN_ORDER, {"writer": "x"}),
        (LATE, {"out_of_order": "late"}),
        (None, {}),  # nothing says that it reads the same again
    ],
)
def test_the_rest_of_a_block_is_saved_where_state_is_not_that_of_a_row(
    data: dict[str, Any] | None, spec: dict[str, Any]
) -> None:
    begun = machine(Stuttering(block(t=[1, 2])) if data is None else data, **spec)
    assert take(begun, NOW, max_rows=1).rows == 1
    assert save(begun)["block_left"] is not None


def test_a_replay_cut_otherwise_still_has_all_that_was_released() -> None:
    spec: dict[str, Any] = {"out_of_order": "sort", "disorder_ns": 50}
    data = {"t": [1, 2, 3, 4, 15, 60, 70]}
    begun = machine(data, **spec)
    for _ in range(5):
        assert take(begun, NOW, max_rows=1).rows == 0
    assert times([take(begun, NOW, max_rows=2)]) == [1, 2]  # 60 freed four rows, 70 one more
    again = machine(memory.table(data, batch_rows=1), **spec)
    restore(again, save(begun))
    assert times(drain(again)) == [3, 4, 15, 60, 70]


def describe(message: Message | None) -> Any:
    if message is None:
        return None
    rows = [] if message.batch is None else message.batch.event_time_ns.tolist()
    due = [] if message.batch is None else message.batch.stimulus_time_ns.tolist()
    return rows, due, message.progress.promise_ns, message.progress.stimulus_ns


def test_an_input_that_shrank_before_a_restart_is_named() -> None:
    begun = machine({"t": [1, 2, 3]})
    take(begun, NOW)
    again = machine({"t": [1, 2]})
    restore(again, save(begun))
    with pytest.raises(IngestError, match="table of 2 rows: cannot be opened at this position"):
        take(again, NOW)
    begun = machine(Stuttering(block(t=[1, 2]), None, block(t=[3])))
    assert times([*drain(begun), take(begun, NOW)]) == [1, 2, 3]
    again = machine(Stuttering(block(t=[1, 2])))
    restore(again, save(begun))
    with pytest.raises(IngestError, match="ends after 2 rows, and 3 had been read"):
        take(again, NOW)


def test_a_promise_in_seconds_is_refused_rather_than_waited_for() -> None:
    source = machine({"t": [1_700_000_000]}, time_unit="s", promise=col("t") - 30)
    with pytest.raises(SchemaError, match="multiply seconds by 1_000_000_000"):
        take(source, NOW)
