"""Freed memory stays with the process: looked at in a new one, whose heap is nobody else's."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SLICES = """
import resource, threading
import numpy as np
from slackwater.actors.slot.process_setup import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def slice_of(rows):
    arrays = [np.ones(rows) for _ in range(16)]  # 8 MB, all at the end of the heap

kept = keep_freed_memory()
def loop():
    slice_of(65_536)
    before = faults()
    for _ in range(20):
        slice_of(65_536)
    print(kept, faults() - before)

thread = threading.Thread(target=loop)  # as a slot's: with a heap of its own
thread.start()
thread.join()
"""


def slices(**settings: str) -> tuple[bool, int]:
    """Return whether a new process keeps what it frees, and its page faults in twenty slices."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", SLICES],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    kept, faults = done.stdout.split()
    return kept == "True", int(faults)


def test_a_slice_finds_the_memory_of_the_one_before() -> None:
    kept, faults = slices()
    if not kept:
        pytest.skip("there is no glibc here")
    pages = 20 * 16 * 65_536 * 8 // 4096
    assert faults < pages // 20


def test_what_the_environment_says_of_memory_holds() -> None:
    assert not slices(MALLOC_TRIM_THRESHOLD_="131072")[0]
    assert not slices(GLIBC_TUNABLES="glibc.malloc.arena_max=2")[0]
