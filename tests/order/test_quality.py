"""AQ-K-slack and LDOP: how much of a window comes in time, and how long rows wait for it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.model import Int64Array
from slackwater.runtime.order.aq_k_slack import Adapting, Delays
from slackwater.runtime.order.buffer import Released
from slackwater.runtime.order.coverage import Coverage, Of
from slackwater.runtime.order.ldop import Ldop, _Distance

MS, S = 10**6, 10**9


def test_the_controller_adds_up_what_the_paper_says() -> None:
    """θ_thr = 0.8, gains (0.1, 0.05): err 1 for a fifth more that misses, −1 for none."""
    policy = sw.order.aq_k_slack(
        window="10ns", coverage=0.8, gains=(0.1, 0.05), delay_from="newest"
    )
    slack, released = Adapting(policy), Released()
    tell(slack, released, [0, 2, 4, 6, 8])  # all in time
    tell(slack, released, [20])  # K = 0, L = 0: the window is looked at
    assert slack.alpha == pytest.approx(1 - 0.1 - 0.05)  # err −1, and fell by 1
    tell(slack, released, [22, 24, 21, 28, 25])  # 21 is late, by K = 3; 25 is in its place
    assert slack.alpha == pytest.approx(0.85)
    tell(slack, released, [60])  # one of six missed
    error = (0.8 - 5 / 6) / 0.2
    assert slack.alpha == pytest.approx(0.85 + 0.1 * error + 0.05 * (error + 1))


def test_alpha_stays_between_nothing_and_all() -> None:
    policy = sw.order.aq_k_slack(window="10ns", coverage=0.9, gains=(0.6, 0), at_most="100ns")
    slack, released = Adapting(policy), Released()
    found = []
    for start in range(0, 100, 10):
        tell(slack, released, [start + 1, start + 9, *([start] * 8 if start == 70 else [])])
        found.append(slack.alpha)
    assert (found[0], min(found)) == (1.0, 0.0)
    assert found[7:] == [0.0, 0.0, 1.0]  # eight of ten missed, which is known L = 9 ns later


@pytest.mark.parametrize("allowed", [0.01, 0.03])
def test_so_much_of_each_window_comes_in_time_and_rows_wait_less_than_for_all(
    allowed: float,
) -> None:
    rng = np.random.default_rng(3)
    rows = 200_000
    sent_ns = np.arange(rows) * MS
    delay_ns = np.where(rng.random(rows) < 0.2, rng.exponential(200 * MS, rows), 0).astype(int)
    times_ns = sent_ns[np.argsort(sent_ns + delay_ns, kind="stable")]
    newest_ns = np.maximum.accumulate(times_ns)
    slack, released = Adapting(sw.order.aq_k_slack(window="1s", coverage=1 - allowed)), Released()
    reached_ns = slack.reached_ns(times_ns, newest_ns, released)
    late = times_ns[1:] < reached_ns[:-1]
    assert late[rows // 4 :].mean() < 1.2 * allowed
    assert late.mean() > 0.1 * allowed, "it waits for hardly more than it has to"
    windows = times_ns[1:] // (1_000 * MS)
    kept = 1 - np.bincount(windows, late) / np.bincount(windows) >= 1 - allowed
    assert 0.3 < kept[50:].mean() < 0.8, "a mean, and no bound: many windows have less"
    waited_ns = newest_ns - reached_ns
    assert waited_ns[rows // 4 :].mean() < 0.6 * (newest_ns - times_ns).max()


def test_a_late_row_that_goes_on_counts_while_its_window_is_open() -> None:
    alphas = []
    for late in ("drop", "pass"):
        policy = sw.order.aq_k_slack(window="100ns", coverage=0.9, late=late, delay_from="newest")
        slack, released = Adapting(policy), Released()
        tell(slack, released, [10, 5, 20, 15, 30])
        slack.alpha = 0.0
        tell(slack, released, [40, 32, 50, 42, 60, 52, 200, 300])
        alphas.append(slack.alpha)
    assert alphas[0] > alphas[1], "dropped, they miss; passed on, none does"


def test_coverage_counts_windows_once_and_forgets_them() -> None:
    coverage = Coverage(10)
    coverage.add(np.array([1, 2, 11, -3]), np.array([True, False, True, True]))
    coverage.add(np.array([3, 10**12]), np.array([True, True]))  # far apart: a wrong clock
    assert coverage.take(10) == [(1, 1), (3, 2)]
    coverage.add(np.array([4, 12]), np.array([True, False]))  # the first window is done with
    assert coverage.take(20) == [(2, 1)]
    assert coverage.take(20) == []


@pytest.mark.parametrize(
    ("of", "error", "delta", "rows", "spread", "misses"),
    [
        ("count", 0.01, 0.05, 100, 1.0, 0.01),  # what misses is the error
        ("sum", 0.01, 0.05, 100, 0.0, 0.01),  # of equal values as well
        ("sum", 0.1, 0.5, 100, 1.0, 0.1),  # z = 0: the mean case
        ("mean", 0.1, 0.3173, 100, 1.0, 0.5),  # one deviation: half of 100 is off by a tenth
        ("mean", 0.1, 0.0455, 400, 1.0, 0.5),  # two, of four times as many
        ("mean", 0.1, 0.05, 1, 0.0, 0.5),  # never less than one of two rows
    ],
)
def test_what_may_miss_follows_from_the_error(
    of: Of, error: float, delta: float, rows: int, spread: float, misses: float
) -> None:
    within = sw.order.error_within(error, delta=delta, of=of, spread=spread)
    assert 1 - within.coverage(rows) == pytest.approx(misses, rel=1e-3)


@pytest.mark.parametrize("of", ["sum", "mean"])
def test_windows_with_just_that_coverage_keep_the_error(of: Of) -> None:
    rng = np.random.default_rng(5)
    values = rng.gamma(4.0, 1.0, 2_000)  # spread 0.5
    within = sw.order.error_within(0.02, delta=0.1, of=of, spread=0.5)
    kept = round(within.coverage(len(values)) * len(values))
    whole = values.sum() if of == "sum" else values.mean()
    off = []
    for _ in range(1_000):
        sample = rng.choice(values, kept, replace=False)
        got = sample.sum() if of == "sum" else sample.mean()
        off.append(abs(got / whole - 1))
    assert 0.07 < np.mean(np.array(off) > 0.02) < 0.13


@given(st.lists(st.integers(1, 2**60), min_size=1, max_size=50), st.floats(0.01, 0.99))
def test_a_quantile_of_delays_is_at_most_a_sixteenth_too_large(
    given_ns: list[int], q: float
) -> None:
    delays = Delays()
    for piece in (given_ns[:7], given_ns[7:]):
        delays.add(np.array(piece, dtype=np.int64))
    exact_ns = sorted(given_ns)[int(np.ceil(q * len(given_ns))) - 1]
    assert exact_ns <= delays.quantile_ns(q) <= exact_ns * 17 / 16 + 1


def test_ldop_waits_for_the_window_and_some_mean_delays_of_the_late_rows_in_it() -> None:
    """Behind by 10 µs, then 30 µs: LD is 10, 20, and 30 when the first has left the window."""
    times_us = [100, 90, 110, 80, 150, 195, 205]
    times_ns = 1_000 * np.array(times_us)
    policy = sw.order.ldop(window="100us", factor=0.5)
    assert isinstance(policy, Ldop)
    newest_ns = np.maximum.accumulate(times_ns)
    found_ns = _Distance(policy)._latency_distance_ns(times_ns, newest_ns)
    assert (found_ns // 1_000).tolist() == [0, 10, 10, 20, 20, 20, 30]
    reached_ns = _Distance(policy).reached_ns(
        np.append(times_ns, 290_000), np.append(newest_ns, 290_000), Released()
    )
    # 290 − 100 − 0.5 LD, and LD is 0: the second has left as well
    assert (reached_ns[-2:] // 1_000).tolist() == [90, 150]


def tell(slack: Adapting, released: Released, times: list[int]) -> Int64Array:
    """Give it these rows; the first is the newest so far."""
    given_ns = np.array(times, dtype=np.int64)
    newest_ns = np.maximum.accumulate(given_ns)
    return slack.reached_ns(given_ns, newest_ns, released)
