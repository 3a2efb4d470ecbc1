"""Overload in virtual time: the bound holds, nothing is shed in vain, what cannot be is said."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.model.state import restore, save
from slackwater.runtime.shedding.overload import (
    Costs,
    Load,
    OverloadDetector,
    choose_f,
    natural_breaks,
    partitions_of,
)
from slackwater.runtime.shedding.settings import Overload
from tests.shedding.queues import SECOND, Operator

COST_NS = 1_000_000  # 1,000 events a second


def operator(f: float | None = 0.8, drain: bool = True, **settings: object) -> Operator:
    detector = OverloadDetector(Overload(SECOND, f, drain=drain))
    return Operator(detector, COST_NS, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("by_age", [False, True])
@pytest.mark.parametrize("fixed", [0.0, 0.3])
@pytest.mark.parametrize("factor", [1.2, 1.4, 2.0])
def test_an_overload_keeps_within_the_bound(factor: float, fixed: float, by_age: bool) -> None:
    """R1 and R2 of [espice] §4.1, and more; where dropping saves all of the work, or most."""
    one = operator(fixed_ns=fixed * COST_NS, by_age=by_age)
    one.run(5, lambda _: 900)
    one.run(60, lambda _: 1000 * factor)
    assert max(latency for _, _, latency, _ in one.said) < 1.0
    # q_max, unless it goes by ages: of what waits then some is dropped, and takes no time.
    assert by_age or max(queued for _, queued, _, _ in one.said) < 1000
    late = one.after(35)
    assert all(verdict.is_curable for _, _, _, verdict in late)
    assert {round(verdict.throughput, -2) for _, _, _, verdict in late} == {1000}
    if by_age:
        assert np.mean([latency for _, _, latency, _ in late]) == pytest.approx(0.8, rel=0.25)
    else:  # f · q_max events wait, about; some of them to be dropped, so it takes less than f · LB
        assert np.mean([queued for _, queued, _, _ in late]) == pytest.approx(800, rel=0.25)


def test_as_much_is_dropped_as_is_too_much() -> None:
    one = operator()
    one.run(60, lambda _: 1200)
    verdicts = [verdict for _, _, _, verdict in one.after(40)]
    shares = [verdict.amount.share if verdict.amount else 0.0 for verdict in verdicts]
    assert np.mean(shares) == pytest.approx(1 - 1 / 1.2, abs=0.02)
    last = verdicts[-1]
    assert last.throughput == pytest.approx(1000, rel=0.01)
    assert last.q_max == pytest.approx(1000, rel=0.01)
    assert last.rate == pytest.approx(1200, rel=0.01)


def test_x_is_the_papers() -> None:
    """δ = R − th, x = δ · p_size / R, ρ = ceil(ws / (q_max − f · q_max)): 100 / 250, 700 / 250."""
    for size, partitions in ((100.0, 1), (700.0, 3)):
        detector = OverloadDetector(Overload(SECOND, 0.75, drain=False))
        for step in range(400):
            said = detector.observe(
                Load(step * SECOND // 50, 25, 20, 20 * COST_NS, queued=800), size=size
            )
        assert said.amount is not None
        assert said.amount.partitions == partitions == partitions_of(size, 1000.0, 0.75)
        assert said.x == pytest.approx(250 * (size / partitions) / 1250, rel=1e-3)


def test_below_capacity_nothing_is_shed() -> None:
    one = operator()
    one.run(60, lambda _: 990)
    assert not any(verdict.amount for _, _, _, verdict in one.said)


def test_a_short_burst_is_waited_out() -> None:
    one = operator()
    one.run(30, lambda s: 3000 if 10 < s < 10.3 else 900)
    assert max(queued for _, queued, _, _ in one.said) > 500
    assert not any(verdict.amount for _, _, _, verdict in one.said)


def test_shedding_stops_when_the_queue_is_down_not_before() -> None:
    one = operator()
    one.run(30, lambda s: 1400 if s < 10 else 800)
    is_on = [(queued, verdict.is_overloaded) for _, queued, _, verdict in one.said]
    changes = sum(a != b for (_, a), (_, b) in pairwise(is_on))
    assert changes == 2
    assert is_on[-1] == (0.0, False)
    stops = next(n for n, (_, on) in enumerate(is_on) if on is False and is_on[n - 1][1])
    assert 300 < is_on[stops][0] <= 400  # low · f · q_max


def test_nothing_more_is_dropped_once_the_rate_is_down() -> None:
    one = operator()
    one.run(30, lambda s: 1400 if s < 10 else 800)
    # While rates and what waits above f settle it still is: some half seconds.
    assert not any(verdict.amount for _, _, _, verdict in one.after(13))


def test_a_shedder_that_drops_too_little_is_made_to_drop_more() -> None:
    """With `drain` what waits above f adds to x; as the paper has it the bound is broken."""
    latencies = []
    for drain in (True, False):
        # Its costs are learnt as if it had dropped what it was told to.
        one = operator(drain=drain, off=0.8, by_age=True)
        one.run(60, lambda _: 1400)
        latencies.append(max(latency for _, _, latency, _ in one.said))
    assert latencies[0] < 1.0


def test_an_overload_that_dropping_all_does_not_cure_is_told() -> None:
    one = operator(fixed_ns=0.6 * COST_NS)
    one.run(5, lambda _: 900)
    one.run(20, lambda _: 2000)
    last = one.said[-1][3]
    assert last.amount is not None
    assert last.amount.share == 1.0
    assert not last.is_curable
    assert "2000 events a second take" in last.reason
    assert "replica" in last.reason


def test_latency_from_elsewhere_is_not_shed_for() -> None:
    """Events that a gate has held for longer than the bound: dropping here would not mend it."""
    one = operator(upstream_ns=2 * SECOND)
    one.run(20, lambda _: 900)
    last = one.said[-1][3]
    assert not any(verdict.amount for _, _, _, verdict in one.said)
    assert not last.is_curable
    assert "elsewhere" in last.reason


@pytest.mark.parametrize(("waited_s", "is_above"), [(0.0, False), (0.2, True)])
def test_a_read_after_this_one_counts_only_if_rows_wait_for_it(
    waited_s: float, is_above: bool
) -> None:
    """A row that takes 0.45 of the bound, at half of what can be done: nothing ever waits."""
    detector = OverloadDetector(Overload(SECOND))
    row_ns = 450_000_000
    for step in range(1, 20):
        verdict = detector.observe(
            Load(
                step * 2 * row_ns,
                arrived=1,
                processed=1,
                busy_ns=row_ns,
                age_ns=round(waited_s * SECOND),
                youngest_ns=round(waited_s * SECOND) if step > 10 else 0,
                idle_ns=row_ns if step <= 10 else 0,
                between_ns=SECOND // 64,
                read_ns=row_ns if step > 1 else 0,
            ),
            size=10,
        )
    assert verdict.is_above is is_above


def test_shedding_ends_once_nothing_waits_whatever_events_are_taken_to_cost() -> None:
    """One event took five bounds. While all events are dropped, no cost is measured."""
    detector = OverloadDetector(Overload(SECOND))
    now_ns, is_on = 0, []
    for busy_ns, youngest_ns in ((0, 0), (5 * SECOND, 4 * SECOND), (0, 0), (0, 0)):
        now_ns += max(busy_ns, SECOND // 64)
        processed = 1 if busy_ns else 0
        load = Load(now_ns, 1, processed, busy_ns, age_ns=youngest_ns, youngest_ns=youngest_ns)
        read_ns = round(detector.cost_ns)
        is_on.append(detector.observe(replace(load, read_ns=read_ns), size=10).is_overloaded)
    assert is_on == [False, True, False, True]


def test_what_comes_behind_the_operator_counts() -> None:
    one = operator(rest_ns=SECOND // 2)
    one.run(40, lambda _: 1200)
    assert max(latency for _, _, latency, _ in one.said) < 1.0
    assert np.mean([queued for _, queued, _, _ in one.after(20)]) < 450


@given(
    factor=st.floats(0.5, 3.0),
    fixed=st.floats(0.0, 0.25),
    f=st.sampled_from([0.3, 0.6, 0.8]),
    by_age=st.booleans(),
)
def test_any_steady_overload_that_can_be_cured_stays_within_the_bound(
    factor: float, fixed: float, f: float, by_age: bool
) -> None:
    one = operator(f, fixed_ns=fixed * COST_NS, by_age=by_age)
    one.run(25, lambda s: 500 if s < 3 else 1000 * factor)
    assert max(latency for _, _, latency, _ in one.said) < 1.02
    assert any(verdict.amount for _, _, _, verdict in one.said) == (factor > 1.05) or (
        0.98 < factor < 1.06
    )


def test_costs_are_taken_apart_once_different_shares_were_seen() -> None:
    costs = Costs()
    assert costs.whole_ns == 0.0
    costs.add(100, 100_000, 0.0, keep=1.0)
    assert (costs.fixed_ns, costs.saved_ns) == pytest.approx((0.0, 1000.0))
    for dropped in (0.0, 0.2, 0.4) * 20:
        costs.add(100, round(100 * (300 + 700 * (1 - dropped))), dropped, keep=0.95)
    assert costs.fixed_ns == pytest.approx(300, rel=0.1)
    assert costs.whole_ns == pytest.approx(1000, rel=0.02)
    assert costs.at(1.0) == costs.fixed_ns


def test_events_in_more_windows_cost_more_and_dropping_is_not_taken_to_be_at_fault() -> None:
    """1 µs for each pair, all of it saved; shedding is on when events are in many windows."""
    costs = Costs()
    for windows, dropped in [(1, 0.0), (4, 0.0), (2, 0.0)] * 10 + [(10, 0.5)] * 20:
        kept = 100 * windows * (1 - dropped)
        costs.add(100, round(1000 * kept), dropped, keep=0.95, pairs=100 * windows)
    assert costs.fixed_ns == pytest.approx(0, abs=200)
    assert costs.whole_ns == pytest.approx(10_000, rel=0.1)
    again = Costs()
    restore(again, save(costs))
    assert (again.fixed_ns, again.saved_ns) == (costs.fixed_ns, costs.saved_ns)


def test_where_windows_make_events_no_dearer_what_dropping_saves_is_known_all_the_same() -> None:
    costs = Costs()
    for windows, dropped in [(1, 0.0), (4, 0.0), (2, 0.0)] * 10 + [(4, 0.5), (2, 0.2)] * 20:
        each_ns = 300 + 700 * (1 - dropped)
        costs.add(100, round(100 * each_ns), dropped, keep=0.99, pairs=100 * windows)
    assert costs.fixed_ns == pytest.approx(300, rel=0.1)
    assert costs.whole_ns == pytest.approx(1000, rel=0.02)


def test_breaks_fall_into_the_gaps() -> None:
    weights = np.zeros(101)
    weights[[0, 1, 2, 40, 42, 90, 99]] = [5, 3, 1, 2, 2, 1, 1]
    assert natural_breaks(weights, 3).tolist() == [2, 42]
    assert natural_breaks(weights, 2).tolist() == [2]
    assert natural_breaks(np.eye(101)[7], 3).tolist() == []


@given(weights=st.lists(st.integers(0, 5), min_size=1, max_size=9), classes=st.integers(2, 4))
def test_breaks_are_the_best_there_are(weights: list[int], classes: int) -> None:
    given_ = np.array(weights, float)
    values = np.flatnonzero(given_)
    if len(values) < classes:
        return

    def spread(breaks: tuple[int, ...]) -> float:
        total, begin = 0.0, 0
        for end in (*[b + 1 for b in breaks], len(given_)):
            w, v = given_[begin:end], np.arange(begin, end)
            total += float((w * (v - (w * v).sum() / max(w.sum(), 1e-9)) ** 2).sum())
            begin = end
        return total

    best = min(spread(one) for one in combinations(range(len(weights) - 1), classes - 1))
    assert spread(tuple(natural_breaks(given_, classes).tolist())) == pytest.approx(best, abs=1e-6)


def test_f_is_high_where_low_utilities_are_everywhere() -> None:
    utilities = np.array([[0] * 10, [90] * 10], np.uint8)
    spread = np.full((2, 10), 5.0)  # 100 events, half of them low, all over
    assert choose_f(utilities, spread, q_max=1000.0, share=0.3) == 0.95


def test_f_is_low_where_all_low_utilities_lie_together() -> None:
    """Then only large partitions have enough of them: ρ = 1 needs q_max · (1 − f) ≥ 100."""
    utilities = np.array([[0] * 5 + [90] * 5], np.uint8)
    found = choose_f(utilities, np.full((1, 10), 10.0), q_max=200.0, share=0.3)
    assert found == 0.5
    assert partitions_of(100, 200.0, found) == 1


def test_f_without_a_way_is_where_least_is_lacking() -> None:
    utilities = np.array([[0] * 5 + [90] * 5], np.uint8)
    found = choose_f(utilities, np.full((1, 10), 10.0), q_max=200.0, share=0.8)
    assert partitions_of(100, 200.0, found) == 1


@pytest.mark.parametrize("upstream_s", [0.5, 0.9, 2.0])
def test_events_that_were_held_up_before_are_not_dropped_for_it(upstream_s: float) -> None:
    """By ages alone: a gate that puts events in order makes them old, and nothing waits here."""
    one = operator(by_age=True, upstream_ns=round(upstream_s * SECOND))
    one.run(20, lambda _: 800)
    assert not any(verdict.amount for _, _, _, verdict in one.said)
    assert one.said[-1][3].is_curable == (upstream_s < 1)


@pytest.mark.parametrize("upstream_s", [0.3, 2.0])
def test_what_waits_here_besides_is_kept_within_what_is_left_of_the_bound(
    upstream_s: float,
) -> None:
    """Once all of it is gone before they come, this queue alone is kept within it."""
    one = operator(by_age=True, upstream_ns=round(upstream_s * SECOND))
    one.run(40, lambda s: 500 if s < 5 else 1300)
    assert any(verdict.amount for _, _, _, verdict in one.said)
    left_s = 1.0 if upstream_s < 1 else 1.0 + upstream_s
    assert max(latency for _, _, latency, _ in one.said) < left_s + 0.02
    assert 0.2 < np.mean([v.amount.share if v.amount else 0 for *_, v in one.after(20)]) < 0.27


def test_events_that_come_in_bursts_are_no_higher_rate() -> None:
    """100 a second: by turns fifty within a millisecond, and fifty in the rest of a second."""
    detector = OverloadDetector(Overload(20 * SECOND, 0.8))
    for number in range(1, 400):
        verdict = detector.observe(
            Load(
                now_ns=number * SECOND // 2,
                arrived=50,
                came_ns=SECOND // 1000 if number % 2 else SECOND - SECOND // 1000,
                processed=50,
                busy_ns=SECOND // 10,
                age_ns=0,
            ),
            size=100,
        )
    assert verdict.rate == pytest.approx(100, rel=0.1)


def test_where_less_goes_than_was_asked_for_more_is_asked_for() -> None:
    """Twice what can be done, in events that are not as those that were learnt: a fifth stays."""
    detector = OverloadDetector(Overload(SECOND, 0.9))
    look_ns, rate, waiting, share, levels = SECOND // 64, 2_000, 0.0, 0.0, []
    processed, busy_ns, dropped = 1, COST_NS, 0.0
    for number in range(1, 64 * 60):
        verdict = detector.observe(
            Load(
                now_ns=number * look_ns,
                arrived=round(rate / 64),
                processed=processed,
                busy_ns=busy_ns,
                dropped_share=dropped,
                age_ns=round(waiting / rate * SECOND),
                youngest_ns=round(waiting / rate * SECOND),
                idle_ns=0,
            ),
            size=100,
        )
        share = 0.0 if verdict.amount is None else verdict.amount.share
        dropped = 0.8 * share
        waiting += rate / 64
        processed = round(min(waiting, look_ns / (COST_NS * (1 - dropped))))
        waiting, busy_ns = waiting - processed, round(processed * COST_NS * (1 - dropped))
        levels.append(waiting / rate)
    assert max(levels) < 1.0
    assert dropped == pytest.approx(0.5, abs=0.1)
