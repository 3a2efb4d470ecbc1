"""Stated chances follow the rows that windows missed: bursts, long delays, two sources."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import slackwater as sw
from benchmarks.probslack.calibration import Told, told_and_missed
from benchmarks.probslack.streams import DELAYED, MS, Stream, delayed
from slackwater.runtime.closing.calibration import Calibration, _never_falling
from slackwater.runtime.closing.probslack import ProbSlack
from slackwater.runtime.closing.settings import Settings
from slackwater.runtime.closing.simple import EventDriven
from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.operators.aggregate.step import AggregateStep

WINDOWS = WindowEnds(2_000 * MS, 40 * MS)
EVENTS = 16_000


def told_of(stream: Stream, **settings: Any) -> Told:
    run = ProbSlack(0.1, **settings).begin(WINDOWS)
    run.observe(stream.types, stream.event_time_ns, stream.arrival_ns)
    assert run.counts().missed_share <= 0.1
    closed = run.closings()
    return told_and_missed(
        closed.end_ns, closed.closed_at_ns, closed.chance_missing, stream, WINDOWS
    )


@pytest.mark.parametrize("kind", DELAYED)
@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("sources", [1, 2])
def test_windows_miss_rows_as_often_as_stated_under_any_delays(
    kind: str, in_order: bool, sources: int
) -> None:
    told = told_of(delayed(kind, in_order=in_order, sources=sources, seed=3, events=EVENTS))
    assert told.chance.min() > 0  # no source says that it is in order
    above = told.chance > 0.01
    for part in (above, ~above):
        if (count := part.sum()) > 100:
            apart = abs(told.chance[part].mean() - told.missed[part].mean())
            assert apart < 0.05 + 1 / count**0.5, (int(count), apart)


@pytest.mark.parametrize("kind", DELAYED)
@pytest.mark.parametrize("sources", [1, 2])
def test_a_window_that_states_zero_misses_nothing(kind: str, sources: int) -> None:
    stream = delayed(kind, in_order=True, sources=sources, seed=5, events=EVENTS)
    run = ProbSlack(0.1, ordered=True).begin(WINDOWS)
    run.observe(stream.types, stream.event_time_ns, stream.arrival_ns)
    closed = run.closings()
    told = told_and_missed(
        closed.end_ns, closed.closed_at_ns, closed.chance_missing, stream, WINDOWS, zero=True
    )
    assert (told.chance == 0).any()
    assert not told.missed[told.chance == 0].any()


def test_after_the_longest_wait_an_even_chance_is_stated_before_anything_is_known() -> None:
    made = np.arange(400, dtype=np.int64) * 10 * MS
    came = made + 2 * MS
    came[350:] = np.maximum(came[350:], made[350] + 900 * MS)  # rows are held up
    run = ProbSlack(0.9, guard="none").begin(WindowEnds(2_000 * MS, 10 * MS))
    run.observe(np.zeros(400, dtype=np.int64), made, came)
    closed = run.closings()
    held_up = (closed.closed_at_ns > made[350] + 50 * MS) & (closed.closed_at_ns < came[350])
    assert held_up.sum() > 20
    assert (closed.chance_missing[held_up] >= 0.4).all()


def policy_of(policy: Any, **source: Any) -> Settings:
    rows = pa.table({"ts": [1, 2], "came": [1, 2], "k": ["a", "b"]})
    flow = sw.Dataflow("f")
    stream = flow.source("rows", sw.table(rows), event_time="ts", time_unit="s", **source)
    made = stream.aggregate(window=sw.tumbling("1s"), n=sw.count(), close=policy)
    step = flow.steps[made.name]
    assert isinstance(step, AggregateStep)
    assert step.close is not None
    return getattr(step.close.policy, "policy", step.close.policy)


@pytest.mark.parametrize(
    ("settings", "source", "is_in_order"),
    [
        ({}, {"arrival": "came"}, True),
        ({}, {"arrival": "came", "out_of_order": "sort", "disorder": "1s"}, True),
        ({"ordered": True}, {"arrival": "came", "disorder": "1s"}, True),
        ({}, {"arrival": "came", "disorder": "1s"}, False),
        ({}, {"arrival": "came", "out_of_order": "late", "disorder": "1s"}, False),
        ({}, {"arrival": "came", "writer": "k"}, False),
        ({}, {"arrival": "came", "idle": "1s"}, False),
        ({}, {}, False),  # by the clock: no row says where it is from
        ({"type": "k"}, {"arrival": "came"}, False),  # a new type may come at any time
        ({"type": "k", "ordered": True}, {"arrival": "came"}, False),
        ({"ordered": False}, {"arrival": "came"}, False),
    ],
)
def test_only_types_that_are_surely_in_order_may_state_zero(
    settings: dict[str, Any], source: dict[str, Any], is_in_order: bool
) -> None:
    assert (
        policy_of(sw.closing.probslack(miss=0.1, **settings), **source).is_in_order is is_in_order
    )


@pytest.mark.parametrize(
    ("settings", "source", "is_sure"),
    [
        ({}, {"arrival": "came"}, True),
        ({}, {"arrival": "came", "out_of_order": "sort", "disorder": "1h"}, True),
        ({}, {"arrival": "came", "out_of_order": "late"}, True),  # it drops all older rows
        ({"disorder": "1s"}, {"arrival": "came", "out_of_order": "late", "disorder": "1s"}, True),
        ({"disorder": "1s"}, {"arrival": "came", "disorder": "1s"}, True),
        ({"disorder": "500ms"}, {"arrival": "came", "disorder": "1s"}, False),
        ({}, {"arrival": "came", "out_of_order": "late", "disorder": "1h"}, False),
        ({"disorder": "1h"}, {"arrival": "came", "writer": "k", "disorder": "1s"}, False),
        ({"disorder": "1h"}, {"arrival": "came", "idle": "1s"}, False),
        ({"disorder": "1h"}, {}, False),  # by the clock
        ({"type": "k"}, {"arrival": "came"}, False),
    ],
)
def test_event_driven_states_zero_where_sources_keep_to_its_disorder(
    settings: dict[str, Any], source: dict[str, Any], is_sure: bool
) -> None:
    policy: Any = policy_of(sw.closing.event_driven(**settings), **source)
    assert policy.is_sure is is_sure


@pytest.mark.parametrize(("is_sure", "chance"), [(True, 0.0), (False, np.nan)])
def test_event_driven_states_no_chance_unless_it_is_sure(is_sure: bool, chance: float) -> None:
    run = EventDriven(is_sure=is_sure).begin(WindowEnds(10 * MS, 10 * MS))
    made = np.array([1, 12, 5, 25]) * MS
    run.observe(np.zeros(4, dtype=np.int64), made, np.array([1, 12, 13, 25]) * MS)
    run.pass_time(30 * MS)
    assert run.closings().chance_missing.tolist() == pytest.approx([chance] * 2, nan_ok=True)
    assert run.counts().missed == 1


def test_pooled_rates_never_fall_and_keep_their_sum() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        rates, weights = rng.random(13), rng.integers(1, 9, 13).astype(float)
        pooled, together = _never_falling(rates, weights)
        assert (np.diff(pooled) >= 0).all()
        assert (pooled * weights).sum() == pytest.approx((rates * weights).sum())
        assert (together >= weights).all()
        sizes = np.unique(pooled, return_counts=True)[1]
        assert sum(together / np.repeat(sizes, sizes)) == pytest.approx(weights.sum())


RAW = np.sort(np.concatenate([np.geomspace(1e-4, 1.0, 400), np.geomspace(1e-3, 1.0, 13)]))
CLASSES = np.searchsorted(np.geomspace(1e-3, 1.0, 13), RAW) + 1


def learned(known: list[int], missed: list[int]) -> Calibration:
    made = Calibration(states_zero=False)
    made._counts[1:], made._misses[1:] = known, np.minimum(known, missed)
    made.derive()
    return made


@given(
    st.lists(st.integers(0, 300), min_size=13, max_size=13),
    st.lists(st.integers(0, 300), min_size=13, max_size=13),
)
@example([0] * 11 + [200, 0], [0] * 11 + [2, 0])
def test_a_stated_chance_never_falls_as_the_raw_one_rises(
    known: list[int], missed: list[int]
) -> None:
    chances = learned(known, missed)._chances(CLASSES, RAW)
    assert np.diff(chances).min() > -1e-12


def test_before_anything_is_known_the_raw_chance_is_stated_and_more_where_it_is_even() -> None:
    stated = learned([0] * 13, [0] * 13)._chances(CLASSES, RAW)
    expected = np.where(np.isin(CLASSES, [12, 13]), np.minimum(RAW + 0.25, 1.0), RAW)
    assert stated == pytest.approx(expected)


def test_a_class_without_known_windows_states_the_share_it_is_pooled_with() -> None:
    known, missed = [0] * 13, [0] * 13
    known[11], missed[11] = 200, 2  # raw chances of 0.32 to 0.56
    chances = learned(known, missed)._chances(np.array([11, 12]), np.array([0.2, 0.4]))
    assert 0.01 < chances[0] <= chances[1] < 0.05
