"""Report of a run on disk: `report.json` at its end, `status.json` while it runs.

A file is replaced whole, so that readers never see half a report.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slackwater.actors.kernel.plain_files import read_plain, whole_file
from slackwater.runtime.errors import SinkError, SlackwaterError, way_out
from slackwater.runtime.json_form import json_bytes
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.shown import a_kind

REPORT_FILE = "report.json"
STATUS_FILE = "status.json"
PICTURE_FILE = "latency.png"
DEADLINE_FILE = "deadline.png"

_FORMAT = 1
MOST_BYTES = 2**26
"""Most bytes of a report that is read; ours have tens of kilobytes."""
_NOT_A_REPORT = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)


def save_report(report: JobReport, path: Path, *, also: Mapping[str, Any] | None = None) -> None:
    """Write a report as JSON; make its folder if necessary.

    Args:
        report: report to be written.
        path: path of the file.
        also: further facts, which `load_plain` returns.

    Raises:
        SinkError: the file cannot be written (disk full, no permission).
    """
    plain = {"format": _FORMAT, **report.to_json(), **(also or {})}
    replace_file(path, json_bytes(plain))


def replace_file(path: Path, content: bytes) -> None:
    """Write a file; readers see the old one or the new one, never a part.

    Raises:
        SinkError: the file cannot be written; the old one is still there.
    """
    half_made = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with whole_file(path, hidden=half_made, is_synced=False) as file:
            file.write(content)
    except OSError as problem:
        raise SinkError(
            f"{path} could not be written: {problem.strerror or problem}; "
            f"{way_out(problem, 'make room there, or choose another folder with --out')}"
        ) from problem


def load_report(path: Path) -> JobReport:
    """Read a report that `save_report` wrote.

    Raises:
        SlackwaterError: the file does not exist, or is not a report of this version.
    """
    return report_of(load_plain(path), path)


def load_plain(path: Path) -> dict[str, Any]:
    """Read the JSON object of a report's file.

    Raises:
        SlackwaterError: the file does not exist, or has no JSON object.
    """
    try:
        plain = json.loads(read_plain(path, most_bytes=MOST_BYTES))
    except RecursionError as problem:
        raise SlackwaterError(
            f"{path} is nested too deep for a report; give a file that `slackwater run` wrote"
        ) from problem
    except OSError as problem:
        raise SlackwaterError(
            f"{path} cannot be read: {problem.strerror or problem}; `slackwater run` writes it"
        ) from problem
    except ValueError as problem:
        raise SlackwaterError(
            f"{path} is not JSON: {problem!s:.300}; run the flow again"
        ) from problem
    if not isinstance(plain, dict):
        raise _no_report(path, f"TypeError: {a_kind(plain)}")
    return plain


def report_of(plain: Mapping[str, Any], path: Path) -> JobReport:
    """Return the report in the JSON object of a file.

    Raises:
        SlackwaterError: it is not a report of this version.
    """
    try:
        if plain["format"] != _FORMAT:
            raise SlackwaterError(
                f"{path} has format {plain['format']!r:.100} and this version reads {_FORMAT}; "
                "read it with the version that wrote it"
            )
        return JobReport.from_json(plain)
    except _NOT_A_REPORT as problem:
        raise _no_report(path, f"{type(problem).__name__}: {problem!s:.300}") from problem


def _no_report(path: Path, why: str) -> SlackwaterError:
    return SlackwaterError(
        f"{path} is not a report of ours ({why}); name the folder that `slackwater run` wrote, or "
        "its report.json"
    )
