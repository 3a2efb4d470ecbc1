"""A job that stands still: it says so, and for whom it waits; `stop` keeps what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

import slackwater as sw
from slackwater.runtime.measure.report import StageReport
from tests.support.endless import SilentInput
from tests.support.waiting import until
from tests.system.test_failures import SOON_S, at, counted, sink_rows

pytestmark = pytest.mark.ray


def test_a_silent_source_is_named_and_stop_keeps_what_there_is(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    flow = sw.Dataflow("silence")
    talks, falls_silent = (
        flow.source(name, given, event_time="ts")
        for name, given in (
            ("talks", sw.table(at(list(range(1_000))))),
            ("falls-silent", SilentInput(sw.table(at(list(range(400)))))),
        )
    )
    both = talks.merge(falls_silent, name="both")
    both.sink("lines", sw.jsonl_sink(tmp_path / "out.jsonl"))
    both.sink("kept", sw.collect_sink())
    job = cluster.submit(flow, limits=sw.Limits(still_ns=200_000_000))
    with pytest.raises(TimeoutError, match="job 'silence' still runs"):
        job.wait(timeout=0.1)

    def both_now() -> StageReport:
        return next(stage for stage in job.report().stages if stage.name == "both")

    least = lambda: min(sink_rows(job, one) for one in ("kept", "lines"))  # noqa: E731
    until(lambda: least() >= 800, within_s=SOON_S, what="what is complete")
    until(lambda: both_now().in_flight >= 600, within_s=SOON_S, what="all others at the gate")
    assert job.status == "running"

    def both_sinks_still() -> bool:  # one stands still a moment before the other
        return [len(one.sinks) for one in job.report().standstills] == [2]

    until(both_sinks_still, within_s=SOON_S, what="a word of standing still")
    (still,) = job.report().standstills
    assert (still.sinks, still.waits_for) == (["lines", "kept"], ["falls-silent"])
    assert still.why == "'both' waits for source 'falls-silent', which gives nothing"
    assert "`idle=`" in still.do
    assert all(sink.old_s is not None for sink in job.report().sinks)
    gate = both_now()
    assert gate.waiting_for == ["falls-silent"]
    assert gate.in_flight == 1_400 - sink_rows(job, "kept")
    assert job.result("kept").num_rows == 1_400 - gate.in_flight  # asked while it runs
    job.stop()
    assert job.status == "stopped"
    assert job.wait().state == "stopped"
    assert job.report().ledger.is_balanced
    assert job.report().ledger.in_flight == gate.in_flight
    assert counted(tmp_path / "out.jsonl") == job.result("kept")["n"].to_pylist()
