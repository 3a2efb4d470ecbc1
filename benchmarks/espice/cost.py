"""[espice] Fig. 10: what deciding costs for each event and window, beside handling it.

A decision is timed as the operator makes it: of all events of a read and all windows that have any,
from the codes of their types to whether each pair is dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.espice.options import counted_by_leading, query_2, quotes
from benchmarks.espice.own_matcher import READ, OwnMatcher
from benchmarks.espice.per_window import first_match
from benchmarks.espice.shedders import RATES, espice
from benchmarks.espice.streams import IntArray, Query, Windows
from benchmarks.espice.trial import Group, Part
from benchmarks.frame import Claim, Options, Result, Spread, repeated
from slackwater.runtime.shedding.shedder import Shedder
from slackwater.runtime.shedding.spans import Spans

SIZES, QUICK_SIZES = (2_000, 3_000, 4_000, 8_000, 16_000), (2_000, 16_000)
CONTRACTS = 500
PAIRS, QUICK_PAIRS = 2_000_000, 400_000
ROUNDS = 4
"""Decisions on the same pairs, one after the other: a single one takes too short to be timed."""
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
        f"Q2 in windows of so many events, {CONTRACTS} contracts; reads of {READ:,} events; CPU "
        "time, one process",
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
            "ours, no match, ns a pair",
            "share, %",
            "ours, n 20, ns a pair",
            "share, %",
        ],
    )
    for size in QUICK_SIZES if options.quick else SIZES:
        windows = counted_by_leading(of, size)
        several = max(1, (QUICK_PAIRS if options.quick else PAIRS) // size)
        some = windows.of(np.linspace(0, len(windows) - 1, several).astype(np.int64))
        query = query_2(of, COUNTS["n 20"], "first")
        reads = reads_of(query, some, size)
        matcher = {
            name: repeated(times, partial(matching_ns, query_2(of, count, "first"), some))
            for name, count in COUNTS.items()
        }
        own = {
            name: repeated(times, partial(own_ns, OwnMatcher(of, count, size)))
            for name, count in COUNTS.items()
        }
        group = Group([Part(query, some.of(np.arange(0, len(some), 4)))], [])
        for rate, surge in RATES.items():
            for bin_size in BIN_SIZES:
                shedder = espice(group, options.seed, bin_size=bin_size)
                for part in group.training:
                    shedder.learn(part.finished)
                shedder.aim(surge.amount(size))
                spent = repeated(times, partial(deciding_ns, shedder, reads))
                _tell(result, size, rate, bin_size, spent, matcher, own)
    result.notes.append(
        "the matcher handles each window by itself, as the paper's does, in plain Python; ours is "
        "the operator, whose windows share what they have: of its share nothing is claimed"
    )
    return result


Read = tuple[IntArray, IntArray, Spans]
"""Types and numbers of its events, and the windows that have any."""


def reads_of(query: Query, windows: Windows, size: int) -> list[Read]:
    """Return the stream read by read."""
    found, events = [], len(query.types)
    for begin in range(0, events, READ):
        end = min(begin + READ, events)
        has = np.flatnonzero((windows.starts < end) & (windows.stops > begin))
        firsts, behind = windows.starts[has] - begin, windows.stops[has] - begin
        spans = Spans(
            firsts,
            np.maximum(firsts, 0),
            np.minimum(behind, end - begin),
            np.full(len(has), size),
        )
        if len(has):
            found.append((query.types[begin:end], np.arange(begin, end), spans))
    return found


def deciding_ns(shedder: Shedder, reads: list[Read]) -> float:
    """Return the CPU time of a decision for each event and window."""

    def decide(rounds: int) -> None:
        for _ in range(rounds):
            for types, events, spans in reads:
                shedder.drop_spans(types, spans, events=events)

    decide(1)  # what is made once, after the model is, is not counted to these few reads
    pairs = sum(int(spans.lengths.sum()) for _, _, spans in reads)
    return _spent_ns(partial(decide, ROUNDS)) / (ROUNDS * pairs)


def own_ns(matcher: OwnMatcher) -> float:
    """Return the CPU time of our operator for each event and window, nothing being dropped."""
    operator = matcher.operator()
    return _spent_ns(lambda: matcher.match(operator)) / matcher.pairs


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
    own: dict[str, Spread],
) -> None:
    shares, of_own = (
        {name: 100 * spent.median / one.median for name, one in each.items()}
        for each in (matcher, own)
    )
    kib = CONTRACTS * round(size / bin_size) / 1024
    row: list[object] = [size, rate, bin_size, f"{kib:,.0f}", spent]
    for each, of_each in ((matcher, shares), (own, of_own)):
        for name in ("no match", "n 20"):
            row += [each[name], f"{of_each[name]:.1f}"]
    result.rows.append(row)
    what = f"ws {size}, {rate}, bin size {bin_size}"
    result.figures[what] = {
        "decision_ns": spent,
        "matcher_ns": matcher,
        "share_percent": shares,
        "own_matcher_ns": own,
        "share_of_own_percent": of_own,
    }
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
