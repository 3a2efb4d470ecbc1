"""A type of which little is known is not sure, and a chance of 0 is stated where it is."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.probslack.calibration import told_and_missed
from benchmarks.probslack.streams import MS, Stream, geometric, stream_of
from slackwater.runtime.closing.budget import GUARDS, GuardWord
from slackwater.runtime.closing.policy import ClosingCounts, FloatArray
from slackwater.runtime.closing.probslack import ProbSlack
from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.model import BoolArray, Int64Array
from tests.closing.streams import Row, columns

WINDOWS = WindowEnds(1_000 * MS, 1_000 * MS)


def _stated_and_missed(
    policy: ProbSlack, stream: tuple[Int64Array, Int64Array, Int64Array]
) -> tuple[FloatArray, BoolArray, ClosingCounts]:
    """Return the chance of each window that closed, and whether a row of it came later."""
    types, made, came = stream
    run = policy.begin(WINDOWS)
    for start in range(0, len(types), 1_000):
        part = slice(start, start + 1_000)
        run.observe(types[part], made[part], came[part])
    closed = run.closings()
    of = (closed.end_ns - WINDOWS.size_ns) // WINDOWS.slide_ns
    last = np.zeros(int(made.max() // WINDOWS.slide_ns) + 1, dtype=np.int64)
    np.maximum.at(last, made // WINDOWS.slide_ns, came)
    return closed.chance_missing, last[of] > closed.closed_at_ns, run.counts()


def _two(rare: list[Row], *, gap: int, until: int) -> tuple[Int64Array, Int64Array, Int64Array]:
    often = [(0, at, at + 1) for at in range(0, until, gap)]
    return columns(sorted([*often, *rare], key=lambda row: row[2]), scale=MS)


@pytest.mark.parametrize("guard", ["strict", "none"])
@pytest.mark.parametrize("first", [1, 20_000, 100_000])
def test_a_type_that_comes_later_than_all_others_is_not_sure(first: int, guard: GuardWord) -> None:
    rare = [(1, at, at + 3_000) for at in range(first, 150_000, 500)]
    known_first = [(1, 0, 2)]  # the type is there from the beginning: its rows come seldom
    stream = _two(known_first + rare, gap=10, until=153_000)
    _, missed, counts = _stated_and_missed(ProbSlack(0.3, guard=guard), stream)
    assert not missed.any()
    assert counts.windows > 100


@pytest.mark.parametrize("ratio", [1, 20, 200])
def test_windows_that_state_0_miss_nothing(ratio: int) -> None:
    gap = max(500 // ratio, 2)
    rng = np.random.default_rng(ratio)
    made = np.cumsum(300 + geometric(200)(rng, 500))
    came = np.maximum.accumulate(made + 2_000 + rng.integers(0, 300, len(made)))
    rare = [(1, 0, 2), *((1, int(a), int(b)) for a, b in zip(made, came, strict=True))]
    until = min(int(made[-1]), gap * 60_000)
    stream = _two([row for row in rare if row[1] < until], gap=gap, until=until)
    for guard in GUARDS:
        chances, missed, counts = _stated_and_missed(ProbSlack(0.3, guard=guard), stream)
        assert counts.early > 20
        assert not missed[chances == 0].any()


def test_a_type_that_is_silent_for_longer_than_ever_has_a_chance_above_0() -> None:
    stream: Stream = stream_of([(geometric(20), geometric(3), 8_000)], 3)
    windows = WindowEnds(1_000 * MS, 20 * MS)
    run = ProbSlack(0.2, guard="none", fit_rows=1_000).begin(windows)
    run.observe(stream.types, stream.event_time_ns, stream.arrival_ns)
    closed, counts = run.closings(), run.counts()
    told = told_and_missed(
        closed.end_ns, closed.closed_at_ns, closed.chance_missing, stream, windows
    )
    assert told.missed.sum() == counts.missed  # none stated 0
    assert told.chance.min() > 0


def test_a_type_that_has_gone_holds_no_window_open() -> None:
    """The type had 3 rows: other types say nothing of it, but none among T is of it."""
    stream = _two([(1, 0, 2), (1, 500, 502), (1, 900, 930)], gap=10, until=600_000)
    run = ProbSlack(0.1, guard="none", fit_rows=2_000).begin(WINDOWS)
    run.observe(*stream)
    assert run.pass_time(600_010 * MS) >= 598_000 * MS
    chances = run.closings().chance_missing
    assert chances[50] == 0.75  # it may have gone, or its rows are held up
    assert 0 < chances[-1] < 0.05  # for long none of its windows has missed a row


def test_rows_of_a_rare_type_are_kept_over_fits() -> None:
    """The type has 13 rows in each fit, and is known once there were 32."""
    rare = [(1, at, at + 1_500) for at in range(0, 100_000, 777)]
    stream = _two([(1, 0, 2), *rare[1:]], gap=10, until=100_000)
    run = ProbSlack(0.1, fit_rows=1_000).begin(WINDOWS)
    run.observe(*stream)
    counts = run.counts()
    assert counts.early > 40
    assert counts.missed <= 0.1 * counts.windows
