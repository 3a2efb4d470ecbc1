"""Samples of other lengths than a second: who is shown them, who refuses, and what is said."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import slackwater as sw
from slackwater.actors.tuning.sample_history import SampleHistory, most_samples
from slackwater.report.render import render_report
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.errors import SettingError
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.tune import SlackPolicy, make_policy
from tests.support.flows import late_pair
from tests.support.graphs import paths

S = NS_PER_SECOND
PATHS = paths({"in": (), "gate": ("in",), "out": ("gate",)}, ["gate"])


def graph_of(interval: str) -> FlowGraph:
    flow = late_pair("late", seconds=1, deadline="1s")
    return FlowGraph.of(
        sw.Simulation(2).plan(flow, tuning=sw.Tuning(policy="1s", interval=interval))
    )


def made(policy: str, interval: str) -> SlackPolicy:
    one = make_policy(graph_of(interval), sw.Tuning(policy=policy, interval=interval))
    assert one is not None
    return one


SHOWN: list[tuple[int, set[int]]] = []
"""Seconds that a policy was shown: a run has a copy of the policy, and of what it holds."""


def note(second: int, intervals_ns: set[int]) -> None:
    SHOWN.append((second, intervals_ns))


@pytest.mark.parametrize("interval", ["500ms", 0.5, timedelta(milliseconds=500)])
def test_at_half_a_second_the_simulator_samples_decides_and_reports_twice_as_often(
    interval: Any,
) -> None:
    class Watches:
        name = "watches"

        def __init__(self, graph: FlowGraph) -> None:
            assert graph.interval_ns in (S, S // 2)

        def begin(self) -> list[sw.tuning.Command]:
            return [sw.tuning.SetRelease(Subject("gate"), sw.tuning.ReleaseRule.slack(S // 2))]

        def decide(
            self, second: int, samples: dict[Subject, sw.tuning.StageSample]
        ) -> list[sw.tuning.Command]:
            note(second, {one.interval_ns for one in samples.values()})
            return []

    def run(**settings: Any) -> sw.JobReport:
        SHOWN.clear()
        tuning = sw.Tuning(policy=Watches, **settings)
        with sw.Simulation(3, seed=1) as nodes:
            return nodes.submit(late_pair("late", seconds=6, deadline="1s"), tuning=tuning).wait()

    whole = run().tuning
    assert whole is not None
    assert [(n, {S}) for n in range(whole.seconds)] == SHOWN
    report = run(interval=interval)
    halves = report.tuning
    assert halves is not None
    assert [(n, {S // 2}) for n in range(halves.seconds)] == SHOWN
    assert (whole.interval_ns, halves.interval_ns) == (S, S // 2)
    assert 2 * whole.seconds - 1 <= halves.seconds <= 2 * whole.seconds + 1
    assert (whole.errors, halves.errors) == (0, 0)
    counted = sum(one.results for one in halves.series.spans)
    assert 0 <= report.sinks[0].rows - counted <= 50, "of the interval that the end has cut short"
    assert sw.JobReport.from_json(report.to_json()).to_json() == report.to_json()
    render_report(report, console=Console(file=(text := StringIO()), width=200))
    assert f"of {halves.seconds} intervals of 500 ms (watches)" in text.getvalue()
    assert "an interval counts by the sum of its stages' worst" in text.getvalue()


@pytest.mark.parametrize(
    ("settings", "claim"),
    [
        ({"interval": "500ms"}, "interval='500ms', and policy='sltuner' thinks in seconds"),
        ({"interval": "2s", "policy": "sltuner"}, "or take another policy, such as"),
        ({"interval": "fast", "policy": "1s"}, "interval='fast' is not a length of time"),
        ({"interval": "0s", "policy": "1s"}, "interval='0s' must be more than zero"),
        ({"interval": "49ms", "policy": "1s"}, "'late': interval='49ms' must be at least 50.0 ms"),
    ],
)
def test_an_interval_that_cannot_be_gone_by_is_refused_at_submit(
    settings: dict[str, Any], claim: str
) -> None:
    flow = late_pair("late", seconds=1, deadline="1s")
    with sw.Simulation(1) as nodes, pytest.raises(SettingError) as caught:
        nodes.submit(flow, tuning=sw.Tuning(**settings))
    assert claim in str(caught.value)


@pytest.mark.parametrize("interval", [True, None, []])
def test_what_is_no_length_of_time_is_refused_where_it_is_written(interval: Any) -> None:
    with pytest.raises(SettingError, match=r"interval=.* write a length of time"):
        sw.Tuning(interval=interval)


def test_one_second_however_it_is_written_is_what_sltuner_takes() -> None:
    flow = late_pair("late", seconds=1, deadline="1s")
    for interval in ("1s", "1000ms", 1, 1.0, timedelta(seconds=1)):
        assert sw.Simulation(1).plan(flow, tuning=sw.Tuning(interval=interval)).interval_ns == S


def test_what_fades_by_the_second_fades_alike_over_a_second_of_any_intervals() -> None:
    def hold_ns(interval: str, calls: int) -> int:
        policy = made("decaying maximum", interval)
        for second in range(calls + 1):
            took_ns = 4 * 10**8 if second == 0 else 0
            fast = StageSample(subject=Subject("fast"), rows=1, second=second, latency_ns=took_ns)
            (setting,) = policy.decide(second, {fast.subject: fast})
        assert setting.rule.hold_ns is not None
        return setting.rule.hold_ns

    assert hold_ns("1s", 2) == pytest.approx(hold_ns("500ms", 4), abs=2)
    assert hold_ns("1s", 2) != pytest.approx(hold_ns("1s", 4), abs=2)


@pytest.mark.parametrize(("interval", "drawn_at"), [("1s", [4, 9]), ("500ms", [9]), ("4s", [0, 1])])
def test_a_slack_of_the_calibration_stays_for_five_seconds_or_an_interval(
    interval: str, drawn_at: list[int]
) -> None:
    policy = made("calibration", interval)
    last = 2 if interval == "4s" else 10
    assert [n for n in range(last) if policy.decide(n, {})] == drawn_at


def test_a_history_of_other_intervals_teaches_nothing(tmp_path: Path) -> None:
    def samples(interval_ns: int) -> list[StageSample]:
        return [
            StageSample(subject=Subject("gate"), second=n, interval_ns=interval_ns) for n in (0, 1)
        ]

    halves = SampleHistory(tmp_path, graph_of("500ms"), most=100)
    seconds = SampleHistory(tmp_path, graph_of("1s"), most=100)
    assert halves.save(samples(S // 2), job="1") is None
    assert seconds.save(samples(S), job="2") is None
    assert seconds.load() == (samples(S), "2 samples of 1 earlier jobs")
    assert halves.load() == (samples(S // 2), "2 samples of 1 earlier jobs")


def test_as_many_seconds_are_kept_however_long_they_are_in_intervals() -> None:
    tuning, parts = sw.Tuning(window_s=60), len(graph_of("1s").parts)
    kept = [most_samples(graph_of(interval), tuning) // parts for interval in ("1s", "500ms")]
    assert kept == [60, 120]
