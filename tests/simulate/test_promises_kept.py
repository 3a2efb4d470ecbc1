"""Every channel keeps its word: a receiver may refuse who does not (actors/wire/frames.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.model import START_NS, Message
from slackwater.runtime.schedule import Slot

ROWS = 400


def rows(seed: int) -> pa.Table:
    """100 rows a second, up to 0.3 s late."""
    rng = np.random.default_rng(seed)
    times = np.arange(ROWS) * 10_000_000 + rng.integers(0, 300_000_000, ROWS)
    return pa.table({"ts": pa.array(times, pa.timestamp("ns")), "k": np.arange(ROWS) % 5})


def flow(*, slack: str | None, idle: str | None, replicas: int) -> sw.Dataflow:
    made = sw.Dataflow("promises", slack=slack)
    left, right = (
        made.source(name, sw.table(rows(seed)), event_time="ts", disorder="300ms", idle=idle)
        for seed, name in enumerate(("left", "right"))
    )
    pairs = left.filter(sw.col("k") > 0).join(
        right, on="k", within="100ms", replicas=replicas, name="pairs"
    )
    pairs.aggregate(by="k", window=sw.tumbling("1s"), n=sw.count()).sink("n", sw.collect_sink())
    return made


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize(
    ("slack", "idle", "late"), [(None, None, False), ("0s", None, True), (None, "1s", True)]
)
def test_no_promise_runs_back_and_rows_are_late_only_where_the_plan_says_so(
    monkeypatch: pytest.MonkeyPatch, slack: str | None, idle: str | None, late: bool, replicas: int
) -> None:
    promised: dict[str, int] = {}
    broken: list[tuple[str, Message]] = []
    deliver = Slot.deliver

    def watched(slot: Slot, channel: str, message: Message, *more: Any, **named: Any) -> None:
        known = promised.get(channel, START_NS)
        may_be_late = slot._channels[channel].may_be_late
        is_late = message.batch is not None and bool((message.batch.event_time_ns < known).any())
        if message.progress.promise_ns < known or (is_late and not may_be_late):
            broken.append((channel, message))
        promised[channel] = message.progress.promise_ns
        deliver(slot, channel, message, *more, **named)

    monkeypatch.setattr(Slot, "deliver", watched)
    made = flow(slack=slack, idle=idle, replicas=replicas)
    with sw.Simulation(4) as nodes:
        into = {c.name: c.may_be_late for c in nodes.plan(made).channels}
        assert into[next(name for name in into if name.endswith("→n"))] is late
        nodes.submit(made).wait()
    assert promised
    assert broken == []
