"""The example of an order of one's own."""

from __future__ import annotations

from pathlib import Path

import slackwater as sw
from examples import own_order
from examples.own_order import UrgentFirst
from slackwater.runtime.model.subject import Subject

ROOT = Path(__file__).resolve().parents[2]


def test_what_is_urgent_waits_for_one_slice_and_the_results_are_the_same() -> None:
    def run(order: object) -> tuple[sw.testing.SimulatedJob, float]:
        with sw.Simulation(1, cost=own_order.BUSY) as nodes:
            job = nodes.submit(own_order.build(), limits=own_order.limits(order))
            assert job.wait().ledger.is_balanced
            return job, job.latency["rung"]["max_ms"]

    plain, without = run(None)
    ordered, with_it = run(UrgentFirst("alarms", "rung"))
    slice_ms = 5 * 12
    assert with_it <= slice_ms < without
    page = (ROOT / "docs/custom-rules.md").read_text(encoding="utf-8")
    assert f"by stimulus     {without:8.1f} ms" in page
    assert f"urgent first    {with_it:8.1f} ms" in page
    for sink in ("rung", "counted"):
        assert ordered.result(sink).equals(plain.result(sink))
        assert plain.result(sink).num_rows


def test_within_a_stage_it_takes_the_path_of_what_is_urgent_first() -> None:
    paths = [
        sw.schedule.PathView("reports→all", Subject("reports"), 5, 6, 10, 3),
        sw.schedule.PathView("alarms→all", Subject("alarms"), 7, 8, 1, 1),
    ]
    assert UrgentFirst("alarms").first_path(paths, 9).name == "alarms→all"
    assert UrgentFirst().first_path(paths, 9).name == "reports→all"


def test_the_page_shows_the_programs_as_they_are() -> None:
    page = (ROOT / "docs/custom-rules.md").read_text(encoding="utf-8")
    for name, first in (
        ("own_order", "class UrgentFirst:"),
        ("own_limits", "TIGHT = "),
        ("own_policy", "class Leftover:"),
    ):
        (shown,) = [one for one in page.split("```python\n") if one.startswith(first)]
        program = (ROOT / f"examples/{name}.py").read_text(encoding="utf-8")
        assert shown.split("\n```")[0] in program
