"""Prepare a slot's process: memory that it keeps, turns of its threads, libraries it loads.

```
slice     takes 5 MB ─▶ gives them back ─▶ the next slice takes 5 MB
glibc     returns them, if they end the heap: the system clears each page again
kept      up to `HEAP_BYTES` stay, and are used as they are
```

Clearing pages took a tenth to a third of an aggregate's time, in some runs and not in others: it
depends on what happens to lie at the end of the heap.

A thread that waits for the interpreter gets it after a turn, which Python makes 5 ms. So a loop
that saved a cut for a millisecond stood still for 5 to 10, as another thread computed.

Arrow would load pandas at its first conversion, for 0.2 s and 30 MB. Only users' code has a use for
it: a slot that runs some loads it before the start, and any other does without.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import sys
from collections.abc import Iterable, Iterator
from importlib.abc import MetaPathFinder
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.actors.slot.user_output import runs_users_code
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.plan.plan import Stage

__all__ = [
    "import_arrow_functions",
    "keep_freed_memory",
    "leave_out_pandas",
    "load_pandas",
    "take_short_turns",
]

HEAP_BYTES = 64 * 2**20
"""Freed bytes that stay at the end of a heap, of which glibc has several; above that, all of them
return to the system. Some ten times what the longest slice takes."""
MAPPED_FROM_BYTES = 32 * 2**20
"""Larger arrays are mapped apart and return at once; glibc allows no more than this."""
TURN_S = 0.001
"""Turn of a thread while another waits for the interpreter; a switch takes some 10 µs."""
_PANDAS = "pandas"
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_OF_USERS = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES")


def keep_freed_memory() -> bool:
    """Make this process keep `HEAP_BYTES` of freed heap memory; return whether it does.

    It does not without glibc, or if the environment has settings for glibc: those hold.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None or any(name in os.environ for name in _OF_USERS):
        return False
    is_set = set_option(_TRIM_THRESHOLD, HEAP_BYTES)
    return bool(is_set and set_option(_MMAP_THRESHOLD, MAPPED_FROM_BYTES))


def take_short_turns() -> None:
    """Let a thread of this process wait a millisecond for the interpreter, not five."""
    sys.setswitchinterval(TURN_S)


def leave_out_pandas() -> None:
    """Make Arrow look for pandas now, and not find it.

    Arrow looks once, at its first conversions. A later import of pandas, or a call of
    `to_pandas`, works as usual.
    """
    if _PANDAS in sys.modules:
        return
    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array(np.zeros(1))
        pa.array([None])
    finally:
        sys.meta_path.remove(hidden)


def load_pandas() -> None:
    """Load pandas, if installed, for users' code, and make Arrow look for it again."""
    with contextlib.suppress(ImportError):
        importlib.import_module(_PANDAS)
        _ = pa.lib._pandas_api.pd


class _Hidden(MetaPathFinder):
    """Hides pandas from imports."""

    def find_spec(self, name: str, *_: Any) -> None:
        """Return None if it is another module, which other finders know.

        Raises:
            ModuleNotFoundError: it is pandas.
        """
        if name == _PANDAS:
            raise ModuleNotFoundError(f"no {name} in this process", name=name)


def import_arrow_functions(stages: Iterable[Stage]) -> None:
    """Import Arrow's functions for stages with text, or with users' code.

    The import takes 30 to 60 ms, which would otherwise delay an event. Results of users' code may
    need a cast.

    Expressions that cast, and JSON lines, import them during preparation. An input of ours is cast
    when its first block is read, before the start.
    """
    if any(runs_users_code(stage) or _has_text(stage) for stage in stages):
        arrow_functions()


def _has_text(stage: Stage) -> bool:
    return any(pa.types.is_string(kind) for schema in _schemas(stage) for kind in schema.types)


def _schemas(stage: Stage) -> Iterator[pa.Schema]:
    yield from (step.schema for step in (stage.step, *stage.chain))
    yield from (channel.schema for channel in (*stage.inputs, *stage.outputs))
