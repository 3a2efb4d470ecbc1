"""A deadline over history that is read as fast as possible says what it then means."""

from __future__ import annotations

import logging

import pyarrow as pa
import pytest

import slackwater as sw
from tests.support.endless import SilentInput

ROWS = sw.table(pa.table({"ts": [1, 2], "k": [1, 1]}))
SAID = "have no speed=, and are read as fast as possible"


def flow(*, speed: float | None, deadline: str | None = "6s") -> sw.Dataflow:
    made = sw.Dataflow("history", deadline=deadline)
    one, other = (
        made.source(name, ROWS, event_time="ts", speed=speed) for name in ("one", "other")
    )
    one.merge(other, name="both").sink("out", sw.collect_sink())
    return made


def test_it_is_said_at_submit_by_explain_and_in_the_report(
    caplog: pytest.LogCaptureFixture,
) -> None:
    unpaced = flow(speed=None)
    assert f"one, other {SAID}" in unpaced.explain()
    assert "windows may miss rows" in unpaced.explain()
    with sw.Simulation() as nodes, caplog.at_level(logging.WARNING, "slackwater"):
        report = nodes.submit(unpaced).wait()
    assert [one.message for one in caplog.records if SAID in one.message]
    assert any(SAID in note and "6.00 s" in note for note in report.notes)


@pytest.mark.parametrize(("speed", "deadline"), [(1.0, "6s"), (None, None)])
def test_nothing_is_said_of_paced_sources_or_without_a_deadline(
    speed: float | None, deadline: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    paced = flow(speed=speed, deadline=deadline)
    assert SAID not in paced.explain()
    with sw.Simulation() as nodes:
        nodes.submit(paced).wait()
    assert not [one for one in caplog.records if SAID in one.message]


def test_an_input_that_does_not_say_it_is_history_is_taken_for_live() -> None:
    made = sw.Dataflow("live", deadline="6s")
    made.source("one", SilentInput(ROWS), event_time="ts").sink("out", sw.collect_sink())
    assert "speed=" not in made.explain()
