"""What tests of hostile input share: a seed that is printed, and a look for leaks."""

from __future__ import annotations

import gc
import os
import random
import threading
import time
from collections.abc import Iterator

import numpy as np
import psutil
import pyarrow as pa
import pytest

from tests.support import waiting

SEED = int(
    os.environ.get("HOSTILE_SEED") or (1 if os.environ.get("CI") else time.time_ns() % 2**32)
)
MOST_BYTES = 30e6  # an interpreter's noise; 10,000 leaked frames would be more


@pytest.fixture
def chance() -> random.Random:
    print(f"seed {SEED}: repeat with HOSTILE_SEED={SEED}")  # noqa: T201 (shown when a test fails)
    return random.Random(SEED)  # noqa: S311 (to be repeatable)


@pytest.fixture
def nothing_leaks() -> Iterator[None]:
    here = psutil.Process()
    pa.array(np.zeros(1))  # at its first conversion Arrow loads pandas
    gc.collect()
    own, descriptors, threads = own_bytes(here), here.num_fds(), threading.active_count()
    yield
    gc.collect()
    assert own_bytes(here) - own < MOST_BYTES
    waiting.until(
        lambda: here.num_fds() <= descriptors, within_s=5, what="descriptors to be closed"
    )
    waiting.until(lambda: threading.active_count() <= threads, within_s=5, what="threads to end")


def own_bytes(process: psutil.Process) -> int:
    """Return the memory that a process has for itself: pages of files come and go as hosts like."""
    memory = process.memory_info()
    found: int = memory.rss - getattr(memory, "shared", 0)  # Linux tells them apart
    return found
