"""Run one tuner: its actor, made by Ray, and its process, which surely ends.

Neither is waited for without a limit. Ray's head may hang while an actor is made or killed. And a
process that Ray has told to end may still hang: Ray looks after it for 5 s, and only while it knows
the process.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from slackwater.actors.kernel.process_identity import PidFile, take_pid_file
from slackwater.actors.nodes.time_limits import attempt

__all__ = ["TunerProcess"]

KILL_S = 3.0
GRACE_S = 1.0
"""Ray's order to end takes 0.02 s, also in the middle of a fit; more on a busy host."""


class TunerProcess:
    """An actor that a separate thread makes, on this node.

    Args:
        make: makes the actor, given the options for this node and the place of its process's note
            (`PidFile.write_or_exit`); None if there is no room for a note.
    """

    def __init__(self, make: Callable[[dict[str, Any], PidFile | None], Any]) -> None:
        self._make = make
        self._actor: Any = None
        self._problem: BaseException | None = None
        self._is_ended = False
        self._lock = threading.Lock()  # around these three
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        with suppress(OSError):  # the temp folder is full: then Ray alone ends the process
            self._folder = tempfile.TemporaryDirectory(prefix="sw-", ignore_cleanup_errors=True)
        self._thread = threading.Thread(target=self._live, name="make a tuner", daemon=True)
        self._thread.start()

    @property
    def actor(self) -> Any:
        """Return the actor; None if it is not made yet, failed, or is to end."""
        with self._lock:
            return self._actor

    @property
    def problem(self) -> BaseException | None:
        """Exception of the making; None if none was raised (yet)."""
        with self._lock:
            return self._problem

    def wait(self, within_s: float) -> None:
        """Wait until the actor is made or failed; at most `within_s`."""
        self._thread.join(within_s)

    def end(self) -> None:
        """End the actor's process. Idempotent, from any thread; takes some seconds at most.

        A process that starts only later, since Ray does not answer, finds no folder, and exits.
        """
        with self._lock:
            self._is_ended = True
            actor, self._actor = self._actor, None
        was_killed = actor is not None and attempt(KILL_S, lambda: _kill(actor))
        if self._folder is None:
            return
        process = take_pid_file(_note_in(self._folder.name))
        if process is not None:
            process.end(grace_s=GRACE_S if was_killed else 0.0)
        self._folder.cleanup()

    def _live(self) -> None:
        actor: Any = None
        problem: BaseException | None = None
        try:
            here = ray.get_runtime_context().get_node_id()
            options = {"scheduling_strategy": NodeAffinitySchedulingStrategy(here, soft=False)}
            note = None if self._folder is None else PidFile.at(_note_in(self._folder.name))
            actor = self._make(options, note)
        except BaseException as raised:  # `problem` tells
            problem = raised
        with self._lock:
            is_late = self._is_ended
            self._actor, self._problem = None if is_late else actor, problem
        if is_late and actor is not None:
            _kill(actor)  # its job has ended


def _note_in(folder: str) -> Path:
    return Path(folder) / "process"


def _kill(actor: Any) -> None:
    ray.kill(actor, no_restart=True)
