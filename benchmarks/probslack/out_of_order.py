"""Shares of missed windows while delays are far longer than windows, or grow.

Each kind of stream has events of one type, most of them out of order. The same delays in order, and
kinds whose delays are short and stay so, are beside them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.frame import Claim, Options, Result
from benchmarks.probslack.streams import MS, Stream
from benchmarks.probslack.trial import Outcome, range_of, seeds_of, tried
from benchmarks.side_by_side import side_by_side
from slackwater.runtime.closing import WindowEnds
from slackwater.runtime.closing.policy import FloatArray
from slackwater.runtime.closing.probslack import ProbSlack

MISS, SEEDS = 0.1, 20
S = 1_000 * MS
TUMBLING, SLIDING = WindowEnds(S, S), WindowEnds(2 * S, 40 * MS)
GROWN = 21.0
FEWEST = 200
"""Windows of a run, at least, whose share says something. With fewer nearly none have closed."""
Delays = Callable[[np.random.Generator, int], FloatArray]
"""(generator, how many) -> ns."""


class Kind(NamedTuple):
    """Kind of stream, and the windows over it.

    Attributes:
        gap_ns: mean time from one event to the next, exponential.
        delays: delays at the beginning.
        events: number of events.
        windows: the windows.
        factors: {share of the events: factor of delays}, straight between; one that is named twice
            is a jump.
        in_order: whether events wait for those before them.
    """

    gap_ns: int
    delays: Delays
    events: int
    windows: WindowEnds
    factors: tuple[tuple[float, float], ...] = ((0.0, 1.0),)
    in_order: bool = False


def exponential(mean_ns: float) -> Delays:
    """Return exponential delays."""
    return lambda rng, count: rng.exponential(mean_ns, count)


def lognormal(median_ns: float, sigma: float) -> Delays:
    """Return delays of which a few are many times the median."""
    return lambda rng, count: rng.lognormal(np.log(median_ns), sigma, count)


RISING, JUMP = ((0.0, 1.0), (1.0, GROWN)), ((0.5, 1.0), (0.5, GROWN))
REGIMES = tuple((tenth / 10 + at / 10, 1 + 9 * (tenth % 2)) for tenth in range(10) for at in (0, 1))
KINDS = {
    "100 s, 2/s": Kind(500 * MS, exponential(100 * S), 20_000, TUMBLING),
    "100 s, 10/s": Kind(100 * MS, exponential(100 * S), 40_000, TUMBLING),
    "100 s, 50/s": Kind(20 * MS, exponential(100 * S), 100_000, TUMBLING),
    "100 s, 1,000/s": Kind(1 * MS, exponential(100 * S), 400_000, TUMBLING),
    "2 h, 10/s": Kind(100 * MS, exponential(7_200 * S), 40_000, TUMBLING),
    "10 ms, grow": Kind(20 * MS, exponential(10 * MS), 100_000, TUMBLING, RISING),
    "100 ms, grow, sliding": Kind(20 * MS, exponential(100 * MS), 100_000, SLIDING, RISING),
    "1 s, grow": Kind(100 * MS, exponential(S), 40_000, TUMBLING, RISING),
    "1 s, jump": Kind(100 * MS, exponential(S), 40_000, TUMBLING, JUMP),
    "10 s, grow": Kind(100 * MS, exponential(10 * S), 40_000, TUMBLING, RISING),
    "1 s, regimes": Kind(100 * MS, exponential(S), 40_000, TUMBLING, REGIMES),
    "30 ms, sliding": Kind(20 * MS, exponential(30 * MS), 100_000, SLIDING),
    "lognormal σ 1.2, sliding": Kind(20 * MS, lognormal(10 * MS, 1.2), 100_000, SLIDING),
    "lognormal σ 2": Kind(20 * MS, lognormal(10 * MS, 2.0), 100_000, TUMBLING),
    "1 s": Kind(100 * MS, exponential(S), 40_000, TUMBLING),
    "10 s": Kind(100 * MS, exponential(10 * S), 40_000, TUMBLING),
    "in order, 100 s": Kind(100 * MS, exponential(100 * S), 40_000, TUMBLING, in_order=True),
    "in order, 1 s, grow": Kind(100 * MS, exponential(S), 40_000, TUMBLING, RISING, in_order=True),
    "in order, 30 ms": Kind(20 * MS, exponential(30 * MS), 100_000, SLIDING, in_order=True),
}
"""{name: kind}; delays by their mean."""


def stream_of(kind: Kind, seed: int) -> Stream:
    """Return the stream of a kind."""
    rng = np.random.default_rng(seed)
    event_time_ns = np.cumsum(rng.exponential(kind.gap_ns, kind.events)).astype(np.int64)
    share, factor = np.array(kind.factors).T
    factors = np.interp(np.linspace(0, 1, kind.events), share, factor)
    delays_ns = (kind.delays(rng, kind.events) * factors).astype(np.int64)
    arrival_ns = event_time_ns + delays_ns
    if kind.in_order:
        arrival_ns = np.maximum.accumulate(arrival_ns)
    order = np.argsort(arrival_ns, kind="stable")
    types = np.zeros(kind.events, dtype=np.int64)
    return Stream(types, event_time_ns[order], arrival_ns[order])


def run(options: Options) -> Result:
    """Try each kind."""
    seeds = seeds_of(options, most=SEEDS)
    tasks = [partial(_one, name, seed) for name in KINDS for seed in seeds]
    runs = side_by_side(tasks, what="probslack-disorder")
    result = Result(
        f"δ {MISS}, {len(seeds)} seeds; mean (least–most) over seeds; highest: at any time from "
        "the hundredth window on, of all seeds",
        ["delays", "windows", "MER, %", "highest, %", "slack, s"],
    )
    shares, highest = {}, {}
    for number, name in enumerate(KINDS):
        of = runs[number * len(seeds) : (number + 1) * len(seeds)]
        told = [one for one in of if one.windows >= FEWEST]
        closed = range_of(one.windows for one in of)
        if not told:
            result.rows.append([name, f"{closed.most:,.0f} at most", "", "", ""])
            continue
        mer, slack = range_of(100 * one.mer for one in told), range_of(s.slack_ms for s in told)
        shares[name] = mer.most / 100
        highest[name] = max(one.worst_mer for one in told)
        result.rows.append(
            [name, f"{closed.mean:,.0f}", mer, f"{100 * highest[name]:.1f}", slack.mean / 1e3]
        )
        result.figures[name] = {
            "mer_percent": mer.to_json(),
            "highest_percent": 100 * highest[name],
            "slack_ms": slack.to_json(),
        }
    worst = max(shares, key=lambda name: shares[name])
    result.claims.append(Claim(f"MER of each kind, most ({worst})", shares[worst], "<=", MISS))
    worst = max(highest, key=lambda name: highest[name])
    result.notes.append(f"highest at any time: {highest[worst]:.3f} ({worst})")
    return result


def _one(name: str, seed: int) -> Outcome:
    kind = KINDS[name]
    return tried(ProbSlack(MISS), stream_of(kind, seed), kind.windows)
