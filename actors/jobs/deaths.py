"""Find out how a slot's process died, from its traces on its host."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import ray
from ray.exceptions import RayActorError, RayError

from slackwater.actors.nodes.gateway import on_node
from slackwater.actors.slot.last_words import read_last_words
from slackwater.runtime.errors import WorkerDied
from slackwater.runtime.life import HomeNode
from slackwater.runtime.life.cause import failure_report
from slackwater.runtime.plan.plan import Plan

__all__ = ["Death", "death_in_start", "death_of", "words_of"]

WITHIN_S = 5.0
"""Time limit for a process on another host to read there."""
MOST_BYTES = 65_536
"""Bytes that are read from the end of a log."""
_OF_ITSELF = "died unexpectedly"
"""Ray's words if Ray has not ended the process itself."""
_PID = re.compile(r"^\s*pid: (\d+)$", re.MULTILINE)
_SIGNAL = re.compile(r"^\*\*\* (SIG\w+) received", re.MULTILINE)
_FATAL = re.compile(r"^Fatal Python error: (.+)$", re.MULTILINE)
_FRAME = re.compile(r'^  File "(.+)", line (\d+) in (.+)$', re.MULTILINE)


class Death(NamedTuple):
    """Facts about a worker's death.

    Attributes:
        by: the signal, or the exit code; "" if not known, as after SIGKILL.
        at: ", at file, line 3, in function" of the user's code; or "".
        step: step whose input, function or output ran last; "" if none ran.
    """

    by: str
    at: str
    step: str

    def __str__(self) -> str:
        by = f"its process was ended by {self.by}{self.at}" if self.by else ""
        step = f"the last input, function or output that ran there is that of {self.step!r}"
        return "; ".join([*filter(None, [by]), *([step] if self.step else [])])


def words_of(problem: RayError, death: Death | None) -> str:
    """Return the reason of a death: Ray's words, unless the process left better ones."""
    words = [str(problem).strip().splitlines()[0].rstrip(".")]
    if death is not None and _OF_ITSELF in words[0]:
        words = ["its process was killed (SIGKILL), or ended without a trace"]
    if death is not None and str(death):
        words = [str(death)] if death.by else [*words, str(death)]
    return "; ".join(words)


def death_in_start(
    problem: RayError, slot: str, plan: Plan, homes: Mapping[str, HomeNode]
) -> WorkerDied | None:
    """Return the error of a slot that died before its job ran.

    None if no process of it was there, or if its constructor raised: then Ray's words say more.

    Args:
        problem: Ray's error of a call to the slot.
        slot: name of the slot.
        plan: stages and slots of the job.
        homes: node of each slot, by the slot's name.
    """
    if not isinstance(problem, RayActorError) or "creation task" in str(problem):
        return None
    death = death_of(problem, homes[slot])
    if death is None:
        return None
    own = [slot] if death.by else []
    failure = failure_report(plan, {slot: words_of(problem, death)}, homes, lost=(), own=own)
    return WorkerDied(failure.text)


def death_of(problem: RayError, home: HomeNode) -> Death | None:
    """Return how the process in a Ray error died; None if it left no trace."""
    pid = _PID.search(str(problem))
    if pid is None:  # the node is lost
        return None
    here: Any = ray.util.get_node_ip_address()  # type: ignore[no-untyped-call]
    if home.ip == here:
        return _read_here(int(pid[1]))
    call = on_node(_read_here, int(pid[1]), node_id=home.node_id)
    try:
        return ray.get(call, timeout=WITHIN_S)  # type: ignore[no-any-return]
    except RayError:  # its host has ended, too
        return None


def _read_here(pid: int) -> Death | None:
    inside: Any = ray
    folder = Path(inside._private.worker._global_node.get_logs_dir_path())
    logs = sorted(folder.glob(f"worker-*-{pid}.err"), key=lambda path: path.stat().st_mtime_ns)
    if not logs:
        return None
    step, words = read_last_words(logs[-1])  # process ids are reused
    text = logs[-1].read_bytes()[-MOST_BYTES:].decode(errors="replace")
    by, at = evidence_in(text, not_users())
    return Death(words or by, at, step)


def not_users() -> list[str]:
    """Return the folders of the code of Python, of packages and of slackwater.

    A checkout of slackwater also holds flows, such as the examples: only its package is ours.
    """
    ours = str(Path(__file__).parents[2])
    paths = sysconfig.get_paths()
    return [ours, *(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))]


def evidence_in(log: str, not_users: Iterable[str]) -> tuple[str, str]:
    """Return from a log how its process ended, and the user's line.

    Args:
        log: text of the process's stderr.
        not_users: folders whose files are not the user's.
    """
    fatal = _FATAL.search(log)
    if fatal is None:
        return "", ""
    number = _SIGNAL.search(log)
    by = f"{number[1]} ({fatal[1]})" if number else fatal[1]
    own = tuple(f"{folder}/" for folder in not_users)
    for path, line, function in _FRAME.findall(log[fatal.end() :]):
        if not path.startswith(own):
            return by, f", at {path}, line {line}, in {function}"
    return by, ""
