"""Windows without a row are counted apart: they would fill the budget of those that have some."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.probslack.streams import MS, geometric, stream_of
from slackwater.runtime.closing.probslack import ProbSlack
from slackwater.runtime.closing.simple import ByTime, EventDriven
from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.model import START_NS
from tests.closing.streams import columns, drawn
from tests.closing.test_cuts import POLICIES
from tests.support.chance import chance


@given(name=st.sampled_from(sorted(POLICIES)), draw=chance)
def test_windows_with_a_row_are_counted_and_those_without_apart(name: str, draw: Random) -> None:
    rows = drawn(draw, types=draw.randint(1, 3), rows=90, shuffled=draw.random() < 0.5)
    slide = draw.choice([2, 3, 10])
    windows = WindowEnds(slide * draw.choice([1, 2]) if draw.random() < 0.8 else 1, slide)
    run = POLICIES[name].begin(windows)
    for start in range(0, len(rows), 7):
        run.observe(*columns(rows[start : start + 7]))
    closed_ns = run.pass_time(rows[-1][2] + draw.choice([8, 50]))  # all seen
    counts = run.counts()
    if closed_ns == START_NS:
        assert (counts.windows, counts.empty) == (0, 0)
        return
    oldest = min(made for _, made, came in rows if came == rows[0][2])
    last, first = windows.first_after(closed_ns) - 1, windows.first_after(oldest)
    with_row = {
        window
        for _, made, _ in rows
        for window in range(windows.first_after(made), windows.last_begun(made) + 1)
        if first <= window <= last
    }
    assert counts.windows == len(with_row)
    assert counts.empty == last - first + 1 - len(with_row)


@pytest.mark.parametrize("share", [0.05, 0.1])
def test_the_budget_is_of_windows_with_rows(share: float) -> None:
    """Half of these have none: of the others twice as many missed something as was promised."""
    stream = stream_of([(geometric(20), geometric(3), 20_000)], 3)
    windows = WindowEnds(10 * MS, 10 * MS)
    policy = ProbSlack(share, conditional=False, ordered=True, fit_rows=4_000)
    run = policy.begin(windows)
    run.observe(stream.types, stream.event_time_ns, stream.arrival_ns)
    counts, with_row = run.counts(), len(np.unique(stream.event_time_ns // windows.slide_ns))
    assert counts.empty > 0.4 * with_row
    assert with_row - 10 <= counts.windows <= with_row
    assert share / 2 < counts.missed / with_row <= share


def test_windows_before_the_first_rows_count_once_they_miss_a_row() -> None:
    """They closed with the first. Before that nothing has closed, and no row is late."""
    rows = [(0, 5_022, 5_240), (0, 6_100, 6_300), (0, 2_100, 6_320), (0, 7_100, 7_200)]
    rows += [(0, 1_000 * i + 100, 7_300 + i) for i in range(3)]
    rows.append((0, 9_000, 9_000))
    for name in ("ignore", "event-driven", "probslack"):
        policy = {
            "ignore": ByTime(0),
            "event-driven": EventDriven(),
            "probslack": ProbSlack(0.1),
        }[name]
        run = policy.begin(WindowEnds(1_000 * MS, 1_000 * MS))
        run.observe(*columns(rows, scale=MS))
        run.pass_time(9_001 * MS)
        counts = run.counts()
        assert counts.missed == 3  # 0, 1 and 2: of each at least one row came after it had closed
        assert counts.windows == 3 + 3


def test_a_window_that_closed_early_without_a_row_is_early_once_it_misses_one() -> None:
    made = np.arange(700) * 10
    came = np.where((made >= 2_000) & (made < 6_000), 6_001, made + 1)  # an outage
    order = np.argsort(came, kind="stable")
    run = ProbSlack(0.9).begin(WindowEnds(100 * MS, 100 * MS))
    run.observe(np.zeros(700, dtype=np.int64), made[order] * MS, came[order] * MS)
    counts = run.counts()
    assert counts.missed > 10
    assert counts.early > counts.missed + 10  # those without a row by then, and the others
