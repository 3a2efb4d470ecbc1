"""Look whether all hosts of a job reach one folder.

A file that the first host makes is seen by the others:

```
first host   /shared/kept/flow: is not there yet ─▶ /shared/kept/.slackwater-3f2a…   made
others       the same path                                                           seen
```
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from slackwater.actors.checkpoints.folder import take_lock
from slackwater.actors.jobs.end_on_record import end_on_record
from slackwater.actors.nodes.placement import NodeInfo
from slackwater.actors.nodes.time_limits import within
from slackwater.runtime.errors import CheckpointError
from slackwater.runtime.nearest import listed

__all__ = ["why_not_free", "why_not_here", "why_not_reached"]

REACH_S = 60.0
"""Time for a host to start a process, and to look."""


def why_not_reached(folder: str, nodes: Sequence[NodeInfo]) -> str:
    """Return why hosts cannot write to a folder; "" if all can.

    Args:
        folder: absolute path; it need not exist.
        nodes: nodes of the job, by which their hosts are known.
    """
    hosts = {node.ip: node for node in nodes}
    first, *others = hosts.values()
    mark = f".slackwater-{secrets.token_hex(8)}"
    made = _on([first], _make, folder, mark)[0]
    if made.startswith("!"):
        return f"host {first.ip} cannot write to {folder}: {made[1:]}"
    try:
        answers = _on(others, _sees, made, mark)
    finally:
        _on([first], _remove, made, mark)
    blind = [node.ip for node, sees in zip(others, answers, strict=True) if not sees]
    if not blind:
        return ""
    return f"no path reaches all nodes: {folder} of host {first.ip} is not on {listed(blind)}"


def why_not_here(folder: str) -> str:
    """Return why this process cannot write to a folder; "" if it can."""
    parent = _nearest(Path(folder))
    if not parent.is_dir():
        return f"{parent} is no folder"
    if not os.access(parent, os.W_OK | os.X_OK):
        return f"this user may not write to {parent}"
    return ""


def why_not_free(folder: str, *, flow: str, job: str) -> str:
    """Return why a job cannot lock a folder, which is made; "" if it can.

    Args:
        folder: folder of the job's checkpoints.
        flow: name of the job's flow.
        job: id of the job.
    """
    try:
        lock, _ = take_lock(Path(folder), job=job, flow=flow, has_ended=end_on_record)
    except CheckpointError as problem:
        return str(problem)
    lock.release()
    return ""


def _on(nodes: Sequence[NodeInfo], task: Callable[..., Any], *args: Any) -> list[Any]:
    """Return the answers of a task on each node."""
    remote: Any = ray.remote(task)
    calls = [
        remote.options(
            num_cpus=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node.node_id, soft=False),
        ).remote(*args)
        for node in nodes
    ]
    answers: list[Any] = within(REACH_S, ray.get, calls, what="whether all hosts reach a folder")
    return answers


def _make(folder: str, mark: str) -> str:
    """Make a file in the nearest folder; return that, or "!" and why not."""
    try:
        parent = _nearest(Path(folder))
        (parent / mark).touch(mode=0o600)
    except OSError as problem:
        return f"!{problem.strerror}"
    return str(parent)


def _sees(folder: str, mark: str) -> bool:
    return Path(folder, mark).exists() and os.access(folder, os.W_OK)


def _remove(folder: str, mark: str) -> None:
    with suppress(OSError):
        Path(folder, mark).unlink()


def _nearest(folder: Path) -> Path:
    """Return the folder, or its nearest parent that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())
