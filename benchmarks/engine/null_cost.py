"""Cost of nulls: the same rows without nulls, and with 1 % of each computed column null.

```
1 M rows ──▶ filter · with_columns · aggregate · join · dedupe ──▶ a sink that counts
```

Both take turns, in measured time. Nothing else of the slot differs, so the ratio is what values and
masks cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.frame import Claim, Options, Result, Spread, check, counted

ROWS, QUICK_ROWS = 1_000_000, 200_000
TURNS, QUICK_TURNS = 7, 3
NULLS = 0.01
MOST = 1.3
STEP_US = 10
"""Between two rows."""
Make = Callable[[sw.Stream, sw.Stream], sw.Stream]
STEPS: dict[str, Make] = {
    "filter": lambda one, _: one.filter((sw.col("n") > 100) & (sw.col("x") < 0.5)),
    "with_columns": lambda one, _: one.with_columns(
        y=sw.col("n") * 2 + sw.col("k"), z=sw.col("x") / 3
    ),
    "aggregate": lambda one, _: one.aggregate(
        rows=sw.count(), most=sw.max("n"), mean=sw.mean("x"), window=sw.tumbling("1s"), by="k"
    ),
    "join": lambda one, other: one.join(other, on="n", within="10ms"),
    "dedupe": lambda one, _: one.dedupe("n", within="1s"),
}


def rows(seed: int, size: int, *, nulls: float) -> pa.Table:
    """Return rows of whole numbers, floats and few keys, of which a share is null."""
    rng = np.random.default_rng(seed)

    def column(values: np.ndarray) -> pa.Array:
        return pa.array(values, mask=rng.random(size) < nulls if nulls else None)

    return pa.table(
        {
            "ts": pa.array(np.arange(size) * STEP_US, pa.timestamp("us")),
            "n": column(rng.integers(0, 5_000, size)),
            "k": column(rng.integers(0, 50, size)),
            "x": column(rng.random(size)),
        }
    )


def run(options: Options) -> Result:
    """Measure each step with and without nulls, in turns."""
    size, turns = (QUICK_ROWS, QUICK_TURNS) if options.quick else (ROWS, TURNS)
    result = Result(
        f"{size:,} rows, {NULLS:.0%} null in each column beside none, {turns} turns",
        ["step", "ms without", "ms with", "× (spread of turns)"],
    )
    for name, make in counted(STEPS.items(), of=len(STEPS), what="steps"):
        tables = {share: rows(options.seed, size, nulls=share) for share in (0.0, NULLS)}
        found: dict[float, list[float]] = {share: [] for share in tables}
        for _ in range(turns):
            for share, table in tables.items():
                found[share].append(seconds_of(make, table))
        ratios = [one / other for one, other in zip(found[NULLS], found[0.0], strict=True)]
        spread = Spread.of(ratios)
        least = {share: min(each) * 1e3 for share, each in found.items()}
        result.rows.append([name, least[0.0], least[NULLS], str(spread)])
        result.figures[name] = {"ratios": ratios, "ms": least}
        result.claims.append(
            Claim(f"{name}: time with {NULLS:.0%} nulls / without", spread.median, "<=", MOST)
        )
    return result


def seconds_of(make: Make, table: pa.Table) -> float:
    """Return the time of a run over the table, which ends with a count of its results."""
    flow = sw.Dataflow("nulls")
    one = flow.source("one", sw.table(table), event_time="ts")
    other = flow.source("other", sw.table(table.slice(0, len(table) // 10)), event_time="ts")
    results = []
    other.sink("others", sw.callback_sink(lambda _: None))
    make(one, other).sink("out", sw.callback_sink(lambda block: results.append(len(block))))
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        begin = time.perf_counter()
        job.wait()
        passed = time.perf_counter() - begin
    check(sum(results) > 0, "the step made no result")
    return passed
