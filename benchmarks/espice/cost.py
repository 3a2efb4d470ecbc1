"""[espice] Fig. 10: what deciding costs for each event and window, beside handling it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.espice.options import counted_by_leading, query_2, quotes
from benchmarks.espice.per_window import first_match
from benchmarks.espice.shedders import RATES, espice
from benchmarks.espice.streams import Pairs, Query, Windows
from benchmarks.espice.trial import Group, Part
from benchmarks.frame import Claim, Options, Result, Spread, repeated
from runtime.shedding.shedder import Shedder

SIZES, QUICK_SIZES = (2_000, 3_000, 4_000, 8_000, 16_000), (2_000, 16_000)
CONTRACTS = 500
PAIRS, QUICK_PAIRS = 2_000_000, 400_000
BATCH = 8_192
"""Pairs that are asked after at once."""
REPETITIONS, QUICK_REPETITIONS = 5, 2
BIN_SIZES = (1, 64)
COUNTS = {"n 20": 20, "no match": CONTRACTS + 1}
MOST_NS = 50.0
PERCENT = {2_000: 1.0, 16_000: 5.0}
"""{events of a window: the paper's share of the matcher's time}."""


def run(options: Options) -> Result:
    """Time the decisions, and the matcher that handles each window by itself."""
    times = QUICK_REPETITIONS if options.quick else REPETITIONS
    of = quotes(CONTRACTS, order="a minute", seed=options.seed)
    result = Result(
        f"Q2 in windows of so many events, {CONTRACTS} contracts; decisions on {BATCH:,} pairs at "
        "once, those of an event together; CPU time, one process",
        [
            "ws",
            "rate",
            "bin size",
            "table, KiB",
            "decision, ns a pair",
            "matcher, no match, ns a pair",
            "share, %",
            "matcher, n 20, ns a pair",
            "share, %",
        ],
    )
    for size in QUICK_SIZES if options.quick else SIZES:
        windows = counted_by_leading(of, size)
        several = max(1, (QUICK_PAIRS if options.quick else PAIRS) // size)
        some = windows.of(np.linspace(0, len(windows) - 1, several).astype(np.int64))
        query = query_2(of, COUNTS["n 20"], "first")
        pairs = by_event(some.pairs)
        matcher = {
            name: repeated(times, partial(matching_ns, query_2(of, count, "first"), some))
            for name, count in COUNTS.items()
        }
        group = Group([Part(query, some.of(np.arange(0, len(some), 4)))], [])
        for rate, surge in RATES.items():
            for bin_size in BIN_SIZES:
                shedder = espice(group, options.seed, bin_size=bin_size)
                for part in group.training:
                    shedder.learn(part.finished)
                shedder.aim(surge.amount(size))
                spent = repeated(times, partial(deciding_ns, shedder, query, pairs, size))
                _tell(result, size, rate, bin_size, spent, matcher)
    result.notes.append(
        "the matcher is plain Python: beside a compiled one a decision has a larger share"
    )
    return result


def by_event(pairs: Pairs) -> Pairs:
    """Return pairs in the order of the stream: an event in all its windows, then the next one."""
    order = np.argsort(pairs.events, kind="stable")
    return Pairs(pairs.events[order], pairs.windows[order], pairs.positions[order])


def deciding_ns(shedder: Shedder, query: Query, pairs: Pairs, size: int) -> float:
    """Return the CPU time of a decision, by batches."""
    types = query.types[pairs.events]

    def decide() -> None:
        for begin in range(0, len(types), BATCH):
            part = slice(begin, begin + BATCH)
            shedder.drop(
                types[part],
                pairs.positions[part],
                windows=pairs.windows[part],
                events=pairs.events[part],
                sizes=size,
            )

    return _spent_ns(decide) / len(types)


def matching_ns(query: Query, windows: Windows) -> float:
    """Return the CPU time of the matcher for each event and window, nothing being dropped."""
    ranges = list(zip(windows.starts.tolist(), windows.stops.tolist(), strict=True))

    def match() -> None:
        for start, stop in ranges:
            first_match(query.alternatives, range(start, stop))

    return _spent_ns(match) / int(windows.sizes.sum())


def _spent_ns(work: Callable[[], None]) -> float:
    began = time.process_time_ns()
    work()
    return float(time.process_time_ns() - began)


def _tell(
    result: Result,
    size: int,
    rate: str,
    bin_size: int,
    spent: Spread,
    matcher: dict[str, Spread],
) -> None:
    shares = {name: 100 * spent.median / one.median for name, one in matcher.items()}
    whole, some = matcher["no match"], matcher["n 20"]
    kib = CONTRACTS * round(size / bin_size) / 1024
    result.rows.append(
        [
            size,
            rate,
            bin_size,
            f"{kib:,.0f}",
            spent,
            whole,
            f"{shares['no match']:.1f}",
            some,
            f"{shares['n 20']:.1f}",
        ]
    )
    what = f"ws {size}, {rate}, bin size {bin_size}"
    result.figures[what] = {"decision_ns": spent, "matcher_ns": matcher, "share_percent": shares}
    result.claims.append(Claim(f"{what}: ns of a decision", spent.median, "<=", MOST_NS))
    if size in PERCENT and bin_size == 1:
        result.claims.append(
            Claim(
                f"{what}: share of the matcher's time, no match, %",
                shares["no match"],
                "<=",
                PERCENT[size],
            )
        )
