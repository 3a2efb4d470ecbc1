"""Tables drawn at random, and flows over tables in the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import slackwater as sw


def drawn(
    rng: np.random.Generator, values: list[Any], kind: pa.DataType, *, rows: int, nulls: float
) -> pa.Array:
    """Return rows of these values, of which a share is null."""
    chosen = [values[n] for n in rng.integers(0, len(values), rows)]
    return pa.array([None if rng.random() < nulls else one for one in chosen], kind)


def result_of(make: Callable[..., sw.Stream], *tables: pa.Table, batch_rows: int) -> pa.Table:
    """Run a flow over tables, whose event time is `ts`; return the rows of its sink."""
    flow = sw.Dataflow("tables")
    streams = [
        flow.source(f"in{number}", sw.table(one, batch_rows=batch_rows), event_time="ts")
        for number, one in enumerate(tables)
    ]
    make(*streams).sink("out", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        assert job.wait().ledger.is_balanced
        return job.result("out")
