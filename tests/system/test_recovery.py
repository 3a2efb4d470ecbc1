"""Jobs that come back on real Ray nodes: the same output as if nothing had happened."""

from __future__ import annotations

import ctypes
import gc
import json
import logging
import os
import re
import signal
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
import ray
from ray.exceptions import GetTimeoutError

import slackwater as sw
from benchmarks.engine.recovery.flow import TableOutput, rows_of
from slackwater.actors.jobs.named_actors import coordinator_of, processes_of
from slackwater.actors.jobs.ray_errors import take_errors
from slackwater.actors.nodes.cluster_monitor import own_cluster_monitor
from slackwater.runtime.errors import CheckpointError, ClusterError, OperatorError
from tests.support.endless import HeldInput, HeldParts
from tests.support.pairs import at_least, pairs
from tests.support.pipes import PipeInput
from tests.support.processes import below, command_lines
from tests.support.small_disks import mounted
from tests.support.waiting import until

pytestmark = pytest.mark.ray

LIMIT_S, SOON_S = 60.0, 20.0
EVERY = "200ms"
SILENCE_S = 1.0
IN_ONE = {"*": "node-1"}
"""For all that is no matter of several slots: each costs a second of CPU, and its spare another."""
IN_TWO = {"*": "node-1", "out": "node-2"}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, str]]:
    """The rows of a run in which nothing happens, in the simulator."""
    path = tmp_path_factory.mktemp("expected") / "rows.db"
    with sw.Simulation() as nodes:
        nodes.submit(pairs(TableOutput(str(path)))).wait()
    return rows_of(path)


def kill(job: sw.Job, slot: str) -> None:
    os.kill(job.workers()[slot], signal.SIGKILL)


def has_checkpoint_after(job: sw.Job, number: int) -> bool:
    checkpoint = job.metrics.checkpoint
    return checkpoint is not None and (checkpoint.number or 0) > number


def has_recovered(job: sw.Job, times: int) -> bool:
    report = job.report()
    recoveries = report.recoveries
    assert report.ledger.entered > 0, "rows that were counted vanish while the job goes back"
    return len(recoveries) == times and recoveries[-1].gap_s is not None


def test_slots_that_are_killed_in_turn_and_together_leave_no_trace_in_the_output(
    cluster: sw.Cluster, tmp_path: Path, expected: list[tuple[int, str]]
) -> None:
    path, folder, over = tmp_path / "rows.db", tmp_path / "checkpoints", tmp_path / "over"
    flow = pairs(TableOutput(str(path)), over=over)
    job = cluster.submit(flow, checkpoint=EVERY, checkpoint_folder=folder)
    used = [0]
    for slot, rows in (("node-3", 600), ("node-1", 1_500)):
        until(partial(at_least, path, rows), within_s=SOON_S, what=f"{rows} rows")
        until(partial(has_checkpoint_after, job, used[-1]), within_s=SOON_S, what="a checkpoint")
        kill(job, slot)
        until(partial(has_recovered, job, len(used)), within_s=SOON_S, what="a recovery")
        used.append(job.metrics.recoveries[-1].checkpoint or 0)
    assert used == sorted({*used}), "each goes on from a checkpoint that is newer than the last"
    until(partial(at_least, path, 2_100), within_s=SOON_S, what="rows")
    kill(job, "node-1")
    kill(job, "node-2")
    over.touch()
    report = job.wait(timeout=LIMIT_S)
    assert report.state == "done"
    assert report.ledger.is_balanced
    assert len(report.recoveries) > 2, report.recoveries  # the two may be seen in turn
    assert rows_of(path) == expected
    assert {sink.name: sink.rows for sink in report.sinks}["out"] == len(expected)
    assert not any("earlier run" in note for note in report.notes)
    assert not [*folder.glob("checkpoint-*")], "a job that is done goes on from nothing"


def _fail_late(after_s: float) -> None:
    threading.Event().wait(after_s)
    raise ClusterError("its slot has ended before it was done")


@pytest.mark.parametrize("are_taken", [True, False])
def test_ray_prints_late_errors_of_calls_only_if_they_are_not_taken(
    cluster: sw.Cluster, are_taken: bool
) -> None:
    """As of slots that write a part of a checkpoint that is given up, since another has died."""
    del cluster
    printed: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: printed.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("ray._private.worker")
    logger.addHandler(handler)
    fail: Any = ray.remote(_fail_late)
    calls = [fail.options(num_cpus=0).remote(after_s) for after_s in (0.1, 1.0)]
    if are_taken:
        take_errors(calls)
    last = fail.options(num_cpus=0).remote(2.0)
    ray.wait([last])
    try:
        del calls
        gc.collect()
        threading.Event().wait(0.5)
    finally:
        logger.removeHandler(handler)
    assert bool([line for line in printed if "Unhandled" in line]) is not are_taken, printed


def spares(job: sw.Job) -> dict[int, psutil.Process]:
    """Return the spare processes of our nodes, by id: slots' processes in which none runs."""
    lines, slots = command_lines(below()), {*job.workers().values()}
    return {
        own.pid: own
        for own, line in lines.items()
        if line.startswith("ray::SlotActor") and own.pid not in slots
    }


def test_a_spare_that_is_killed_is_replaced_at_once(cluster: sw.Cluster, tmp_path: Path) -> None:
    path, over = tmp_path / "rows.db", tmp_path / "over"
    flow, folder = pairs(TableOutput(str(path)), over=over), tmp_path / "checkpoints"
    job = cluster.submit(flow, placement=IN_TWO, checkpoint=EVERY, checkpoint_folder=folder)
    until(lambda: len(spares(job)) == 2, within_s=SOON_S, what="a spare on each node")
    before = spares(job)
    for own in before.values():
        own.kill()
    until(
        lambda: len(now := spares(job)) == 2 and not now.keys() & before.keys(),
        within_s=SOON_S,
        what="other spares",
    )
    assert not job.report().recoveries
    over.touch()
    job.wait(timeout=LIMIT_S)
    until(lambda: not spares(job), within_s=SOON_S, what="their end")


def test_a_job_that_is_stopped_as_it_goes_back_ends(cluster: sw.Cluster, tmp_path: Path) -> None:
    path, folder, over = tmp_path / "rows.db", tmp_path / "checkpoints", tmp_path / "over"
    flow = pairs(TableOutput(str(path)), over=over)
    job = cluster.submit(flow, placement=IN_TWO, checkpoint=EVERY, checkpoint_folder=folder)
    until(partial(at_least, path, 300), within_s=SOON_S, what="rows")
    kill(job, "node-2")
    job.stop()
    assert job.status in ("stopped", "failed")
    until(
        lambda: not any(map(psutil.pid_exists, job.workers().values())),
        within_s=SOON_S,
        what="its workers to end",
    )


def test_a_flow_with_renamed_steps_goes_on_after_a_stop_in_other_slots(
    cluster: sw.Cluster, tmp_path: Path, expected: list[tuple[int, str]]
) -> None:
    path, folder = tmp_path / "rows.db", tmp_path / "checkpoints"
    file, over = tmp_path / "rows.jsonl", tmp_path / "over"
    submit = partial(cluster.submit, checkpoint=EVERY, checkpoint_folder=folder)
    job = submit(pairs(TableOutput(str(path)), file=file, over=over), placement=IN_TWO)
    until(partial(at_least, path, 300), within_s=SOON_S, what="rows")
    job.stop()
    assert job.status == "stopped"
    stopped = rows_of(path)
    assert not file.exists(), "a file that readers see is whole"
    over.touch()
    names = {"left": "first", "joined": "both", "out": "table", "file": "lines"}
    flow = pairs(TableOutput(str(path)), file=file, over=over, names=names)
    submit = partial(submit, placement={"*": "node-2", "table": "node-3"})
    with pytest.raises(CheckpointError, match=r"steps, say renamed=.*'left': 'first'"):
        submit(flow)
    with pytest.raises(CheckpointError, match=r"has no step 'lefd'; the nearest is 'left'"):
        submit(flow, renamed={"lefd": "first"})
    again = submit(flow, renamed=names)
    report = again.wait(timeout=LIMIT_S)
    assert {*again.placement.values()} == {"node-2", "node-3"}
    assert report.ledger.is_balanced
    assert rows_of(path)[: len(stopped)] == stopped
    assert rows_of(path) == expected
    assert any("goes on from checkpoint" in note for note in report.notes)
    assert len(file.read_text(encoding="utf-8").splitlines()) == len(expected)


def test_another_number_of_replicas_is_refused_before_a_slot_starts(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    def counted(replicas: int, speed: float = 1.0) -> sw.Dataflow:
        flow = sw.Dataflow("counted")
        rows = sw.table({"ts": [*range(1_000)], "n": [*range(1_000)]})
        numbers = flow.source("numbers", rows, event_time="ts", time_unit="s", speed=speed)
        counts = numbers.aggregate(
            {"s": sw.sum("n")}, by="n", window=sw.tumbling("10s"), replicas=replicas, name="sums"
        )
        counts.sink("out", sw.collect_sink())
        return flow

    folder = tmp_path / "checkpoints"
    job = cluster.submit(
        counted(2, 10.0), placement=IN_ONE, checkpoint=EVERY, checkpoint_folder=folder
    )
    until(lambda: [*folder.glob("checkpoint-*.json")], within_s=SOON_S, what="a checkpoint")
    job.stop()
    for other, why in (
        (counted(3, 10.0), "sums: 2, now 3"),
        (counted(2), "numbers: 10.0, now 1.0"),
    ):
        with pytest.raises(CheckpointError, match=f"{why}.*another folder"):
            cluster.submit(other, checkpoint=EVERY, checkpoint_folder=folder)


def test_replicas_and_partitions_go_on_in_fewer_slots(cluster: sw.Cluster, tmp_path: Path) -> None:
    path, folder, files = tmp_path / "rows.db", tmp_path / "checkpoints", tmp_path / "files"
    over = tmp_path / "over"
    files.mkdir()
    for name in range(3):
        rows = [f"{ts},{ts % 7}\n" for ts in range(name, 3_000, 3)]
        (files / f"{name}.csv").write_text("".join(["ts,n\n", *rows]), encoding="utf-8")

    def counted(out: Path) -> sw.Dataflow:
        flow = sw.Dataflow("counted")
        given = HeldParts(sw.csv(files, partitions="files"), str(over), 500)
        numbers = flow.source("numbers", given, event_time="ts", time_unit="ms")
        sums = numbers.aggregate(
            {"s": sw.sum("n")}, by="n", window=sw.tumbling("10ms"), replicas="auto", name="sums"
        )
        sums.sink("out", TableOutput(str(out)))
        return flow

    submit = partial(cluster.submit, checkpoint=EVERY, checkpoint_folder=folder)
    job = submit(counted(path))
    until(partial(at_least, path, 300), within_s=SOON_S, what="rows")
    assert {"numbers.3", "sums.3"} <= job.placement.keys()
    job.stop()
    assert job.status == "stopped"
    over.touch()
    again = submit(counted(path), placement={"*": "node-2"})
    report = again.wait(timeout=LIMIT_S)
    assert {"numbers.3", "sums.3"} <= again.placement.keys()
    assert {*again.placement.values()} == {"node-2"}
    assert any("goes on from checkpoint" in note for note in report.notes)
    whole = tmp_path / "whole.db"
    with sw.Simulation(nodes=3) as nodes:
        nodes.submit(counted(whole)).wait()
    assert report.ledger.is_balanced
    assert rows_of(path) == rows_of(whole)


def test_rows_of_a_flow_with_slack_are_decided_once(cluster: sw.Cluster, tmp_path: Path) -> None:
    path, folder, over = tmp_path / "rows.db", tmp_path / "checkpoints", tmp_path / "over"
    flow = pairs(TableOutput(str(path)), over=over, slack="5ms")
    job = cluster.submit(flow, placement=IN_TWO, checkpoint=EVERY, checkpoint_folder=folder)
    until(partial(at_least, path, 1_500), within_s=SOON_S, what="rows")
    before = rows_of(path)
    kill(job, "node-2")
    over.touch()
    report = job.wait(timeout=LIMIT_S)
    rows = rows_of(path)
    assert report.ledger.is_balanced
    assert rows[: len(before)] == before
    assert [ordinal for ordinal, _ in rows] == [*range(len(rows))]
    assert len({text for _, text in rows}) == len(rows), "a row is written twice"


def test_a_flow_with_slack_does_not_go_on_from_an_older_checkpoint(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    path, folder = tmp_path / "rows.db", tmp_path / "checkpoints"
    flow = pairs(TableOutput(str(path)), slack="5ms")
    submit = partial(cluster.submit, placement=IN_ONE, checkpoint=EVERY, checkpoint_folder=folder)
    job = submit(flow)
    until(partial(at_least, path, 600), within_s=SOON_S, what="rows")
    job.stop()
    newest = sorted(folder.glob("checkpoint-*.arrow"))[-1]
    whole = newest.read_bytes()
    newest.write_bytes(whole[:-1])
    with pytest.raises(CheckpointError, match=r"is damaged.*older ones lack rows that left since"):
        submit(flow)
    newest.write_bytes(whole)
    job = submit(flow)
    report = job.wait(timeout=LIMIT_S)
    assert any("goes on from checkpoint" in note for note in report.notes)
    assert len({text for _, text in rows_of(path)}) == len(rows_of(path)), "a row is written twice"


def test_a_full_disk_fails_checkpoints_and_not_the_job(
    cluster: sw.Cluster, tmp_path: Path, expected: list[tuple[int, str]]
) -> None:
    path = tmp_path / "rows.db"
    with mounted(tmp_path / "small", "size=8m") as disk:
        folder, filler = disk / "checkpoints", disk / "filler"
        flow = pairs(TableOutput(str(path)))
        job = cluster.submit(flow, placement=IN_ONE, checkpoint=EVERY, checkpoint_folder=folder)

        def shows(words: str | None) -> bool:
            known = job.metrics.checkpoint
            if known is None or known.number is None:
                return False
            return known.problem is None if words is None else words in (known.problem or "")

        until(partial(shows, None), within_s=SOON_S, what="a checkpoint")
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
        until(partial(shows, "No space left on device"), within_s=SOON_S, what="one that fails")
        known = job.report().checkpoint
        assert known is not None
        assert known.age_s is not None
        assert known.age_s > 0
        assert "make room" in (known.problem or "")
        filler.unlink()
        until(partial(shows, None), within_s=SOON_S, what="a checkpoint again")
        report = job.wait(timeout=LIMIT_S)
    assert not report.recoveries
    assert report.ledger.is_balanced
    assert rows_of(path) == expected


def test_an_error_that_comes_again_ends_the_job(cluster: sw.Cluster, tmp_path: Path) -> None:
    flow = sw.Dataflow("poisoned")
    rows = sw.table({"ts": [*range(10)], "n": [*range(10)]})
    numbers = flow.source("numbers", rows, event_time="ts", time_unit="s", speed=10.0)
    checked = numbers.map_rows(_refuse_seven, {"ts": "int64", "n": "int64"}, name="refuses")
    checked.sink("out", sw.callback_sink(print))
    job = cluster.submit(flow, checkpoint=EVERY, checkpoint_folder=tmp_path / "checkpoints")
    with pytest.raises(OperatorError, match=r"refuses.*seven"):
        job.wait(timeout=LIMIT_S)
    assert job.status == "failed"
    assert len(job.report().recoveries) >= 2
    until(
        lambda: not any(map(psutil.pid_exists, job.workers().values())),
        within_s=SOON_S,
        what="its workers to end",
    )


def test_the_same_command_goes_on_once_the_cause_of_an_error_is_mended(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    away, file, folder = tmp_path / "away", tmp_path / "rows.jsonl", tmp_path / "checkpoints"
    flow = sw.Dataflow("asking")
    rows = sw.table({"ts": [*range(5_000)]})
    numbers = flow.source("numbers", rows, event_time="ts", time_unit="ms", speed=1.0)
    answers = numbers.map_rows(partial(_ask, away=str(away)), {"ts": "int64"}, name="asks")
    answers.sink("out", sw.jsonl_sink(file))
    job = cluster.submit(flow, checkpoint=EVERY, checkpoint_folder=folder)
    until(partial(has_checkpoint_after, job, 2), within_s=SOON_S, what="a third checkpoint")
    away.touch()
    with pytest.raises(
        OperatorError, match=r"asks.*away(.|\n)*the checkpoint before gave the same"
    ):
        job.wait(timeout=LIMIT_S)
    away.unlink()
    report = cluster.submit(flow, checkpoint=EVERY, checkpoint_folder=folder).wait(timeout=LIMIT_S)
    assert report.ledger.is_balanced
    assert any("goes on from checkpoint" in note for note in report.notes)
    written = [json.loads(line)["ts"] for line in file.read_text(encoding="utf-8").splitlines()]
    assert written == [*range(5_000)]


def _ask(row: dict[str, Any], *, away: str) -> dict[str, Any]:
    if os.path.exists(away):
        raise ConnectionError("the service is away")
    return row


def _refuse_seven(row: dict[str, Any]) -> dict[str, Any]:
    if row["n"] == 7:
        raise ValueError("seven")
    return row


def test_a_detached_job_goes_on_without_its_coordinator(
    cluster: sw.Cluster, tmp_path: Path, expected: list[tuple[int, str]]
) -> None:
    path, folder, over = tmp_path / "rows.db", tmp_path / "checkpoints", tmp_path / "over"
    flow = pairs(TableOutput(str(path)), over=over)
    job = cluster.submit(
        flow, placement=IN_TWO, detach=True, checkpoint=EVERY, checkpoint_folder=folder
    )
    until(partial(at_least, path, 1_500), within_s=SOON_S, what="rows")
    coordinator, workers = job.record.coordinator, {*job.workers().values()}
    assert coordinator is not None
    os.kill(coordinator.pid, signal.SIGKILL)
    over.touch()
    report = job.wait(timeout=LIMIT_S)
    assert report.state == "done"
    assert report.ledger.is_balanced
    assert job.record.coordinator is not None
    assert job.record.coordinator.pid != coordinator.pid
    assert {*job.workers().values()} == workers, "its slots are in the same processes"
    (recovery,) = report.recoveries
    assert f"the coordinator of the job (process {coordinator.pid} on node" in recovery.cause
    assert recovery.gap_s is not None
    assert rows_of(path) == expected
    assert not [*folder.iterdir()], "a job that is done leaves nothing"
    until(lambda: not any(map(psutil.pid_exists, workers)), within_s=SOON_S, what="their ends")
    assert processes_of(job.id) == []


def test_processes_end_once_their_job_has_no_coordinator_and_gets_none(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    path, folder, over = tmp_path / "rows.db", tmp_path / "checkpoints", tmp_path / "over"
    flow = pairs(TableOutput(str(path)), over=over)
    job = cluster.submit(
        flow, placement=IN_TWO, detach=True, checkpoint=EVERY, checkpoint_folder=folder
    )
    until(partial(at_least, path, 1_000), within_s=SOON_S, what="rows")
    workers = [*job.workers().values()]
    ray.kill(coordinator_of(job.id), no_restart=True)
    until(lambda: not any(map(psutil.pid_exists, workers)), within_s=SOON_S, what="their ends")
    until(lambda: not processes_of(job.id), within_s=SOON_S, what="the ends of spares")
    assert job.status == "lost"


def test_a_stream_that_ended_before_the_checkpoint_holds_nothing_up(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    over, file = tmp_path / "over", tmp_path / "short.jsonl"
    flow = sw.Dataflow("uneven")
    long = HeldInput(sw.table({"ts": [*range(2_000)]}), str(over), 1_000)
    for name, rows in (("short", sw.table({"ts": [*range(50)]})), ("long", long)):
        stream = flow.source(name, rows, event_time="ts", time_unit="ms", speed=1.0)
        counts = stream.aggregate(window=sw.tumbling("10ms"), n=sw.count(), name=f"{name}-counts")
        counts.sink(f"{name}-out", sw.jsonl_sink(tmp_path / f"{name}.jsonl"))
    stages = {
        **dict.fromkeys(("short", "long"), "node-1"),
        **{f"{name}-{step}": "node-2" for name in ("short", "long") for step in ("counts", "out")},
    }
    job = cluster.submit(
        flow, placement=stages, checkpoint=EVERY, checkpoint_folder=tmp_path / "checkpoints"
    )
    until(file.exists, within_s=SOON_S, what="the end of the short stream")
    number = job.metrics.checkpoint.number or 0 if job.metrics.checkpoint else 0
    until(partial(has_checkpoint_after, job, number + 1), within_s=SOON_S, what="a checkpoint")
    kill(job, "node-2")
    over.touch()
    report = job.wait(timeout=LIMIT_S)
    assert (report.state, len(report.recoveries)) == ("done", 1)
    for name, windows in (("short", 5), ("long", 200)):
        assert len((tmp_path / f"{name}.jsonl").read_text().splitlines()) == windows


def test_a_job_that_is_done_stays_so_though_its_coordinator_dies(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    flow = sw.Dataflow("kept")
    rows = flow.source("rows", sw.table({"ts": [*range(9)]}), event_time="ts", time_unit="s")
    rows.sink("out", sw.collect_sink())  # until they are fetched, the coordinator keeps them
    folder = tmp_path / "checkpoints"
    job = cluster.submit(flow, detach=True, checkpoint=EVERY, checkpoint_folder=folder)
    job.wait(timeout=LIMIT_S)
    coordinator = job.record.coordinator
    assert coordinator is not None
    os.kill(coordinator.pid, signal.SIGKILL)
    until(lambda: coordinator_of(job.id) is None, within_s=SOON_S, what="its coordinators to end")
    assert job.record.state == "done"


def test_a_job_whose_stages_have_moved_comes_back_where_they_are(
    cluster: sw.Cluster, tmp_path: Path, expected: list[tuple[int, str]]
) -> None:
    path, folder, over = tmp_path / "rows.db", tmp_path / "checkpoints", tmp_path / "over"
    flow = pairs(TableOutput(str(path)), over=over)
    places = {"left": "node-1", "right": "node-1", "joined": "node-1", "out": "node-2"}
    job = cluster.submit(
        flow, placement=places, checkpoint=EVERY, checkpoint_folder=folder, detach=False
    )
    until(partial(at_least, path, 1_000), within_s=SOON_S, what="rows")
    done = job.replace({"joined": "node-3"})
    assert done.problem is None
    number = job.metrics.checkpoint.number or 0 if job.metrics.checkpoint else 0
    until(
        lambda: job.metrics.checkpoint and (job.metrics.checkpoint.number or 0) > number,
        within_s=SOON_S,
        what="a checkpoint of the new plan",
    )
    kill(job, "node-3")
    over.touch()
    report = job.wait(timeout=LIMIT_S)
    assert report.ledger.is_balanced
    assert len(report.recoveries) == 1
    assert {stage.name: stage.slot for stage in report.stages}["joined"] == "node-3"
    assert rows_of(path) == expected


def test_rows_that_are_read_once_survive_a_kill_of_their_source(
    cluster: sw.Cluster, tmp_path: Path
) -> None:
    """Killed when the pipe is empty: what was read of it since the checkpoint is spooled alone."""
    pipe, path, folder = tmp_path / "pipe", tmp_path / "rows.db", tmp_path / "checkpoints"
    os.mkfifo(pipe)
    own_end = os.open(pipe, os.O_RDWR)  # so numbers wait there when it has no reader
    flow = sw.Dataflow("pipe")
    rows = flow.source("numbers", PipeInput(str(pipe)), event_time="ts", time_unit="ms")
    rows.sink("out", TableOutput(str(path)))
    job = cluster.submit(flow, checkpoint="1s", checkpoint_folder=folder)
    fed = 0
    for kills in range(3):
        for _ in range(500):
            fed += 1
            os.write(own_end, fed.to_bytes(4, "big"))
        until(partial(at_least, path, fed), within_s=SOON_S, what=f"{fed} rows")
        if kills < 2:
            kill(job, "node-1")
            until(lambda: len(job.report().recoveries) > kills, within_s=SOON_S, what="its return")  # noqa: B023
    report = job.report()
    job.stop()
    os.close(own_end)
    assert report.checkpoint is not None
    assert report.checkpoint.spool_bytes > 0
    assert report.ledger.is_balanced
    numbers = [int(re.search(r"\d+", text)[0]) for _, text in rows_of(path)]  # type: ignore[index]
    assert numbers == [*range(1, fed + 1)]


def waiting_flow(sink: sw.connectors.Output, waits: Path, how: str) -> sw.Dataflow:
    flow = sw.Dataflow("waiting")
    rows = sw.table({"ts": [*range(1_000)], "n": [*range(1_000)]})
    numbers = flow.source("numbers", rows, event_time="ts", time_unit="ms", speed=1.0)
    waiting = partial(_wait_once, path=str(waits), how=how)
    numbers.map_rows(waiting, {"ts": "int64", "n": "int64"}, name="waits").sink("out", sink)
    return flow


def _wait_once(row: dict[str, Any], *, path: str, how: str) -> dict[str, Any]:
    if row["n"] == 400 and not Path(path).exists():
        Path(path).touch()
        if how == "sleeps":
            ctypes.PyDLL(None).sleep(1_000)  # holds the interpreter
        else:
            until_s = time.monotonic() + 2 * SILENCE_S
            while time.monotonic() < until_s:
                sum(range(10**7))  # holds it, too, for 0.1 s and more at a time
    return row


def _wait_for_ever() -> None:
    threading.Event().wait()


def test_an_answer_that_is_late_is_no_sign_of_a_lost_cluster(cluster: sw.Cluster) -> None:
    del cluster
    wait: Any = ray.remote(_wait_for_ever)
    never, monitor = wait.options(num_cpus=0).remote(), own_cluster_monitor()
    with pytest.raises(GetTimeoutError):
        monitor.get([never], timeout_s=0.1)
    assert monitor.look() is None
    monitor.close()
    ray.cancel(never, force=True)


@pytest.mark.parametrize(("how", "recoveries"), [("sleeps", 1), ("computes", 0)])
def test_a_function_that_stands_still_with_the_interpreter_is_ended_unless_it_computes(
    cluster: sw.Cluster, tmp_path: Path, how: str, recoveries: int
) -> None:
    path, waits = tmp_path / "rows.db", tmp_path / "waits"
    job = cluster.submit(
        waiting_flow(TableOutput(str(path)), waits, how),
        placement={"*": "node-1", "waits": "node-2"},
        checkpoint=EVERY,
        checkpoint_folder=tmp_path / "checkpoints",
        limits=sw.Limits(lost_ns=round(SILENCE_S * 1e9), fuse=False),
    )
    report = job.wait(timeout=LIMIT_S)
    assert waits.exists()
    causes = [recovery.cause for recovery in report.recoveries]
    assert len(causes) == recoveries, causes
    assert all("by the supervisor of its node" in cause for cause in causes)
    assert all("is that of 'waits'" in cause for cause in causes)
    assert report.ledger.is_balanced
    assert [ordinal for ordinal, _ in rows_of(path)] == [*range(1_000)]


def test_a_slot_that_is_stopped_for_less_than_the_limit_goes_on_and_for_more_is_replaced(
    cluster: sw.Cluster, tmp_path: Path, expected: list[tuple[int, str]]
) -> None:
    path, folder, over = tmp_path / "rows.db", tmp_path / "checkpoints", tmp_path / "over"
    job = cluster.submit(
        pairs(TableOutput(str(path)), over=over),
        placement={"*": "node-1", "joined": "node-2"},
        checkpoint=EVERY,
        checkpoint_folder=folder,
        limits=sw.Limits(lost_ns=round(4 * SILENCE_S * 1e9)),
    )
    until(partial(at_least, path, 600), within_s=SOON_S, what="rows")
    stopped = psutil.Process(job.workers()["node-2"])
    stopped.suspend()
    threading.Event().wait(SILENCE_S)
    stopped.resume()
    until(partial(at_least, path, 1_200), within_s=SOON_S, what="more rows")
    assert not job.metrics.recoveries
    stopped.suspend()
    until(partial(has_recovered, job, 1), within_s=SOON_S, what="a recovery")
    until(lambda: not stopped.is_running(), within_s=SOON_S, what="its end: it wakes no more")
    over.touch()
    report = job.wait(timeout=LIMIT_S)
    assert len(report.recoveries) == 1, report.recoveries
    assert "SIGSTOP" in report.recoveries[0].cause
    assert rows_of(path) == expected
