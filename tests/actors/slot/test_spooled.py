"""Inputs that are read once, by way of a spool: restores, limits, writers that were replaced."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.actors.checkpoints.folder import remove, spool_size
from slackwater.actors.checkpoints.spool import Spool, SpoolName
from slackwater.actors.slot.spooled import SpooledInput, SpoolReader
from slackwater.runtime.config import Limits
from slackwater.runtime.errors import IngestError
from slackwater.runtime.sources.named_reader import NamedReader
from slackwater.runtime.sources.spool_records import Kind

SMALL = Limits(spool_bytes=2_000, spool_wait_ns=5)
WIDE = Limits()


class Numbers:
    """Gives each number once, to whoever asks first."""

    replay = "none"

    def __init__(self, count: int = 10**9, *, bad: frozenset[int] = frozenset()) -> None:
        self.next, self.count, self.bad, self.closed = 0, count, bad, 0

    def describe(self) -> str:
        return "numbers"

    def schema(self) -> pa.Schema:
        return pa.schema([("n", pa.int64())])

    def open(self) -> Any:
        return self

    def poll(self) -> Any:
        if self.next == self.count:
            return sw.connectors.END_OF_INPUT
        n, self.next = self.next, self.next + 1
        if n in self.bad:
            return sw.connectors.BadRows(pa.record_batch({"file": ["f"], "line": [n]}))
        return pa.record_batch({"n": pa.array([n])})

    def close(self) -> None:
        self.closed += 1


def reader(
    folder: Path, given: Any, at: bytes | None = None, limits: Limits = WIDE, **options: Any
) -> SpoolReader:
    return SpoolReader(SpoolName(folder, "f", "s"), given, limits, at, **options)


def took(own: SpoolReader, times: int) -> list[tuple[int, bytes]]:
    """The numbers of the next blocks, with their positions."""
    blocks: list[Any] = [own.poll() for _ in range(times)]
    return [
        (row, block.at or b"")
        for block in blocks
        if isinstance(block, sw.connectors.Block)
        for row in _numbers(block)
    ]


def _numbers(block: Any) -> list[int]:
    is_bad = isinstance(block.rows, sw.connectors.BadRows)
    columns: Any = block.rows.rows.column("line") if is_bad else block.rows.column("n")
    return columns.to_pylist()  # type: ignore[no-any-return]


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def test_a_reader_at_a_position_gives_the_same_rows_then_those_of_the_input(
    tmp_path: Path,
) -> None:
    given = Numbers(bad=frozenset({3}))
    had = took(reader(tmp_path, given), 6)
    again = took(reader(tmp_path, given, had[2][1]), 8)
    assert again[:4] == had[2:]
    assert [n for n, _ in again] == [*range(2, 10)]
    assert given.next == 10
    third = took(reader(tmp_path, given, again[5][1]), 4)
    assert [n for n, _ in third] == [*range(7, 11)]


def test_without_a_position_all_rows_come_again(tmp_path: Path) -> None:
    given = Numbers()
    took(reader(tmp_path, given), 4)
    assert [n for n, _ in took(reader(tmp_path, given), 6)] == [*range(6)]


def test_the_end_of_the_input_is_spooled_too(tmp_path: Path) -> None:
    given = Numbers(3)
    own = reader(tmp_path, given)
    first = took(own, 3)
    assert own.poll() is sw.connectors.END_OF_INPUT
    again = reader(tmp_path, None, first[1][1])
    assert [n for n, _ in took(again, 2)] == [1, 2]
    assert again.poll() is again.poll() is sw.connectors.END_OF_INPUT


def test_files_are_private_and_go_when_no_checkpoint_needs_them(tmp_path: Path) -> None:
    given, limits = Numbers(), Limits(spool_bytes=16_000)
    own = reader(tmp_path, given, limits=limits)
    had = took(own, 20)
    assert {stat.S_IMODE(path.stat().st_mode) for path in files(tmp_path)} == {0o600}
    before = len(files(tmp_path))
    own.ack(had[10][1])
    assert 1 < len(files(tmp_path)) < before
    assert [n for n, _ in took(reader(tmp_path, given, had[10][1]), 10)] == [*range(10, 20)]
    with pytest.raises(IngestError, match=r"is missing, or has fewer than the [\d,]+ bytes"):
        reader(tmp_path, given, had[0][1])
    with pytest.raises(IngestError, match=r"first file, and earlier rows were dropped after a"):
        reader(tmp_path, given)


def test_a_full_spool_is_not_read_into_and_goes_on_after_a_checkpoint(tmp_path: Path) -> None:
    now: list[int] = [0]
    given = Numbers()
    own = reader(tmp_path, given, limits=SMALL, now_ns=lambda: now[0])
    had = took(own, 50)
    full = given.next
    assert full == len(had) < 50
    own.ack(had[-1][1])
    assert [n for n, _ in took(own, 1)] == [full]
    now[0] = 4
    took(own, 50)
    now[0] = 8
    took(own, 50)
    now[0] = 9
    numbers = r"read for 0 s: .* has 2,\d\d\d bytes of 2,000, and no complete checkpoint has let"
    with pytest.raises(IngestError, match=numbers + r".*Limits\(spool_bytes=…\)"):
        own.poll()


def test_rows_for_which_there_is_no_room_wait_and_none_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now: list[int] = [0]
    own = reader(tmp_path, Numbers(), limits=SMALL, now_ns=lambda: now[0])
    took(own, 2)
    write = os.pwrite

    def full(file: int, data: Any, at: int) -> int:
        if len(data) > 1:
            return write(file, data[: len(data) // 2], at)  # half of it goes in
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    assert took(own, 3) == []
    now[0] = 6
    with pytest.raises(IngestError, match=r"no space left on device; make room there"):
        own.poll()
    monkeypatch.setattr(os, "pwrite", write)
    assert [n for n, _ in took(own, 2)] == [2, 3]
    assert [n for n, _ in took(reader(tmp_path, Numbers()), 4)] == [*range(4)]


def test_a_writer_that_was_replaced_neither_hands_over_nor_counts(tmp_path: Path) -> None:
    given = Numbers()
    old = reader(tmp_path, given)
    took(old, 2)
    new = reader(tmp_path, given)
    with pytest.raises(IngestError, match="goes on in another process, which has replaced this"):
        old.poll()  # it takes 2, which is lost with it
    assert [n for n, _ in took(new, 3)] == [0, 1, 3]
    assert [n for n, _ in took(reader(tmp_path, given), 4)] == [0, 1, 3, 4]


def test_a_writer_that_was_replaced_begins_no_file_either(tmp_path: Path) -> None:
    old = Spool(SpoolName(tmp_path, "f", "s"), file_bytes=1)
    old.append(Kind.END, b"", b"")
    reader(tmp_path, Numbers())
    with pytest.raises(IngestError, match="goes on in another process"):
        old.append(Kind.END, b"", b"")
    assert len(files(tmp_path)) == 2


def test_a_file_without_a_head_is_passed_over(tmp_path: Path) -> None:
    """Its writer was killed as it began."""
    given = Numbers()
    took(reader(tmp_path, given), 2)
    (last,) = files(tmp_path)
    name = SpoolName(tmp_path, "f", "s")
    assert last == name.path(1)
    name.path(2).write_bytes(last.read_bytes()[:9])
    assert [n for n, _ in took(reader(tmp_path, given), 4)] == [*range(4)]
    assert [n for n, _ in took(reader(tmp_path, given), 6)] == [*range(6)]


def test_a_file_that_is_missing_or_changed_is_said(tmp_path: Path) -> None:
    given = Numbers()
    for blocks in (2, 4, 6):
        took(reader(tmp_path, given), blocks)
    name = SpoolName(tmp_path, "f", "s")
    data = bytearray(name.path(1).read_bytes())
    data[-3] ^= 1
    name.path(1).write_bytes(data)
    own = reader(tmp_path, given)
    with pytest.raises(IngestError, match=r"00001\.rows was cut off; put its files back"):
        took(own, 2)
    name.path(2).unlink()
    with pytest.raises(IngestError, match=r"a file is missing between .* put its files back"):
        reader(tmp_path, given)


def test_an_error_of_the_input_names_its_source_and_class(tmp_path: Path) -> None:
    own = SpooledInput(SpoolName(tmp_path, "f", "s"), Broken(), WIDE)
    with pytest.raises(IngestError, match=r"source 's': Broken\.poll raised OSError: the line"):
        NamedReader("s", own).poll()


def test_a_job_that_is_done_leaves_no_spool(tmp_path: Path) -> None:
    took(reader(tmp_path, Numbers()), 3)
    took(SpoolReader(SpoolName(tmp_path, "g", "s"), Numbers(), WIDE, None), 1)
    assert spool_size(tmp_path, "f") > spool_size(tmp_path, "g") > 0
    remove(tmp_path, "f")
    assert spool_size(tmp_path, "f") == 0
    assert len(files(tmp_path)) == 1


class Broken(Numbers):
    def poll(self) -> Any:
        raise OSError("the line is down")


class Numbered(Numbers):
    """Its origin has a number until the poll after it; its blocks have positions."""

    skips_spooled = True

    def __init__(self) -> None:
        super().__init__()
        self.acked, self.opened_at = -1, list[bytes | None]()

    def open(self, name: str = "", at: bytes | None = None) -> Any:
        assert name == ""
        self.opened_at.append(at)
        self.next = self.acked + 1 if not at else int(at) + 1
        return self

    def poll(self) -> Any:
        self.acked = self.next - 1
        rows = super().poll()
        return sw.connectors.Block(rows, b"%d" % (self.next - 1))


def test_an_input_that_skips_is_opened_with_the_position_of_the_last_spooled_block(
    tmp_path: Path,
) -> None:
    given = Numbered()
    had = took(reader(tmp_path, given), 3)
    again = took(reader(tmp_path, given, had[1][1]), 4)
    assert [n for n, _ in again] == [1, 2, 3, 4]
    assert [n for n, _ in took(reader(tmp_path, given), 6)] == [*range(6)]
    assert given.opened_at == [b"", b"2", b"4"]


def test_a_block_is_on_disk_before_its_input_is_asked_for_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (sync(file), synced.append(file))[0])
    given = Numbered()
    own = reader(tmp_path, given)
    before = len(synced)
    took(own, 3)
    assert len(synced) == before + 3
    took(reader(tmp_path, Numbers()), 2)
    plain = reader(tmp_path, Numbers())
    before = len(synced)
    took(plain, 5)
    assert len(synced) == before, "a kill loses nothing; a checkpoint syncs"


WRITER = """
import sys
from pathlib import Path
from tests.actors.slot.test_spooled import Numbers, reader
own = reader(Path(sys.argv[1]), Numbers())
while True:
    block = own.poll()
    print(block.rows.column("n")[0], flush=True)
"""


def test_a_process_that_is_killed_loses_no_row_that_it_handed_over(tmp_path: Path) -> None:
    writer = subprocess.Popen(  # noqa: S603 - our own text
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(2_000)]
    finally:
        writer.send_signal(signal.SIGKILL)
    rest, _ = writer.communicate()
    handed = [int(line) for line in [*said, *rest.splitlines(keepends=True)] if line.endswith("\n")]
    again = took(reader(tmp_path, Numbers(0)), 10**5)
    assert [n for n, _ in again][: len(handed)] == handed
    assert len(again) - len(handed) <= 1
