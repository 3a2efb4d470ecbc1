"""Folders of runs without `--out`: out/<flow>-<local time>."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path

from slackwater.report.report_file import (
    DEADLINE_FILE,
    PICTURE_FILE,
    REPORT_FILE,
    STATUS_FILE,
    replace_file,
)
from slackwater.runtime.errors import SettingError

RUNS = Path("out")
KEPT = 20
"""Runs of a flow whose folders stay."""

_IGNORE = b"*\n"
_OURS = (REPORT_FILE, STATUS_FILE, PICTURE_FILE, DEADLINE_FILE, ".gitignore")
_MAY_RUN_S = 86_400.0
"""A run whose status is younger than this may go on."""


def new_run_folder(flow: str) -> Path:
    """Make an unused folder, ignored by git; remove old ones of the flow.

    The newest `KEPT` stay. A folder with files of others stays, and one whose run may go on.

    Raises:
        SettingError: it cannot be made.
    """
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in flow)
    for old in _folders(safe)[: 1 - KEPT]:
        _remove(old)
    name = f"{safe}-{time.strftime('%Y%m%d-%H%M%S')}"
    for number in range(1, 1_000):
        folder = RUNS / (name if number == 1 else f"{name}-{number}")
        try:
            folder.mkdir(mode=0o700, parents=True)
            replace_file(folder / ".gitignore", _IGNORE)  # reports hold names, hosts and errors
        except FileExistsError:
            continue
        except OSError as problem:
            raise SettingError(
                f"{folder} cannot be made: {problem.strerror}; choose a place with --out"
            ) from problem
        return folder
    raise SettingError(f"{RUNS} has too many runs of this second; choose a folder with --out")


def _folders(safe: str) -> list[Path]:
    """Return the folders made for a flow, oldest first."""
    if not RUNS.is_dir():
        return []
    made = re.compile(re.escape(safe) + r"-(\d{8}-\d{6})(?:-(\d+))?")
    dated = [
        (match[1], int(match[2] or 1), folder)
        for folder in RUNS.iterdir()
        if (match := made.fullmatch(folder.name)) and folder.is_dir() and not folder.is_symlink()
    ]
    return [folder for _, _, folder in sorted(dated)]


def _remove(folder: Path) -> None:
    """Remove the folder of an ended run, if it holds a run's files alone."""
    with suppress(OSError):
        names = {file.name for file in folder.iterdir()}
        status = folder / STATUS_FILE
        may_run = status.exists() and time.time() - status.stat().st_mtime < _MAY_RUN_S
        is_ours = names <= {*_OURS} and (folder / ".gitignore").read_bytes() == _IGNORE
        if is_ours and not (may_run and REPORT_FILE not in names):
            for name in names:
                (folder / name).unlink()
            folder.rmdir()
