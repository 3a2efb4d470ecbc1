"""A loop that stands still is silent, unless its process computes, or waits for a core."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from slackwater.actors.slot.last_words import LastWords, read_last_words
from slackwater.actors.slot.silence import WatchedLoop
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[3]
LIMIT_S, EVERY_S = 1.0, 0.05
SOON_S = 30.0
LOOP = """
import ctypes, os, signal, sys, threading, time
from slackwater.actors.slot.last_words import LastWords
from slackwater.actors.slot.process_setup import TURN_S

sys.setswitchinterval(TURN_S)
page = LastWords.install()
page.pulse[1] = threading.get_native_id()
page.pulse[0] = 1
{does}
"""
ALIVE = {
    "turns": "while True: page.pulse[0] += 1; time.sleep(0.01)",
    "computes": "while True: pass",
    "holds the interpreter, and computes": "while True: sum(range(10**8))",
    "waits for a thread that computes": "exec('def f():\\n while True: pass')\n"
    "(t := threading.Thread(target=f)).start(); t.join()",
    "has ended": "page.pulse[0] = 0; time.sleep(1000)",
}
SILENT = {
    "sleeps": "time.sleep(1000)",
    "holds the interpreter, and sleeps": "exec('def f():\\n while True: time.sleep(0.1)')\n"
    "for _ in range(40): threading.Thread(target=f).start()\n"
    "ctypes.PyDLL(None).sleep(1000)",
    "is stopped": "os.kill(os.getpid(), signal.SIGSTOP)",
}


@pytest.fixture
def loops(tmp_path: Path) -> Iterator[Callable[[str], WatchedLoop]]:
    """Start a process by what its loop does; return its loop as a supervisor sees it."""
    with ExitStack() as until_done:

        def started(does: str) -> WatchedLoop:
            log = tmp_path / f"worker-{len([*tmp_path.iterdir()])}.err"
            with log.open("wb") as errors:
                process = subprocess.Popen(  # noqa: S603 our own program
                    [sys.executable, "-c", LOOP.format(does=does)], stderr=errors, cwd=ROOT
                )
            until_done.callback(process.wait)
            until_done.callback(process.kill)
            path = log.with_suffix(".last")
            until(path.exists, within_s=SOON_S, what="its page")
            page = LastWords(path)
            until(lambda: page.pulse[1], within_s=SOON_S, what="its loop")
            return WatchedLoop(process.pid, page)

        yield started


def look_until(loops: list[WatchedLoop], silent_s: float, *, for_s: float) -> float:
    """Look at loops, for some seconds, or until all are silent; return the longest silence."""
    pause, longest_s = threading.Event(), 0.0
    began_s = looked_s = time.monotonic()
    while looked_s < began_s + for_s and min(loop.silent_s for loop in loops) < silent_s:
        pause.wait(EVERY_S)
        now_s = time.monotonic()
        for loop in loops:
            assert loop.look(min(now_s - looked_s, 2 * EVERY_S))
            longest_s = max(longest_s, loop.silent_s)
        looked_s = now_s
    return longest_s


def test_loops_that_turn_or_compute_are_never_silent(loops: Callable[[str], WatchedLoop]) -> None:
    for does in ALIVE.values():
        loop = loops(does)
        assert look_until([loop], LIMIT_S, for_s=1.5 * LIMIT_S) < LIMIT_S / 2, does


def test_loops_that_wait_in_their_own_code_or_are_stopped_are_silent(
    loops: Callable[[str], WatchedLoop],
) -> None:
    every = [loops(does) for does in SILENT.values()]
    look_until(every, LIMIT_S, for_s=SOON_S)
    silent = {does for does, loop in zip(SILENT, every, strict=True) if loop.silent_s >= LIMIT_S}
    assert silent == set(SILENT)


def test_a_loop_that_is_ended_for_silence_leaves_the_reason(
    loops: Callable[[str], WatchedLoop], tmp_path: Path
) -> None:
    loop = loops(SILENT["is stopped"])
    look_until([loop], LIMIT_S, for_s=SOON_S)
    loop.kill()
    until(lambda: not loop.look(EVERY_S), within_s=SOON_S, what="its process to end")
    _, words = read_last_words(tmp_path / "worker-0.err")
    assert words.startswith("the supervisor of its node: its loop stood still")
    assert "SIGSTOP" in words
