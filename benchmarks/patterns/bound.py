"""Twice as much as can be done, for five minutes: the bound, and what keeping it costs.

In the simulator, in virtual time: an event takes so long in each of its windows, as for a matcher
that handles each window by itself, and from the end of the training on so long that it is twice
what can be done. Q1 to Q4 of [espice] on real data, as a user writes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.frame import Claim, Options, Result
from benchmarks.patterns.queries import Asked, query_1, query_2, query_3, query_4
from benchmarks.side_by_side import side_by_side
from runtime.measure.report import JobReport
from runtime.shedding import Espice
from runtime.shedding.counts import SheddingCounts

TRAINING_S, SURGE_S = 150, 300
QUICK_S = (40, 60)
OVER = 2.0
CALM = 0.5
"""Of what can be done, while it is trained."""
ROWS, QUICK_ROWS = 45_000, 6_000
"""Of the options' quotes: every event is in each of several windows, and each pair costs time."""
SIZE = 500
"""Events of a window of these."""
EXACT = ("Q3", "Q4")
SHEDDERS: dict[str, Callable[..., Espice]] = {
    "eSPICE": sw.espice,
    "BL": sw.baseline_shedding,
    "random": sw.random_shedding,
}


@dataclass(frozen=True)
class Ran:
    """A run of a query.

    Attributes:
        matches: {(start of the window in ns, its events)}.
        worst_s, mean_s: latency of results of the surge.
        counts: of shedding.
    """

    matches: frozenset[tuple[int, str]]
    worst_s: float
    mean_s: float
    counts: SheddingCounts


@dataclass(frozen=True)
class Outcome:
    """A query under overload, by what was done about it.

    Attributes:
        asked: the query.
        pairs: of events and windows, for each event.
        truth: nothing was too much.
        unshed: too much, and nothing dropped.
        bound_s: half of what that reached in the mean.
        shed: by each shedder.
    """

    asked: str
    pairs: float
    truth: Ran
    unshed: Ran
    bound_s: float
    shed: dict[str, Ran]


def run(options: Options) -> Result:
    """Run each query at leisure, overloaded, and overloaded with each shedder."""
    training_s, surge_s = QUICK_S if options.quick else (TRAINING_S, SURGE_S)
    rows = QUICK_ROWS if options.quick else ROWS
    span_s = training_s + surge_s
    seed = options.seed
    queries = [
        _timed(query_1(rate_hz=4 if options.quick else 20), None, span_s),
        _timed(query_2(seed, count=10, size=SIZE), rows, span_s),
        _timed(query_3(seed, size=SIZE), rows, span_s),
        _timed(query_4(seed, size=SIZE), rows, span_s),
    ]
    tasks = [partial(_outcome, one, training_s, span_s, seed) for one in queries]
    result = Result(
        f"simulated: {training_s} s of training, then {surge_s} s of {OVER:g} times what can be "
        "done; bound: half of the mean latency without shedding; windows that begin after "
        "shedding did",
        [
            "query",
            "pairs an event",
            "unshed: mean, worst, s",
            "bound, s",
            "shed by",
            "worst, s",
            "dropped, %",
            "matches",
            "recall, %",
            "false, %",
            "it says",
        ],
    )
    for found in side_by_side(tasks, what="shed-bound"):
        _tell(result, found, is_whole=not options.quick)
    return result


def _timed(asked: Asked, rows: int | None, span_s: float) -> Asked:
    """Return a query over rows of so long a time; None: theirs as they are."""
    table = asked.rows
    if rows is None:
        times = table["time"].to_numpy()
        kept = table.filter(pa.array(times - times[0] < span_s * 1e9))
        times = kept["time"].to_numpy() - times[0]
    else:
        kept = table.slice(0, rows)
        times = np.arange(len(kept)) * round(span_s * 1e9 / len(kept))
    return Asked(asked.name, kept.set_column(0, "time", pa.array(times)), asked.build)


def _outcome(asked: Asked, training_s: float, span_s: float, seed: int) -> Outcome:
    truth = _ran(asked, sw.espice("1h", drops="pairs"), 1.0, training_s, seed)
    pairs = truth.counts.pairs / asked.rows.num_rows
    every_ns = span_s * 1e9 / asked.rows.num_rows
    pair_ns = OVER * every_ns / pairs
    unshed = _ran(asked, sw.espice("1000h", drops="pairs"), pair_ns, training_s, seed)
    bound_s = unshed.mean_s / 2
    bound = f"{round(bound_s * 1000)}ms"
    shed = {
        name: _ran(asked, make(bound, seed=seed, drops="pairs"), pair_ns, training_s, seed)
        for name, make in SHEDDERS.items()
    }
    return Outcome(asked.name, pairs, truth, unshed, bound_s, shed)


def _ran(asked: Asked, shed: Espice, pair_ns: float, training_s: float, seed: int) -> Ran:
    flow = sw.Dataflow(asked.name)
    rows = flow.source("events", sw.table(asked.rows), event_time="time", time_unit="ns", speed=1.0)
    found = asked.build(rows, shed)
    found.sink("out", sw.collect_sink())
    calm = CALM / OVER
    surge_ns = training_s * 1e9

    def load(now_ns: int) -> float:
        return calm if now_ns < surge_ns else 1.0

    cost = sw.CostModel(
        per_row_ns=0, per_slice_ns=0, per_comparison_ns=pair_ns, load={found.name: load}
    )
    job = sw.Simulation(nodes=1, seed=seed, cost=cost).submit(flow)
    report = job.wait()
    assert report.ledger.is_balanced, report.ledger
    table: pa.Table = job.result("out")
    starts = table["window_start"].cast(pa.int64()).to_pylist()
    matches = frozenset(zip(starts, table["events"].to_pylist(), strict=True))
    worst_s, mean_s = _latency(report, training_s)
    (counts,) = [one.shedding for one in report.stages if one.shedding is not None]
    return Ran(matches, worst_s, mean_s, counts)


def _latency(report: JobReport, from_s: float) -> tuple[float, float]:
    """Return the worst and mean latency of results whose stimulus came from then on."""
    (sink,) = report.sinks
    bins = [one for one in sink.series.bins() if one.start_ns >= from_s * 1e9]
    rows = sum(one.count for one in bins)
    mean_ns = sum(one.count * one.p50_ns for one in bins) / max(rows, 1)
    return max(one.max_ns for one in bins) / 1e9, mean_ns / 1e9


def _tell(result: Result, found: Outcome, *, is_whole: bool) -> None:
    for name, ran in found.shed.items():
        began_ns = ran.counts.began_ns
        told: dict[str, Any] = {"bound_s": found.bound_s, "worst_s": ran.worst_s}
        first = [
            *(found.asked, f"{found.pairs:.1f}"),
            f"{found.unshed.mean_s:.1f}, {found.unshed.worst_s:.1f}",
            f"{found.bound_s:.1f}",
        ]
        share = 100 * ran.counts.dropped / max(ran.counts.pairs, 1)
        row: list[object] = [*first, name, f"{ran.worst_s:.2f}", f"{share:.0f}"]
        if began_ns is None:
            result.rows.append([*row, "", "", "", "nothing was shed"])
            result.claims.append(Claim(f"{found.asked}, {name}: shedding began", 0, ">=", 1))
            continue
        every, kept = (
            {one for one in some if one[0] > began_ns}
            for some in (found.truth.matches, ran.matches)
        )
        recall = len(every & kept) / max(len(every), 1)
        false = len(kept - every) / max(len(every), 1)
        lost = ran.counts.lost_share
        said = "nothing" if lost is None else f"{100 * (1 - lost):.1f}"
        at_least = "" if ran.counts.is_judged else "at least "
        row += [len(every), f"{100 * recall:.1f}", f"{100 * false:.1f}"]
        result.rows.append([*row, f"{at_least}{said}, of {ran.counts.judged_matches}"])
        told |= {"recall": recall, "false": false, "stated": None if lost is None else 1 - lost}
        result.figures[f"{found.asked}, {name}"] = told
        if name == "eSPICE":
            _claim(result, found, ran, recall, is_whole=is_whole)


def _claim(result: Result, found: Outcome, ran: Ran, recall: float, *, is_whole: bool) -> None:
    """Add what must hold; of a sample there are too few matches to say more than of latency."""
    claims, asked = result.claims, found.asked
    worst = ran.worst_s / found.bound_s
    claims.append(Claim(f"{asked}: slowest result by the bound", worst, "<=", 1))
    if not is_whole:
        return
    if asked in EXACT:
        claims.append(Claim(f"{asked}: recall", recall, ">=", 0.95))
    lost = ran.counts.lost_share
    off = 1.0 if lost is None else abs(1 - lost - recall)
    claims.append(Claim(f"{asked}: recall that is stated, off by", off, "<=", 0.05))
