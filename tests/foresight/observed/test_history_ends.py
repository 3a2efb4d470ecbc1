"""What gates wait for by a history: sources that end, that pause, and that are not paced."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.foresight.predicted.prediction import Prediction
from slackwater.runtime.simulate import CostModel
from tests.foresight.observed.test_history import worst_s
from tests.support.known_work import MS


def merged(
    *came_s: np.ndarray, lags_s: float | np.ndarray = 0.0, speed: float | None = 1
) -> sw.Dataflow:
    """Return a merge of sources whose rows come then; the last of them is of some time before."""
    flow = sw.Dataflow("merged", deadline="60s")
    streams = []
    for n, at_s in enumerate(came_s):
        lag_s = lags_s if n == len(came_s) - 1 else 0.0
        stamps = {
            name: pa.array((times_s * 1e9).astype("int64"), pa.timestamp("ns"))
            for name, times_s in (("ts", at_s - lag_s), ("came", at_s))
        }
        arrival = None if speed is None else "came"
        read = flow.source(
            "ab"[n], sw.table(pa.table(stamps)), event_time="ts", arrival=arrival, speed=speed
        )
        streams.append(read.select("ts"))
    flow.merge(*streams, name="gate").sink("out", sw.collect_sink())
    return flow


def measured(flow: sw.Dataflow, folder: Path, **options: object) -> tuple[float, Prediction]:
    """Return how long rows waited at most, and what is predicted from what that job has kept."""
    waits = sw.Tuning(policy="ready-only", history=folder)
    with sw.Simulation(2) as nodes:
        report = nodes.submit(flow, tuning=waits).wait()
        return worst_s(report), nodes.predict(flow, history=folder, **options)


def test_nobody_waits_for_a_source_that_had_ended(tmp_path: Path) -> None:
    """One source ends after 2 s, the other goes on for 18 s more."""
    flow = merged(np.arange(10, 30, 0.1), np.arange(10, 12, 0.5))
    waited_s, made = measured(flow, tmp_path)
    assert waited_s < 2
    assert made.worst_s == pytest.approx(waited_s, abs=0.5)
    goes_on = sw.Simulation(2).predict(flow, {"a": 10, "b": 0.01}, history=tmp_path)
    assert goes_on.worst_s > 10, "at rates that are given it does not end"


def test_a_source_is_late_when_it_was_in_the_record(tmp_path: Path) -> None:
    """One comes for 39 s, the other for 24 s, and is late by 4 s from the 16th to the 18th."""
    of_s = np.arange(0, 25, 0.1)
    at_s = np.maximum.accumulate(of_s + np.where((of_s > 11) & (of_s < 14), 4.0, 0.2))
    flow = merged(np.arange(0, 39, 0.1), at_s, lags_s=at_s - of_s)
    _, made = measured(flow, tmp_path, horizon="100s")
    assert made.gates is not None
    times = made.gates.times["b"]
    series = times.ahead(made.outlook.series["b"], made.work.width_s)
    behind_s = series.rows.stimulus_s - series.rows.event_s
    lag_s = behind_s - np.median(behind_s)  # what counts as 0 is any event time
    is_late = lag_s > 2
    within_s = series.rows.stimulus_s % made.sample.recorded["b"].length_s
    assert is_late.sum() > 30, "in each turn"
    assert (within_s[is_late] > 14).all()
    assert (within_s[is_late] < 19).all()
    assert (lag_s[(within_s > 1) & (within_s < 14)] < 1).all()


def test_at_the_rates_of_the_record_lags_of_unpaced_sources_are_as_they_were(
    tmp_path: Path,
) -> None:
    """One source is read through in a quarter of the time, which makes neither any faster."""
    flow = merged(np.arange(0, 400, 1.0), np.arange(0, 400, 4.0), speed=None)
    waits = sw.Tuning(policy="ready-only", history=tmp_path)
    nodes = sw.Simulation(2, cost=CostModel(per_row_ns=10 * MS))
    nodes.submit(flow, tuning=waits).wait()
    for options in ({}, {"horizon": "2s"}):
        made = nodes.predict(flow, history=tmp_path, **options)
        assert made.gates is not None
        for name, times in made.sample.times.items():
            ahead = made.gates.times[name]
            assert ahead.pace == times.pace
            assert np.array_equal(ahead.stimulus_s, times.stimulus_s)
    rates = {name: 3 * rate.mean for name, rate in made.sample.recorded.items()}
    faster = nodes.predict(flow, rates, history=tmp_path)
    assert faster.gates is not None
    for name, times in faster.sample.times.items():
        assert faster.gates.times[name].pace == pytest.approx(3 * times.pace)
