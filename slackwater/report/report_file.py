"""Save a run's report: `report.json` at its end, `status.json` while it runs.

A file is replaced whole, so that a reader never sees half a report.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slackwater.actors.kernel.plain_files import private, read_plain
from slackwater.runtime.errors import SinkError, SlackwaterError, way_out
from slackwater.runtime.measure import JobReport

REPORT_FILE = "report.json"
STATUS_FILE = "status.json"
PICTURE_FILE = "latency.png"
DEADLINE_FILE = "deadline.png"

_FORMAT = 1
MOST_BYTES = 2**26
"""Bytes of a report that is read; ours have tens of kilobytes."""
_NOT_A_REPORT = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)


def save_report(report: JobReport, path: Path) -> None:
    """Write a report as JSON, making its folder if needed.

    Raises:
        SinkError: the file cannot be written (disk full, no permission).
    """
    plain = {"format": _FORMAT, **report.to_json()}
    replace_file(path, json_text(plain).encode())


def json_text(plain: Mapping[str, Any]) -> str:
    """Return JSON on one line; NumPy's numbers become plain numbers."""
    return json.dumps(plain, ensure_ascii=False, default=lambda number: number.item())


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that readers see the old or the new one, no part.

    Raises:
        SinkError: the file cannot be written; the old one is still there.
    """
    half_made = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with open(half_made, "wb", opener=private) as file:
                file.write(content)
            half_made.replace(path)
        finally:
            half_made.unlink(missing_ok=True)
    except OSError as problem:
        raise SinkError(
            f"{path} could not be written: {problem.strerror or problem}; "
            f"{way_out(problem, 'make room there, or choose another folder with --out')}"
        ) from problem


def load_report(path: Path) -> JobReport:
    """Read a report that `save_report` wrote.

    Raises:
        SlackwaterError: no such file, or no report of this version.
    """
    try:
        plain = json.loads(read_plain(path, most_bytes=MOST_BYTES))
    except RecursionError as problem:
        raise SlackwaterError(
            f"{path} is nested too deep to be a report of ours; name the folder that "
            "`slackwater run` wrote"
        ) from problem
    except OSError as problem:
        raise SlackwaterError(
            f"{path} cannot be read: {problem.strerror or problem}; `slackwater run` writes it"
        ) from problem
    except ValueError as problem:
        raise SlackwaterError(
            f"{path} is not JSON: {problem!s:.300}; run the flow again"
        ) from problem
    try:
        if plain["format"] != _FORMAT:
            raise SlackwaterError(
                f"{path} has format {plain['format']!r:.100} and this version reads {_FORMAT}; "
                "read it with the version that wrote it"
            )
        return JobReport.from_json(plain)
    except _NOT_A_REPORT as problem:
        raise SlackwaterError(
            f"{path} is not a report of ours ({type(problem).__name__}: {problem!s:.300}); "
            "name the folder that `slackwater run` wrote, or its report.json"
        ) from problem


def find_file(place: Path, name: str) -> Path:
    """Return the file meant by `place`: itself, `name` in it, or in its newest run.

    Raises:
        SlackwaterError: no such file, or the place cannot be read.
    """
    try:
        if place.is_file():
            return place
        if (place / name).is_file():
            return place / name
        runs = sorted(place.glob(f"*/{name}"), key=lambda path: path.stat().st_mtime_ns)
    except OSError as problem:  # a name too long, a folder not ours
        raise SlackwaterError(
            f"{place!s:.300} cannot be looked at: {problem.strerror or problem}; name the "
            "folder that `slackwater run` wrote, or its report.json"
        ) from problem
    if not runs:
        raise SlackwaterError(
            f"there is no {name} in {place} nor in a folder of it; start a run with "
            "`slackwater run FLOW.py`, or name the folder that it wrote"
        )
    return runs[-1]
