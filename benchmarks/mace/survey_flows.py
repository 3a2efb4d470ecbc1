"""Twenty ordinary flows: user functions, filters, waits, joins; first rows unlike the rest.

```
source (speed=1) ──▶ filter? ──▶ user's function ──▶ window? ──▶ sink
```

What each row costs the function, how long it waits, and whether the filter lets it go are columns
of the data, so that every run of a flow has the same work.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import slackwater as sw

__all__ = ["FLOWS", "Survey", "survey_flow"]

Floats = npt.NDArray[np.float64]
LOAD = 0.55
"""Of a core, on average: in bursts it is more than one."""
HIGH, SHARE, PERIOD_S = 2.6, 0.3, 4.0
"""How many times the mean rate a burst has, for what share of each period."""
WITHIN_S = 0.2
MODEL_US = 3_000.0
"""Cost of one call of the model, for any number of rows."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """Describe a flow of the survey.

    Attributes:
        shape: which steps it has.
        work_us: (rng, n) -> what each row costs the function.
        wait_us: how long it waits, in the same way.
        keep: what share of rows its filter lets go.
        first: of the first tenth of its rows: (how many times the work, what share goes).
        model: whether the function takes a time of its own for each batch.
    """

    shape: str = "map"
    work_us: Callable[[np.random.Generator, int], Floats]
    wait_us: Callable[[np.random.Generator, int], Floats] | None = None
    keep: float = 1.0
    first: tuple[float, float | None] = (1.0, None)
    model: bool = False


def even(us: float) -> Callable[[np.random.Generator, int], Floats]:
    """Return costs that are all alike."""
    return lambda _, n: np.full(n, us)


def exponential(us: float) -> Callable[[np.random.Generator, int], Floats]:
    """Return costs of an exponential distribution."""
    return lambda rng, n: rng.exponential(us, n)


def few(us: float, *, share: float, long_us: float) -> Callable[[np.random.Generator, int], Floats]:
    """Return costs of which a few are far longer."""
    return lambda rng, n: np.where(rng.random(n) < share, long_us, us)


def lognormal(us: float) -> Callable[[np.random.Generator, int], Floats]:
    """Return costs of a lognormal distribution."""
    return lambda rng, n: rng.lognormal(np.log(us) - 0.5, 1.0, n)


NOTHING = even(0.0)
FLOWS: Mapping[str, Kind] = {
    "map": Kind(work_us=even(300)),
    "map exponential": Kind(work_us=exponential(600)),
    "map few long": Kind(work_us=few(100, share=0.05, long_us=6_000)),
    "map lognormal": Kind(work_us=lognormal(500)),
    "map cheap": Kind(work_us=even(60)),
    "filter map": Kind(work_us=even(600), keep=0.3),
    "filter map exponential": Kind(work_us=exponential(600), keep=0.3),
    "rare filter map": Kind(work_us=even(1_000), keep=0.1),
    "map window": Kind(shape="window", work_us=even(300)),
    "filter map window": Kind(shape="window", work_us=exponential(500), keep=0.5),
    "wait": Kind(work_us=NOTHING, wait_us=even(1_500)),
    "wait now and then": Kind(work_us=even(100), wait_us=few(0, share=0.1, long_us=8_000)),
    "filter wait": Kind(work_us=even(50), wait_us=even(2_000), keep=0.4),
    "model": Kind(work_us=even(150), model=True),
    "join map": Kind(shape="join", work_us=even(500)),
    "merge map": Kind(shape="merge", work_us=exponential(500)),
    "dedupe map": Kind(shape="dedupe", work_us=even(400)),
    "dearer later": Kind(work_us=even(500), first=(0.2, None)),
    "cheaper later": Kind(work_us=even(300), first=(5.0, None)),
    "rarer first": Kind(work_us=even(800), keep=0.5, first=(1.0, 0.05)),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class Survey:
    """A flow, and when its rows come.

    Attributes:
        name: of it.
        flow: without a deadline.
        times_s: {source: when its rows come, shape (rows,)}.
        seconds: for how long.
    """

    name: str
    flow: sw.Dataflow
    times_s: Mapping[str, Floats]
    seconds: float

    @property
    def rows(self) -> int:
        """Of all its sources."""
        return sum(map(len, self.times_s.values()))

    def trace(self, width_s: float) -> dict[str, list[float]]:
        """Return {source: rows of each subinterval}."""
        edges = np.arange(round(self.seconds / width_s) + 1) * width_s
        return {name: np.histogram(at, edges)[0].tolist() for name, at in self.times_s.items()}


def survey_flow(name: str, *, seed: int, seconds: float) -> Survey:
    """Return one of the flows, with rows for so long, in bursts that the seed draws."""
    kind, rng = FLOWS[name], np.random.default_rng([seed, list(FLOWS).index(name)])
    wait_us = kind.wait_us or NOTHING
    cost_s = float((kind.work_us(rng, 50_000) + wait_us(rng, 50_000)).mean()) * 1e-6 * kind.keep
    sources = 2 if kind.shape in ("join", "merge") else 1
    rate = LOAD / (cost_s + 2e-5 + (MODEL_US * 1e-6 / 12 if kind.model else 0.0)) / sources
    flow = sw.Dataflow(name.replace(" ", "-"))
    times_s, streams = {}, []
    for source in ("a", "b")[:sources]:
        times_s[source] = _bursts_s(rng, rate, seconds)
        table = _table(rng, kind, times_s[source], keys=max(round(2 * rate * WITHIN_S), 1))
        streams.append(
            flow.source(source, sw.table(table), event_time="ts", arrival="ts", speed=1.0)
        )
    _steps(kind, streams).sink("out", sw.callback_sink(forget))
    return Survey(name=name, flow=flow, times_s=times_s, seconds=seconds)


def _bursts_s(rng: np.random.Generator, rate: float, seconds: float) -> Floats:
    """Return when rows come: by Poisson, a burst in the midst of each period."""
    low = (1 - SHARE * HIGH) / (1 - SHARE)
    at_s = np.sort(rng.uniform(0.0, seconds, rng.poisson(HIGH * rate * seconds)))
    phase = at_s % PERIOD_S / PERIOD_S
    is_high = (phase >= 0.4) & (phase < 0.4 + SHARE)
    return np.asarray(at_s[is_high | (rng.random(len(at_s)) < low / HIGH)])


def _table(rng: np.random.Generator, kind: Kind, at_s: Floats, *, keys: int) -> pa.Table:
    count = len(at_s)
    first = np.arange(count) < count / 10
    times, keep = kind.first
    share = np.where(first, kind.keep if keep is None else keep, kind.keep)
    wait_us = NOTHING if kind.wait_us is None else kind.wait_us
    return pa.table(
        {
            "ts": pa.array((at_s * 1e9).astype("int64"), pa.timestamp("ns")),
            "k": rng.integers(0, keys, count),
            "n": np.arange(count),
            "keep": (rng.random(count) < share).astype(np.int64),
            "work_us": kind.work_us(rng, count) * np.where(first, times, 1.0),
            "wait_us": wait_us(rng, count),
        }
    )


def _steps(kind: Kind, streams: list[sw.Stream]) -> sw.Stream:
    rows = streams[0]
    if kind.shape == "join":
        other = streams[1].select("k", "n")
        rows = rows.join(other, on="k", within=f"{WITHIN_S}s", name="join")
    elif kind.shape == "merge":
        rows = rows.merge(streams[1], name="merge")
    elif kind.shape == "dedupe":
        rows = rows.dedupe(on="n", within="1s", name="dedupe")
    if kind.keep < 1:
        rows = rows.filter(sw.col("keep") == 1, name="keep")
    types = {"k": "int64", "n": "int64"}
    if kind.model:
        rows = rows.map_batches(model, schema=types, name="model")
    else:
        rows = rows.map_rows(spend, schema=types, name="spend")
    if kind.shape == "window":
        rows = rows.aggregate(rows=sw.count(), by="k", window=sw.tumbling("500ms"), name="window")
    return rows


def spend(row: Mapping[str, Any]) -> dict[str, Any]:
    """Take as long for a row as it says: of a core, and asleep."""
    burn(row["work_us"])
    if row["wait_us"] > 0:
        time.sleep(row["wait_us"] * 1e-6)
    return {"k": row["k"], "n": row["n"]}


def model(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Take so long for a batch, and so long for each row of it."""
    burn(MODEL_US + float(np.sum(columns["work_us"])))
    return {"k": columns["k"], "n": columns["n"]}


def burn(us: float) -> None:
    """Use a core for so long."""
    until_ns = time.thread_time_ns() + us * 1_000
    while time.thread_time_ns() < until_ns:
        sum(range(200))


def forget(batch: object) -> None:
    """Take results, and do nothing with them."""
