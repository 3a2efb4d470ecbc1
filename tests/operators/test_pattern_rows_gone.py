"""Matches that wait read no row that is forgotten: what leaves is the same however rows are cut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.model import END_NS, Batch
from slackwater.runtime.patterns.operator.machine import PatternMachine
from slackwater.runtime.patterns.operator.step import PatternStep
from tests.support.told import gate_read

SPAN = 300
Left: TypeAlias = tuple[int, str]


def step() -> PatternStep:
    flow = sw.Dataflow("f")
    rows = flow.source(
        "s",
        sw.table({"ts": [0], "kind": ["a"], "price": [0.0], "id": [0]}),
        event_time="ts",
        time_unit="ns",
    )
    low = sw.patterns.event("low", of_type="a")
    high = sw.patterns.event("high", of_type=("b", "c"), where=sw.col("price") > low["price"])
    end = sw.patterns.event("end", of_type="c")
    pattern = sw.patterns.seq(low, high, sw.patterns.no(end))
    built = rows.pattern(pattern, type="kind", within=f"{SPAN}ns", id="id")
    made = built.flow.steps[built.name]
    assert isinstance(made, PatternStep)
    return made


def left(batches: list[Batch]) -> list[Left]:
    """Return time and events of what leaves; none may be older than what was promised before."""
    machine, found, promised = PatternMachine(step(), most_kept_rows=10_000), list[Left](), 0
    for batch in [*batches, None]:
        until = END_NS if batch is None else int(batch.event_time_ns[-1])
        made, following, *_ = machine.work(gate_read([batch], [None], until, 0, until), 0)
        if made is not None:
            times = made.event_time_ns.tolist()
            assert min(times) >= promised
            found += zip(times, made.columns["events"].to_pylist(), strict=True)
        promised = following
    return found


@pytest.mark.parametrize("seed", range(8))
def test_what_waits_is_the_same_in_small_reads_and_in_one(seed: int) -> None:
    draw = np.random.default_rng(seed)
    count = 400
    times = np.sort(draw.integers(0, 5_000, count))
    columns: dict[str, Any] = {
        "ts": times,
        "kind": pa.array(draw.choice(["a", "b", "c"], count).tolist(), pa.string()),
        "price": draw.random(count),
        "id": np.arange(count),
    }

    def batch(begin: int, end: int) -> Batch:
        own = {name: values[begin:end] for name, values in columns.items()}
        return Batch(event_time_ns=times[begin:end], stimulus_time_ns=times[begin:end], columns=own)

    cuts = [0, *sorted(draw.choice(np.arange(1, count), 120, replace=False).tolist()), count]
    small = [batch(begin, end) for begin, end in pairwise(cuts)]
    assert left(small) == left([batch(0, count)])
