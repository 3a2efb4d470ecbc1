"""Samples of each second: one a second, differences of counters, bounded, to JSON and back."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.measure.samples import (
    MOST_SAMPLES,
    PARTS,
    GateState,
    StageMeter,
    StageSample,
)
from slackwater.runtime.model import END_NS, NS_PER_SECOND, READY_ONLY, START_NS
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.model.subject import Subject


def meter(**options: int) -> StageMeter:
    return StageMeter(Subject("gate"), start_ns=options.pop("start_ns", 0), **options)


def test_every_second_has_a_sample_even_when_nothing_happened_in_it() -> None:
    one = meter(start_ns=500)
    one.close(500 + NS_PER_SECOND - 1, GateState())
    assert one.take() == []
    one.worked(7, rows=3)
    assert one.is_over(500 + 4 * NS_PER_SECOND)
    one.close(500 + 4 * NS_PER_SECOND, GateState())
    samples = one.take()
    assert [s.second for s in samples] == [0, 1, 2, 3]
    assert [(s.rows, s.latency_ns) for s in samples] == [(3, 7), (0, 0), (0, 0), (0, 0)]
    assert one.take() == []


def test_samples_are_differences_of_counters_and_add_up_to_them() -> None:
    one = meter()
    counters = [(3, 1), (3, 1), (10, 4)]
    for second, (slack_ready, late) in enumerate(counters, start=1):
        one.close(second * NS_PER_SECOND, GateState(slack_ready=slack_ready, late=late))
    assert [(s.slack_ready, s.late) for s in one.take()] == [(3, 1), (0, 0), (7, 3)]


def test_a_meter_that_goes_on_from_counters_counts_only_what_follows() -> None:
    one = meter()
    one.restart(GateState(slack_ready=100, late=10))
    one.close(NS_PER_SECOND, GateState(slack_ready=105, late=10))
    assert [(s.slack_ready, s.late) for s in one.take()] == [(5, 0)]


def test_the_longest_of_a_second_counts_and_not_in_the_next() -> None:
    one = meter()
    one.worked(5, rows=1, last_event_ns=40)
    one.worked(9, rows=2, last_event_ns=30)
    one.travelled(4)
    one.travelled(3)
    one.close(2 * NS_PER_SECOND, GateState())
    first, second = one.take()
    assert (first.latency_ns, first.comm_ns, first.rows, first.last_event_ns) == (9, 4, 3, 40)
    assert (second.latency_ns, second.comm_ns, second.rows, second.last_event_ns) == (0, 0, 0, 40)


def test_slices_and_what_a_source_has_promised_are_in_each_sample() -> None:
    one = meter()
    for promise_ns in (40, 30, END_NS):
        one.sliced()
        one.promised(promise_ns)
    again = meter()
    restore(again, save(one))
    for each in (one, again):
        each.close(2 * NS_PER_SECOND, GateState())
        first, second = each.take()
        assert (first.slices, first.promised_ns) == (3, 40), "that it has ended is no time"
        assert (second.slices, second.promised_ns) == (0, 40)
        assert first.ended
        assert second.ended
    assert StageSample(subject=Subject("gate"), second=0).promised_ns == START_NS


@given(st.lists(st.integers(0, 2**62), max_size=30), st.sampled_from([50_000_003, NS_PER_SECOND]))
def test_arrivals_are_counted_by_tenths_of_intervals(stimuli: list[int], interval_ns: int) -> None:
    one = meter(interval_ns=interval_ns)
    if stimuli:
        one.arrived(np.array(stimuli))
    for stimulus in stimuli:
        one.arrived(np.array([stimulus]))
    one.close(interval_ns, GateState())
    (sample,) = one.take()
    expected = Counter(stimulus * PARTS // interval_ns for stimulus in stimuli)
    assert sample.stimulus_ns == max(stimuli, default=START_NS)
    assert dict(sample.arrived) == {number: 2 * rows for number, rows in expected.items()}


def test_what_nobody_takes_goes_oldest_first() -> None:
    one = meter()
    for second in range(1, MOST_SAMPLES + 51):
        one.close(second * NS_PER_SECOND, GateState())
    assert [s.second for s in one.take()] == list(range(50, MOST_SAMPLES + 50))


def test_after_a_long_silence_what_was_counted_is_still_there_once() -> None:
    one = meter()
    one.worked(7, rows=3)
    one.close(10_000 * NS_PER_SECOND, GateState(slack_ready=2))
    samples = one.take()
    assert [s.second for s in samples] == list(range(10_000 - MOST_SAMPLES, 10_000))
    assert sum(s.rows for s in samples) == 3
    assert sum(s.slack_ready for s in samples) == 2


def test_skew_counts_from_the_first_event_and_is_nothing_at_the_end() -> None:
    one = meter()
    one.came(40)
    one.close(NS_PER_SECOND, GateState(newest_ns=100, frontier_ns=START_NS))
    one.close(2 * NS_PER_SECOND, GateState(newest_ns=100, frontier_ns=70))
    one.close(3 * NS_PER_SECOND, GateState(newest_ns=100, frontier_ns=END_NS))
    assert [s.skew_ns for s in one.take()] == [60, 30, 0]


def test_of_two_polls_within_a_second_the_sample_has_how_far_one_was_ahead_meanwhile() -> None:
    one = meter()
    one.ahead(12 * NS_PER_SECOND)
    one.ahead(0)
    level = GateState(newest_ns=100, frontier_ns=100)
    one.close(2 * NS_PER_SECOND, level)
    assert [(s.skew_ns, s.peak_ns) for s in one.take()] == [(0, 12 * NS_PER_SECOND), (0, 0)]


def test_what_is_held_has_waited_until_the_end_of_its_second() -> None:
    one = meter()
    since_ns = NS_PER_SECOND // 2
    one.close(2 * NS_PER_SECOND, GateState(held=4, held_since_ns=since_ns))
    assert [(s.held, s.held_ns) for s in one.take()] == [
        (4, NS_PER_SECOND // 2),
        (4, 3 * NS_PER_SECOND // 2),
    ]


def test_a_sample_goes_to_json_and_back() -> None:
    sample = StageSample(
        subject=Subject("gate"), second=3, rows=7, rule=READY_ONLY, newest_ns=END_NS
    )
    plain = json.loads(json.dumps(sample.to_json()))
    assert StageSample.from_json(plain) == sample
    assert StageSample.from_json({**plain, "of a later version": 1}) == sample
    assert StageSample.from_json({"stage": "gate", "second": 3}).rows == 0
    with pytest.raises(TypeError, match="second"):
        StageSample.from_json({"stage": "gate"})
