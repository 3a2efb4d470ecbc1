"""The query of [mace] §IX-A.1: reviews of pairs of falling trades of similar volume, in a minute.

```
ticks ─ fields ─ lots ─ value ─ falling ═ pairs ─ spread ─ good ─ report ─ out      as written
source  select  filter  assign  filter    join    assign   filter  select  sink

at the sink     … falling ═ pairs ─ good.1 ─ good.2 ─ …        good.1: the first review,
in between      … falling ─ good.1 ═ pairs ─ …                 good.2: the second
at the source   ticks ─ fields ─ good.1 ─ … falling ═ pairs ─ …
```
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

import slackwater as sw
from benchmarks.mace.load import Floats
from examples.real_data import stock_ticks
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.rewrite.moves import FlowPlan, Rewrite, Share, rewrites_of, split_all

WITHIN_S = 60
SIMILAR = 0.1
"""Volumes are similar if they differ by no more than this share of the first."""
TICK_S = 1.0
"""Trades are handed over together so often: the simulator takes a promise that comes without rows
for as dear as a row, and there would be one for every trade."""
REVIEWS = 1_000
"""A review is a number below this, made up."""
STEPS = ("ticks", "fields", "lots", "value", "falling", "pairs", "spread", "good", "report", "out")
UDS = ("good.1", "good.2")
PLANS = ("at the sink", "in between", "at the source")
_OPENS_S, _CLOSES_S = 13.5 * 3600, 20 * 3600  # regular hours, UTC


@cache
def trades() -> pa.Table:
    """Return the trades of regular hours: at_s, symbol, price, before, size.

    `before` is the price of the symbol's trade before, as feeds have it (the tick's direction): a
    step that remembers it would be one that no filter may pass.
    """
    read = pq.read_table(stock_ticks() / "trades_2013-10-07.parquet")
    symbols = np.asarray(read["symbol"].to_pylist())
    price = read["price_usd"].to_numpy().astype(np.float64)
    before = price.copy()
    for symbol in np.unique(symbols):
        own = np.flatnonzero(symbols == symbol)
        before[own[1:]] = price[own[:-1]]
    at_s = read["event_time_ms"].to_numpy() / 1e3 % 86_400
    table = pa.table(
        {
            "at_s": at_s,
            "symbol": pa.array(symbols.tolist(), pa.string()),
            "price": price,
            "before": before,
            "size": read["size"].to_numpy().astype(np.int64),
        }
    )
    return table.filter(pa.array((at_s >= _OPENS_S) & (at_s < _CLOSES_S)))


def drawn_ticks(rng: np.random.Generator, count: int) -> pa.Table:
    """Return so many trades that follow each other, from anywhere in the day, with reviews."""
    whole = trades()
    start = int(rng.integers(0, whole.num_rows - count))
    part = whole.slice(start, count)
    at_s = part["at_s"].to_numpy()
    times_ns = (np.ceil((at_s - at_s[0]) / TICK_S) * TICK_S * NS_PER_SECOND).astype(np.int64)
    return pa.table(
        {
            "ts": times_ns,
            "seq": np.arange(count),
            **{name: part[name] for name in ("symbol", "price", "before", "size")},
            "review": rng.integers(0, REVIEWS, count),
        }
    ).combine_chunks()


def stock_flow(table: pa.Table, *, good_below: int, sink: sw.connectors.Output) -> sw.Dataflow:
    """Return the query as it is written: the user-defined select, `good`, is at the sink."""
    flow = sw.Dataflow("stocks")
    falling = (
        flow.source("ticks", sw.table(table), event_time="ts", time_unit="ns", speed=1.0)
        .select("seq", "symbol", "price", "before", "size", "review", name="fields")
        .filter(sw.col("size") >= 100, name="lots")
        .with_columns(name="value", value=sw.col("price") * sw.col("size"))
        .filter(sw.col("price") < sw.col("before"), name="falling")
    )
    far = sw.col("size") - sw.col("size_right")
    similar = (far <= SIMILAR * sw.col("size")) & (far >= -SIMILAR * sw.col("size"))
    (
        falling.join(
            falling,
            on="symbol",
            within=f"{WITHIN_S}s",
            where=(sw.col("seq") < sw.col("seq_right")) & similar,
            name="pairs",
        )
        .with_columns(name="spread", spread=sw.col("price") - sw.col("price_right"))
        .filter(
            (sw.col("review") < good_below) & (sw.col("review_right") < good_below), name="good"
        )
        .select("symbol", "seq", "seq_right", "value", "spread", name="report")
        .sink("out", sink)
    )
    return flow


def three_plans(flow: sw.Dataflow) -> dict[str, FlowPlan]:
    """Return the plans of Fig. 9, {where the select is: plan}."""
    sink = split_all(FlowPlan(flow.graph))
    between = _up_to(sink, "falling")
    return dict(zip(PLANS, (sink, between, _up_to(between, "fields")), strict=True))


def _up_to(plan: FlowPlan, step: str) -> FlowPlan:
    """Return the plan with the select, as one filter, right behind a step."""

    def is_there(name: str) -> bool:
        return plan.graph.steps[name].inputs[0] == step

    while True:
        names = [name for name in UDS if name in plan.graph.steps]
        further = [
            made
            for name in names
            for rewrite, made in rewrites_of(plan, of=name.__eq__)
            if isinstance(rewrite, Share) or (not is_there(name) and _passes_no_own(rewrite))
        ]
        if not further:
            return plan
        plan = further[0]


def _passes_no_own(rewrite: Rewrite) -> bool:
    return getattr(rewrite, "step", "") not in UDS


def pairs_of(table: pa.Table) -> int:
    """Return how many pairs the join will make, counted without running anything of ours."""
    rows = table.filter(
        pa.array((table["price"].to_numpy() < table["before"].to_numpy()) & _is_lot(table))
    )
    symbols = np.asarray(rows["symbol"].to_pylist())
    count = 0
    for symbol in np.unique(symbols):
        own = rows.filter(pa.array(symbols == symbol))
        times, sizes = own["ts"].to_numpy(), own["size"].to_numpy()
        until = np.searchsorted(times, times + WITHIN_S * NS_PER_SECOND, "right")
        for at, end in enumerate(until):
            far = np.abs(sizes[at + 1 : end] - sizes[at])
            count += int((far <= SIMILAR * sizes[at]).sum())
    return count


def _is_lot(table: pa.Table) -> npt.NDArray[np.bool_]:
    return np.asarray(table["size"].to_numpy() >= 100)


def rows_by_plan(table: pa.Table, good_below: int) -> dict[str, dict[str, float]]:
    """Return {plan: {step: how many rows it will get}}, by rules written here.

    The shares of good reviews are what they are drawn to be, not counted.
    """
    n, lots = float(table.num_rows), float(_is_lot(table).sum())
    fall = float(((table["price"].to_numpy() < table["before"].to_numpy()) & _is_lot(table)).sum())
    pairs, good = float(pairs_of(table)), good_below / REVIEWS
    behind = {"report": good * good * pairs, "out": good * good * pairs}
    sink = {"ticks": n, "fields": n, "lots": n, "value": lots, "falling": lots, "pairs": 2 * fall}
    sink |= {"spread": pairs, "good.1": pairs, "good.2": good * pairs, **behind}
    between = {**sink, "good.1": fall, "pairs": 2 * fall * good, "spread": good * good * pairs}
    source = {**between, "good.1": n, "lots": good * n, "value": good * lots}
    source["falling"] = good * lots
    del between["good.2"], source["good.2"]
    return dict(zip(PLANS, (sink, between, source), strict=True))


def load_of(rows: Mapping[str, float], costs_ns: Mapping[str, float]) -> float:
    """Return how many seconds of work a plan is."""
    return sum(costs_ns[name] * count for name, count in rows.items()) / NS_PER_SECOND


def arrivals_by(table: pa.Table, width_s: float) -> Floats:
    """Return how many trades come in each subinterval, from the first; two more than there are."""
    at_s = table["ts"].to_numpy() / NS_PER_SECOND
    edges = np.arange(0.0, float(at_s[-1]) + 2 * width_s, width_s)
    return np.histogram(at_s, edges)[0].astype(np.float64)
