"""Write a slot's parts in a thread, off the path of its rows.

```
the slot's loop            one that waits          thread
take_cut ─▶ SlotPart ────▶ [part] ──────────────▶ write_part ──▶ done(PartWritten)
```
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from slackwater.actors.checkpoints.part_files import write_part
from slackwater.runtime.errors import CheckpointError
from slackwater.runtime.recovery.checkpoint import SlotPart
from slackwater.runtime.recovery.manifest import PartEntry

__all__ = ["CheckpointWriter", "PartWritten"]


class PartWritten(NamedTuple):
    """Outcome of writing a part.

    Attributes:
        number: number of the checkpoint.
        entry: entry for the manifest; None if the part could not be written.
        problem: error that prevented it; None if none did.
        elapsed_ns: time from the beginning of the writing to its end.
        cpu_ns: CPU time of the thread for it.
    """

    number: int
    entry: PartEntry | None
    problem: Exception | None
    elapsed_ns: int = 0
    cpu_ns: int = 0


class CheckpointWriter:
    """Writes parts of one slot to a folder, one after the other.

    Args:
        folder: folder of the checkpoints.
        done: called with each part's outcome, in the writing thread; it must not block. For a part
            that never began to be written it is called by whoever replaces it, or closes.
    """

    def __init__(self, folder: Path, done: Callable[[PartWritten], None]) -> None:
        self._folder, self._done = folder, done
        self._changed = threading.Condition()
        self._waiting: SlotPart | None = None
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)
        self._thread.start()

    def write(self, part: SlotPart) -> None:
        """Have a part written; never blocks.

        A part that still waits is given up for the newer one.

        Raises:
            CheckpointError: the writer is closed.
        """
        with self._changed:
            if self._is_closed:
                raise CheckpointError("the writer of checkpoints is closed; make another")
            before, self._waiting = self._waiting, part
            self._changed.notify()
        if before is not None:
            self._give_up(before, f"checkpoint {part.number} came before it was written")

    def close(self, *, within_s: float) -> bool:
        """Write no more; return whether the thread has ended.

        Args:
            within_s: how long to wait for a part that is being written, s.
        """
        with self._changed:
            self._is_closed = True
            before, self._waiting = self._waiting, None
            self._changed.notify()
        if before is not None:
            self._give_up(before, "its slot ended before it was written")
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (part := self._next()) is not None:
            begun_ns, cpu_ns = time.monotonic_ns(), time.thread_time_ns()
            entry: PartEntry | None = None
            problem: Exception | None = None
            try:
                entry = write_part(self._folder, part)
            except Exception as refused:  # the job decides, not this thread
                problem = refused
            elapsed_ns = time.monotonic_ns() - begun_ns
            cpu_ns = time.thread_time_ns() - cpu_ns
            self._done(PartWritten(part.number, entry, problem, elapsed_ns, cpu_ns))
            del part, entry, problem  # else a part stays in memory until the next

    def _next(self) -> SlotPart | None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._waiting is not None)
            part, self._waiting = self._waiting, None
            return part

    def _give_up(self, part: SlotPart, why: str) -> None:
        problem = CheckpointError(
            f"checkpoint {part.number} of slot {part.slot!r} was given up: {why}; take checkpoints "
            "less often"
        )
        self._done(PartWritten(part.number, None, problem))
