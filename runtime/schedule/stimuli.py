"""The last that a slot was given, in words: what a failure's report ends with.

A slot appends a short tuple for each stimulus to a ring, and it is read only if the slot
fails. Rows are counted in it, not kept. All of a slot's stimuli, to be replayed, are in
`runtime/schedule/stimulus_log.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, TypeAlias

from slackwater.runtime.model import END_NS

__all__ = ["RECENT", "Recent", "in_words", "ring"]

RECENT = 20
"""Stimuli that are kept, as many as of a job's (`runtime/life/machine.py`)."""

Recent: TypeAlias = deque[tuple[Any, ...]]
"""The last stimuli: (when, or None for as long ago as the one before; what; of what; …)."""


def ring() -> Recent:
    """Return one in which nothing is yet."""
    return deque(maxlen=RECENT)


def in_words(recent: Iterable[tuple[Any, ...]], *, slot: str, start_ns: int) -> list[str]:
    """Return a line for each stimulus: seconds since the job's start, and what."""
    lines, at_ns = [], start_ns
    for when_ns, what, *of in recent:
        at_ns = at_ns if when_ns is None else when_ns
        lines.append(f"{(at_ns - start_ns) / 1e9:.3f} slot {slot!r}: {_text(what, of)}")
    return lines


def _text(what: str, of: list[Any]) -> str:
    match what:
        case "rows":
            channel, rows, promise_ns = of
            if promise_ns != END_NS:
                return f"{rows:,} rows came on channel {channel!r}"
            after = f", after {rows:,} rows" if rows else ""
            return f"the end of channel {channel!r} came{after}"
        case "credit":
            return f"credit for {of[1]:,} rows came for channel {of[0]!r}"
        case "slice":
            return f"stage {of[0]!r} began a slice of about {of[1]:,} rows at most"
    return f"it was told {of[0]}"
