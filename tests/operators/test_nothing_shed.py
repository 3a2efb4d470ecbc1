"""Shedding that drops nothing changes nothing: matches are those of a pattern without `shed=`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.model import Batch
from slackwater.runtime.patterns.normal import Asked, Normal, Place, Sequence
from slackwater.runtime.patterns.operator.machine import pattern_machine
from slackwater.runtime.patterns.scopes import CountWindows, OpenedWindows, TimeWindows, Within
from slackwater.runtime.shedding.wrapper.words import espice
from tests.operators.test_pattern import ASKED, SETTINGS, batch_of, left, step_of, streams
from tests.operators.test_pattern_shedding import leaves, read_of
from tests.operators.test_pattern_shedding import step_of as typed_step_of
from tests.patterns.worlds import BY_COUNT, BY_TIME, sequences
from tests.support.examples import twice
from tests.support.shedders import shed_machine
from tests.support.told import gate_read

AB = Sequence((Place((0,)), Place((1,))))
DROPS = ("stretches", "events", "pairs")
WINDOWS = [one for one in (*BY_TIME, *BY_COUNT) if not isinstance(one, Within)]
BY_END = [one for one in WINDOWS if one in BY_TIME]


def check(drops: Any, first: Sequence, rows: Any, cuts: set[int], **given_: Any) -> None:
    plain = step_of(Normal(ASKED[:4], (first,)), **given_)
    sheds = replace(plain, shed=espice("1h", drops=drops))
    cuts = {one for one in cuts if one < len(rows)}
    assert left(sheds, rows, cuts) == left(plain, rows, cuts)


@twice
@given(
    drops=st.sampled_from(DROPS),
    first=sequences(has_end=False),
    rows=streams(),
    cuts=st.sets(st.integers(1, 15), max_size=8),
    scope=st.sampled_from(WINDOWS),
    **SETTINGS,
)
def test_shedding_that_drops_nothing_changes_no_match(
    drops: Any, first: Sequence, rows: Any, cuts: set[int], **given_: Any
) -> None:
    check(drops, first, rows, cuts, **given_)


@twice
@given(
    drops=st.sampled_from(DROPS),
    first=sequences(has_end=True),
    rows=streams(),
    cuts=st.sets(st.integers(1, 15), max_size=8),
    scope=st.sampled_from(BY_END),
    **SETTINGS,
)
def test_so_it_is_where_matches_wait_for_the_end_of_their_window(
    drops: Any, first: Sequence, rows: Any, cuts: set[int], **given_: Any
) -> None:
    check(drops, first, rows, cuts, **given_)


@pytest.mark.parametrize("drops", DROPS)
@pytest.mark.parametrize("scope", [TimeWindows(10, 10), TimeWindows(20, 10)], ids=str)
def test_a_window_waits_that_opened_with_an_event_that_fits_nothing(scope: Any, drops: Any) -> None:
    found = []
    for shed in (espice("1h", drops=drops), None):
        step = replace(typed_step_of(espice("1h"), scope, most=1), shed=shed)
        machine = pattern_machine(step, most_kept_rows=100)
        reads = [
            ([10 * one + at], [kind]) for one in range(10) for at, kind in enumerate((5, 0, 1, 2))
        ]
        found.append(leaves([machine.work(read_of(*one, one[0][0]), 0).rows for one in reads]))
    assert len(found[1]) >= 10
    assert found[0] == found[1]


@pytest.mark.parametrize("drops", DROPS)
@pytest.mark.parametrize("kinds", [["a", None, "b"], [1, None, 2], [True, None, False]], ids=str)
@pytest.mark.parametrize("also", [0, 1])
def test_a_pattern_of_null_types_sheds_as_others_do(
    drops: Any, kinds: list[Any], also: int
) -> None:
    found = []
    for shed in (espice("1h", drops=drops), None):
        flow = sw.Dataflow("nulls")
        rows = pa.table({"ts": [1, 2, 3], "kind": kinds})
        source = flow.source("rows", sw.table(rows), event_time="ts", time_unit="s")
        nulls = sw.patterns.event("none", of_type=[None, kinds[0]][: 1 + also])
        made = source.pattern(nulls, type="kind", window=sw.tumbling("1m"), shed=shed)
        made.sink("out", sw.collect_sink())
        job = sw.Simulation(nodes=1).submit(flow)
        assert job.wait().ledger.shed == 0
        found.append(job.result("out")["events"].to_pylist())
    assert len(found[0]) == 1 + also
    assert found[0] == found[1]


@pytest.mark.parametrize("feature", [None, sw.col("kind")], ids=str)
@pytest.mark.parametrize("is_passing_over", [False, True])
@pytest.mark.parametrize("drops", DROPS)
def test_a_read_whose_keys_are_all_null_is_in_no_match(
    drops: Any, is_passing_over: bool, feature: Any
) -> None:
    """Nor is one without rows, or one of a key that only some rows have, or of no type."""
    if drops == "stretches" and feature is not None:
        return  # refused
    shed = espice("1h", drops=drops, feature=feature)
    step = replace(
        typed_step_of(shed, TimeWindows(10, 10)),
        type_column="kind",
        keys=("key",),
        schema=pa.schema({"key": pa.string(), "events": pa.string()}),
        pattern=Normal((Asked("a", types=("a",)), Asked("b", types=("b",))), (AB,)),
    )
    machine = shed_machine(step, most_kept_rows=100)
    found: list[str] = []
    for number, (keys, kinds) in enumerate(
        [
            ([None, None], ["a", "b"]),
            (["x", None, "x"], ["a", "b", "b"]),
            ([], []),
            ([None], [None]),
            (["y", "y", "y"], [None, "a", "b"]),
            ([None], ["a"]),
        ]
    ):
        if drops != "pairs":
            passing = is_passing_over and number in (0, 3, 5)
            machine._shedding._shedding._passing.is_on = passing
        times = 10 * number + np.arange(len(keys))
        columns: Any = {
            "key": pa.array(keys, pa.string()),
            "kind": pa.array(kinds, pa.string()),
            "id": times,
        }
        read = gate_read(
            [Batch(event_time_ns=times, stimulus_time_ns=times, columns=columns)],
            [None],
            10 * number + 5,
            0,
            10 * number + 5,
        )
        made = machine.work(read, 0).rows
        found += [] if made is None else made.columns["key"].to_pylist()
    assert found == ["x", "y"]
    assert machine.counts()["shed"] == 0


@twice
@given(
    first=sequences(has_end=True),
    rows=streams(),
    cuts=st.sets(st.integers(1, 15), min_size=1, max_size=6),
    passed=st.sets(st.integers(0, 6), max_size=3),
    scope=st.sampled_from(WINDOWS),
    **SETTINGS,
)
def test_what_is_found_beside_rows_that_are_passed_over_is_whole(
    first: Sequence, rows: Any, cuts: set[int], passed: set[int], **given_: Any
) -> None:
    """Windows that have no such row have all of their matches, and no window has others."""
    scope = given_["scope"]
    if scope not in BY_END:
        first = replace(first, barred_after=())
    plain = step_of(Normal(ASKED[:4], (first,)), **given_)
    cuts = {one for one in cuts if one < len(rows)}
    truth = left(plain, rows, cuts)
    found = left(replace(plain, shed=espice("1h")), rows, cuts, passed=passed)
    assert not Counter(found) - Counter(truth)
    if isinstance(scope, TimeWindows):
        begins = [0, *sorted(cuts), len(rows)]
        gone = [rows[begins[n] : begins[n + 1]] for n in passed if n + 1 < len(begins)]
        spans = [(some[0]["time"], some[-1]["time"]) for some in gone if some]
        whole = [
            one
            for one in truth
            if all(to < one[2] or one[2] + scope.size_ns <= since for since, to in spans)
        ]
        assert not Counter(whole) - Counter(found)


@pytest.mark.parametrize(
    "scope", [*BY_END, CountWindows(20, 7), OpenedWindows(0, events=25)], ids=str
)
def test_windows_that_are_tried_while_rows_are_passed_over_change_no_match(scope: Any) -> None:
    draw = np.random.default_rng(5)
    kinds, cuts = draw.integers(0, 4, 4_000), [*range(0, 4_000, 40), 4_000]
    step = typed_step_of(espice("1h"), scope)
    found: list[Any] = []
    for is_passed, tries in ((False, False), (True, False), (True, True)):
        machine = shed_machine(step, most_kept_rows=10**6)
        overload, batches = machine._shedding._shedding, []
        overload._began_ns = 0 if tries else None
        for number, (begin, end) in enumerate(pairwise(cuts)):
            overload._passing.is_on = is_passed and number % 9 > 4
            times = np.arange(begin, end)
            batches.append(machine.work(read_of(times, kinds[begin:end], begin), 0).rows)
        found.append(Counter(leaves(batches)))
        judged = overload.counts
    every, left_, tried = found
    assert tried == left_
    assert left_
    assert not left_ - every
    assert judged.judged_matches > 3
    assert 0 < judged.judged_lost_share < 1


def work_of(step: Any, rows: Any, cuts: set[int], drops: Any) -> int:
    """Return what a machine that sheds nothing says that it has worked on."""
    machine = shed_machine(replace(step, shed=espice("1h", drops=drops)), most_kept_rows=100)
    cuts = {one for one in cuts if one < len(rows)}
    for begin, end in pairwise([0, *sorted(cuts), len(rows)]):
        if part := rows[begin:end]:
            now = part[-1]["time"]
            machine.work(gate_read([batch_of(part)], [None], now, 0, now), 0)
    return machine.counts()["comparisons"]


@example(  # the last row comes when all windows have both their matches
    first=Sequence((Place((0,)),)),
    rows=[
        dict(time=0, key=0, v=0, id=at, **{"is": {"a"} if at > 6 else set()}) for at in range(10)
    ],
    cuts={9},
    scope=TimeWindows(size_ns=6, slide_ns=2),
    selection="first",
    consumes=True,
    most=2,
)
@given(
    first=sequences(has_end=False),
    rows=streams(),
    cuts=st.sets(st.integers(1, 15), max_size=8),
    scope=st.sampled_from(WINDOWS),
    **SETTINGS,
)
def test_stretches_count_no_more_work_than_events_do(
    first: Sequence, rows: Any, cuts: set[int], **given_: Any
) -> None:
    """They count less while nothing has come that a match can begin with."""
    plain = step_of(Normal(ASKED[:4], (first,)), **given_)
    assert work_of(plain, rows, cuts, "stretches") <= work_of(plain, rows, cuts, "events")


def test_events_that_come_when_a_window_has_its_match_are_no_work() -> None:
    step = step_of(
        Normal(ASKED[:2], (AB,)),
        scope=OpenedWindows(asked=0, events=10),
        selection="first",
        consumes=False,
        most=1,
    )
    rows = [
        {"time": at, "key": 0, "is": {kind}, "v": 0, "id": at} for at, kind in enumerate("abbbbbab")
    ]
    for drops in DROPS[:2]:
        assert work_of(step, rows, set(), drops) == 4
