"""Flows over numbered sources: the same however they are paced, and accounted for by name."""

from __future__ import annotations

import pytest

import slackwater as sw
from slackwater.report.render import report_text
from slackwater.runtime.errors import FlowError
from slackwater.runtime.measure.ledger import imbalances
from tests.support.flows import simulated
from tests.support.numbered import all_parts_flow, numbered_flow, shuffled_devices


@pytest.mark.parametrize("merge", [False, True])
def test_a_paced_run_has_the_results_of_one_that_is_read_at_once(merge: bool) -> None:
    rows = shuffled_devices(3)
    tables, reports = [], []
    for speed in (None, 1.0, 7.3):
        job, report = simulated(numbered_flow(rows, speed=speed, merge=merge))
        assert not imbalances(report)
        tables.append(job.result("counts"))
        reports.append(report.ledger)
    assert tables[0].equals(tables[1])
    assert tables[0].equals(tables[2])
    assert reports[0].counts == reports[1].counts


@pytest.mark.parametrize("nodes", [1, 4])
def test_clocks_drift_k_slack_and_closing_together_depend_on_neither_pace_nor_place(
    nodes: int,
) -> None:
    rows = shuffled_devices(6)
    tables = []
    for speed, seed in ((2.0, 1), (9.0, 2)):
        flow = all_parts_flow(rows, speed=speed)
        job, report = simulated(flow, seed=seed, nodes=nodes if speed == 2.0 else 2)
        assert report.state == "done", report.error
        assert not imbalances(report)
        tables.append([job.result(sink) for sink in ("counts", "pairs", "closing")])
    assert all(len(table) for table in tables[0])
    for one, other in zip(*tables, strict=True):
        assert one.equals(other)


def test_what_became_of_each_row_is_told_by_name_and_given_up_numbers_beside_it() -> None:
    rows = shuffled_devices(3)
    numbers = [*zip(rows["device"].to_pylist(), rows["number"].to_pylist(), strict=True)]
    job, report = simulated(numbered_flow(rows, speed=None, merge=False))
    (source,) = [stage for stage in report.stages if stage.kind == "source"]
    counted = sum(job.result("counts")["n"].to_pylist())
    duplicates = len(numbers) - len(set(numbers))
    given_up = source.counts.by_name()["given_up"]
    assert duplicates > 0
    assert given_up > 0
    assert source.counts.by_name()["duplicate"] == duplicates
    assert counted == len(rows) - duplicates - source.late_dropped
    text = report_text(report)
    assert f"+ {duplicates} duplicate" in text
    assert f"at the sources, {given_up} sequence numbers were given up" in text


def test_explain_says_how_numbers_are_waited_for_and_what_depends_on_the_clock() -> None:
    told = numbered_flow(shuffled_devices(1), speed=None, merge=True).explain()
    assert "numbered by number" in told
    assert "by sequence number, gaps given up after 80.0 ms at most, late ones dropped" in told
    assert "by the clock" not in told
    flow = sw.Dataflow("live")
    source = flow.source(
        "live",
        sw.table({"t": [1], "n": [1]}),
        event_time="t",
        sequence="n",
        out_of_order="sequence",
    )
    assert "by the clock, so that results depend on it: arrival= would mend that" in flow.explain()
    with pytest.raises(FlowError, match="'live' waits for missing numbers by the clock"):
        source.sink("out", sw.jsonl_sink("out.jsonl", resume=True))
