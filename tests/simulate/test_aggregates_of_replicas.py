"""Aggregates of rows of one time are the same with any number of replicas, and however read."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw

ROWS = 500


def rows(seed: int) -> pa.Table:
    """Return rows of few times, so that most have others of their time."""
    rng = np.random.default_rng(seed)
    maybe = [None if n % 5 == 0 else n for n in rng.integers(0, 40, ROWS).tolist()]
    floats = rng.choice([np.nan, -0.0, 0.0, 1.5, 1e-9, -7.25], ROWS)
    return pa.table(
        {
            "ts": np.sort(rng.integers(0, 60, ROWS)),
            "k": rng.integers(0, 7, ROWS),
            "n": pa.array(maybe, pa.int64()),
            "x": floats,
            "s": pa.array([None if n is None else f"t{n % 9}" for n in maybe]),
            "b": rng.random(ROWS) < 0.4,
            "d": pa.array([Decimal(int(n)) / 4 for n in rng.integers(-9, 9, ROWS)]),
        }
    )


def aggregates() -> dict[str, Any]:
    each = ("n", "x", "s", "b", "d")
    return {
        **{f"first_{name}": sw.first(name) for name in each},
        **{f"last_{name}": sw.last(name) for name in each},
        **{f"most_{name}": sw.arg_max("n", name) for name in each},
        **{f"least_{name}": sw.arg_min("x", name) for name in each},
        **{f"top_{name}": sw.top_k(name, 3) for name in each},
        **{f"distinct_{name}": sw.count_distinct(name) for name in each},
        **{f"all_{name}": sw.collect(name) for name in each},
        "std": sw.std("n"),
        "var": sw.var("x", where=sw.col("x") > -100),
        "of_decimals": sw.var("d", ddof=0),
        "any": sw.any("b"),
        "every": sw.all("b", where=sw.col("n") > 3),
        "some": sw.count(where=sw.col("b")),
        "half": sw.median("n", where=~sw.col("b")),
        "custom": sw.custom(
            list,
            lambda state, row: [*state, row["n"], row["s"]],
            lambda state, other: state + other,
            str,
            "string",
            columns=["n", "s"],
        ),
    }


def ran(replicas: int | None, batch_rows: int, window: Any) -> dict[Any, tuple[str, ...]]:
    flow = sw.Dataflow("chosen")
    first, second = (
        flow.source(
            f"rows {seed}",
            sw.table(rows(seed), batch_rows=batch_rows),
            event_time="ts",
            time_unit="ms",
        )
        for seed in (1, 2)
    )
    merged = first.merge(second)
    made = merged.aggregate(aggregates(), by="k", window=window, replicas=replicas)
    made.sink("out", sw.collect_sink())
    job = sw.Simulation(nodes=3, seed=batch_rows).submit(flow, limits=sw.Limits(max_slice_rows=90))
    assert job.wait().ledger.is_balanced
    return {
        (row["window_start"], row["k"]): tuple(map(repr, row.values()))
        for row in job.result("out").to_pylist()
    }


WINDOWS = [sw.tumbling("20ms"), sw.sliding("20ms", "5ms"), sw.session("1ms"), sw.rows(40)]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_neither_replicas_nor_reads_show_in_aggregates(window: Any) -> None:
    expected = ran(1, ROWS, window)
    assert len(expected) >= 7
    for replicas, batch_rows in ((2, 7), (3, 200)):
        assert ran(replicas, batch_rows, window) == expected
