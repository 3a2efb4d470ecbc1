"""Pace of checkpoints: they cost at most a part of the time."""

from __future__ import annotations

import random
import statistics

from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.recovery.pace import MOST_COST, PAYING, REST, Cost, Pace

S, MS = 10**9, 10**6


def test_cheap_checkpoints_keep_the_interval_that_is_wanted() -> None:
    pace = Pace(S)
    pace.took({"a": Cost(24 * MS, S, S)})
    assert pace.interval_ns == S


def test_interval_pays_for_the_dearest_process() -> None:
    pace = Pace(S)
    pace.took({"a": Cost(48 * MS, S, S), "b": Cost(72 * MS, S, S)})
    assert pace.interval_ns == 3 * S


def test_process_that_waits_for_a_core_has_less_time_to_pay_with() -> None:
    pace = Pace(S)
    pace.took({"a": Cost(48 * MS, S // 2, S)})
    assert pace.interval_ns == 4 * S


def test_time_that_did_not_pay_for_a_checkpoint_is_added_to_the_next() -> None:
    pace = Pace(S)
    pace.took({"a": Cost(48 * MS, 0, 0)})
    pace.took({"a": Cost(48 * MS, S, S)})  # 24 ms are paid
    assert pace.interval_ns == 3 * S


def test_checkpoints_cost_at_most_three_hundredths_of_all_else() -> None:
    pace = Pace(S)
    pace.took({"a": Cost(48 * MS, S, S)})
    assert 48 * MS / (pace.interval_ns - 48 * MS) < MOST_COST


def test_quiet_time_is_not_saved_up() -> None:
    pace = Pace(S)
    pace.took({"a": Cost(48 * MS, 100 * S, 100 * S)})
    assert pace.interval_ns == 2 * S


@given(
    st.integers(0, 10 * S),
    st.lists(st.floats(0.2, 1.0), min_size=1, max_size=30),
    st.integers(50 * MS, 10 * S),
)
def test_next_interval_pays_for_all_checkpoints_so_far(
    cpu_ns: int, shares: list[float], every_ns: int
) -> None:
    pace, since_ns, had_ns, cost_ns = Pace(every_ns), 0, 0, 0
    for share in shares:
        own_ns = int(since_ns * share)
        pace.took({"slot": Cost(cpu_ns, own_ns, since_ns)})
        had_ns, cost_ns = had_ns + own_ns, cost_ns + cpu_ns
        if since_ns == 0:
            share = 1.0  # noqa: PLW2901 - of the first nothing is known
        since_ns = pace.interval_ns
        assert since_ns >= every_ns
        assert cost_ns <= (had_ns + since_ns * share) * PAYING + 1e-6 * cost_ns + 10


@given(
    fixed_ns=st.integers(0, 5 * S),
    grows=st.floats(0.0, 1.0),
    every_ns=st.integers(50 * MS, 10 * S),
    seed=st.integers(0, 2**32),
)
def test_interval_grows_only_as_far_as_a_longer_one_is_cheaper(
    fixed_ns: int, grows: float, every_ns: int, seed: int
) -> None:
    """With costs that scatter by a twentieth; a part of them grows with the interval."""
    rng = random.Random(seed)  # noqa: S311 - chance
    pace, since_ns, intervals_ns = Pace(every_ns), 0, list[int]()
    for _ in range(100):
        cost_ns = (fixed_ns + grows * since_ns) * rng.uniform(0.95, 1.05)
        pace.took({"slot": Cost(round(cost_ns), since_ns, since_ns)})
        since_ns = pace.interval_ns
        intervals_ns.append(since_ns)
    enough_ns = fixed_ns / max(PAYING - grows, REST * grows)
    middle_ns = statistics.median(intervals_ns[20:])
    assert middle_ns <= 3 * max(every_ns, enough_ns)
    assert fixed_ns / middle_ns + grows <= 1.2 * max(PAYING, (1 + REST) * grows)
