"""One tuner: its actor, which Ray makes for us, and its process, which ends for certain.

Neither is waited for without a limit. Ray's head may hang as an actor is made, or as it is killed.
And what Ray has told to end may yet hang: Ray looks after it for 5 s, and only while it knows it.
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
"""It takes 0.02 s to end when Ray tells it to, also in the middle of a fit; more where it is busy.
"""


class TunerProcess:
    """An actor that is made in a thread of its own, on this node.

    Args:
        make: makes it, given the options for this node and where its process is to leave its note
            (`PidFile.write_or_exit`) first of all; None: there is no room for one.
    """

    def __init__(self, make: Callable[[dict[str, Any], PidFile | None], Any]) -> None:
        self._make = make
        self._actor: Any = None
        self._problem: BaseException | None = None
        self._is_ended = False
        self._lock = threading.Lock()  # around these three
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        with suppress(OSError):  # a temp folder that is full: then Ray alone ends it
            self._folder = tempfile.TemporaryDirectory(prefix="sw-", ignore_cleanup_errors=True)
        self._thread = threading.Thread(target=self._live, name="make a tuner", daemon=True)
        self._thread.start()

    @property
    def actor(self) -> Any:
        """Return it; None: it is not made yet, or could not be, or is to end."""
        with self._lock:
            return self._actor

    @property
    def problem(self) -> BaseException | None:
        """What went wrong as it was made; None: nothing (yet)."""
        with self._lock:
            return self._problem

    def wait(self, within_s: float) -> None:
        """Wait until it is made, or could not be; at most so long."""
        self._thread.join(within_s)

    def end(self) -> None:
        """End its process. Safe to call twice, and from any thread; takes some seconds at most.

        One that comes up only now, since Ray does not hear, finds that nobody waits for it.
        """
        with self._lock:
            self._is_ended = True
            actor, self._actor = self._actor, None
        is_told = actor is not None and attempt(KILL_S, lambda: _kill(actor))
        if self._folder is None:
            return
        process = take_pid_file(_note_in(self._folder.name))
        if process is not None:
            process.end(grace_s=GRACE_S if is_told else 0.0)
        self._folder.cleanup()

    def _live(self) -> None:
        actor: Any = None
        problem: BaseException | None = None
        try:
            here = ray.get_runtime_context().get_node_id()
            options = {"scheduling_strategy": NodeAffinitySchedulingStrategy(here, soft=False)}
            note = None if self._folder is None else PidFile.at(_note_in(self._folder.name))
            actor = self._make(options, note)
        except BaseException as found:  # whoever asks for it is told
            problem = found
        with self._lock:
            is_late = self._is_ended
            self._actor, self._problem = None if is_late else actor, problem
        if is_late and actor is not None:
            _kill(actor)  # nobody waits any more


def _note_in(folder: str) -> Path:
    return Path(folder) / "process"


def _kill(actor: Any) -> None:
    ray.kill(actor, no_restart=True)
