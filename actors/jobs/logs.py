"""Read the output of a detached job's processes from Ray's log files on their nodes.

Ray keeps `worker-<worker id>-<job>-<process id>.out` and `.err` of each worker in its session's
folder, also after the worker's end. A small task on each node reads the files of our job.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError

from slackwater.actors.jobs.records import JobRecord, Worker
from slackwater.actors.nodes.gateway import on_node
from slackwater.actors.nodes.placement import dead_nodes
from slackwater.runtime.errors import ClusterError, FlowError
from slackwater.runtime.nearest import choices

__all__ = ["COORDINATOR", "TUNER", "LogPart", "read_logs"]

COORDINATOR = "coordinator"
TUNER = "tuner"
ANSWER_S = 20.0
MOST_BYTES = 4_000_000
"""Bytes of one file, from its end."""


@dataclass(frozen=True)
class LogPart:
    """New lines of one process.

    Attributes:
        who: the slot, "coordinator", or "tuner" ("tuner 2" after the first had died).
        stream: "out" or "err".
        end: bytes of the file that have been read, for the next call.
        problem: reason why no lines could be read; None if they could.
    """

    who: str
    node: str
    stream: str
    lines: list[str]
    end: int
    problem: str | None = None


def read_logs(
    record: JobRecord,
    *,
    stage: str | None = None,
    tail: int | None = None,
    earlier: Sequence[LogPart] = (),
) -> list[LogPart]:
    """Return the lines of a job's processes; a silent node is named in its part.

    Args:
        record: record of the job, which has started.
        stage: only the slot of this stage.
        tail: the last lines of each stream only.
        earlier: parts returned before; then only new lines are returned.

    Raises:
        FlowError: no such stage.
    """
    workers = _wanted(record, stage)
    ends = {(part.who, part.stream): part.end for part in earlier}
    by_node: dict[str, dict[str, Worker]] = {}
    for who, worker in workers.items():
        by_node.setdefault(worker.node_id, {})[who] = worker
    dead = dead_nodes(by_node)
    calls: dict[Any, str] = {}  # {call: id of the node}
    parts: list[LogPart] = []
    for node_id, own in by_node.items():
        if node_id in dead:
            parts += _no_answer(own, f"its {dead[node_id].removeprefix('its ')}", ends)
        else:
            calls[on_node(_read_here, own, tail, ends, node_id=node_id)] = node_id
    done = ray.wait(list(calls), num_returns=len(calls), timeout=ANSWER_S)[0] if calls else []
    for call, node_id in calls.items():
        if call not in done:
            silence = f"its node did not answer within {ANSWER_S:.0f} s"
            parts += _no_answer(by_node[node_id], silence, ends)
            continue
        try:
            parts += ray.get(call, timeout=ANSWER_S)
        except RayError as problem:
            reason = f"its node did not answer: {str(problem).splitlines()[0]}"
            parts += _no_answer(by_node[node_id], reason, ends)
    order = list(workers)
    return sorted(parts, key=lambda part: (order.index(part.who), part.stream != "out"))


def _wanted(record: JobRecord, stage: str | None) -> dict[str, Worker]:
    if stage is not None and stage not in record.placement:
        raise FlowError(
            f"job {record.id} has no stage {stage!r}; {choices(stage, record.placement)}"
        )
    if not record.workers:
        raise ClusterError(
            f"job {record.id} is {record.state} and has no workers to read from; ask again when "
            f"it runs (slackwater status {record.id})"
        )
    if stage is not None:
        slot = record.placement[stage]
        return {slot: record.workers[slot]}
    own = {}
    if record.coordinator:
        own[COORDINATOR] = record.coordinator
        for number, pid in enumerate(record.tuner_pids, start=1):
            name = TUNER if number == 1 else f"{TUNER} {number}"
            own[name] = replace(record.coordinator, pid=pid)
    return {**record.workers, **own}


def _no_answer(
    workers: Mapping[str, Worker], problem: str, ends: Mapping[tuple[str, str], int]
) -> list[LogPart]:
    return [
        LogPart(
            who,
            worker.node,
            "out",
            [],
            ends.get((who, "out"), 0),
            f"{problem} (host {worker.host})",
        )
        for who, worker in workers.items()
    ]


def _read_here(
    workers: Mapping[str, Worker], tail: int | None, ends: Mapping[tuple[str, str], int]
) -> list[LogPart]:
    """Read the files of these processes, which ran on this node."""
    inside: Any = ray
    folder = Path(inside._private.worker._global_node.get_logs_dir_path())
    parts = []
    for who, worker in workers.items():
        for stream in ("out", "err"):
            paths = list(folder.glob(f"worker-*-{worker.pid}.{stream}"))
            if not paths:
                problem = f"Ray has no log of process {worker.pid} in {folder} any more"
                parts.append(LogPart(who, worker.node, stream, [], 0, problem))
                continue
            path = max(paths, key=lambda path: path.stat().st_mtime_ns)  # ids are reused
            lines, end = _lines(path, ends.get((who, stream), 0), tail)
            parts.append(LogPart(who, worker.node, stream, lines, end))
    return parts


def _lines(path: Path, begin: int, tail: int | None) -> tuple[list[str], int]:
    """Return the lines from byte `begin` on, without Ray's own marks, and their end."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(begin, size - MOST_BYTES))
        data = file.read()
        end = file.tell()
    lines = [line for line in data.decode(errors="replace").splitlines() if not _is_mark(line)]
    return lines if tail is None else lines[max(0, len(lines) - tail) :], end


def _is_mark(line: str) -> bool:
    # Ray writes such lines for its own log reader.
    return line.startswith((":job_id:", ":actor_name:", ":task_name:"))
