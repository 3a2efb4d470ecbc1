"""Keep the order to start a detached job, for a later coordinator of it."""

from __future__ import annotations

import pickle
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from slackwater.actors.kernel.plain_files import make_folder, whole_file
from slackwater.actors.nodes.placement import NodeInfo

__all__ = ["StartOrder", "forget_order", "has_order", "read_order", "save_order"]


class StartOrder(NamedTuple):
    """Order to start a job.

    Attributes:
        pickled: plan of the job, as its submitter pickled it.
        nodes: node of each slot.
        notes: notes on these nodes, for the report.
        folder: start of relative paths of its sinks.
    """

    pickled: bytes
    nodes: dict[str, NodeInfo]
    notes: Sequence[str]
    folder: str


def save_order(folder: str, job: str, order: StartOrder) -> None:
    """Write an order beside the checkpoints of its job; only its user may read it."""
    path = _path(folder, job)
    make_folder(path.parent)
    hidden = path.with_name(f"{path.name}.{secrets.token_hex(8)}.incomplete")
    with whole_file(path, hidden=hidden) as file:
        file.write(pickle.dumps(order))


def read_order(folder: str, job: str) -> StartOrder:
    """Return the order that was written.

    Raises:
        OSError: it is not there, or cannot be read.
    """
    order = pickle.loads(_path(folder, job).read_bytes())  # noqa: S301 of the user, as `pickled`
    assert isinstance(order, StartOrder), "we wrote it"
    return order


def has_order(folder: str, job: str) -> bool:
    """Return whether an order is there, until its job has tidied up."""
    return _path(folder, job).exists()


def forget_order(folder: str, job: str) -> None:
    """Remove an order: its job has ended."""
    with suppress(OSError):
        _path(folder, job).unlink()


def _path(folder: str, job: str) -> Path:
    return Path(folder) / f".start-{job}"
