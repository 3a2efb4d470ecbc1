"""A commit that fails half way, and a run behind one that was done: nothing of either is lost."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from slackwater.actors.kernel import plain_files
from slackwater.actors.sinks import output_path
from slackwater.actors.sinks.outputs import jsonl_sink, parquet_sink
from slackwater.runtime.errors import SinkError
from tests.support.sinks import SCHEMA, Driven, manifest, opened, rows, seen, shown, write_all


def test_an_overwrite_whose_renaming_fails_behind_its_commit_loses_neither_old_nor_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = parquet_sink(tmp_path, rows=5, overwrite=True)
    write_all(spec)
    sink = opened(spec)
    rename = Path.replace

    def full(self: Path, target: Path) -> Path:
        if self.name.endswith(".incomplete"):
            raise OSError(errno.ENOSPC, "no room")
        return rename(self, target)

    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", full)
        with pytest.raises(SinkError, match="No space left"):
            sink.write(rows(100, 5))
    assert manifest(tmp_path)["run"]["state"] == "failed"
    behind = parquet_sink(tmp_path, rows=5, resume=True)
    again = opened(behind)
    for first in range(100, 110, 5):
        again.write(rows(first, 5))
    again.close()
    assert seen(tmp_path) == list(range(100, 110))


@pytest.mark.parametrize("name", ["rows.jsonl", "folder"])
def test_the_name_of_a_new_folder_is_on_disk_as_what_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    synced, sync = set(), output_path.sync

    def noted(path: Path) -> None:
        synced.add(path)
        sync(path)

    for module in (output_path, plain_files):
        monkeypatch.setattr(module, "sync", noted)
    write_all(jsonl_sink(tmp_path / "new" / "deeper" / name))
    assert {tmp_path, tmp_path / "new", tmp_path / "new" / "deeper"} <= synced


@pytest.mark.parametrize("mode", ["resume", "overwrite"])
def test_whichever_sync_or_rename_fails_readers_see_whole_rows_and_the_next_run_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Every one of them once: what is visible is the old, or a prefix of the new."""
    spec, old = jsonl_sink(tmp_path, rows=4, **{mode: True}), list(range(1_000, 1_003))  # type: ignore[arg-type]
    rename = Path.replace
    left = 0

    def counted() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise OSError(errno.EIO, "broken")

    def replace(self: Path, target: Path) -> Path:
        counted()
        return rename(self, target)

    def fsync(_: int) -> None:
        counted()

    for failing in range(1, 60):
        for path in tmp_path.iterdir():
            path.unlink()
        if mode == "overwrite":
            first = opened(jsonl_sink(tmp_path, rows=4))
            first.write(rows(1_000, 3))
            first.close()
        left = failing
        with monkeypatch.context() as broken:
            broken.setattr(Path, "replace", replace)
            broken.setattr(os, "fsync", fsync)
            try:
                write_all(spec, count=5)
            except SinkError:
                there = seen(tmp_path)
                assert there in (old, list(range(len(there)))), failing
            else:
                break
        write_all(spec, count=5)
        assert seen(tmp_path) == list(range(5)), failing
        assert sorted(shown(tmp_path)) == [f"part-{n:08d}.jsonl" for n in (1, 2)]
    assert failing > 10


def test_a_part_that_is_named_stays_named_though_its_folder_cannot_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = opened(parquet_sink(tmp_path, rows=5))
    sink.write(rows(0, 5))
    sync, calls = output_path.sync, []

    def failing(path: Path) -> None:
        calls.append(path)
        if calls.count(tmp_path) == 2:  # the first is of the manifest, the second of the renaming
            raise OSError(errno.EIO, "broken")
        sync(path)

    with monkeypatch.context() as broken:
        broken.setattr(output_path, "sync", failing)
        broken.setattr(plain_files, "sync", failing)
        with pytest.raises(SinkError, match="Input/output"):
            sink.write(rows(5, 5))
    assert seen(tmp_path) == list(range(10))
    assert manifest(tmp_path)["rows"] == 10
    write_all(parquet_sink(tmp_path, rows=5, resume=True))
    assert seen(tmp_path) == list(range(17))


@pytest.mark.parametrize("failing", ["rename", "sync"])
def test_one_file_whose_publication_fails_is_whole_after_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    place, sync, rename = tmp_path / "rows.jsonl", output_path.sync, Path.replace
    syncs = 0

    def broken_sync(path: Path) -> None:
        nonlocal syncs
        syncs += 1
        if failing == "sync" and syncs == 3:  # after the renaming
            raise OSError(errno.EIO, "broken")
        sync(path)

    def broken_rename(self: Path, target: Path) -> Path:
        if failing == "rename" and self.name.endswith(".incomplete"):
            raise OSError(errno.EIO, "broken")
        return rename(self, target)

    with monkeypatch.context() as broken:
        broken.setattr(output_path, "sync", broken_sync)
        broken.setattr(plain_files, "sync", broken_sync)
        broken.setattr(Path, "replace", broken_rename)
        with pytest.raises(SinkError, match="resume=True goes on"):
            write_all(jsonl_sink(place))
    assert seen(place) == (list(range(17)) if failing == "sync" else [])
    assert write_all(jsonl_sink(place, resume=True)).skipped == 17
    assert seen(place) == list(range(17))


@pytest.mark.parametrize("name", ["rows.jsonl", "folder"])
def test_a_rerun_that_fails_behind_a_run_that_was_done_leaves_it_done(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    write_all(jsonl_sink(path))
    sink = opened(jsonl_sink(path, resume=True))
    sink.write(rows(0, 3))
    sink.abort("a worker died")
    stopped = opened(jsonl_sink(path, resume=True))
    stopped.write(rows(0, 3))
    stopped.close("stopped")
    again = write_all(jsonl_sink(path, resume=True))
    assert again.skipped == 17
    assert seen(path) == list(range(17))


def test_more_rows_than_a_run_that_was_done_are_refused_as_fewer_are(tmp_path: Path) -> None:
    write_all(parquet_sink(tmp_path))
    with pytest.raises(SinkError, match=r"gave 18 rows or more.*has 17.*other results each time"):
        write_all(parquet_sink(tmp_path, resume=True), count=18)
    assert seen(tmp_path) == list(range(17))
    assert manifest(tmp_path)["run"]["state"] == "done"


def test_a_relative_path_is_meant_from_where_the_sink_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    sink = Driven(jsonl_sink("out", rows=5), SCHEMA)
    monkeypatch.chdir(tmp_path / "elsewhere")
    sink.write(rows(0, 9))
    sink.close()
    assert seen(tmp_path / "out") == list(range(9))
    assert not (tmp_path / "out" / ".slackwater.lock").exists()
