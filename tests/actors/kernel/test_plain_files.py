"""Files that are there whole, or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from slackwater.actors.kernel import plain_files
from slackwater.actors.kernel.plain_files import whole_file


def test_a_file_that_breaks_off_leaves_what_was_there(tmp_path: Path) -> None:
    path, hidden = tmp_path / "own", tmp_path / ".own"
    path.write_bytes(b"before")
    with pytest.raises(TypeError, match="bytes-like"), whole_file(path, hidden=hidden) as file:
        file.writelines([b"half", "no bytes"])  # type: ignore[list-item]
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"own": b"before"}


def test_a_whole_file_is_synced_before_its_name_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[bool, bool]] = []
    path, fsync = tmp_path / "own", os.fsync

    def noting(number: int) -> None:
        synced.append((stat.S_ISDIR(os.fstat(number).st_mode), path.exists()))
        fsync(number)

    monkeypatch.setattr(plain_files.os, "fsync", noting)
    with whole_file(path, hidden=tmp_path / ".own") as file:
        file.write(b"whole")
    assert synced == [(False, False), (True, True)]
    assert path.read_bytes() == b"whole"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_of_a_writer_that_was_killed_is_written_over(tmp_path: Path) -> None:
    path, hidden = tmp_path / "own", tmp_path / ".own"
    hidden.write_bytes(b"half of an earlier one")
    with whole_file(path, hidden=hidden, is_synced=False) as file:
        file.write(b"whole")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"own": b"whole"}
