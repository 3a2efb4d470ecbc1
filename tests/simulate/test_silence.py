"""Alerts and windows leave in time though every source is silent."""

from __future__ import annotations

import pytest

import slackwater as sw
from tests.support.silence import silent_flow, was_in_time


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize("word", ["error", "late", "sort"])
def test_an_alert_of_silence_comes_though_all_is_silent(ended: bool, word: str) -> None:
    order = {} if word == "error" else {"out_of_order": word, "disorder": "30ms"}
    flow = silent_flow(idle="100ms", ended=ended, **order)
    nodes = sw.Simulation(nodes=1)
    assert "time goes on by the clock while all sources are silent" in str(nodes.explain(flow))
    job = nodes.submit(flow)
    report = job.wait()
    assert was_in_time(job)
    assert report.ledger.is_balanced
    assert all(stage.late == 0 for stage in report.stages)


def test_without_idle_it_comes_with_the_end() -> None:
    job = sw.Simulation(nodes=1).submit(silent_flow(idle=None))
    job.wait()
    assert not was_in_time(job)
