"""A process that is ended by who it is, not by its number alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from slackwater.actors.kernel.process_identity import ProcessIdentity, state_of, take_pid_file

LIMIT_S = 60.0

CODE = """
import os, pathlib, signal, sys
from slackwater.actors.kernel.process_identity import ProcessIdentity
ProcessIdentity.here().write(pathlib.Path(sys.argv[1]))
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


def noted(folder: Path) -> ProcessIdentity:
    found = ProcessIdentity.read(folder / "note")
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
    assert ProcessIdentity.read(note) is None
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
        assert ProcessIdentity.read(note) is None
    note.unlink()
    os.mkfifo(note)
    assert ProcessIdentity.read(note) is None


SIGNING = """
import pathlib, signal, sys
from slackwater.actors.kernel.process_identity import PidFile
place = PidFile.at(pathlib.Path(sys.argv[1]))
if len(sys.argv) > 2:
    place = PidFile(place.path, sys.argv[2])
place.write_or_exit()
print("goes on", flush=True)
"""


def signing(*words: str) -> str:
    """Return what a process prints that is to leave its note there; it ends well."""
    done = subprocess.run(  # noqa: S603 ours
        [sys.executable, "-c", SIGNING, *words], stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def test_a_process_for_which_nobody_waits_any_more_ends_by_itself(tmp_path: Path) -> None:
    assert signing(str(tmp_path / "note")) == "goes on\n"
    assert ProcessIdentity.read(tmp_path / "note") is not None
    assert signing(str(tmp_path / "gone" / "note")) == ""
    # In other files than ours a folder that is not there says nothing.
    assert signing(str(tmp_path / "gone" / "note"), "other files") == "goes on\n"
    assert signing(str(tmp_path / "gone" / "note"), "") == "goes on\n"


def test_a_note_that_cannot_be_left_is_done_without(tmp_path: Path) -> None:
    here = ProcessIdentity.here()
    assert here is not None
    here.write(tmp_path / "gone" / "note")
    here.write(tmp_path / "note")
    assert ProcessIdentity.read(tmp_path / "note") == here


COMING_UP = """
import pathlib, sys
from slackwater.actors.kernel.process_identity import PidFile
from slackwater.actors.tuning.tuner import Tuner
try:
    Tuner(None, None, note=PidFile.at(pathlib.Path(sys.argv[1])))
except AttributeError:  # there is no plan: so it goes on
    print("comes up", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("is_up", [True, False])
def test_a_tuner_that_comes_up_has_left_its_note_when_it_is_ended_or_ends_by_itself(
    tmp_path: Path, is_up: bool
) -> None:
    """Though Ray, which starts it, hears nothing of it."""
    note = tmp_path / "folder" / "note"
    note.parent.mkdir()
    if not is_up:
        assert take_pid_file(note) is None
    with subprocess.Popen(  # noqa: S603 ours
        [sys.executable, "-c", COMING_UP, str(note)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as tuner:
        assert tuner.stdout is not None
        assert tuner.stdout.readline() == ("comes up\n" if is_up else "")
        process = take_pid_file(note)
        assert (process is not None) == is_up
        if process is not None:
            assert process.end(grace_s=0)
        assert tuner.wait(LIMIT_S) == (-9 if is_up else 0)
    assert list(tmp_path.iterdir()) == []


def test_the_state_of_a_process_is_told_in_words_and_whether_it_runs() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        text, is_running = state_of(other.pid)
        assert is_running
        assert "runs now" in text
        other.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, other.pid, os.WSTOPPED | os.WNOWAIT)
        text, is_running = state_of(other.pid)
        assert not is_running
        assert "is stopped (SIGSTOP" in text
        other.kill()
    assert state_of(other.pid) == (f"its process {other.pid} is gone", False)
