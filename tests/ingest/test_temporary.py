"""Temporary folders go with their owner, or at the next start if that was killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from slackwater.ingest.temporary import TemporaryFolder

PREFIX = "slackwater-stream-"
OWNER = f"""
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from slackwater.ingest.temporary import TemporaryFolder
own = TemporaryFolder({PREFIX!r})
(own.path / "offsets").mkdir()
print(own.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_goes_with_its_owner(temp: Path) -> None:
    own = TemporaryFolder(PREFIX)
    assert own.path.parent.stat().st_mode & 0o77 == 0
    (own.path / "a").write_text("1")
    own.close()
    own.close()
    assert [*temp.iterdir()] == []


def test_the_folder_of_a_living_process_stays_and_of_a_killed_one_goes(temp: Path) -> None:
    with subprocess.Popen(  # noqa: S603 - our own text
        [sys.executable, "-c", OWNER, str(temp)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as owner:
        assert owner.stdout is not None
        theirs = Path(owner.stdout.readline().strip())
        own = TemporaryFolder(PREFIX)
        assert (theirs / "offsets").is_dir()
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    assert theirs.is_dir(), "it stays until the next start"
    other = TemporaryFolder(PREFIX)
    assert sorted(temp.iterdir()) == sorted([own.path.parent, other.path.parent])
    own.close()
    other.close()


def test_a_folder_that_is_left_to_the_user_stays(temp: Path) -> None:
    own = TemporaryFolder(PREFIX)
    own.keep()
    own.close()
    TemporaryFolder(PREFIX).close()
    assert [*temp.iterdir()] == [own.path.parent]


def test_what_is_not_ours_stays(temp: Path) -> None:
    plain = temp / f"{PREFIX}of-another-release"
    plain.mkdir()
    (temp / f"{PREFIX}file").write_text("1")
    TemporaryFolder(PREFIX).close()
    assert sorted(path.name for path in temp.iterdir()) == sorted([plain.name, f"{PREFIX}file"])
