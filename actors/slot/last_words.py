"""Record how a slot's process ends, in a small file beside Ray's log of it.

```
code of a step begins ──▶ its name     in a mapped page, which the kernel keeps
os._exit(3)           ──▶ a line, with the place of the call
SIGALRM, SIGUSR1, …   ──▶ a line       (Ray and Python log SIGSEGV and the like)
a turn of the loop    ──▶ a number     (a loop that stands still is ended by its node's supervisor)
```

`actors/jobs/deaths.py` reads the file, and `actors/slot/silence.py` the number.
"""

from __future__ import annotations

import mmap
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from slackwater.actors.kernel.plain_files import private
from slackwater.runtime.model.whose_code import RUNNING

__all__ = ["PULSE_BYTES", "LastWords", "last_words_of", "read_last_words"]

ENDING = ".last"
STEP_BYTES, WORDS_BYTES, PULSE_BYTES = 512, 512, 16
PAGE_BYTES = STEP_BYTES + WORDS_BYTES + PULSE_BYTES
SIGNALS = ("ALRM", "VTALRM", "PROF", "USR1", "USR2", "HUP", "QUIT", "XCPU", "POLL")
"""They end a process by default, and neither Ray nor Python logs them."""


class LastWords:
    """The mapped page of one process.

    Attributes:
        pulse: turns of the slot's loop so far, 0 while none runs; id of the loop's thread.
    """

    def __init__(self, path: Path) -> None:
        file = private(path, os.O_RDWR | os.O_CREAT)
        try:
            os.ftruncate(file, PAGE_BYTES)
            self._page = mmap.mmap(file, PAGE_BYTES)
        finally:
            os.close(file)
        self.pulse: memoryview[int] = memoryview(self._page)[-PULSE_BYTES:].cast("Q")

    def runs(self, step: str) -> None:
        """Note the step whose code begins to run."""
        self._page[:STEP_BYTES] = step.encode()[:STEP_BYTES].ljust(STEP_BYTES, b"\0")

    def say(self, words: str) -> None:
        """Note the cause that is about to end the process."""
        at = slice(STEP_BYTES, STEP_BYTES + WORDS_BYTES)
        self._page[at] = words.encode()[:WORDS_BYTES].ljust(WORDS_BYTES, b"\0")

    @classmethod
    def install(cls) -> LastWords | None:
        """Return the page of this process; None if Ray keeps no log of it.

        Call it in the main thread, once.
        """
        log = Path(os.readlink("/proc/self/fd/2"))
        if log.suffix != ".err":
            return None
        page = cls(log.with_suffix(ENDING))
        RUNNING.tell = page.runs
        page._tell_exits()
        page._tell_signals()
        return page

    def _tell_exits(self) -> None:
        inside: Any = os
        leave, pid = os._exit, os.getpid()

        def noted_exit(status: int) -> Any:
            if os.getpid() == pid:  # not in a forked child, which shares the page
                code = (caller := sys._getframe(1)).f_code
                at = f"at {code.co_filename}, line {caller.f_lineno}, in {code.co_name}"
                self.say(f"exit code {status} (os._exit), {at}")
            leave(status)

        inside._exit = noted_exit

    def _tell_signals(self) -> None:
        ours = [
            number
            for name in SIGNALS
            if (number := getattr(signal, f"SIG{name}", None)) is not None
            and signal.getsignal(number) is signal.SIG_DFL
        ]
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        for number in ours:
            signal.signal(number, lambda *_: None)  # the thread below ends the process

        def end() -> None:
            while (number := os.read(read_end, 1)[0]) not in ours:
                pass
            self.say(f"signal {signal.Signals(number).name}")
            os.kill(os.getpid(), signal.SIGKILL)

        threading.Thread(target=end, name="last words", daemon=True).start()


def last_words_of(pid: int) -> LastWords | None:
    """Return the page of another process on this host; None if it has none.

    Args:
        pid: id of a process whose log is beside that of this one.
    """
    logs = Path(os.readlink("/proc/self/fd/2")).parent
    pages = [(path.stat().st_mtime_ns, path) for path in logs.glob(f"worker-*-{pid}{ENDING}")]
    return LastWords(max(pages)[1]) if pages else None  # process ids are reused


def read_last_words(log: Path) -> tuple[str, str]:
    """Return the last step whose code ran, and the cause of the end; or "".

    Args:
        log: Ray's log of the process's stderr.
    """
    try:
        page = log.with_suffix(ENDING).read_bytes()[: STEP_BYTES + WORDS_BYTES]
    except OSError:
        return "", ""
    step, words = page[:STEP_BYTES], page[STEP_BYTES:]
    return tuple(t.rstrip(b"\0").decode(errors="replace") for t in (step, words))  # type: ignore[return-value]
