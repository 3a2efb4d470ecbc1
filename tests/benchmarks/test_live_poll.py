"""What `live-poll` compares: its feed, its totals, and turns that count."""

from __future__ import annotations

import time

import numpy as np
import pytest

from benchmarks.engine.live_poll import (
    HOW,
    Window,
    bytewax_python,
    checked,
    expected_totals,
    latencies,
    pairs_that_kept_up,
)
from benchmarks.engine.live_poll_feed import Feed
from benchmarks.frame import NotHereError, WrongResultError


def test_a_feed_hands_over_each_row_that_is_due_once() -> None:
    feed = Feed(time.time_ns() - 10_000_000_000, rate=10_000, rows=250)
    assert feed.rest_s() == 0
    assert [row[0] for row in feed.due()] == list(range(250))
    assert feed.is_over
    assert feed.due() == []


def test_a_feed_has_nothing_before_its_start() -> None:
    feed = Feed(time.time_ns() + 3_600_000_000_000, rate=10_000, rows=5)
    assert feed.due() == []
    assert feed.rest_s() == 0.1


def test_totals_are_those_of_the_rows_one_by_one() -> None:
    sums: dict[str, int] = {}
    totals = []
    for _, key, value, _ in Feed(0, rate=10_000, rows=350).due():
        sums[key] = sums.get(key, 0) + value
        totals.append(sums[key])
    assert expected_totals(350).tolist() == totals


@pytest.mark.parametrize("fault", ["lost", "twice", "wrong"])
def test_a_result_that_is_lost_or_twice_or_wrong_is_no_run(fault: str) -> None:
    numbers, totals = np.arange(350), expected_totals(350)
    checked("ours", numbers[::-1], totals[::-1], 350)
    if fault == "lost":
        numbers, totals = numbers[1:], totals[1:]
    elif fault == "twice":
        numbers[1] = 0
    else:
        totals[7] += 1
    with pytest.raises(WrongResultError, match="ours"):
        checked("ours", numbers, totals, 350)


def test_a_run_that_leaves_its_rows_for_later_does_not_count() -> None:
    due_ns = np.arange(30) * 100_000_000
    window = Window(warm_up_s=1, seconds=1)
    soon = latencies(due_ns, due_ns + 2_000_000, start_ns=0, window=window)
    late = latencies(due_ns, due_ns + 9_000_000_000, start_ns=0, window=window)
    assert soon["p50_ms"] == pytest.approx(2)
    assert (soon["kept_up"], late["kept_up"]) == (1, 0)
    assert pairs_that_kept_up([(soon, soon), (late, soon), (soon, late)]) == [(soon, soon)]


def test_without_a_python_with_bytewax_it_says_how_to_name_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("BYTEWAX", raising=False)
    with pytest.raises(NotHereError, match="no Python with Bytewax is named") as refused:
        bytewax_python()
    assert HOW in str(refused.value)
    monkeypatch.setenv("BYTEWAX", "/no/such/python")
    with pytest.raises(NotHereError, match="cannot be started"):
        bytewax_python()
