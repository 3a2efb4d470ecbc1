"""The join equals a literal one, a row at a time; and holds no more than it must."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.errors import OperatorError, SettingError
from slackwater.runtime.expressions.expressions import col, event_time
from slackwater.runtime.model import END_NS, READY_ONLY, Batch, GateRead, batch_of
from slackwater.runtime.model.divided import keep_keys
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.operators.join import index as join_index
from slackwater.runtime.operators.join import machine as join
from slackwater.runtime.operators.join import one_row
from slackwater.runtime.operators.join.machine import JoinMachine
from slackwater.runtime.operators.join.step import JoinStep
from slackwater.runtime.plan.traits import Replica
from tests.operators.literal import LiteralJoin, Segment, any_row, leaves_of, reads_of, run, streams
from tests.support.chance import chance
from tests.support.rows import bound
from tests.support.states import canonical
from tests.support.told import gate_read

LEFT = pa.schema({"area": pa.int64(), "line": pa.string(), "delay": pa.int64()})
RIGHT = pa.schema({"area": pa.int64(), "line": pa.string(), "flow": pa.float64()})
STEP = JoinStep(
    name="jams",
    inputs=("buses", "loops"),
    schema=pa.schema(
        {"area": pa.int64(), "line": pa.string(), "delay": pa.int64(), "flow": pa.float64()}
    ),
    left_on=("area",),
    right_on=("area",),
    within_ns=5,
    where=None,
    right_names={"flow": "flow"},
    release=READY_ONLY,
)
SIDE = any_row([1, 2, 70], ["20", "26", None], range(10))
PORTS = [SIDE, [(*row[:2], float(row[2])) for row in SIDE]]
SCHEMAS = [LEFT, RIGHT]


def joined_by(step: JoinStep, *, most_kept_rows: int = 10**6) -> JoinMachine:
    return JoinMachine(step, most_kept_rows=most_kept_rows)


def machine(**changes: Any) -> JoinMachine:
    return joined_by(replace(STEP, **changes))


def buses(times: list[int], areas: Any = None, **columns: Any) -> Batch:
    rows = len(times)
    areas = np.ones(rows, np.int64) if areas is None else areas
    columns = {"line": ["20"] * rows, "delay": np.arange(rows)} | columns
    return batch_of(times, {"area": areas, **columns})


def loops(times: list[int], areas: Any = None, **columns: Any) -> Batch:
    areas = np.ones(len(times), np.int64) if areas is None else areas
    return batch_of(times, {"area": areas, "flow": np.arange(len(times)) * 1.0, **columns})


def read(
    left: Batch | None = None,
    right: Batch | None = None,
    *,
    watermark: int = 0,
    frontier: int | None = None,
    late: tuple[Batch | None, Batch | None] = (None, None),
) -> GateRead:
    return gate_read([left, right], late, watermark, 0, watermark if frontier is None else frontier)


def event_times(batch: Batch | None) -> list[int]:
    return [] if batch is None else batch.event_time_ns.tolist()


def check_equals_literal(step: JoinStep, segments: list[Segment], cut: Random, where: Any) -> None:
    literal = LiteralJoin(step, SCHEMAS, where)
    expected = literal.run(segments)
    joined = joined_by(step)
    with pytest.MonkeyPatch.context() as patch:
        # Reads of one row are joined number by number, those of few compare with all, others search
        # an index; all on the same state.
        patch.setattr(one_row, "COMPARED_AT_MOST", cut.choice([-1, 65_536]))
        patch.setattr(join, "_FEW_ROWS", cut.choice([0, 2, 8]))
        found = run(joined, reads_of(segments, SCHEMAS, cut))
    assert found == expected
    assert joined.late_dropped == literal.late_dropped
    assert joined.comparisons == literal.comparisons
    assert joined.rows_held == 0


@given(streams(PORTS), chance)
def test_join_equals_a_literal_one_however_the_rows_are_cut(
    segments: list[Segment], cut: Random
) -> None:
    check_equals_literal(STEP, segments, cut, lambda _: True)


@given(streams(PORTS), chance)
def test_join_on_text_and_numbers_with_a_predicate_equals_a_literal_one(
    segments: list[Segment], cut: Random
) -> None:
    step = replace(
        STEP,
        left_on=("area", "line"),
        right_on=("area", "line"),
        where=(col("delay") * col("flow") > 12).bound(STEP.schema),
    )
    check_equals_literal(step, segments, cut, lambda row: row["delay"] * row["flow"] > 12)


@given(streams(PORTS), chance)
def test_join_whose_times_do_not_fit_its_entries_equals_a_literal_one(
    segments: list[Segment], cut: Random
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_index, "_ENTRY_BITS", 10)
        check_equals_literal(STEP, segments, cut, lambda _: True)


@given(streams(PORTS), chance)
def test_join_works_off_many_matches_in_parts(segments: list[Segment], cut: Random) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_index, "_MATCHES_AT_ONCE", 3)
        patch.setattr(join_index, "_WORTH_SORTING", 2)
        check_equals_literal(STEP, segments, cut, lambda _: True)


@pytest.mark.parametrize("rates", [(1, 40), (40, 1), (8, 9)])
@pytest.mark.parametrize("rows_a_read", [7, 400, 3_000])
def test_join_of_a_rare_and_a_frequent_side_finds_the_same_as_trying_all_pairs(
    rates: tuple[int, int], rows_a_read: int
) -> None:
    random = np.random.default_rng(seed=4)
    left_ns, right_ns = (np.sort(random.integers(0, 10**6, rate * 60)) for rate in rates)
    left, right = (random.integers(0, 5, len(times)) for times in (left_ns, right_ns))
    joined = machine(within_ns=9_000, schema=STEP.schema.remove(1))
    cuts = np.sort(np.concatenate([left_ns, right_ns]))[rows_a_read::rows_a_read].tolist()
    found, done = [], (0, 0)
    for cut in [*cuts, END_NS]:
        ends = int(left_ns.searchsorted(cut)), int(right_ns.searchsorted(cut))
        one, other = slice(done[0], ends[0]), slice(done[1], ends[1])
        found.append(
            joined.work(
                read(
                    buses(left_ns[one], left[one], delay=np.arange(ends[0])[one]),
                    loops(right_ns[other], right[other], flow=np.arange(ends[1])[other] * 1.0),
                    watermark=cut,
                ),
                now_ns=0,
            ).rows
        )
        done = ends
    near = np.abs(left_ns[:, np.newaxis] - right_ns) <= 9_000
    expected = np.argwhere(near & (left[:, np.newaxis] == right)).tolist()
    pairs = [(int(delay), int(float(flow))) for *_, delay, flow in leaves_of(found)]
    assert sorted(pairs) == sorted(map(tuple, expected))
    times = [time for batch in found for time in event_times(batch)]
    assert times == sorted(times)


@given(streams(PORTS), chance, st.integers(1, 9), st.sampled_from([1, 3]))
def test_beyond_the_most_kept_rows_no_pair_is_missed_that_a_slack_would_find_and_none_found_twice(
    segments: list[Segment], cut: Random, most: int, of: int
) -> None:
    reads = list(reads_of(segments, SCHEMAS, cut))
    by_slack, by_promise = (
        Counter(run(machine(keep=keep), iter(reads))) for keep in ("slack", "promise")
    )
    shares = [
        joined_by(replace(STEP, replica=Replica(n, of, "all")), most_kept_rows=most)
        for n in range(of)
    ]
    found = Counter(row for share in shares for row in run(share, iter(reads)))
    assert by_slack <= found <= by_promise
    assert any(share.dropped_early for share in shares) or found == by_promise
    assert all(share.rows_held == 0 for share in shares)


def test_join_that_holds_too_much_lets_the_oldest_go_and_counts_them() -> None:
    joined = joined_by(STEP, most_kept_rows=32)
    joined.work(read(buses(list(range(40))), watermark=39, frontier=0), now_ns=0)
    assert (joined.rows_held, joined.dropped_early) == (30, 10), "a sixteenth fewer than the most"
    result = joined.work(read(late=(None, loops([14])), watermark=39, frontier=0), now_ns=0).rows
    assert result is not None
    assert result.columns["delay"].tolist() == list(range(10, 20))
    joined.work(read(buses(list(range(40, 80))), watermark=44, frontier=0), now_ns=0)
    assert joined.rows_held == 42, "39 and later are what a slack keeps; the loop came behind 39"


def test_a_late_row_that_finds_partners_at_another_replica_is_not_told_as_dropped() -> None:
    step = replace(STEP, keeps_late=True)
    shares = [
        joined_by(replace(step, replica=Replica(n, 2, "all")), most_kept_rows=32) for n in (0, 1)
    ]
    for share in shares:  # the first has one row more, and so too many
        share.work(read(buses(list(range(65))), watermark=64, frontier=0), now_ns=0)
    assert [share.dropped_early for share in shares] == [3, 0]
    results = [
        share.work(read(late=(None, loops([3])), watermark=64), now_ns=0) for share in shares
    ]
    late = [one.rows for one in results]
    assert late[0] is None
    assert late[1] is not None
    assert late[1].columns["delay"].tolist() == [1, 3, 5, 7]
    (told,) = [one for result in results for one in result.late]
    assert told.late_by_ns.tolist() == [7]
    assert told.is_dropped.tolist() == [False]


def test_row_far_behind_all_that_is_held_is_found_whichever_way_it_comes() -> None:
    for few in (0, 8):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(join, "_FEW_ROWS", few)
            joined = machine()
            joined.work(
                read(buses(list(range(10**6, 10**6 + 50))), watermark=10**6, frontier=0), now_ns=0
            )
            joined.work(read(late=(buses([7]), None), watermark=10**6, frontier=0), now_ns=0)
            result = joined.work(
                read(late=(None, loops([5, *range(100, 150)])), watermark=10**6, frontier=0),
                now_ns=0,
            ).rows
            assert event_times(result) == [7]


def test_rows_held_of_the_rarer_side_find_just_the_new_rows_that_are_near() -> None:
    joined = machine()
    first = joined.work(read(buses([0, 20]), loops([20]), watermark=20, frontier=0), now_ns=0).rows
    assert event_times(first) == [20]
    result = joined.work(read(None, loops([20] * 9), watermark=20, frontier=0), now_ns=0).rows
    assert result is not None
    assert result.columns["delay"].tolist() == [1] * 9, "0 is too far, and one 20 was found"


def test_join_pairs_rows_within_the_window() -> None:
    joined = machine()
    result = joined.work(read(buses([10]), loops([4, 5, 15, 16]), watermark=16), now_ns=0).rows
    assert result is not None
    assert result.columns["flow"].tolist() == [1.0, 2.0]
    assert event_times(result) == [10, 15]


def test_join_takes_the_left_row_first_where_times_are_equal() -> None:
    joined = machine(within_ns=0)
    result = joined.work(read(buses([3, 3]), loops([3, 3]), watermark=3), now_ns=0).rows
    assert result is not None
    pairs = list(zip(result.columns["delay"], result.columns["flow"], strict=True))
    assert pairs == [(0, 0), (1, 0), (0, 1), (1, 1)]


def test_join_of_a_stream_with_itself_pairs_each_row_with_itself_and_both_ways() -> None:
    both = buses([1, 2])
    step = replace(
        STEP,
        schema=pa.schema({"delay": pa.int64(), "delay_right": pa.int64()}),
        right_names={"delay": "delay_right"},
    )
    result = joined_by(step).work(read(both, both, watermark=2), now_ns=0).rows
    assert result is not None
    pairs = zip(result.columns["delay"], result.columns["delay_right"], strict=True)
    assert list(pairs) == [(0, 0), (1, 0), (0, 1), (1, 1)]


def test_late_row_finds_what_is_held_on_both_sides_of_it_and_leaves_first() -> None:
    joined = machine()
    joined.work(read(None, loops([8, 12, 14]), watermark=14), now_ns=0)
    result = joined.work(
        read(buses([15]), None, late=(buses([10], delay=[7]), None), watermark=15), now_ns=0
    ).rows
    assert result is not None
    pairs = list(zip(result.columns["delay"], result.columns["flow"], strict=True))
    assert pairs == [(7, 1), (7, 2), (0, 1), (0, 2)], "the loop at 8 has expired at 14"
    assert joined.late_dropped == 0


def test_late_row_behind_all_that_is_held_is_counted_as_dropped() -> None:
    joined = machine()
    joined.work(read(None, loops([20]), watermark=20), now_ns=0)
    assert joined.work(read(late=(buses([14, 15]), None), watermark=20), now_ns=0).rows is not None
    assert joined.late_dropped == 1


def test_row_leaves_once_the_watermark_is_further_than_within_past_it() -> None:
    joined = machine()
    joined.work(read(buses([10]), watermark=15), now_ns=0)
    assert joined.rows_held == 1
    joined.work(read(watermark=16), now_ns=0)
    assert joined.rows_held == 0


def test_stimulus_time_of_a_pair_is_that_of_its_later_stimulus() -> None:
    left, right = buses([10]), loops([11])
    left.stimulus_time_ns[:] = 900
    right.stimulus_time_ns[:] = 800
    result = machine().work(read(left, right, watermark=11), now_ns=0).rows
    assert result is not None
    assert result.stimulus_time_ns.tolist() == [900]


def test_null_keys_equal_nothing() -> None:
    joined = machine(left_on=("line",), right_on=("line",))
    lines = pa.array([None, "20"])
    result = joined.work(
        read(buses([1, 1], line=lines), loops([1, 1], line=lines), watermark=1), now_ns=0
    ).rows
    assert result is not None
    assert len(result) == 1
    keyed = machine(left_on=("speed",), right_on=("speed",), schema=STEP.schema.remove(1))
    speeds = batch_of([1, 1, 1], {"x": [None, 0.0, np.nan]}).columns["x"]
    others = batch_of([1, 1, 1], {"x": [None, -0.0, np.nan]}).columns["x"]
    result = keyed.work(
        read(buses([1] * 3, speed=speeds), loops([1] * 3, speed=others), watermark=1), now_ns=0
    ).rows
    assert result is not None
    assert len(result) == 2, "0.0 and -0.0 are equal, and NaN and NaN"


def test_keys_of_several_widths_are_equal_where_their_numbers_are() -> None:
    joined = machine(schema=pa.schema({"delay": pa.int64(), "flow": pa.float64()}))
    left = buses([1, 1, 1], np.array([-1, 7, 300], np.int16))
    right = loops([1, 1, 1], np.array([2**64 - 1, 7, 300], np.uint64))
    result = joined.work(read(left, right, watermark=1), now_ns=0).rows
    assert result is not None
    assert sorted(result.columns["delay"].tolist()) == [1, 2]


def test_predicate_may_ask_for_the_event_time_of_the_pair() -> None:
    joined = machine(where=bound(event_time() > 4, pa.int64()))
    result = joined.work(read(buses([1]), loops([2, 5]), watermark=5), now_ns=0).rows
    assert event_times(result) == [5]


def test_predicate_that_cannot_be_computed_names_step_and_rows() -> None:
    joined = machine(where=bound(col("line").cast("int64") > 4, pa.string()))
    left = buses([1], line=["twenty"])
    with pytest.raises(OperatorError, match=r"'jams'.*could not be computed(.|\n)*'twenty'"):
        joined.work(read(left, loops([1]), watermark=1), now_ns=0)


def test_join_holds_and_returns_only_columns_that_are_needed() -> None:
    joined = machine(schema=pa.schema({"flow": pa.float64()}))
    result = joined.work(read(buses([1]), loops([1]), watermark=1), now_ns=0).rows
    assert result is not None
    assert list(result.columns) == ["flow"]
    held = save(joined)["state"]["rows"]["columns"]
    assert [list(side["columns"]) for side in held] == [[], ["flow"]]


def test_leap_of_years_between_rows_costs_nothing_and_loses_nothing() -> None:
    year_ns = 365 * 86_400 * 10**9
    joined = machine(within_ns=10**9)
    times = [-90 * year_ns, 0, 60 * year_ns, 60 * year_ns + 1]
    result = joined.work(
        read(buses(times), loops(times), watermark=60 * year_ns + 1), now_ns=0
    ).rows
    assert result is not None
    assert event_times(result) == [times[0], times[1], times[2], times[3], times[3], times[3]]


def test_within_of_more_than_73_years_is_refused() -> None:
    with pytest.raises(SettingError, match=r"'jams'.*73 years"):
        machine(within_ns=2**62)


@pytest.mark.parametrize("has_right", [True, False])
def test_join_with_ever_new_keys_stays_small(has_right: bool) -> None:
    joined = machine(within_ns=10)
    for number in range(400):
        areas = np.arange(50) + 50 * number
        times, lines = [number] * 50, [f"line {area}" for area in areas]
        right = loops(times, areas) if has_right else None
        joined.work(read(buses(times, areas, line=lines), right, watermark=number), now_ns=0)
    state = joined._state
    assert joined.rows_held < 1_400
    assert len(joined._keys) < 5_000
    assert len(state._index) < 4_000
    assert len(state.rows._keys) < 10_000
    assert state.rows.sides[0]._numbers["area"].shape[0] < 10_000
    assert sum(map(len, state.rows.sides[0]._arrays["line"]._pieces)) < 4_000


@pytest.mark.parametrize("staying", [slice(None, None, 2), slice(None)])
def test_a_saved_state_stays_when_keys_are_forgotten_and_rows_come(staying: slice) -> None:
    joined = machine(within_ns=10**6)
    areas = np.arange(200)
    batches = [buses([*range(200)], areas), loops([*range(200)], areas)]
    joined.work(read(*batches, watermark=1), now_ns=0)
    state = to_plain(save(joined))
    before = canonical(state)
    keep_keys(joined, np.arange(200)[staying])
    joined.work(read(buses([300] * 200, areas[::-1]), None, watermark=2), now_ns=0)
    assert canonical(state) == before
    again = machine(within_ns=10**6)
    restore(again, from_plain(state))
    assert again.rows_held == 400
    assert joined.rows_held == 200 + 2 * len(areas[staying])


def test_a_saved_state_shares_the_memory_of_rows() -> None:
    joined = machine(within_ns=10**6)
    joined.work(read(buses([*range(200)]), None, watermark=1), now_ns=0)
    rows = joined._state.rows
    saved = save(joined)["state"]["rows"]
    assert np.shares_memory(saved["own"]["_times"], rows._times)
    assert np.shares_memory(
        saved["columns"][0]["columns"]["delay"], rows.sides[0]._numbers["delay"]
    )
