"""Another program removes or cuts files of a sink while it writes: the end says so, and goes on."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from slackwater.actors.sinks import output_path
from slackwater.actors.sinks.files import FileSink
from slackwater.actors.sinks.outputs import csv_sink, jsonl_sink, parquet_sink
from slackwater.runtime.errors import SinkError
from tests.support.sinks import manifest, opened, rows, seen, write_all
from tests.support.small_disks import mounted

SINKS = [csv_sink, jsonl_sink, parquet_sink]


def hidden_of(folder: Path) -> Path:
    (path,) = folder.glob(".*.incomplete")
    return path


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def named(folder: Path) -> list[str]:
    return [part[0] for part in manifest(folder)["parts"]]


@pytest.mark.parametrize("of", SINKS)
@pytest.mark.parametrize("change", [Path.unlink, cut], ids=["removed", "cut"])
def test_a_part_changed_before_its_renaming_is_not_named_and_resume_goes_on(
    tmp_path: Path, of: Any, change: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = opened(of(tmp_path, rows=4))
    sink.write(rows(0, 4))
    commit = FileSink.commit

    def late(self: FileSink) -> None:
        change(hidden_of(tmp_path))
        commit(self)

    monkeypatch.setattr(FileSink, "commit", late)
    with pytest.raises(SinkError, match=r"by another program.*1 part with 4 rows") as caught:
        sink.write(rows(4, 4))
    monkeypatch.undo()
    assert named(tmp_path) == [f"part-00000001.{of.__name__.removesuffix('_sink')}"]
    assert "resume=True goes on" in str(caught.value)
    assert "make room" not in str(caught.value)
    write_all(of(tmp_path, rows=4, resume=True), count=10)
    assert seen(tmp_path) == list(range(10))


@pytest.mark.parametrize("of", SINKS)
@pytest.mark.parametrize("name", ["folder", "file"])
@pytest.mark.parametrize("is_last", [False, True])
def test_a_part_cut_while_it_is_written_is_not_published(
    tmp_path: Path, of: Any, name: str, is_last: bool
) -> None:
    path = tmp_path / ("out" if name == "folder" else f"out.{of.__name__.removesuffix('_sink')}")
    sink = opened(of(path))
    sink.write(rows(0, 70_000))
    cut(hidden_of(path if name == "folder" else tmp_path))
    end = sink.close if is_last else partial(sink.write, rows(70_000, 70_000))
    with pytest.raises(SinkError, match="changed by another program while it was written"):
        end()
    assert seen(path) == []
    write_all(of(path, resume=True), count=5)
    assert seen(path) == list(range(5))


@pytest.mark.parametrize("of", SINKS)
def test_a_part_changed_between_the_look_and_the_renaming_is_noticed(
    tmp_path: Path, of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = opened(of(tmp_path, rows=4))
    sink.write(rows(0, 4))
    rename = Path.replace

    def racing(self: Path, target: Path) -> Path:
        if self.name.endswith(".incomplete"):
            cut(self)
        return rename(self, target)

    with monkeypatch.context() as raced:
        raced.setattr(Path, "replace", racing)
        with pytest.raises(SinkError, match="changed by another program"):
            sink.write(rows(4, 4))
    assert len(named(tmp_path)) == 1
    assert manifest(tmp_path)["pending"] == []


@pytest.mark.parametrize("of", SINKS)
@pytest.mark.parametrize("name", ["folder", "file"])
def test_a_hidden_part_that_is_removed_early_fails_without_a_lie(
    tmp_path: Path, of: Any, name: str
) -> None:
    path = tmp_path / ("out" if name == "folder" else f"out.{of.__name__.removesuffix('_sink')}")
    sink = opened(of(path))
    sink.write(rows(0, 70_000))
    hidden_of(path if name == "folder" else tmp_path).unlink()
    with pytest.raises(SinkError) as caught:
        sink.close()
    assert "make room" not in str(caught.value)
    assert "0 parts with 0 rows are published" in str(caught.value)
    assert ".incomplete" not in str(caught.value)
    assert "resume=True" not in str(caught.value)
    write_all(of(path), count=5)
    assert seen(path) == list(range(5))


@pytest.mark.parametrize("of", SINKS)
def test_a_folder_that_is_gone_asks_for_no_room(tmp_path: Path, of: Any) -> None:
    path = tmp_path / "out"
    sink = opened(of(path, rows=4))
    sink.write(rows(0, 6))
    shutil.rmtree(path)
    with pytest.raises(SinkError, match="its folder is gone") as caught:
        sink.close()
    for wrong in ("lock", "make room", "MiB free", "resume=True", "overwrite=True"):
        assert wrong not in str(caught.value)
    write_all(of(path, rows=4), count=6)
    assert seen(path) == list(range(6))


@pytest.mark.parametrize("is_emptied", [True, False])
def test_a_lock_that_is_gone_is_named_with_the_way_on(tmp_path: Path, is_emptied: bool) -> None:
    sink = opened(jsonl_sink(tmp_path, rows=4))
    sink.write(rows(0, 6))
    for path in list(tmp_path.iterdir()):
        if is_emptied or path.suffix == ".lock":
            path.unlink()
    with pytest.raises(SinkError, match=r"its lock .*\.slackwater\.lock is gone; ") as caught:
        sink.write(rows(6, 4))
    assert "see which program removes files there, or choose another path" in str(caught.value)
    assert ("resume=True goes on" in str(caught.value)) == (not is_emptied)
    write_all(jsonl_sink(tmp_path, rows=4, resume=True))
    assert seen(tmp_path) == list(range(17))


@pytest.mark.parametrize("is_opening", [True, False])
def test_a_folder_in_the_locks_place_is_named_and_the_advice_works(
    tmp_path: Path, is_opening: bool
) -> None:
    sink = opened(jsonl_sink(tmp_path, rows=4))
    sink.write(rows(0, 4))
    lock = tmp_path / ".slackwater.lock"
    lock.unlink()
    lock.mkdir()
    again = partial(opened, jsonl_sink(tmp_path, rows=4, resume=True))
    call = again if is_opening else partial(sink.write, rows(4, 4))
    with pytest.raises(SinkError, match=r"\.lock is not a regular file: move it away, or choose"):
        call()
    lock.rmdir()
    write_all(jsonl_sink(tmp_path, rows=4, resume=True))
    assert seen(tmp_path) == list(range(17))


@pytest.mark.parametrize(
    ("number", "says"), [(errno.EROFS, "mount that file system"), (errno.EACCES, "let this user")]
)
def test_a_folder_that_cannot_be_made_was_never_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, says: str
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(number, "no")

    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(SinkError, match=says) as caught:
        opened(jsonl_sink(tmp_path / "out"))
    assert "gone" not in str(caught.value)


@pytest.mark.parametrize("name", ["out", "out/deeper", "out/one.jsonl"])
@pytest.mark.parametrize("make", [Path.touch, lambda path: path.symlink_to("nowhere")])
def test_a_file_where_a_folder_should_be_is_named_and_the_advice_works(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "out")
    with pytest.raises(SinkError, match=r"/out is not a folder: move it away, or choose a path"):
        opened(jsonl_sink(tmp_path / name))
    (tmp_path / "out").unlink()
    write_all(jsonl_sink(tmp_path / name))


def test_a_folder_in_the_manifests_place_is_named_and_the_advice_works(tmp_path: Path) -> None:
    path = tmp_path / "out"
    sink = opened(csv_sink(path, rows=4))
    sink.write(rows(0, 4))
    (path / ".slackwater.json").unlink()
    (path / ".slackwater.json").mkdir()
    with pytest.raises(SinkError, match=r"out/\.slackwater\.json: .*move .*/out away") as caught:
        sink.write(rows(4, 4))
    with pytest.raises(SinkError, match=r"\.json is not a regular file: move .*/out away, or"):
        opened(csv_sink(path, rows=4, resume=True))
    said = str(caught.value)
    assert "1 part with 4 rows is published" in said
    for wrong in ("resume=True", "overwrite=True", "make room", ".json."):
        assert wrong not in said
    path.rename(tmp_path / "away")
    write_all(csv_sink(path, rows=4), count=4)
    assert seen(path) == list(range(4))


@pytest.mark.parametrize("of", SINKS)
@pytest.mark.parametrize("change", [Path.unlink, cut], ids=["removed", "cut"])
def test_a_published_part_that_vanishes_is_told_at_the_end(
    tmp_path: Path, of: Any, change: Callable[[Path], None]
) -> None:
    sink = opened(of(tmp_path, rows=4))
    sink.write(rows(0, 8))
    first = tmp_path / f"part-00000001.{of.__name__.removesuffix('_sink')}"
    change(first)
    sink.write(rows(8, 3))
    sink.close()
    assert any(first.name in note and "4 rows" in note for note in sink.progress.notes)
    assert (sink.progress.published, sink.progress.parts) == (7, 2)


@pytest.mark.parametrize("mode", ["resume", "overwrite"])
def test_a_part_that_became_a_link_to_itself_is_the_same_part(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "out"
    write_all(jsonl_sink(path, rows=4))
    first = path / "part-00000001.jsonl"
    elsewhere = first.rename(tmp_path / "moved")
    first.symlink_to(elsewhere)
    sink = write_all(jsonl_sink(path, rows=4, **{mode: True}))  # type: ignore[arg-type]
    assert sink.progress.notes == (
        [] if mode == "overwrite" else ["goes on after 17 rows that job 'first-1' had committed"]
    )
    assert seen(path) == list(range(17))
    assert elsewhere.exists()


@pytest.mark.parametrize("becomes", ["folder", "dangling"])
def test_a_part_that_became_no_file_is_said_to_be_none(tmp_path: Path, becomes: str) -> None:
    sink = opened(jsonl_sink(tmp_path, rows=4))
    sink.write(rows(0, 6))
    first = tmp_path / "part-00000001.jsonl"
    first.unlink()
    first.mkdir() if becomes == "folder" else first.symlink_to("nowhere")
    sink.close()
    assert "part-00000001.jsonl with 4 rows is not a file any more" in sink.progress.notes[0]
    for mode in ("resume", "overwrite"):
        with pytest.raises(SinkError, match=r"part-00000001.jsonl is not a file any more"):
            opened(jsonl_sink(tmp_path, rows=4, **{mode: True}))  # type: ignore[arg-type]


def test_a_stat_that_is_refused_is_not_a_part_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_all(jsonl_sink(tmp_path, rows=4))
    lstat = os.lstat

    def refused(path: Any, **options: Any) -> os.stat_result:
        if "part-" in os.fspath(path):
            raise PermissionError(errno.EACCES, "no")
        return lstat(path, **options)

    monkeypatch.setattr(output_path.os, "lstat", refused)
    with pytest.raises(SinkError, match="Permission denied; let this user") as caught:
        opened(jsonl_sink(tmp_path, rows=4, resume=True))
    assert "overwrite" not in str(caught.value)
    assert "gone" not in str(caught.value)


@pytest.fixture
def few_inodes(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "small", "size=1m,nr_inodes=8") as folder:
        yield folder


def _fill(sink: FileSink) -> None:
    for first in range(0, 40, 2):
        sink.write(rows(first, 2))


def test_a_disk_without_inodes_asks_to_remove_files(few_inodes: Path) -> None:
    sink = opened(jsonl_sink(few_inodes / "out", rows=2))
    with pytest.raises(SinkError, match=r"No space left on device \(no inodes are free") as caught:
        _fill(sink)
    assert "remove files there" in str(caught.value)
    assert "make room" not in str(caught.value)
    assert seen(few_inodes / "out") == list(range(len(seen(few_inodes / "out"))))
