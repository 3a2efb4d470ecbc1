"""Options of commands for a job's checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from slackwater.runtime.model import duration_ns

if TYPE_CHECKING:
    from slackwater.runtime.measure.report import JobReport

__all__ = ["CheckpointFolder", "CheckpointInterval", "Renamed", "checkpoints_of", "way_on"]

CheckpointInterval = Annotated[
    str | None,
    typer.Option(
        "--checkpoint",
        metavar="TIME",
        help="Time between two checkpoints, like 1s, or none: after a failure the job goes on from "
        "one. Only on Ray; 1s if a source is live and nothing speaks against it.",
        show_default=False,
    ),
]
CheckpointFolder = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint-folder",
        metavar="PATH",
        help="Where they are, on a path that all nodes reach; .slackwater/FLOW unless told.",
        show_default=False,
    ),
]


Renamed = Annotated[
    list[str] | None,
    typer.Option(
        "--renamed",
        metavar="OLD=NEW",
        help="A step that was renamed since the newest checkpoint; again for another.",
    ),
]


def checkpoints_of(
    interval: str | None, folder: Path | None, renamed: list[str] | None
) -> dict[str, Any]:
    """Return the arguments of `submit` for these options, of those that are given.

    Raises:
        BadParameter: a new name that is not OLD=NEW.
        SettingError: the interval is neither "none" nor a duration above 0.
    """
    given: dict[str, Any] = {}
    if interval is not None and interval != "none":
        duration_ns(interval, what="--checkpoint", positive=True)  # before nodes are started
    if interval is not None:
        given["checkpoint"] = None if interval == "none" else interval
    if folder is not None:
        given["checkpoint_folder"] = folder
    if renamed:
        given["renamed"] = dict(_names(name) for name in renamed)
    return given


def _names(text: str) -> tuple[str, str]:
    old, sign, new = text.partition("=")
    if not (old and sign and new):
        raise typer.BadParameter(f"{text!r} is not OLD=NEW", param_hint="--renamed")
    return old, new


def way_on(report: JobReport, command: str) -> str | None:
    """Return how a job goes on after its end; None if it is done.

    Args:
        report: last report of the job.
        command: command that started the job.
    """
    if (checkpoint := report.checkpoint) is None or report.state == "done":
        return None
    if checkpoint.number is None:
        begins = "the start: no checkpoint of it was complete"
    else:
        begins = f"checkpoint {checkpoint.number:,} in {checkpoint.folder}"
    return f"the same `slackwater {command}` goes on from {begins}"
