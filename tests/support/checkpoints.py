"""Parts and facts of checkpoints, for tests of their files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.runtime.model import Batch, Message, Progress
from slackwater.runtime.model.plain import to_plain
from slackwater.runtime.recovery.checkpoint import SlotPart
from slackwater.runtime.recovery.manifest import CheckpointFacts

VERSION = 12


def part_of(slot: str = "node-1", number: int = 1, rows: int = 100) -> SlotPart:
    """Return a part with arrays, text, and messages that were on their way."""
    times = np.arange(rows)
    batch = Batch(
        event_time_ns=times,
        stimulus_time_ns=times,
        columns={"n": times, "text": pa.array([f"ü{n}" for n in range(rows)])},
    )
    messages = [Message(batch, Progress(7)), Message(None, Progress(9))]
    return SlotPart(
        slot=slot,
        number=number,
        state={
            "version": VERSION,
            "stream": {"stages": {"s0": times}, "keys": times + 0.5, "pairs": [(1, "a"), (2, "b")]},
        },
        results={"meters": {"out": {"rows": 2**60}}},
        messages={"a→b": to_plain(messages)},
        positions={"out": b"\x00at 7"},
    )


def facts_of(**changes: Any) -> CheckpointFacts:
    """Return the facts of a job, with some of them changed."""
    facts: dict[str, Any] = {
        "flow": "city",
        "job": "city-1",
        "at_ns": 10**18,
        "fingerprint": {"steps": {"jams": "d1", "out": "d2"}, "settings": {"slack": "d3"}},
        "release": {"slackwater": "0.1.0"},
        "granted": {"cars→jäms": 2**60},
    }
    return CheckpointFacts(**{**facts, **changes})
