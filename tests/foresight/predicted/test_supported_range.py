"""A predicted figure has the range that its sample supports, or the reason for none."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

import slackwater as sw
from slackwater.report.prediction_table import prediction_title
from slackwater.runtime.foresight.predicted.coverage import supported_range
from slackwater.runtime.foresight.predicted.prediction import Prediction
from slackwater.runtime.measure.prediction import PredictionReport
from slackwater.sampling import sample_flow
from tests.support.known_work import MS, WorkClock, times


def predicted(*, spread: float, rate: float = 100.0, resume: bool = False) -> Prediction:
    clock = WorkClock(5 * MS)
    flow = sw.Dataflow("two")
    rows = flow.source("s", sw.table(times(1_000)), event_time="ts")
    work = rows.map_batches(clock.work, schema={"n": "int64"}, name="work")
    work.sink("out", sw.csv_sink("out", resume=True) if resume else sw.collect_sink())
    sample = replace(sample_flow(flow, clock_ns=clock), spread=spread)
    return sw.Simulation(nodes=1).predict(flow, rate, sample=sample)


def line(made: Prediction) -> str:
    return next(one for one in made.text().splitlines() if one.startswith("latency"))


def test_a_range_is_what_the_sample_supports_around_the_figure() -> None:
    made = predicted(spread=0.05)
    assert made.supported.range_s is not None
    least_s, most_s = made.supported.range_s
    assert least_s < made.worst_s < most_s < 2 * made.worst_s
    assert "by its sample" in line(made)
    assert "between" not in line(made)


def test_without_known_costs_the_figure_has_no_range() -> None:
    made = predicted(spread=0.0)
    assert made.supported.range_s is None
    assert "(no range: its sample does not show how costs vary)" in line(made)


def test_a_range_over_an_overload_gives_no_figure() -> None:
    said = line(predicted(spread=0.3, rate=190.0))
    assert "no figure can be given" in said
    assert "a slot is overloaded; take more rows" in said


def test_a_range_of_a_magnitude_gives_no_figure() -> None:
    made = predicted(spread=0.05)
    worst = replace(made.estimate, held_up_s=made.estimate.held_up_s + 30.0)
    found = supported_range(made.estimate, [made.estimate, worst], made.sample)
    assert not found.has_figure
    assert "it is anything from" in found.why


def test_where_no_result_is_expected_no_figure_can_be_given() -> None:
    made = predicted(spread=0.05)
    none = replace(made.estimate, has_result=made.estimate.has_result & False)
    found = supported_range(none, [], made.sample)
    assert (found.has_figure, found.why) == (False, "no result leaves within these 60.00 s")


def test_a_prediction_is_not_of_a_run_that_resumes() -> None:
    assert (
        "holds not   out resuming: a run that goes on" in predicted(spread=0.05, resume=True).text()
    )
    assert "resuming" not in predicted(spread=0.05).text()


def test_a_report_says_no_latency_of_0_ns() -> None:
    made = partial(PredictionReport, p99_ns=0, mean_ns=0)
    assert "(worst: – before it ran" in prediction_title(made(worst_ns=0))
    assert "(worst: 1.00 ms before it ran" in prediction_title(made(worst_ns=MS))


@pytest.mark.parametrize("spread", [0.0, 0.05])
def test_json_has_the_range_or_why_there_is_none(spread: float) -> None:
    latency = predicted(spread=spread).to_json()["latency"]
    assert (latency["range_s"] is None) == (latency["no_range"] is not None) == (spread == 0.0)
