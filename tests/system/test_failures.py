"""Bad luck on real Ray nodes: what only processes show, each once.

Whose fault an end was, in whatever order it is heard of, and bad input are in
`tests/simulate/test_failed_jobs.py` and `tests/life`; that both tell it in the same words, here.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from slackwater.report.render import report_text
from slackwater.runtime.errors import (
    ClusterError,
    OperatorError,
    SlackwaterError,
    WorkerDied,
)
from slackwater.runtime.life import TimeLimits
from slackwater.runtime.simulate import SlotDies
from tests.support.endless import EndlessInput
from tests.support.waiting import until

pytestmark = pytest.mark.ray

LIMIT_S = 60.0
SOON_S = 20.0
ONE_SLOT = {"*": "node-1"}


def endless(name: str = "endless") -> tuple[sw.Dataflow, sw.Stream]:
    flow = sw.Dataflow(name)
    return flow, flow.source("numbers", EndlessInput(), event_time="ts")


def at(milliseconds: list[int | None]) -> pa.Table:
    times = pa.array(milliseconds, pa.timestamp("ms"))
    return pa.table({"ts": times, "n": list(range(len(milliseconds)))})


def ignore(rows: pa.RecordBatch) -> None:
    pass


def sink_rows(job: sw.Job, sink: str) -> int:
    return next((one.rows for one in job.report().sinks if one.name == sink), 0)


def counted(lines: Path) -> list[int]:
    """The numbers in a JSON lines file, every line of which must be whole."""
    text = lines.read_text(encoding="utf-8")
    assert text == "" or text.endswith("\n")
    return [json.loads(line)["n"] for line in text.splitlines()]


def shown(folder: Path) -> list[str]:
    """What a reader of a folder sees."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def fails(
    cluster: sw.Cluster, flow: sw.Dataflow, kind: type[SlackwaterError], **options: Any
) -> str:
    """Run a flow that must fail so; return what the error says."""
    job = cluster.submit(flow, placement=ONE_SLOT, **options)
    with pytest.raises(kind) as caught:
        job.wait(timeout=LIMIT_S)
    assert type(caught.value) is kind
    assert job.status == "failed"
    report = job.report()
    assert report.state == "failed"
    assert report.error == str(caught.value)
    assert report.ledger.is_balanced, f"{report.ledger}"
    return str(caught.value)


# -- the user's own functions ------------------------------------------------------------------


def breaks_at_1000(columns: dict[str, Any]) -> dict[str, Any]:
    if columns["n"].max() >= 1_000:
        raise ZeroDivisionError("the user's own fault")
    return columns


def test_a_function_that_raises_is_named_with_its_traceback_and_a_sample(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    flow, numbers = endless()
    columns = {"ts": pa.timestamp("ns"), "n": "int64"}
    mapped = numbers.map_batches(breaks_at_1000, schema=columns, name="halve")
    mapped.sink("lines", sw.jsonl_sink(tmp_path / "out.jsonl"))
    mapped.sink("folder", sw.parquet_sink(tmp_path / "out"))
    said = fails(cluster, flow, OperatorError)
    simulated, numbers = endless()
    mapped = numbers.map_batches(breaks_at_1000, schema=columns, name="halve")
    mapped.sink("calls", sw.callback_sink(ignore))
    with pytest.raises(OperatorError) as caught:
        sw.Simulation().submit(simulated).wait()
    # Which rows came together differs: a thread puts blocks together on Ray.
    assert str(caught.value).partition(" of its ")[0] == said.partition(" of its ")[0]
    assert said.startswith("step 'halve': its function raised ZeroDivisionError: the user's own")
    assert 'raise ZeroDivisionError("the user\'s own fault")' in said
    assert "test_failures.py" in said
    assert "rows:\n  {'ts': " in said
    assert shown(tmp_path) == ["out"]  # not half of out.jsonl
    assert shown(tmp_path / "out") == []
    told = json.loads((tmp_path / "out" / ".slackwater.json").read_text(encoding="utf-8"))
    assert told["run"]["state"] == "failed"
    assert "ZeroDivisionError" in told["run"]["error"]


def test_a_module_that_workers_lack_is_named(
    cluster: sw.Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text("def look(rows): pass\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    flow, numbers = endless()
    numbers.sink("calls", sw.callback_sink(importlib.import_module("only_here").look))
    with pytest.raises(ClusterError, match=r"cannot import 'only_here'.*put it beside the program"):
        cluster.submit(flow, placement=ONE_SLOT)


def hang(reached: str, rows: pa.RecordBatch) -> None:
    Path(reached).touch()
    threading.Event().wait()


def test_stop_ends_even_a_function_that_hangs(
    cluster: sw.Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slackwater.actors.jobs.carrier.TIME_LIMITS", TimeLimits(stop_s=0.5))
    flow, numbers = endless()
    numbers.sink("calls", sw.callback_sink(partial(hang, str(tmp_path / "reached"))))
    job = cluster.submit(flow, placement=ONE_SLOT, limits=sw.Limits(still_ns=1))
    (worker,) = (psutil.Process(pid) for pid in job.workers().values())
    until((tmp_path / "reached").exists, within_s=SOON_S, what="the function to hang")
    (still,) = job.report().standstills
    assert (still.waits_for, "does not return" in still.why) == (["calls"], True)
    job.stop()
    assert job.status == "stopped"
    assert psutil.wait_procs([worker], timeout=SOON_S)[1] == []


# -- bad luck ----------------------------------------------------------------------------------


def in_the_simulator(said: str) -> str:
    """What is told there of a worker that dies for the reason that is told here."""
    found = re.search(r"\(host (.*?)\): (.*?)\. The job was stopped", said)
    assert found is not None, said
    ip, reason = found.groups()
    flow, numbers = endless()
    numbers.merge(name="gate").sink("out", sw.callback_sink(ignore))
    died = SlotDies(slot="node-2", at_ns=10_000_000, reason=reason)
    job = sw.Simulation(nodes=3).submit(flow, placement={"gate": "node-2"}, faults=[died])
    with pytest.raises(WorkerDied) as caught:
        job.wait()
    return str(caught.value).replace("(host simulator)", f"(host {ip})")


def test_a_killed_worker_fails_the_job_by_name_and_stops_the_rest(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    flow, numbers = endless()
    kept = numbers.merge(name="gate")
    kept.sink("lines", sw.jsonl_sink(tmp_path / "lines", every="50ms"))
    kept.sink("folder", sw.parquet_sink(tmp_path / "out", rows=1_000))
    job = cluster.submit(flow, placement={"gate": "node-2"})
    workers = {slot: psutil.Process(pid) for slot, pid in job.workers().items()}
    assert list(workers) == ["node-1", "node-2", "node-3"]
    until(
        lambda: len(list((tmp_path / "lines").glob("*.jsonl"))) > 1, within_s=SOON_S, what="parts"
    )
    workers["node-2"].kill()
    with pytest.raises(WorkerDied) as caught:
        job.wait(timeout=SOON_S)
    assert str(caught.value) == in_the_simulator(str(caught.value))
    assert job.report().job_events[-1] in caught.value.__notes__[0]
    assert any("slot 'node-2' died" in one for one in job.report().job_events)
    assert job.status == "failed"
    assert psutil.wait_procs(list(workers.values()), timeout=SOON_S)[1] == []
    parts = sorted((tmp_path / "lines").glob("*.jsonl"))
    found = [n for part in parts for n in counted(part)]
    assert found == list(range(len(found)))
    folder = pq.read_table(tmp_path / "out")["n"].to_pylist()
    assert folder == list(range(len(folder)))
    assert len(folder) % 1_000 == 0
    sinks = {sink.name: sink for sink in job.report().sinks}
    assert (sinks["lines"].published, sinks["folder"].published) == (len(found), len(folder))
    for sink in sinks.values():
        assert sink.published is not None
        assert sink.rows == sink.published + sink.waiting
        note = f"{sink.published:,} rows of this job were published, and {sink.waiting:,} after"
        assert any(note in one for one in job.report().notes)
    with pytest.raises(WorkerDied):
        job.wait()


def die_at(rows: pa.RecordBatch) -> None:
    if max(rows["n"].to_pylist()) >= 1_000:
        os._exit(3)


class DiesOpening(sw.connectors.Output):
    def describe(self) -> str:
        return "an output that ends its process"

    def open(self, *_: object) -> sw.connectors.Sink:
        os._exit(3)


def test_a_worker_that_dies_as_an_output_opens_is_named(cluster: sw.Cluster) -> None:
    flow, numbers = endless()
    numbers.sink("mine", DiesOpening())
    said = r"slot 'node-1' \(stages: numbers, mine\) died on node .* exit code 3 .* of 'mine'"
    with pytest.raises(WorkerDied, match=said):  # while it starts, or after
        cluster.submit(flow, placement=ONE_SLOT).wait(timeout=SOON_S)


def test_the_ledger_of_a_worker_that_died_with_source_and_sink_does_not_balance(
    cluster: sw.Cluster,
) -> None:
    flow, numbers = endless()
    numbers.sink("calls", sw.callback_sink(die_at))
    job = cluster.submit(flow, placement=ONE_SLOT)
    with pytest.raises(WorkerDied):
        job.wait(timeout=SOON_S)
    report = job.report()
    assert report.ledger.unreported == ("node-1",)
    assert not report.ledger.is_balanced
    assert str(report.ledger).startswith("at least ")
    assert any("slot 'node-1' ended before its last report" in note for note in report.notes)
    said = " ".join(report_text(report).split())
    assert "not known: slot 'node-1' ended before a last report" in said


def test_a_status_that_is_read_neither_waits_nor_ends_a_job_that_nobody_waits_for(
    cluster: sw.Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slackwater.actors.jobs.carrier.TIME_LIMITS", TimeLimits(stop_s=3.0))
    flow, numbers = endless()
    hangs = sw.callback_sink(partial(hang, str(tmp_path / "reached")))
    numbers.merge(name="gate").sink("calls", hangs)
    job = cluster.submit(flow, placement={"gate": "node-2", "calls": "node-3"})
    until((tmp_path / "reached").exists, within_s=SOON_S, what="the function to hang")
    workers = [psutil.Process(pid) for pid in job.workers().values()]
    psutil.Process(job.workers()["node-2"]).kill()
    took_s = []

    def has_failed() -> bool:
        began_s = time.monotonic()
        status, _ = job.status, job.metrics
        took_s.append(time.monotonic() - began_s)
        return status == "failed"

    until(has_failed, within_s=SOON_S, what="the end, which is not waited for")
    assert max(took_s) < 1.0  # the slot that hangs was given three
    assert psutil.wait_procs(workers, timeout=SOON_S)[1] == []


def dawdle(path: str, rows: pa.RecordBatch) -> None:
    threading.Event().wait(0.002)
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(f"{len(rows)}\n")


def test_a_slow_sink_slows_a_source_at_full_speed_and_queues_stay_bounded(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    limits = sw.Limits(credit_rows=500, gate_rows=300, max_slice_rows=100, min_slice_rows=10)
    flow, numbers = endless()
    each = numbers.aggregate(window=sw.tumbling("1ms"), n=sw.count())
    each.sink("slow", sw.callback_sink(partial(dawdle, str(tmp_path / "sizes"))))
    job = cluster.submit(flow, limits=limits)
    until(lambda: sink_rows(job, "slow") > 3_000, within_s=LIMIT_S, what="rows at the sink")
    job.stop()
    report = job.report()
    stages = {stage.name: stage for stage in report.stages}
    channels = {channel.target: channel for channel in report.channels}
    slice_rows = limits.max_slice_rows
    gate = stages[each.name]
    assert gate.max_gate_rows <= limits.credit_rows + limits.gate_rows + 2 * slice_rows
    for channel in channels.values():
        assert channel.rows_sent - channel.rows_received <= limits.credit_rows + slice_rows
    ahead = stages["numbers"].rows_in - report.sinks[0].rows
    assert ahead <= 2 * (limits.credit_rows + slice_rows) + limits.gate_rows + 2 * slice_rows
    assert report.ledger.is_balanced
    sizes = [int(line) for line in (tmp_path / "sizes").read_text().splitlines()]
    assert sum(sizes) == report.sinks[0].rows


def test_a_running_job_never_seems_to_lose_rows(cluster: sw.Cluster) -> None:
    from slackwater.runtime.measure.ledger import imbalances  # noqa: PLC0415

    flow, numbers = endless()
    numbers.merge(name="gate").sink("out", sw.callback_sink(ignore))
    job = cluster.submit(flow)
    for _ in range(20):
        report = job.report()
        assert report.state == "running"
        assert imbalances(report) == []
    job.stop()
    assert job.report().ledger.is_balanced
    assert os.getpid() not in job.workers().values()


def test_a_worker_that_stands_still_too_long_is_told_without_a_wait_for_its_end(
    cluster: sw.Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = TimeLimits(stop_s=LIMIT_S)  # a wait for its end would be seen
    monkeypatch.setattr("slackwater.actors.jobs.carrier.TIME_LIMITS", longest)
    flow, numbers = endless()
    numbers.merge(name="gate").sink("calls", sw.callback_sink(ignore))
    limits = sw.Limits(lost_ns=2_000_000_000)
    job = cluster.submit(flow, placement={"gate": "node-2"}, limits=limits)
    until(lambda: sink_rows(job, "calls") > 0, within_s=SOON_S, what="rows")
    workers = {slot: psutil.Process(pid) for slot, pid in job.workers().items()}
    workers["node-2"].suspend()
    with pytest.raises(WorkerDied, match=r"slot 'node-2' .* gave no sign of life for .*SIGSTOP"):
        job.wait(timeout=SOON_S)
    assert psutil.wait_procs(list(workers.values()), timeout=SOON_S)[1] == []


def test_a_worker_that_stands_still_for_six_seconds_loses_no_row_and_no_job(
    cluster: sw.Cluster,
) -> None:
    flow = sw.Dataflow("paused")
    numbers = flow.source("numbers", sw.table(at([*range(0, 8_000, 10)])), event_time="ts", speed=1)
    numbers.merge(name="gate").sink("out", sw.collect_sink())
    job = cluster.submit(flow, placement={"numbers": "node-1", "*": "node-2"})
    until(lambda: sink_rows(job, "out") > 0, within_s=SOON_S, what="rows")
    worker = psutil.Process(job.workers()["node-2"])
    worker.suspend()
    try:
        threading.Event().wait(6)  # longer than the heartbeats that ended it before
    finally:
        worker.resume()
    assert job.wait(timeout=LIMIT_S).state == "done"
    assert job.result("out")["n"].to_pylist() == list(range(800))
