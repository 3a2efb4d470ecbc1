"""Two streams with rows at given times, to be joined by a key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

import slackwater as sw


def keyed_pair(flow: sw.Dataflow, at_s: np.ndarray, keys: Sequence[np.ndarray]) -> list[sw.Stream]:
    """Return sources a and b, whose rows arrive as they happen: ts, key, and a number of each."""
    stamps = pa.array((at_s * 1e9).astype("int64"), pa.timestamp("ns"))
    return [
        flow.source(
            name,
            sw.table(pa.table({"ts": stamps, "key": keys[n], f"{name}_n": np.arange(len(at_s))})),
            event_time="ts",
            arrival="ts",
            speed=1,
        )
        for n, name in enumerate("ab")
    ]
