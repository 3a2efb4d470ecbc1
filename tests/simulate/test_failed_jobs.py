"""Jobs that fail or are stopped, in virtual time: by the same machine as on Ray, and told alike.

What only real processes show (a signal, a hang in native code, Ctrl-C, a head that dies) is in
`tests/system/test_failures.py` and beside it; that both tell a cause in the same words, too.
"""

from __future__ import annotations

import json
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from slackwater.runtime.errors import (
    ClusterError,
    IngestError,
    OperatorError,
    OrderError,
    SchemaError,
    SettingError,
    SinkError,
    SlackwaterError,
    WorkerDied,
)
from slackwater.runtime.life import TimeLimits
from slackwater.runtime.simulate import (
    ClusterGoes,
    Fault,
    HostFallsSilent,
    SlotDies,
    SlotHangs,
    SlotRaises,
    UserStops,
)
from tests.support.endless import EndlessInput
from tests.support.flows import ticking
from tests.support.sinks import Driven, seen

MS, S = 1_000_000, 1_000_000_000
CHAIN = {"numbers": "node-1", "gate": "node-2", "out": "node-3"}
SEEDS = range(4)


def at(milliseconds: list[int | None]) -> pa.Table:
    times = pa.array(milliseconds, pa.timestamp("ms"))
    return pa.table({"ts": times, "n": list(range(len(milliseconds)))})


def fails(
    flow: sw.Dataflow, kind: type[SlackwaterError], *, seed: int = 0, **options: Any
) -> tuple[str, sw.JobReport]:
    """Run a flow that must fail so; return what the error and the report say."""
    job = sw.Simulation(nodes=3, seed=seed).submit(flow, **options)
    for _ in range(2):  # it says so each time
        with pytest.raises(kind) as caught:
            job.wait()
        assert type(caught.value) is kind
    report = job.report()
    assert job.status == report.state == "failed"
    assert report.error == str(caught.value)
    notes = getattr(caught.value, "__notes__", [])
    if issubclass(kind, OperatorError | SinkError | IngestError):  # only the report has them
        assert notes == []
    else:
        assert report.job_events[-1] in notes[0]
        last = (report.slot_events or report.job_events)[-1]
        assert notes[-1].endswith(f"{last})")
    assert f"simulated with seed {seed}" in report.notes[0]
    return str(caught.value), report


def chain(sink: sw.connectors.Output | None = None) -> sw.Dataflow:
    """A hundred numbers a second for 20 s; its source, gate and sink have a slot each."""
    flow, numbers = ticking("chain", seconds=20)
    numbers.merge(name="gate").sink("out", sink or sw.collect_sink())
    return flow


def ends(seed: int, *faults: Fault, sink: sw.connectors.Output | None = None) -> sw.JobReport:
    """Run the chain till it ends, in whatever way."""
    job = sw.Simulation(nodes=3, seed=seed).submit(chain(sink), placement=CHAIN, faults=faults)
    try:
        return job.wait()
    except SlackwaterError:
        return job.report()


# -- what users write --------------------------------------------------------------------------


def refuse(rows: pa.RecordBatch) -> None:
    raise KeyError("no such phone")


def test_a_callback_that_raises_is_named_with_its_line_and_a_sample() -> None:
    flow = sw.Dataflow("endless")
    numbers = flow.source("numbers", EndlessInput(), event_time="ts")
    numbers.sink("calls", sw.callback_sink(refuse))
    said, report = fails(flow, OperatorError)
    assert "slot 'node-1': stage 'calls' began a slice of about" in report.slot_events[-1]
    assert said.startswith("sink 'calls': its callback raised KeyError: 'no such phone'")
    assert "in refuse" in said
    assert "'n': 0" in said


def test_a_sink_that_cannot_be_opened_is_refused_at_once_and_others_keep_their_place(
    tmp_path: Path,
) -> None:
    flow = sw.Dataflow("endless")
    numbers = flow.source("numbers", EndlessInput(), event_time="ts")
    numbers.sink("good", sw.jsonl_sink(tmp_path / "out.jsonl"))
    numbers.sink("lines", sw.jsonl_sink("/proc/nowhere/out.jsonl"))
    with pytest.raises(SinkError, match="sink 'lines' could not write /proc/nowhere/"):
        sw.Simulation().submit(flow)
    assert not (tmp_path / "out.jsonl").exists()
    Driven(sw.jsonl_sink(tmp_path / "out.jsonl"), EndlessInput().schema(), name="good").close()


def breaks_at_1000(columns: dict[str, Any]) -> dict[str, Any]:
    if columns["n"].max() >= 1_000:
        raise ZeroDivisionError("the user's own fault")
    return columns


def test_behind_a_failure_sinks_show_what_was_published_and_the_manifest_says_why(
    tmp_path: Path,
) -> None:
    flow, numbers = ticking("breaks", seconds=20)
    columns = {"ts": pa.timestamp("ns"), "n": "int64"}
    mapped = numbers.map_batches(breaks_at_1000, schema=columns, name="halve")
    gate = mapped.merge(name="gate")
    gate.sink("lines", sw.jsonl_sink(tmp_path / "out.jsonl"))
    gate.sink("folder", sw.parquet_sink(tmp_path / "out", rows=300))
    said, report = fails(flow, OperatorError, placement={"gate": "node-2"})
    assert said.startswith("step 'halve': its function raised ZeroDivisionError: the user's own")
    assert not (tmp_path / "out.jsonl").exists()
    assert pq.read_table(tmp_path / "out")["n"].to_pylist() == list(range(900))
    told = json.loads((tmp_path / "out" / ".slackwater.json").read_text(encoding="utf-8"))
    assert (told["run"]["state"], told["run"]["error"]) == ("failed", said)
    assert {sink.name: sink.published for sink in report.sinks} == {"lines": 0, "folder": 900}


# -- bad input ---------------------------------------------------------------------------------


def test_event_time_that_runs_backwards_is_an_error_that_says_what_to_do() -> None:
    flow = sw.Dataflow("backwards")
    numbers = flow.source("numbers", sw.table(at([1, 2, 5, 4])), event_time="ts")
    numbers.sink("out", sw.collect_sink())
    said, _ = fails(flow, OrderError)
    assert "source 'numbers': row 3 " in said
    assert "out_of_order='sort'" in said
    assert "out_of_order='late'" in said


def test_an_error_of_the_data_shows_few_of_our_frames() -> None:
    flow = sw.Dataflow("backwards")
    rows = flow.source("rows", sw.table({"ts": [2, 1]}), event_time="ts")
    rows.sink("out", sw.collect_sink())
    with sw.Simulation() as nodes, pytest.raises(OrderError) as raised:
        nodes.submit(flow).wait()
    assert [frame.name for frame in raised.traceback][1:] == ["wait", "_wait", "_run_to_end"]


def test_a_null_event_time_is_an_error_that_names_source_and_row() -> None:
    flow = sw.Dataflow("nulls")
    numbers = flow.source("numbers", sw.table(at([1, 2, None])), event_time="ts")
    numbers.sink("out", sw.collect_sink())
    said, _ = fails(flow, SchemaError)
    assert "source 'numbers'" in said
    assert "'ts'" in said
    assert "row 2" in said


def test_a_damaged_parquet_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "numbers.parquet"
    pq.write_table(at(list(range(5_000))), path)
    flow = sw.Dataflow("damaged")
    flow.source("numbers", sw.parquet(path), event_time="ts").sink("out", sw.collect_sink())
    with path.open("r+b") as file:
        file.seek(4)
        file.write(b"\xff" * 2_000)  # the rows, not the footer
    said, _ = fails(flow, IngestError)
    assert str(path) in said
    path.write_bytes(b"no parquet at all")
    with pytest.raises(IngestError, match=str(path)):
        sw.Dataflow("none").source("numbers", sw.parquet(path), event_time="ts")


# -- bad luck ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("slot", [*CHAIN.values()])
def test_a_worker_that_dies_is_named_whoever_misses_it_first(slot: str, seed: int) -> None:
    died = SlotDies(slot=slot, at_ns=3 * S, reason="out of memory")
    said, report = fails(chain(), WorkerDied, seed=seed, placement=CHAIN, faults=[died])
    stages = {where: stage for stage, where in CHAIN.items()}
    dead = f"the worker of slot {slot!r} (stages: {stages[slot]}) died on node {slot} "
    # Nobody is heard that others miss: the one that says nothing must be gone, so its host.
    if "hears nothing from it" in said:
        assert said.startswith(f"{dead}(host simulator): slot ")
    else:
        assert said.startswith(f"{dead}(host simulator): out of memory. The job was stopped; ")
    assert said.count("died on node") == 1
    assert 3 < report.elapsed_s < 3 + TimeLimits().settle_s + 1


def test_what_is_sent_to_a_worker_that_died_does_not_arrive() -> None:
    for seed in SEEDS:
        report = ends(seed, SlotDies(slot="node-2", at_ns=3 * S))
        (into, _) = report.channels
        assert into.rows_received == 300, f"seed {seed}"  # a hundred a second
        assert into.rows_sent >= 300, f"seed {seed}"


def test_who_has_all_from_a_worker_that_dies_does_not_miss_it() -> None:
    flow, short = ticking("two", seconds=1)
    where = {"*": "node-1", "had-it-all": "node-2", "left": "node-3"}
    short.sink("had-it-all", sw.callback_sink(len))
    n = pa.table({"ts": pa.array([k * S for k in range(60)], pa.timestamp("ns"))})
    for name, sink in (("long", "left"), ("other", "beside")):
        stream = flow.source(name, sw.table(n), event_time="ts", speed=1)
        stream.sink(sink, sw.callback_sink(len))
    where |= {"other": "node-2", "beside": "node-2"}
    for seed in SEEDS:
        job = sw.Simulation(nodes=3, seed=seed).submit(
            flow, placement=where, faults=[SlotDies(slot="node-1", at_ns=3 * S)]
        )
        with pytest.raises(WorkerDied):
            job.wait()
        assert any("'node-2' ended as stopped" in line for line in job.report().job_events), seed


def test_a_worker_that_dies_shows_no_half_file_and_the_report_counts_what_is_missing(
    tmp_path: Path,
) -> None:
    sink = sw.parquet_sink(tmp_path / "out", rows=100)
    report = ends(3, SlotDies(slot="node-3", at_ns=round(2.5 * S)), sink=sink)
    assert pq.read_table(tmp_path / "out")["n"].to_pylist() == list(range(200))
    (out,) = report.sinks
    assert (out.published, out.waiting) == (200, out.rows - 200)
    assert any(
        f"200 rows of this job were published, and {out.waiting:,}" in n for n in report.notes
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_host_that_falls_silent_is_named_and_what_to_do_about_it(seed: int) -> None:
    silent = HostFallsSilent(node="node-2", at_ns=3 * S)
    said, _ = fails(chain(), WorkerDied, seed=seed, placement=CHAIN, faults=[silent])
    assert "the worker of slot 'node-2' (stages: gate) died on node node-2" in said
    assert "Bring node-2 back, or do without" in said


@pytest.mark.parametrize("seed", SEEDS)
def test_an_error_of_the_users_is_the_cause_though_another_slot_dies_of_it(seed: int) -> None:
    raised = SlotRaises(slot="node-2", at_ns=3 * S, said="step 'gate': the user's own fault")
    died = SlotDies(slot="node-3", at_ns=3 * S + 20 * MS)
    said, _ = fails(chain(), OperatorError, seed=seed, placement=CHAIN, faults=[raised, died])
    assert said == "step 'gate': the user's own fault"


def test_a_cluster_that_goes_is_named_and_slots_that_live_end_in_order() -> None:
    gone = ClusterGoes(at_ns=3 * S, what="the head of the Ray cluster is gone: silence")
    said, report = fails(chain(), ClusterError, placement=CHAIN, faults=[gone])
    assert said.startswith(
        "job 'chain' has failed: the head of the Ray cluster is gone: silence. This process goes on"
    )
    assert sum("ended as stopped" in line for line in report.job_events) == 3


@pytest.mark.parametrize("seed", SEEDS)
def test_a_stop_at_any_moment_publishes_all_there_is_and_is_no_failure(
    seed: int, tmp_path: Path
) -> None:
    sink = sw.parquet_sink(tmp_path / "out", rows=1_000)
    stops = UserStops(at_ns=(seed + 1) * 700 * MS)
    slow = sw.testing.CostModel(
        per_slice_ns=8 * MS
    )  # so that the stop comes in the middle of a slice
    host = sw.Simulation(nodes=3, seed=seed, cost=slow)
    job = host.submit(chain(sink), placement=CHAIN, faults=[stops])
    report = job.wait()
    assert job._run.now_ns < stops.at_ns + S
    (out,) = (stage for stage in report.stages if stage.name == "out")
    assert out.rows_in == report.sinks[0].rows  # a slice that was under way came to its end
    assert (report.state, report.error, report.job_events) == ("stopped", None, [])
    assert pq.read_table(tmp_path / "out")["n"].to_pylist() == list(range(report.sinks[0].rows))
    assert report.ledger.is_balanced


def interrupts(rows: Any, *, at_n: int = 1_000, then: BaseException | None = None) -> Any:
    """Press Ctrl-C once a batch has this number; a user's function that goes on, or raises."""
    ns = rows["n"].to_pylist() if isinstance(rows, pa.RecordBatch) else rows["n"].tolist()
    if at_n in ns:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            if then is None:
                raise
            raise then from None
    return rows


@pytest.mark.parametrize("then", [None, ValueError("was interrupted")])
@pytest.mark.parametrize("where", ["step", "sink"])
def test_ctrl_c_stops_a_job_wherever_it_strikes_and_publishes_all_that_was_written(
    where: str, then: BaseException | None, tmp_path: Path
) -> None:
    flow, numbers = ticking("interrupted", seconds=20)
    columns = {"ts": pa.timestamp("ns"), "n": "int64"}
    hits = partial(interrupts, then=then)
    if where == "step":
        numbers = numbers.map_batches(hits, schema=columns, name="hits")
    else:
        numbers.sink("calls", sw.callback_sink(hits))
    numbers.merge(name="gate").sink("out", sw.jsonl_sink(tmp_path / "out", rows=300))
    job = sw.Simulation(nodes=2).submit(flow, placement={"gate": "node-2"})
    with pytest.raises(KeyboardInterrupt):
        job.wait()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    report = job.wait()
    assert (report.state, report.error) == ("stopped", None)
    told = json.loads((tmp_path / "out" / ".slackwater.json").read_text(encoding="utf-8"))
    out = next(sink for sink in report.sinks if sink.name == "out")
    assert told["run"]["state"] == "stopped"
    assert seen(tmp_path / "out") == list(range(out.rows))
    assert out.rows == out.published >= 990
    assert report.ledger.is_balanced, f"{report.ledger}"


def test_a_second_ctrl_c_breaks_off_a_sink_that_does_not_end() -> None:
    def never_ends(rows: pa.RecordBatch) -> None:
        signal.raise_signal(signal.SIGINT)  # the first
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("it went on")

    flow, numbers = ticking("interrupted", seconds=20)
    numbers.sink("calls", sw.callback_sink(never_ends))
    job = sw.Simulation(nodes=1).submit(flow)
    with pytest.raises(KeyboardInterrupt):
        job.wait()
    assert (job.report().state, job.report().error) == ("failed", "interrupted, and broken off")


def test_a_simulated_job_that_was_stopped_before_it_runs_ends_at_once() -> None:
    job = sw.Simulation(nodes=3).submit(chain())
    job.stop()
    assert job.wait().state == "stopped"
    assert job.report().sinks[0].rows < 10


def test_a_stop_waits_for_a_function_that_hangs_no_longer_than_told_and_keeps_the_rest(
    tmp_path: Path,
) -> None:
    sink = sw.parquet_sink(tmp_path / "out", rows=1_000)
    hangs = SlotHangs(slot="node-2", at_ns=2 * S)
    job = sw.Simulation(nodes=3).submit(
        chain(sink), placement=CHAIN, faults=[hangs, UserStops(at_ns=5 * S)]
    )
    assert job.wait().state == job.status == "stopped"
    assert job._run.now_ns == 5 * S + round(TimeLimits().stop_s * S)
    assert len(pq.read_table(tmp_path / "out")) == job.report().sinks[0].rows > 0


def test_a_function_that_hangs_and_nobody_stops_is_said_to_stand_still() -> None:
    hangs = SlotHangs(slot="node-2", at_ns=2 * S)
    job = sw.Simulation(nodes=3).submit(chain(), placement=CHAIN, faults=[hangs])
    with pytest.raises(SlackwaterError, match="flow 'chain' cannot go on"):
        job.wait()


@pytest.mark.parametrize(
    "fault", [SlotDies(slot="node-9", at_ns=0), HostFallsSilent(node="x", at_ns=0)]
)
def test_a_fault_of_a_slot_that_is_not_there_is_refused(fault: Fault) -> None:
    with pytest.raises(SettingError, match="the plan has only node-1, node-2, node-3"):
        sw.Simulation(nodes=3).submit(chain(), placement=CHAIN, faults=[fault])
    with pytest.raises(SettingError, match="at_ns must be 0 or more"):
        sw.Simulation(nodes=3).submit(chain(), faults=[UserStops(at_ns=-1)])
