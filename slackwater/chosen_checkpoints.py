"""Choose whether a job takes checkpoints, and where, by what its user says."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from slackwater.runtime.errors import SettingError
from slackwater.runtime.flow.dataflow import Dataflow
from slackwater.runtime.local_path import NoLocalPath, local_path
from slackwater.runtime.model import NS_PER_SECOND, Duration, duration_ns
from slackwater.runtime.plan.by_default import EVERY_NS, is_live, why_none
from slackwater.runtime.recovery.renamed import check_renamed

if TYPE_CHECKING:
    from slackwater.actors.jobs.lasting import Checkpointing
    from slackwater.actors.nodes.placement import NodeInfo

__all__ = [
    "LIVE",
    "CheckpointWish",
    "ChosenCheckpoints",
    "Hosts",
    "chosen_checkpoints",
    "divided_as_before",
]

LIVE: Final = "live"
"""Interval where the user says nothing: a second in a live flow, else none."""


class CheckpointWish(NamedTuple):
    """Wish of a user for checkpoints, as `submit` takes it.

    Attributes:
        interval: time from a checkpoint to the next one; None if the job takes none.
        folder: folder of the checkpoints; None if it follows from the flow's name.
        renamed: new names of steps, {old: new}.
    """

    interval: Duration | None = LIVE
    folder: str | os.PathLike[str] | None = None
    renamed: Mapping[str, str] | None = None


class Hosts(NamedTuple):
    """Hosts of a job.

    Attributes:
        nodes: nodes that write, or read, checkpoints.
        are_here: whether all are processes of this machine.
    """

    nodes: Sequence[NodeInfo]
    are_here: bool


class ChosenCheckpoints(NamedTuple):
    """Choice of a job's checkpoints.

    Attributes:
        how: how they are taken; None if they are not.
        text: the choice in words, for the first line of a run.
        note: the same for its report, if the user may not expect it; else "".
    """

    how: Checkpointing | None
    text: str
    note: str = ""


def chosen_checkpoints(
    flow: Dataflow, wish: CheckpointWish, hosts: Hosts, *, job: str | None
) -> ChosenCheckpoints:
    """Return the choice of a job's checkpoints.

    Args:
        flow: flow of the job.
        wish: wish of its user.
        hosts: hosts that must reach the folder.
        job: id of the job, which tries the folder; None if it is only asked, or runs elsewhere.

    Raises:
        SettingError: a wish that is wrong, or of checkpoints that are not taken.
        ClusterError: a host does not answer.
    """
    from slackwater.actors.jobs.lasting import Checkpointing  # noqa: PLC0415 (brings in Ray)

    renamed = wish.renamed or {}
    check_renamed(renamed, flow.steps)
    folder, path = wish.folder, _path(flow, wish)
    is_default = wish.interval == LIVE
    why = _why_none(flow, wish)
    every_ns = EVERY_NS
    if not is_default and wish.interval is not None:
        every_ns = duration_ns(wish.interval, what="checkpoint", positive=True)
    if why and (renamed or folder is not None):
        option = "renamed=" if renamed else "checkpoint_folder="
        raise SettingError(
            f"{option} is of a job with checkpoints, and flow {flow.name!r} takes none: {why}; "
            f"write checkpoint=, such as '1s', too, or omit {option}"
        )
    if is_default and folder is None and not why:
        why = _why_not_there(path, flow.name, hosts, job)
    if why:
        text = f"no checkpoints: {why}"
        return ChosenCheckpoints(None, text, text if is_default and is_live(flow.steps) else "")
    every_s = every_ns / NS_PER_SECOND
    how = Checkpointing(every_s, path, dict(renamed), is_by_default=folder is None)
    return ChosenCheckpoints(how, f"checkpoints each {every_s:g} s to {path}")


def divided_as_before(flow: Dataflow, wish: CheckpointWish) -> Dataflow:
    """Return a flow, divided into stages as at its newest checkpoint.

    Args:
        flow: flow of the job.
        wish: wish of its user for checkpoints.

    Raises:
        ClusterError: the cluster does not answer.
    """
    if _why_none(flow, wish):
        return flow
    from slackwater.actors.checkpoints.folder import division_in  # noqa: PLC0415 (as above)
    from slackwater.actors.nodes.gateway import inside  # noqa: PLC0415

    division = inside(division_in, Path(_path(flow, wish)), flow.name)
    return flow.with_division(division.renamed(wish.renamed or {}))


def _path(flow: Dataflow, wish: CheckpointWish) -> str:
    if wish.folder is None:
        return os.path.abspath(os.path.join(".slackwater", flow.name))
    try:
        return os.path.abspath(local_path(wish.folder))
    except NoLocalPath as problem:
        raise SettingError(
            f"checkpoint_folder={os.fspath(wish.folder)!r}: {problem}; give a folder on a path "
            "that all nodes reach"
        ) from None


def _why_none(flow: Dataflow, wish: CheckpointWish) -> str:
    """Return why a job takes no checkpoints, wherever it runs; "" if it may."""
    if wish.interval is None:
        return "checkpoint=None says so"
    if wish.interval == LIVE:
        return why_none(flow.steps, deadline_ns=flow.deadline_ns)
    return ""


def _why_not_there(path: str, flow: str, hosts: Hosts, job: str | None) -> str:
    """Return why a folder cannot have checkpoints that its user has not asked for."""
    from slackwater.actors.jobs.reach import (  # noqa: PLC0415 (as above)
        why_not_free,
        why_not_here,
        why_not_reached,
    )

    why = why_not_here(path) if hosts.are_here else why_not_reached(path, hosts.nodes)
    return why if why or job is None else why_not_free(path, flow=flow, job=job)
