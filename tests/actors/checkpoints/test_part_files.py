"""Files of slots' parts: whole or not there, damage is noticed, refusals say the way out."""

from __future__ import annotations

import os
import resource
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from slackwater.actors.checkpoints.part_files import check_part, read_part, write_part
from slackwater.runtime.errors import CheckpointError
from slackwater.runtime.recovery.checkpoint import SlotPart
from tests.support.checkpoints import VERSION, part_of
from tests.support.plain_values import are_same
from tests.support.small_disks import mounted

MIB = 2**20


def large_part(mebibytes: int) -> SlotPart:
    values = np.zeros(mebibytes * MIB, np.uint8)
    state = {"version": VERSION, "stream": {"stages": {"s0": values}}}
    return SlotPart("node-1", 1, state, {}, {}, {})


def test_a_part_comes_back_as_it_was(tmp_path: Path) -> None:
    part = part_of()
    entry = write_part(tmp_path, part)
    assert are_same(read_part(tmp_path, entry)._asdict(), part._asdict())
    assert (entry.slot, entry.version, entry.stages) == ("node-1", VERSION, ("s0",))
    assert entry.bytes == (tmp_path / entry.file).stat().st_size
    assert check_part(tmp_path, entry) is None


def test_an_entry_counts_and_checks_messages_on_their_way(tmp_path: Path) -> None:
    entry = write_part(tmp_path, part_of(rows=100))
    same, other = write_part(tmp_path, part_of(rows=100)), write_part(tmp_path, part_of(rows=99))
    (channel,) = entry.channels.values()
    assert (channel.messages, channel.rows) == (2, 100)
    assert same.channels == entry.channels
    assert other.channels["a→b"].rows == 99
    assert other.channels["a→b"].crc != channel.crc


def test_a_file_is_of_arrow_and_for_us_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        entry = write_part(tmp_path, part_of(slot="../node 1/é"))
    finally:
        os.umask(before)
    (path,) = tmp_path.iterdir()
    assert path.name == entry.file
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pa.ipc.open_file(path) as reader:
        assert reader.schema.names[0] == "tree"


def test_two_writings_of_one_part_have_other_names(tmp_path: Path) -> None:
    first, second = write_part(tmp_path, part_of()), write_part(tmp_path, part_of())
    assert first.file != second.file
    assert first.crc == second.crc


@pytest.mark.parametrize("flip", [1, 255])
def test_each_damaged_byte_is_noticed(tmp_path: Path, flip: int) -> None:
    entry = write_part(tmp_path, part_of())
    path = tmp_path / entry.file
    whole = path.read_bytes()
    for place in range(0, len(whole), 100):
        damaged = bytearray(whole)
        damaged[place] ^= flip
        path.write_bytes(damaged)
        assert check_part(tmp_path, entry) == "it has other contents than were written"
        with pytest.raises(CheckpointError, match=r"node-1.* is damaged: .* older checkpoint"):
            read_part(tmp_path, entry)


@pytest.mark.parametrize("left", [0, 1, 1_000])
def test_a_file_that_was_cut_is_noticed(tmp_path: Path, left: int) -> None:
    entry = write_part(tmp_path, part_of())
    os.truncate(tmp_path / entry.file, left)
    assert (
        check_part(tmp_path, entry, reads=False) == f"it has {left:,} bytes and had {entry.bytes:,}"
    )
    with pytest.raises(CheckpointError, match=r"is damaged: it has"):
        read_part(tmp_path, entry)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    entry = write_part(tmp_path, part_of())
    (tmp_path / entry.file).unlink()
    with pytest.raises(CheckpointError, match=r"part of slot 'node-1' could not be read.*No such"):
        read_part(tmp_path, entry)


def test_a_pipe_or_link_in_its_place_is_not_read(tmp_path: Path) -> None:
    entry = write_part(tmp_path, part_of())
    path = tmp_path / entry.file
    path.rename(tmp_path / "away")
    path.symlink_to(tmp_path / "away")
    with pytest.raises(CheckpointError, match=r"could not be read"):
        read_part(tmp_path, entry)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(CheckpointError, match=r"is damaged"):
        read_part(tmp_path, entry)


def test_a_folder_that_vanished_says_so(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"checkpoint 1 of slot 'node-1'.*its folder is gone"):
        write_part(tmp_path / "gone", part_of())
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=r"file is not a folder: move it away"):
        write_part(tmp_path / "file", part_of())


def test_a_value_that_is_not_plain_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"an object is not a plain value"):
        write_part(tmp_path, part_of()._replace(results={"own": object()}))
    assert not list(tmp_path.iterdir())


def test_a_file_above_its_limit_leaves_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 * MIB, hard))
    try:
        with pytest.raises(CheckpointError, match=r"File too large; raise the limit .*ulimit -f"):
            write_part(tmp_path, large_part(4))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.iterdir())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "small", "size=6m") as folder:
        yield folder


def test_a_full_disk_leaves_the_older_part_and_nothing_half(small_disk: Path) -> None:
    entry = write_part(small_disk, large_part(4))
    with pytest.raises(
        CheckpointError, match=r"No space left.*MiB free there, too little\); make room"
    ) as caught:
        write_part(small_disk, large_part(4))
    assert isinstance(caught.value.__cause__, OSError)
    assert [path.name for path in small_disk.iterdir()] == [entry.file]
    assert check_part(small_disk, entry) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_without_rights_says_so() -> None:
    with tempfile.TemporaryDirectory() as name:  # others may enter what is above it
        os.seteuid(65_534)
        try:
            with pytest.raises(CheckpointError, match=r"Permission denied; let this user"):
                write_part(Path(name), part_of())
        finally:
            os.seteuid(0)


def test_an_entry_of_another_file_does_not_pass(tmp_path: Path) -> None:
    first, second = write_part(tmp_path, part_of(rows=9)), write_part(tmp_path, part_of(rows=8))
    with pytest.raises(CheckpointError, match=r"is damaged"):
        read_part(tmp_path, replace(first, file=second.file))
