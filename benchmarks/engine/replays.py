"""Two feeds that were recorded together: each from its own start, and with one beginning.

```
recorded       one    |  |  |  |  |  |  |  |
               other         |  |  |  |  |  |     its first row 600 ms after the other's
own starts     other  |  |  |  |  |  |            600 ms ahead of the rows of its time
one beginning  other         |  |  |  |  |  |     rows arrive as they did
```

Each experiment runs twice over the same rows: *before*, with `start="own"` at each source, and
*after*, without it. Rows arrive in order, so nothing may be late, pairs are those of NumPy's query,
and a gate goes on without a source that has not begun.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.frame import Claim, Options, Result, check
from slackwater.runtime.measure.ledger import imbalances

SECONDS, QUICK_SECONDS = 60, 6
RATE, KEYS = 100, 8
LATER_MS, IDLE_LATER_MS = 600, 3_000
DEADLINE, IDLE, WINDOW, WITHIN_MS = "300ms", "1s", "100ms", 20
MS_NS = 1_000_000
LATE_ON_RAY = 0.05
"""Share of rows that a busy machine may make late without a slack: their feeds are 5 ms apart."""

Feeds = tuple[pa.Table, pa.Table]


@dataclass(frozen=True)
class Experiment:
    """Flow over both feeds, and what is measured of its job.

    Attributes:
        what: name of the figure.
        flow: of feeds and a `start`.
        measured: a figure of the job.
        expected: the figure if rows arrive as they did; None if NumPy's query counts the pairs.
        later_ms: first row of the second feed.
    """

    what: str
    flow: Callable[[Feeds, Any], sw.Dataflow]
    measured: Callable[[Any], int]
    expected: int | None = 0
    later_ms: int = LATER_MS

    def figure(self, feeds: Feeds) -> int:
        """Return the figure if rows arrive as they did."""
        return _pairs_of(feeds) if self.expected is None else self.expected


def run(options: Options) -> Result:
    """Run all experiments in the simulator, and the windows on Ray."""
    seconds = QUICK_SECONDS if options.quick else SECONDS
    result = Result(
        f"two feeds of {RATE} rows a second, {seconds} s, the second {LATER_MS} ms later (idle: "
        f"{IDLE_LATER_MS} ms)",
        ["experiment", "measured", "rows", "own starts", "one beginning", "if as they came"],
    )
    for name, one in EXPERIMENTS.items():
        feeds = feeds_of(options.seed, seconds, later_ms=one.later_ms)
        with sw.Simulation(1) as host:
            _, after = _compared(result, name, one, feeds, host)
        expected = one.figure(feeds)
        result.claims.append(Claim(f"{name}: off by", abs(after - expected), "<=", expected // 100))
    one = EXPERIMENTS["windows"]
    feeds = feeds_of(options.seed, seconds, later_ms=one.later_ms)
    with sw.Cluster.local(nodes=1) as host:
        _, after = _compared(result, "windows, on Ray", one, feeds, host)
    share = after / sum(map(len, feeds))
    result.claims.append(Claim("windows, on Ray: share of rows late", share, "<=", LATE_ON_RAY))
    return result


def feeds_of(seed: int, seconds: int, *, later_ms: int) -> Feeds:
    """Return the rows of both feeds, of eight keys; they arrive as they happen."""
    rng = np.random.default_rng(seed)
    at_ms = np.arange(0, 1_000 * seconds, 1_000 // RATE)
    first, second = (
        _feed(at_ms[at_ms >= from_ms] * MS_NS + offset_ns, rng)
        for from_ms, offset_ns in ((0, 0), (later_ms, 5 * MS_NS))
    )
    return first, second


def _feed(times_ns: np.ndarray[Any, Any], rng: np.random.Generator) -> pa.Table:
    return pa.table({"t": times_ns, "k": rng.integers(0, KEYS, len(times_ns))})


def _sources(flow: sw.Dataflow, feeds: Feeds, start: Any, **options: Any) -> list[sw.Stream]:
    return [
        flow.source(name, sw.table(rows), event_time="t", speed=1.0, start=start, **options)
        for name, rows in zip(("one", "other"), feeds, strict=True)
    ]


def _windows(feeds: Feeds, start: Any) -> sw.Dataflow:
    return _counted(sw.Dataflow("windows", slack="0s"), feeds, start)


def _in_time(feeds: Feeds, start: Any) -> sw.Dataflow:
    return _counted(sw.Dataflow("in-time", deadline=DEADLINE), feeds, start)


def _counted(flow: sw.Dataflow, feeds: Feeds, start: Any) -> sw.Dataflow:
    both = flow.merge(*_sources(flow, feeds, start), name="both")
    counts = both.aggregate(window=sw.tumbling(WINDOW), by="k", n=sw.count(), name="counts")
    counts.sink("out", sw.collect_sink())
    return flow


def _pairs(feeds: Feeds, start: Any) -> sw.Dataflow:
    flow = sw.Dataflow("pairs", slack="0s", keep="slack")
    one, other = _sources(flow, feeds, start)
    pairs = one.join(other, on="k", within=f"{WITHIN_MS}ms", name="pairs")
    pairs.sink("out", sw.collect_sink())
    return flow


def _silent(feeds: Feeds, start: Any) -> sw.Dataflow:
    flow = sw.Dataflow("silent")
    both = flow.merge(*_sources(flow, feeds, start, idle=IDLE), name="both")
    both.sink("out", sw.collect_sink())
    return flow


def _late(job: Any) -> int:
    return sum(stage.late for stage in job.report().stages)


def _results(job: Any) -> int:
    return int(job.result("out").num_rows)


def _marks(job: Any) -> int:
    return sum(sum(stage.idle_marks.values()) for stage in job.report().stages)


def _pairs_of(feeds: Feeds) -> int:
    """Return the pairs of equal keys that are near in time, by NumPy."""
    (left, keys), (right, other) = ([feed[n].to_numpy() for n in ("t", "k")] for feed in feeds)
    near = np.abs(left[:, None] - right[None, :]) <= WITHIN_MS * MS_NS
    return int((near & (keys[:, None] == other[None, :])).sum())


EXPERIMENTS = {
    "windows": Experiment("late rows, slack 0s", _windows, _late),
    "deadline": Experiment(f"late rows, deadline {DEADLINE}", _in_time, _late),
    "pairs": Experiment("pairs, slack 0s, keep='slack'", _pairs, _results, expected=None),
    "silent": Experiment(
        f"times that idle={IDLE} acts", _silent, _marks, expected=1, later_ms=IDLE_LATER_MS
    ),
}


def _compared(result: Result, name: str, one: Experiment, feeds: Feeds, host: Any) -> Sequence[int]:
    """Return the figure of an experiment before and after, and note both."""
    found = [_measured(one, feeds, start, host) for start in ("own", None)]
    rows = sum(map(len, feeds))
    result.rows.append([name, one.what, f"{rows:,}", *found, one.figure(feeds)])
    result.figures[name] = {"own_starts": found[0], "one_beginning": found[1], "rows": rows}
    return found


def _measured(one: Experiment, feeds: Feeds, start: Any, host: Any) -> int:
    job = host.submit(one.flow(feeds, start))
    try:
        job.wait()
        check(imbalances(job.report()) == [], "the ledger does not balance")
        return one.measured(job)
    finally:
        job.close()
