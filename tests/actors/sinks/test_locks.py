"""One writer at a time: who is refused, and whose lock is taken over."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.engine.sinks.killed import DIED, killed_at
from slackwater.actors.jobs.end_on_record import end_on_record
from slackwater.actors.jobs.records import JobRecord, Records, Worker
from slackwater.actors.sinks.lock import here_as
from slackwater.actors.sinks.outputs import jsonl_sink
from slackwater.runtime.errors import SinkError
from tests.support.sinks import RUN, opened, rows, seen, write_all


class MemoryStore:
    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def put(self, key: str, value: bytes) -> None:
        self._kept[key] = value

    def get(self, key: str) -> bytes | None:
        return self._kept.get(key)

    def delete(self, key: str) -> None:
        self._kept.pop(key, None)

    def keys(self, prefix: str) -> list[str]:
        return [key for key in self._kept if key.startswith(prefix)]


@pytest.mark.parametrize("name", ["out", "one.jsonl"])
def test_a_second_writer_is_refused_by_the_name_of_the_first(tmp_path: Path, name: str) -> None:
    first = opened(jsonl_sink(tmp_path / name))
    for overwrite in (False, True):
        with pytest.raises(SinkError, match=r"job 'first-1' \(sink 'out', process \d+ on .*stop"):
            opened(jsonl_sink(tmp_path / name, overwrite=overwrite), replace(RUN, job="second"))
    first.write(rows(0, 3))
    first.close()
    assert seen(tmp_path / name) == [0, 1, 2]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["lock", "json"])
@pytest.mark.parametrize("name", ["out", "one.jsonl"])
def test_a_pipe_in_the_place_of_a_lock_or_manifest_is_refused_and_not_waited_for(
    tmp_path: Path, name: str, kind: str
) -> None:
    (tmp_path / "out").mkdir()
    hidden = {"out": f"out/.slackwater.{kind}", "one.jsonl": f".one.jsonl.slackwater.{kind}"}[name]
    os.mkfifo(tmp_path / hidden)
    with pytest.raises(SinkError, match=f"slackwater.{kind} is not a regular file.*choose a path"):
        opened(jsonl_sink(tmp_path / name, overwrite=True))
    assert {path.name for path in (tmp_path / hidden).parent.iterdir()} <= {
        "out",
        Path(hidden).name,
    }


@pytest.mark.parametrize("has_links", [True, False])
@pytest.mark.parametrize("name", ["out", "one.jsonl"])
def test_no_other_user_can_read_a_file_of_a_sink_at_work(
    tmp_path: Path, name: str, has_links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "no links here")

    if not has_links:
        monkeypatch.setattr(os, "link", refused)
    before = os.umask(0o022)
    try:
        sink = opened(jsonl_sink(tmp_path / name))
        sink.write(rows(0, 3))
        modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
        sink.close()
    finally:
        os.umask(before)
    assert any(name.endswith("slackwater.lock") for name in modes)
    assert {mode for name, mode in modes.items() if name != "out"} == {0o600}


def test_a_job_that_never_started_leaves_the_place_as_it_was(tmp_path: Path) -> None:
    write_all(jsonl_sink(tmp_path))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    opened(jsonl_sink(tmp_path, overwrite=True)).leave()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_the_lock_of_a_process_that_is_gone_is_taken_over_and_that_is_said(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def die() -> None:
        sink = opened(jsonl_sink(out, rows=2), replace(RUN, job="dead-1"))
        sink.write(rows(0, 3))
        os._exit(DIED)

    assert killed_at(1_000, die, under=str(out))
    assert seen(out) == [0, 1]
    sink = write_all(jsonl_sink(out, overwrite=True))
    assert "took over the lock of job 'dead-1'" in sink.progress.notes[0]
    assert "that process is gone" in sink.progress.notes[0]
    assert any("removed 1 unfinished file" in note for note in sink.progress.notes)
    assert seen(out) == list(range(17))


def test_a_lock_of_another_host_is_refused_unless_its_jobs_end_is_on_record(tmp_path: Path) -> None:
    holder = replace(
        here_as("out", RUN, since_ns=0), host="elsewhere", machine="m2", boot="b2", pid=7
    )
    lock = tmp_path / ".slackwater.lock"
    lock.write_text(json.dumps(holder.to_json()))
    with pytest.raises(SinkError, match=r"on elsewhere\), and whether .*remove that file"):
        opened(jsonl_sink(tmp_path))
    sink = opened(jsonl_sink(tmp_path), has_ended=lambda found: found == holder)
    assert "the end of that job is on record" in sink.progress.notes[0]
    sink.leave()
    lock.write_text("half a lo")
    with pytest.raises(SinkError, match="an unknown job, and it cannot be read"):
        opened(jsonl_sink(tmp_path))


def test_an_end_is_on_record_only_with_the_very_process_of_the_lock() -> None:
    holder = here_as("out", RUN, since_ns=0)
    records = Records(MemoryStore())
    worker = Worker("node-1", "n1", "10.0.0.1", holder.pid)
    record = JobRecord(
        id=RUN.job, flow="f", state="running", submitter="me", submitted_ns=0, workers={"s": worker}
    )
    for state, pid, is_over in (
        ("running", holder.pid, False),
        ("lost", holder.pid, True),
        ("done", holder.pid + 1, False),
    ):
        workers = {"s": replace(worker, pid=pid)}
        records.write(replace(record, state=state, workers=workers))
        assert end_on_record(holder, records) == is_over
    assert not end_on_record(replace(holder, job="unknown"), records)
    assert not end_on_record(holder)  # no cluster, so nobody knows


def test_a_writer_whose_lock_was_taken_publishes_nothing_more(tmp_path: Path) -> None:
    sink = opened(jsonl_sink(tmp_path, rows=2))
    sink.write(rows(0, 2))
    opened(jsonl_sink(tmp_path, resume=True), has_ended=lambda _: True)
    with pytest.raises(SinkError, match="was taken from us, and belongs to job 'first-1'"):
        sink.write(rows(2, 2))
    assert seen(tmp_path) == [0, 1]
    assert (tmp_path / ".slackwater.lock").exists()


def test_a_lock_that_an_ended_job_could_not_remove_refuses_no_later_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = opened(jsonl_sink(tmp_path, rows=2))
    sink.write(rows(0, 3))

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "no")

    with monkeypatch.context() as read_only:
        read_only.setattr(Path, "unlink", refused)
        sink.abort("some failure")
    assert (tmp_path / ".slackwater.lock").exists()
    again = write_all(jsonl_sink(tmp_path, rows=2, resume=True))
    assert "that job has ended, in this very process" in again.progress.notes[0]
    assert seen(tmp_path) == list(range(17))


def test_a_lock_that_somebody_damages_is_an_error_that_names_it(tmp_path: Path) -> None:
    sink = opened(jsonl_sink(tmp_path, rows=2))
    sink.write(rows(0, 2))
    (tmp_path / ".slackwater.lock").write_text("")
    with pytest.raises(SinkError, match=r"slackwater\.lock was ours, and cannot be read"):
        sink.write(rows(2, 2))
    assert seen(tmp_path) == [0, 1]
