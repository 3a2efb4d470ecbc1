"""Events that go from all windows that wait for them: what it saves, what it costs, what stays."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import slackwater as sw
from benchmarks.espice.rivals import baseline_shedding, random_shedding
from slackwater.runtime.model import Batch
from slackwater.runtime.patterns.normal import Normal, Sequence
from slackwater.runtime.patterns.normalise import normal_of
from slackwater.runtime.patterns.scopes import CountWindows, OpenedWindows, TimeWindows, WindowRule
from slackwater.runtime.shedding.shedder import Amount
from slackwater.runtime.shedding.wrapper.shed_pattern import SheddingPattern
from slackwater.runtime.shedding.wrapper.words import Espice
from slackwater.runtime.shedding.wrapper.words import espice as by_default
from tests.operators.test_pattern_shedding import leaves, read_of, step_of
from tests.support.shedders import shed_machine

espice = partial(by_default, drops="events")
EVENT_NS = 20_000
"""What an event costs that is looked at; all others cost a tenth."""
BOUND_NS = 100_000_000
SLICE = 500
A, B, C = (sw.patterns.event(name, of_type=kind) for kind, name in enumerate("abc"))


def normal(pattern: Any) -> Normal:
    return normal_of(pattern, step="found")


ABC = normal(sw.patterns.seq(A, B, C))


def kinds_of(events: int, seed: int = 3) -> Any:
    """Every 40 events a, b, c one after the other; behind them b and c, which do no more."""
    at = np.arange(events) % 40
    others = np.random.default_rng(seed).integers(1, 3, events)
    return np.select([at == 0, at == 4, at == 8, at > 8], [0, 1, 2, others], 1)


def machine_of(shed: Espice, scope: WindowRule, **settings: Any) -> SheddingPattern:
    step = step_of(shed, scope, **({"pattern": ABC, "most": 1} | settings))
    return shed_machine(step, most_kept_rows=10**9)


def overloaded(shed: Espice, over: float, *, events: int = 30_000) -> tuple[set[Any], int, Any]:
    """Return matches, the longest latency, and the counts; at `over` times what can be done."""
    machine = machine_of(shed, OpenedWindows(0, events=40), most=None)
    kinds, times = kinds_of(events), np.arange(events) * int(EVENT_NS / over)
    now_ns = begin = longest_ns = idle_ns = 0
    batches: list[Batch | None] = []
    while begin < events:
        due_ns = int(times[begin + min(SLICE // 10, events - begin - 1)])
        idle_ns += max(due_ns - now_ns, 0)
        now_ns = max(now_ns, due_ns)
        end = min(int(np.searchsorted(times, now_ns, "right")), begin + SLICE)
        result = machine.work(read_of(times[begin:end], kinds[begin:end], begin), now_ns)
        batches.append(result.rows)
        took_ns = round((result.compared * 0.9 + (end - begin) * 0.1) * EVENT_NS)
        machine.charge(took_ns, idle_ns)
        now_ns += took_ns
        longest_ns = max(longest_ns, now_ns - int(times[begin]))
        begin = end
    return set(leaves(batches)), longest_ns, machine.counts().get("shedding")


@cache
def calm() -> tuple[set[Any], int, Any]:
    """Return what `overloaded` does below capacity; nobody changes it."""
    return overloaded(espice("100ms"), 0.8)


def test_nothing_is_shed_below_capacity() -> None:
    _, _, counts = calm()
    assert (counts.shed, counts.dropped, counts.starts, counts.lost_share) == (0, 0, 0, None)


@pytest.mark.parametrize(("over", "least"), [(1.2, 0.9), (1.4, 0.9), (2.0, 0.7)])
def test_the_bound_is_kept_and_few_matches_are_lost_where_few_events_matter(
    over: float, least: float
) -> None:
    every = {events for _, _, events in calm()[0]}
    found, longest_ns, counts = overloaded(espice("100ms"), over)
    assert longest_ns <= BOUND_NS
    assert counts.shed > 0
    kept = len(every & {events for _, _, events in found}) / len(every)
    by_chance, longest_ns, told = overloaded(random_shedding("100ms"), over)
    assert longest_ns <= BOUND_NS
    assert told.shed > 0
    left = len(every & {events for _, _, events in by_chance}) / len(every)
    assert kept > least > left, f"{kept:.3f}, {left:.3f}"


@pytest.mark.parametrize("make", [espice, random_shedding, baseline_shedding])
def test_what_is_shed_is_counted_once_and_is_of_those_that_were_asked_for(make: Any) -> None:
    _, _, counts = overloaded(make("100ms"), 1.5)
    dropped = counts.shed - counts.passed_over
    assert 0 < dropped <= counts.dropped < counts.pairs
    assert counts.aimed == pytest.approx(dropped, rel=0.25)


def test_what_only_forbids_is_never_dropped() -> None:
    """Dropping it would make matches that are none."""
    pattern = normal(sw.patterns.seq(A, sw.patterns.no(B), C))
    machine = machine_of(espice("1h"), CountWindows(20, 20), pattern=pattern)
    plain = machine_of(espice("1h"), CountWindows(20, 20), pattern=pattern)
    kinds = np.random.default_rng(1).integers(0, 3, 8_000)
    with_all, with_less = [], []
    for begin in range(0, len(kinds), 500):
        read = read_of(np.arange(begin, begin + 500), kinds[begin : begin + 500], begin)
        with_all.append(plain.work(read, 0).rows)
        if begin == 4_000:
            machine._shedding._shedding.shedder.aim(Amount(0.5))
        with_less.append(machine.work(read, 0).rows)
    counts = machine.counts().get("shedding")
    assert counts is not None
    assert counts.shed > 200
    # Each match that is left has no b between: so it is one, if perhaps not the first.
    for _, _, (first, last) in leaves(with_less):
        assert not (kinds[first + 1 : last] == 1).any()
    assert len(leaves(with_less)) < len(leaves(with_all))


def test_a_match_that_waits_does_not_leave_if_what_forbids_it_was_passed_over() -> None:
    pattern = normal(sw.patterns.seq(A, B, sw.patterns.no(C)))
    found = []
    for is_on in (False, True):
        machine = machine_of(espice("1h"), TimeWindows(100, 100), pattern=pattern, most=None)
        batches = [machine.work(read_of([1, 2], [0, 1], 0), 0).rows]
        machine._shedding._shedding._passing.is_on = is_on
        batches.append(machine.work(read_of([3], [2 if is_on else 5], 2), 0).rows)
        machine._shedding._shedding._passing.is_on = False
        batches.append(machine.work(read_of([300], [5], 3), 0).rows)
        found.append(len(leaves(batches)))
    assert found == [1, 0]


def test_windows_that_lost_what_they_need_are_given_up_and_make_nothing_up() -> None:
    """Losses fall on few windows: most that have a match have the one that they should have."""
    twenty = Normal(ABC.asked, (Sequence(ABC.alternatives[0].places * 4),))
    kinds = np.random.default_rng(2).integers(0, 3, 30_000)
    plain = machine_of(espice("1h"), OpenedWindows(0, events=200), pattern=twenty)
    made = machine_of(espice("1h"), OpenedWindows(0, events=200), pattern=twenty)
    by_chance = machine_of(random_shedding("1h"), OpenedWindows(0, events=200), pattern=twenty)
    found: list[list[Batch | None]] = [[], [], []]
    for begin in range(0, len(kinds), 100):
        read = read_of(np.arange(begin, begin + 100), kinds[begin : begin + 100], begin)
        for machine, batches in zip((plain, made, by_chance), found, strict=True):
            if begin >= 15_000 and machine is not plain:
                machine._shedding._shedding.shedder.aim(Amount(0.3))
            batches.append(machine.work(read, 0).rows)
    every, left, chance = ({one for one in leaves(some) if one[1] >= 15_000} for some in found)
    assert len(left & every) > 5 * len(chance & every)
    assert len(left - every) < len(chance - every)


def dense(events: int) -> tuple[Any, Any]:
    """Return a pattern that needs nearly every event, and a stream of it."""
    return Normal(ABC.asked, (Sequence(ABC.alternatives[0].places * 12),)), np.arange(events) % 3


def test_where_no_event_can_be_spared_rows_are_passed_over_and_what_is_left_is_whole() -> None:
    """Most of the work is to look at rows: nearly all events would have to go to save enough."""
    events, over = 80_000, 1.5
    pattern, kinds = dense(events)
    plain = machine_of(espice("1h"), CountWindows(40, 40), pattern=pattern)
    truth = set()
    for begin in range(0, events, SLICE):
        times = np.arange(begin, begin + SLICE) * int(EVENT_NS / over)
        made = plain.work(read_of(times, kinds[begin : begin + SLICE], begin), 0).rows
        truth |= {found for _, _, found in leaves([made])}
    machine = machine_of(by_default("100ms"), CountWindows(40, 40), pattern=pattern)
    now_ns = begin = longest_ns = 0
    left: set[Any] = set()
    while begin < events:
        times = np.arange(begin, begin + SLICE) * int(EVENT_NS / over)
        now_ns = max(now_ns, int(times[-1]))
        result = machine.work(read_of(times, kinds[begin : begin + SLICE], begin), now_ns)
        left |= {found for _, _, found in leaves([result.rows])}
        assert result.passed_over is not None
        looked_at = SLICE - result.passed_over
        took_ns = round((0.02 * SLICE + 0.58 * looked_at + 0.4 * result.compared) * EVENT_NS)
        machine.charge(took_ns, 0)
        now_ns += took_ns
        longest_ns = max(longest_ns, now_ns - int(times[0]))
        begin += SLICE
    counts = machine.counts().get("shedding")
    assert counts is not None
    assert counts.passed_over > 5_000
    assert counts.shed == machine.counts()["shed"] >= counts.passed_over
    assert longest_ns <= BOUND_NS + SLICE * EVENT_NS
    assert not left - truth  # windows that a stretch cut are given up
    assert len(left) > 0.62 * len(truth)  # two thirds can be looked at
    lost = 1 - len(left) / len(truth)
    assert 0 < counts.judged_error < 0.06
    assert counts.judged_lost_share == pytest.approx(lost, abs=2.5 * counts.judged_error)
