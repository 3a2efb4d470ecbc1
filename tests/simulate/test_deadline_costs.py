"""What a deadline costs: no result that a simple rule, held by the clock, would have kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import slackwater as sw
from benchmarks.sltuner.rival_policies import HELD_SPLIT, RIVALS

Seconds = npt.NDArray[np.float64]
HOLDS = sw.Tuning(policy=RIVALS[HELD_SPLIT])
LIMITS = sw.Limits(source_gap_ns=100_000_000)
"""Sources look ten times a second: what is lost here is seconds late."""


def table(times_s: Seconds, arrival_s: Seconds | None = None) -> pa.Table:
    """Reports at these times; one area of ten each."""
    times = (times_s * 1e9).astype(np.int64)
    arrival = times if arrival_s is None else (arrival_s * 1e9).astype(np.int64)
    return pa.table({"ts": times, "arrival": arrival, "area": np.arange(len(times)) % 10})


def pairs(
    tables: Sequence[pa.Table], *, deadline: str | None, within: str, speed: float | None
) -> sw.Dataflow:
    """The join of two streams of reports."""
    flow = sw.Dataflow("pairs", deadline=deadline)
    arrival = None if speed is None else "arrival"
    one, other = (
        flow.source(name, sw.table(rows), event_time="ts", arrival=arrival, speed=speed)
        for name, rows in zip(("one", "other"), tables, strict=True)
    )
    one.join(other, on="area", within=within, name="pairs").sink("out", sw.collect_sink())
    return flow


def run(flow: sw.Dataflow, tuning: sw.Tuning | None = None) -> sw.JobReport:
    with sw.Simulation() as nodes:
        return nodes.submit(flow, tuning=tuning, limits=LIMITS).wait()


def results(report: sw.JobReport) -> int:
    return sum(sink.rows for sink in report.sinks)


def slack_ready(report: sw.JobReport) -> int:
    assert report.tuning is not None
    return sum(gate.slack_ready for gate in report.tuning.gates)


def in_step(seconds: float, every_s: float = 0.01) -> list[pa.Table]:
    times = np.arange(0, seconds, every_s)
    return [table(times), table(times + every_s / 2)]


def polled(seconds: int, *, every_s: int, apart_s: float) -> list[pa.Table]:
    """Two feeds that are asked every so often, and then tell of all that was since."""
    times = np.arange(0, seconds, 0.1)
    polls = np.where(times > 0, (np.floor(times / every_s) + 1) * every_s, 0)
    return [table(times, polls), table(times, polls + apart_s * (times > 0))]


def test_history_as_fast_as_possible_loses_nothing_to_a_deadline() -> None:
    tables = in_step(100)
    every = run(pairs(tables, deadline=None, within="1s", speed=None))
    under = run(pairs(tables, deadline="6s", within="1s", speed=None))
    assert results(under) == results(every) > 0
    assert slack_ready(under) == 0
    assert under.ledger.late == 0


def test_history_at_sixty_times_its_speed_loses_nothing_to_a_deadline_that_it_can_keep() -> None:
    times = np.arange(0, 600, 0.5)
    lag_s = 10 - 10 * np.cos(times / 60)  # a third of a second by the clock
    tables = [table(times, np.maximum.accumulate(times + lag_s)), table(times)]
    flow = pairs(tables, deadline="6s", within="5s", speed=60)
    every = run(pairs(tables, deadline=None, within="5s", speed=60))
    under = run(flow)
    assert results(under) == results(every) > 0
    assert slack_ready(under) <= slack_ready(run(flow, HOLDS))
    assert under.ledger.late == 0


@pytest.mark.parametrize("apart_s", [0.4, 3.0])
def test_feeds_that_are_polled_out_of_step_lose_nothing_to_a_deadline(apart_s: float) -> None:
    tables = polled(60, every_s=12, apart_s=apart_s)
    every = run(pairs(tables, deadline=None, within="1s", speed=1.0))
    flow = pairs(tables, deadline="5s", within="1s", speed=1.0)
    under = run(flow, sw.Tuning(predictor="linear"))
    assert results(under) == results(every) > 0
    assert slack_ready(under) <= slack_ready(run(flow, HOLDS))  # the last row of each poll
    assert under.tuning is not None
    assert (under.tuning.over, under.ledger.late) == (0, 0)


def test_one_gate_loses_no_more_order_than_under_the_even_split_by_the_clock() -> None:
    times = np.arange(0, 45, 0.2)
    lag_s = 1.5 + 1.5 * np.sin(times / 4)
    buses = table(times, np.maximum.accumulate(times + lag_s))
    flow = pairs([buses, table(times)], deadline="1s", within="2s", speed=1.0)
    under = run(flow, sw.Tuning(predictor="linear"))
    assert slack_ready(under) <= slack_ready(run(flow, HOLDS))
    assert under.tuning is not None
    assert under.tuning.over == 0
    assert under.tuning.status["fits"] == 1, "else no model could have ruled"
