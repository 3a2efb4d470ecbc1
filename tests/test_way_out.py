"""Where a process has too many files open, nobody is sent to another path."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import slackwater as sw
from slackwater.actors.kernel import plain_files
from slackwater.report import report_file
from slackwater.runtime.errors import MORE_FILES, IngestError, SinkError, way_out


def exhausted(*_: object, **__: object) -> int:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_only_a_limit_of_files_changes_the_way_out() -> None:
    full = OSError(errno.ENOSPC, "no room")
    assert way_out(full, "make room") == way_out(ValueError(), "make room") == "make room"
    assert way_out(OSError(errno.ENFILE, ""), "make room") == MORE_FILES


def test_an_input_says_so() -> None:
    source = sw.jsonl("a.jsonl")
    with pytest.raises(IngestError, match="ulimit -n"), source._naming(["a.jsonl"], 0):
        exhausted()


def test_a_report_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_files, "private", exhausted)
    with pytest.raises(SinkError, match="ulimit -n"):
        report_file.replace_file(tmp_path / "report.json", b"{}")
