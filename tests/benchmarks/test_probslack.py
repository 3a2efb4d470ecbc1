"""The streams of `probslack-*` are the paper's; what is told of a policy is what it did."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.probslack.drift import CHANGES, rows_without_gain
from benchmarks.probslack.streams import DISTRIBUTIONS, EVENTS, MS, Stream, drifting, generated
from benchmarks.probslack.sweep import (
    by_policy,
    closed_percent,
    gain_ms,
    oracle_ratio,
    pooled,
    worst_share,
)
from benchmarks.probslack.trial import (
    Course,
    Outcome,
    all_tried,
    followed,
    oracle_of,
    outcome_of,
    paper,
    simple_policies,
    tried,
    windows_of,
)
from slackwater.runtime.closing.simple import ByTime, EventDriven


def stream_of(*events: tuple[int, int]) -> Stream:
    """Return events given as generation and reception, in ms."""
    made, came = np.array(events).T * MS
    return Stream(np.zeros(len(events), dtype=np.int64), made, came)


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_gaps_have_a_mean_near_20_ms_and_delays_near_6_within_their_ranges(name: str) -> None:
    """[probslack] §4.2; with its own parameters the means of Z are 19.3 and 5.6 ms."""
    stream = generated(name, seed=1, events=20_000)
    gaps_ms = np.diff(stream.event_time_ns) / MS
    delays_ms = (stream.arrival_ns - stream.event_time_ns) / MS
    assert gaps_ms.mean() == pytest.approx(19.3 if name[0] == "Z" else 20, abs=0.25)
    assert delays_ms.mean() == pytest.approx(5.6 if name[1] == "Z" else 6, abs=0.25)
    assert (gaps_ms.min(), gaps_ms.max()) >= ((20, 20) if name[0] == "C" else (15, 25))
    assert gaps_ms.max() <= 35
    assert 1 <= delays_ms.min() <= delays_ms.max() <= 11
    assert (np.diff(stream.arrival_ns) >= 0).all()


def test_distributions_change_after_each_third_as_in_figure_9() -> None:
    stream = drifting(seed=1)
    gaps_ms = np.diff(stream.event_time_ns, prepend=0) / MS
    delays_ms = (stream.arrival_ns - stream.event_time_ns) / MS
    first, second, third = (
        slice(begin, end) for begin, end in zip((0, *CHANGES), (*CHANGES, EVENTS), strict=True)
    )
    assert (gaps_ms[first] == 20).all()
    assert gaps_ms[second].mean() == pytest.approx(25, abs=0.1)
    assert delays_ms[second].min() >= 6
    assert gaps_ms[third].mean() == pytest.approx(20, abs=0.1)
    assert (np.diff(stream.arrival_ns) >= 0).all()


def test_the_same_seed_gives_the_same_stream_and_another_another() -> None:
    one, same, other = (generated("BZ", seed, events=100) for seed in (3, 3, 4))
    assert (one.arrival_ns == same.arrival_ns).all()
    assert (one.arrival_ns != other.arrival_ns).any()


def test_a_course_counts_windows_misses_and_slack_so_far() -> None:
    """Windows of 10 ms end at 10 and 20: both close at their ends, the first misses one."""
    late = stream_of((1, 2), (9, 13), (15, 16), (24, 25), (34, 35))
    course = followed(ByTime(0), late, windows_of(10, 10), at_once=1)
    assert course.at_ns.tolist() == [at * MS for at in (2, 13, 16, 25, 35)]
    # A row is seen from the tick on at which it came: what closes there is told with the next.
    assert course.windows.tolist() == [0, 1, 1, 2, 3]
    assert course.missed.tolist() == [0, 0, 1, 1, 1]
    assert course.slack_ns.tolist() == [0] * 5
    waited = outcome_of(followed(ByTime(3 * MS), late, windows_of(10, 10), at_once=2))
    assert (waited.mer, waited.slack_ms) == (0, 3)


def test_the_highest_share_is_of_any_look_with_enough_windows() -> None:
    course = Course(*(np.array(one) for one in ([1, 2, 3], [50, 100, 400], [40, 30, 40], [0] * 3)))
    found = outcome_of(course)
    assert (found.mer, found.worst_mer) == (0.1, 0.3)
    few = Course(*(np.array(one) for one in ([1, 2], [5, 10], [5, 5], [0, 0])))
    assert outcome_of(few).worst_mer == 0.5


def test_event_driven_misses_nothing_and_the_oracle_gains_most() -> None:
    stream, windows = generated("BB", seed=2, events=4_000), windows_of(30)
    found = all_tried({**simple_policies(), "ProbSlack": paper(0.3)}, stream, windows, 0.3)
    assert found["event-driven"].mer == 0
    assert found["event-driven"].slack_ms == pytest.approx(16, abs=0.5)
    assert found["ignore"].slack_ms == 0
    assert found["ignore"].mer == pytest.approx(0.25, abs=0.05)  # the paper's Fig. 8: 30 %
    assert found["oracle"].mer == pytest.approx(0.3, abs=0.01)
    assert found["oracle"].slack_ms == min(one.slack_ms for one in found.values())
    # Nothing is fitted before the first T rows: so far it is the event-driven policy.
    assert found["ProbSlack"] == found["event-driven"]


def test_the_oracle_is_told_of_misses_and_slack_like_a_policy() -> None:
    stream = stream_of((1, 2), (9, 13), (15, 16), (24, 25), (31, 32))
    sure = tried(EventDriven(), stream, windows_of(10, 10))
    assert (sure.mer, sure.slack_ms) == (
        0,
        (16 + 25 - 30) / 2,
    )  # what the last row closes, a next tells
    knowing = oracle_of(stream, windows_of(10, 10), 0.0)
    assert (knowing.mer, knowing.slack_ms) == (0, (13 + 16 + 25 - 60) / 3)


def test_gains_and_shares_are_of_the_means_over_runs() -> None:
    def outcomes(*slacks_ms: float, mer: float = 0.0, worst: float = 0.0) -> list[Outcome]:
        return [Outcome(mer, slack_ms, worst, 10) for slack_ms in slacks_ms]

    found = {
        "event-driven": outcomes(10, 20),
        "ProbSlack": outcomes(4, 6, worst=0.27),
        "extended": outcomes(0, 0),
        "oracle": outcomes(-5, -5),
    }
    assert gain_ms(found) == 10
    assert oracle_ratio(found) == 2
    assert closed_percent(found, "extended") == 50
    assert worst_share([(0.3, found), (0.9, found)]) == pytest.approx(0.9)
    assert gain_ms(pooled([found, found])) == 10
    assert by_policy([{"a": one} for one in outcomes(3, 4)])["a"] == outcomes(3, 4)


def test_rows_without_gain_are_those_where_a_policy_waits_for_events() -> None:
    looks = EVENTS // 150 + 1
    ten = 10 * np.arange(1, looks + 1)
    like = {"at_ns": ten, "windows": ten, "missed": 0 * ten}
    begin = CHANGES[0] // 150
    gain_ms_of_each = np.where((np.arange(looks) >= begin) & (np.arange(looks) < begin + 20), 0, 8)
    ours = np.cumsum(10 * (12 - gain_ms_of_each)) * MS
    courses = [
        {
            "event-driven": Course(**like, slack_ns=np.cumsum(np.full(looks, 120)) * MS),
            "ProbSlack": Course(**like, slack_ns=ours),
        }
    ]
    assert rows_without_gain(courses, "ProbSlack", CHANGES[0]) == 20 * 150
    assert rows_without_gain(courses, "ProbSlack", CHANGES[1]) == 0
