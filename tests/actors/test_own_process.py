"""A process that is ended by who it is, not by its number alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from actors.own_process import OwnProcess

LIMIT_S = 60.0

CODE = """
import os, pathlib, signal, sys
from actors.own_process import OwnProcess
OwnProcess.here().note(pathlib.Path(sys.argv[1]))
print("noted", flush=True)
signal.pause()
"""


@pytest.fixture
def child(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", CODE, str(tmp_path / "note")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:  # noqa: S603 ours
        assert child.stdout is not None
        assert child.stdout.readline() == "noted\n"
        yield child
        child.kill()


def noted(folder: Path) -> OwnProcess:
    found = OwnProcess.noted(folder / "note")
    assert found is not None
    return found


def test_a_process_that_hangs_is_killed(child: subprocess.Popen[str], tmp_path: Path) -> None:
    assert noted(tmp_path).pid == child.pid
    psutil.Process(child.pid).suspend()
    assert noted(tmp_path).end(grace_s=0.01)
    assert child.wait(LIMIT_S) == -9
    assert noted(tmp_path).end(grace_s=0), "it is gone"


def test_who_has_its_number_by_now_or_elsewhere_is_not_touched(
    child: subprocess.Popen[str], tmp_path: Path
) -> None:
    known = noted(tmp_path)
    for other in (
        replace(known, start=known.start - 1),
        replace(known, boot="another"),
        replace(known, pid_space="pid:[1]"),
    ):
        assert other.end(grace_s=0), "the one that we meant is gone"
    assert child.poll() is None
    child.kill()
    child.wait(LIMIT_S)
    assert known.end(grace_s=LIMIT_S), "nothing to wait for"


def test_what_is_no_note_names_nobody(tmp_path: Path) -> None:
    note = tmp_path / "note"
    assert OwnProcess.noted(note) is None
    here = {"boot": "b", "pid_space": "", "start": 1}
    for text in (
        "",
        "{",
        "[]",
        "{}",
        json.dumps({**here, "pid": 1}),
        json.dumps({**here, "pid": "2"}),
    ):
        note.write_text(text)
        assert OwnProcess.noted(note) is None
    note.unlink()
    os.mkfifo(note)
    assert OwnProcess.noted(note) is None


def test_a_note_that_cannot_be_left_is_done_without(tmp_path: Path) -> None:
    here = OwnProcess.here()
    assert here is not None
    here.note(tmp_path / "gone" / "note")
    here.note(tmp_path / "note")
    assert OwnProcess.noted(tmp_path / "note") == here
