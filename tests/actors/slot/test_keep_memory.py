"""Freed memory stays with the process: looked at in a new one, whose heap is nobody else's."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from actors.slot.keep_memory import KEPT_BYTES

SLICES = """
import resource, sys
import numpy as np
from actors.slot.keep_memory import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def slice_of(rows):
    arrays = [np.ones(rows) for _ in range(16)]  # 8 MB, all at the end of the heap

kept = keep_freed_memory() if sys.argv[1] == "keep" else False
slice_of(65_536)
before = faults()
for _ in range(20):
    slice_of(65_536)
print(kept, faults() - before)
"""
MUCH = """
import numpy as np
from actors.slot.keep_memory import keep_freed_memory

def held_mib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 // 2**20

kept, before = keep_freed_memory(), held_mib()
arrays = [np.ones(2**21) for _ in range(16)]
assert held_mib() - before > 200
del arrays
print(kept, held_mib() - before)
"""


def slices(word: str, *, program: str = SLICES, **settings: str) -> tuple[bool, int]:
    """Return whether a new process keeps what it frees, and what the program counts."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", program, word],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    kept, faults = done.stdout.split()
    return kept == "True", int(faults)


def test_a_slice_finds_the_memory_of_the_one_before() -> None:
    kept, faults = slices("keep")
    if not kept:
        pytest.skip("there is no glibc here")
    pages = 20 * 16 * 65_536 * 8 // 4096
    assert faults < pages // 20
    assert slices("leave")[1] > 4 * faults


def test_what_the_environment_says_of_memory_holds() -> None:
    assert not slices("keep", MALLOC_TRIM_THRESHOLD_="131072")[0]
    assert not slices("keep", GLIBC_TUNABLES="glibc.malloc.arena_max=2")[0]


def test_more_than_that_goes_back() -> None:
    kept, mib = slices("keep", program=MUCH)
    assert mib <= KEPT_BYTES / 2**20 + 8 if kept else True
