from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from slackwater.cli.streams import call_with_streams

PRINTS = """
from slackwater.cli.streams import call_with_streams
call_with_streams(lambda: print("a result"))
"""


def written_at_once() -> None:
    sys.stdout.write("a result")
    sys.stdout.flush()


def written_at_the_end() -> None:
    sys.stdout.write("a result")


@pytest.mark.parametrize("says", [written_at_once, written_at_the_end])
def test_output_on_a_full_disk_ends_in_one_line_and_an_error(
    says: Callable[[], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        with pytest.raises(SystemExit) as caught:
            call_with_streams(says)
    assert caught.value.code == 1
    told = "slackwater: the output cannot be written (No space left on device); make room there"
    assert capsys.readouterr().err == f"{told}, or send it elsewhere\n"


def test_an_error_of_another_file_is_not_blamed_on_the_output() -> None:
    def fails() -> None:
        raise OSError(5, "of another file")

    with pytest.raises(OSError, match="of another file"):
        call_with_streams(fails)


def test_a_closed_stdout_is_told_and_fails_nothing() -> None:
    command = ["/bin/sh", "-c", 'exec "$0" -c "$1" >&-', sys.executable, PRINTS]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stderr) == (
        0,
        "slackwater: stdout is closed, so its output is lost\n",
    )
