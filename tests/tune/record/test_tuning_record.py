from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.measure.samples import MOST_SAMPLES, StageSample
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.tune import SetRelease, TuningRecord
from tests.support.flows import late_pair
from tests.support.reports import MS, SECOND
from tests.support.rules import rule

STEPS = ("fast", "slow", "gate", "out")


def plan() -> Plan:
    with sw.Simulation(1) as nodes:
        return nodes.plan(late_pair("late", seconds=1, deadline="1s"))


def record(**options: Any) -> TuningRecord:
    return TuningRecord(FlowGraph.of(plan()), policy="even split", **options)


def second(number: int, gate_ms: int = 100, *, without: str = "") -> list[StageSample]:
    """One second: 1 ms at every step, `gate_ms` at the gate, 5 rows each."""
    return [
        StageSample(
            subject=Subject(step),
            second=number,
            latency_ns=(gate_ms if step == "gate" else 1) * MS,
            rows=5,
            slack_ready=3 if step == "gate" else 0,
            rule=rule(7 * MS if step == "gate" else None),
        )
        for step in STEPS
        if step != without
    ]


def due_of(made: TuningRecord, **options: Any) -> list[tuple[int, list[str]]]:
    return [(number, sorted(step.name for step in seen)) for number, seen in made.due(**options)]


def test_a_second_is_due_once_when_all_steps_have_told_of_it() -> None:
    made = record()
    made.add(second(0, without="slow"))
    assert due_of(made) == []
    made.add([one for one in second(0) if one.stage == "slow"])
    assert due_of(made) == [(0, sorted(STEPS))]
    assert due_of(made) == []


def test_nobody_waits_for_a_slot_that_is_silent_and_its_samples_count_when_they_come() -> None:
    made = record()
    made.add(second(0, without="gate"))
    assert due_of(made, silent={Subject("gate")}) == [(0, ["fast", "out", "slow"])]
    assert made.report().latency.max_ns == 2 * MS
    made.add(second(1))
    made.add([one for one in second(0, 1_500) if one.stage == "gate"])
    assert due_of(made) == [(1, sorted(STEPS))]
    report = made.report()
    assert (report.seconds, report.over) == (2, 1)
    assert report.latency.max_ns == 1_502 * MS


def test_a_second_that_was_never_whole_is_shown_with_the_next_that_is() -> None:
    made = record()
    made.add(second(0, without="slow") + second(1))
    assert [number for number, _ in due_of(made)] == [0, 1]


@given(st.data())
def test_however_late_samples_come_the_report_is_the_same_and_no_second_is_shown_twice(
    data: st.DataObject,
) -> None:
    seconds = data.draw(st.integers(1, 8))
    sent = [one for number in range(seconds) for one in second(number, 250 * number)]
    comes = {(one.stage, one.second): one.second + data.draw(st.integers(0, 4)) for one in sent}
    in_time, delayed = record(), record()
    in_time.add(sent)
    shown: list[int] = []
    for tick in range(seconds + 5):
        delayed.add([one for one in sent if comes[one.stage, one.second] == tick])
        silent = data.draw(st.sets(st.sampled_from([Subject(step) for step in STEPS])))
        shown += [number for number, _ in delayed.due(silent=silent)]
    assert shown == sorted(set(shown))
    assert delayed.report(is_last=True).to_json() == in_time.report(is_last=True).to_json()


def test_the_report_has_only_what_was_due_until_the_last() -> None:
    made = record()
    made.add(second(0) + second(1, without="out"))
    made.due()
    assert made.report().seconds == 1
    assert made.report(is_last=True).seconds == 2


def test_latency_is_that_of_the_worst_path_and_results_are_rows_at_sinks() -> None:
    made = record()
    made.add(second(0, 1_000))
    made.due()
    report = made.report()
    (span,) = report.series.spans
    assert span.latency_ns == 1_002 * MS  # source, gate, sink
    assert (span.over, span.results) == (1, 5)
    assert report.laxity_ns == -2 * MS
    gate = span.gates["gate"]
    assert (gate.slack_ns, gate.slack_ready, gate.latency_ns) == (7 * MS, 3, SECOND)


def test_who_set_a_slack_is_told_from_the_next_second_on() -> None:
    made = record()
    made.add(second(0))
    made.was_set(SetRelease(Subject("gate"), rule(9 * MS), by="trigger"))
    made.add(second(1))
    made.due()
    report = made.report()
    assert [span.gates["gate"].by for span in report.series.spans] == ["", "trigger"]
    assert [(gate.rule.slack_ns, gate.by) for gate in report.gates] == [(9 * MS, "trigger")]


def test_the_record_of_a_tuner_that_died_goes_on_in_the_next() -> None:
    whole, first = record(), record()
    for number in range(3):
        whole.add(second(number, 400 * number))
        first.add(second(number, 400 * number))
    whole.due()
    first.due()
    first.was_set(SetRelease(Subject("gate"), rule(5 * MS), by="climb"))
    then = record(resumed=first.report())
    assert then.report().gates == first.report().gates
    for number in range(2, 5):  # second 2 once more, as its successor may hear it
        whole.add(second(number, 400 * number))
        then.add(second(number, 400 * number))
    assert [number for number, _ in then.due()] == [3, 4]
    whole.due()
    assert then.report().series.spans[:3] == whole.report().series.spans[:3]
    assert then.report().latency.to_json() == whole.report().latency.to_json()
    assert (then.report().seconds, then.report().over) == (5, 2)


def test_memory_is_bounded_and_what_is_too_old_changes_nothing() -> None:
    made = record()
    for number in range(3 * MOST_SAMPLES):
        made.add(second(number))
        made.due()
    assert len(made._seconds) <= MOST_SAMPLES + 1
    before = made.report().to_json()
    made.add(second(5, 60_000))
    assert made.report().to_json() == before
    assert made.report().seconds == 3 * MOST_SAMPLES
