"""Tell whether a run is still there: its status file, its process, its heartbeat.

```
status.json ─▶ state has ended ────────────────────────────────────▶ as it is
            ├▶ process on this host: is it there, the same one? ─ no ─▶ lost
            └▶ elsewhere: was the file touched within a minute? ─ no ─▶ lost
```

A run that is killed (kill -9, no memory, a host that goes down) writes no last words, and its file
would say "running" for ever.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from slackwater.actors.kernel.process_identity import ProcessIdentity
from slackwater.report.report_file import (
    REPORT_FILE,
    STATUS_FILE,
    load_plain,
    load_report,
    report_of,
    save_report,
)
from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.measure.report import JobReport

__all__ = [
    "BEAT_S",
    "SILENT_S",
    "RunStatus",
    "beating",
    "find_report",
    "find_status",
    "load_status",
    "save_status",
]

BEAT_S = 5.0
"""How often a run touches its status file, in each phase."""
SILENT_S = 60.0
"""Silence after which a run of another host is lost: twelve beats, as far as clocks agree."""
_ENDED = ("done", "stopped", "failed")
_PROCESS = "process"


@dataclass(frozen=True)
class RunStatus:
    """A run as its folder tells it.

    Attributes:
        report: report as last written; if its run is gone, with the state "lost" and why.
        path: path of the file.
        age_s: since the file was last written or touched.
    """

    report: JobReport
    path: Path
    age_s: float

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will be written."""
        return self.report.state in (*_ENDED, "lost")


def save_status(report: JobReport, folder: Path) -> None:
    """Write a run's `status.json`, with its process.

    Raises:
        SinkError: the file cannot be written.
    """
    here = ProcessIdentity.here()
    process = {"host": socket.gethostname(), **({} if here is None else asdict(here))}
    save_report(report, folder / STATUS_FILE, also={_PROCESS: process})


@contextmanager
def beating(folder: Path) -> Iterator[None]:
    """Touch a run's status file every few seconds, so that other hosts see its life."""
    has_ended = threading.Event()

    def beat() -> None:
        while not has_ended.wait(BEAT_S):
            with suppress(OSError):
                os.utime(folder / STATUS_FILE)

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join()


def load_status(path: Path) -> RunStatus:
    """Return what a status file tells, and whether its run is still there.

    Raises:
        SlackwaterError: the file does not exist, or is not a report of this version.
    """
    status, process = _read(path)
    if status.has_ended or (why := _why_lost(process, status.age_s)) is None:
        return status
    status, _ = _read(path)  # it may have written its end just before it went
    if status.has_ended:
        return status
    error = (
        f"the run is lost: {why}. Its status file was last touched {status.age_s:.0f} s ago; "
        "outputs are as after a crash. Run the flow again; sinks with resume=True go on where "
        "they were"
    )
    return replace(status, report=replace(status.report, state="lost", error=error))


def find_report(place: Path) -> RunStatus:
    """Return the report of a file, a run's folder, or the newest ended run there.

    Of a run without a report, as of one that was killed, it is what its status file has.

    Raises:
        SlackwaterError: there is no such file, or `place` cannot be read.
    """
    running: RunStatus | None = None
    for folder in _runs(place):
        status = _status_of(folder)
        if status.has_ended:
            return status
        running = running or status
    if running is not None:
        return running
    raise _no_run(place, REPORT_FILE)


def find_status(place: Path) -> RunStatus:
    """Return the status of a file, a run's folder, or the newest run there.

    Raises:
        SlackwaterError: there is no such file, or `place` cannot be read.
    """
    for run in _runs(place):
        path = run if run.is_file() else run / STATUS_FILE
        if path.is_file():
            return load_status(path)
    raise _no_run(place, STATUS_FILE)


def _runs(place: Path) -> list[Path]:
    """Return the place if it is a run, else the runs in it, newest first."""
    try:
        if place.is_file() or _files_in(place):
            return [place]
        return sorted(filter(_files_in, place.glob("*")), key=_newest_ns, reverse=True)
    except OSError as problem:  # a name that is too long, a folder that is not ours
        closed = problem.filename if isinstance(problem, PermissionError) else None
        raise SlackwaterError(
            f"{closed or place!s:.300} cannot be looked at: {problem.strerror or problem}; name "
            "the folder that `slackwater run` wrote, or its report.json"
        ) from problem


def _no_run(place: Path, name: str) -> SlackwaterError:
    return SlackwaterError(
        f"there is no {name} in {place} nor in a folder of it; start a run with "
        "`slackwater run FLOW.py`, or name the folder that it wrote"
    )


def _status_of(place: Path) -> RunStatus:
    path = place if place.is_file() else _files_in(place)[0]
    if path.name == STATUS_FILE:
        return load_status(path)
    report = RunStatus(load_report(path), path, _age_s(path))
    later = path.with_name(STATUS_FILE)
    if place == path or not later.is_file() or _age_s(later) > report.age_s:
        return report
    status = load_status(later)  # of a run that began after the report, or that has just ended
    return report if status.report.state in _ENDED else status


def _files_in(folder: Path) -> list[Path]:
    """Return the files of a run, the one that tells most first."""
    paths = [folder / name for name in (REPORT_FILE, STATUS_FILE)]
    return [path for path in paths if path.is_file()]


def _newest_ns(folder: Path) -> int:
    return max(path.stat().st_mtime_ns for path in _files_in(folder))


def _read(path: Path) -> tuple[RunStatus, Mapping[str, Any]]:
    plain = load_plain(path)
    process = plain.get(_PROCESS)
    status = RunStatus(report_of(plain, path), path, _age_s(path))
    return status, process if isinstance(process, dict) else {}


def _age_s(path: Path) -> float:
    try:
        return max(0.0, time.time() - path.stat().st_mtime)
    except OSError:  # removed since it was read
        return 0.0


def _why_lost(process: Mapping[str, Any], age_s: float) -> str | None:
    """Return why a run that has not ended is gone; None if it may live."""
    host = f"host {process.get('host', '?')!s:.100}"
    identity = ProcessIdentity.of(process)
    is_there = None if identity is None else identity.is_there()
    if is_there is None:
        silent = f"{host} has given no sign of it for {age_s:.0f} s, so it has probably died"
        return silent if age_s > SILENT_S else None
    if is_there:
        return None
    assert identity is not None
    return f"its process ({identity.pid} on {host}) is gone, as after kill -9 or without memory"
