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
import pyarrow.compute as pc

import slackwater as sw
from benchmarks.frame import Claim, Options, Result
from benchmarks.patterns.bound_picture import Drawn, draw
from benchmarks.patterns.queries import Asked, query_1_of_all, query_2, query_3, query_4
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
        course: (second, worst latency in s) of results, by when their stimulus came.
    """

    matches: frozenset[tuple[int, str]]
    worst_s: float
    mean_s: float
    counts: SheddingCounts
    course: list[tuple[float, float]]

    @property
    def stated(self) -> float | None:
        """The recall that the report states."""
        lost = self.counts.lost_share
        return None if lost is None else 1 - lost

    @property
    def shed_from_ns(self) -> float:
        """Windows that begin after that were opened when shedding had begun.

        Events are as old by then as what leaves is.
        """
        began_s = (self.counts.began_ns or 0) / 1e9
        return 1e9 * next((at_s for at_s, old_s in self.course if at_s + old_s >= began_s), began_s)


@dataclass(frozen=True)
class Outcome:
    """A query under overload, by what was done about it.

    Attributes:
        asked: the query.
        pairs: of events and windows, for each event of the surge.
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

    def since(self, ran: Ran) -> tuple[set[tuple[int, str]], set[tuple[int, str]]]:
        """Return the matches that there are, and that it found, since shedding began."""
        every, kept = (
            {one for one in some if one[0] >= ran.shed_from_ns}
            for some in (self.truth.matches, ran.matches)
        )
        return every, kept

    def recall(self, ran: Ran) -> float | None:
        """Return the share that it found; None: there are none, or nothing was shed."""
        every, kept = self.since(ran)
        return len(every & kept) / len(every) if every and ran.counts.began_ns is not None else None


def run(options: Options) -> Result:
    """Run each query at leisure, overloaded, and overloaded with each shedder."""
    training_s, surge_s = QUICK_S if options.quick else (TRAINING_S, SURGE_S)
    rows = QUICK_ROWS if options.quick else ROWS
    span_s = training_s + surge_s
    seed = options.seed
    queries = [
        _timed(query_1_of_all(rate_hz=1 if options.quick else 4), None, span_s),
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
    every = side_by_side(tasks, what="shed-bound")
    for found in every:
        _tell(result, found, is_whole=not options.quick)
    path = draw([_drawn(found) for found in every], surge_s=training_s)
    result.notes.append(f"picture: {path}")
    return result


def _drawn(found: Outcome) -> Drawn:
    courses = {"unshed": found.unshed.course}
    courses |= {name: ran.course for name, ran in found.shed.items()}
    recalls = {name: (found.recall(ran), ran.stated) for name, ran in found.shed.items()}
    return Drawn(found.asked, found.bound_s, courses, recalls)


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
    leisure = sw.espice("1h", drops="pairs")
    truth = _ran(asked, leisure, 1.0, training_s, seed)
    # What is twice what can be done is the surge, not the mean of both.
    calm = asked.rows.filter(pc.less(asked.rows["time"], int(training_s * 1e9)))
    before = _ran(Asked(asked.name, calm, asked.build), leisure, 1.0, training_s, seed)
    pairs = truth.counts.pairs - before.counts.pairs
    pair_ns = OVER * (span_s - training_s) * 1e9 / pairs
    unshed = _ran(asked, sw.espice("1000h", drops="pairs"), pair_ns, training_s, seed)
    bound_s = unshed.mean_s / 2
    bound = f"{round(bound_s * 1000)}ms"
    shed = {
        name: _ran(asked, make(bound, seed=seed, drops="pairs"), pair_ns, training_s, seed)
        for name, make in SHEDDERS.items()
    }
    each = pairs / max(asked.rows.num_rows - calm.num_rows, 1)
    return Outcome(asked.name, each, truth, unshed, bound_s, shed)


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
    course = [(one.start_ns / 1e9, one.max_ns / 1e9) for one in report.sinks[0].series.bins()]
    return Ran(matches, worst_s, mean_s, counts, course)


def _latency(report: JobReport, from_s: float) -> tuple[float, float]:
    """Return the worst and mean latency of results whose stimulus came from then on."""
    (sink,) = report.sinks
    bins = [one for one in sink.series.bins() if one.start_ns >= from_s * 1e9]
    rows = sum(one.count for one in bins)
    mean_ns = sum(one.count * one.p50_ns for one in bins) / max(rows, 1)
    return max((one.max_ns for one in bins), default=0) / 1e9, mean_ns / 1e9


def _tell(result: Result, found: Outcome, *, is_whole: bool) -> None:
    for name, ran in found.shed.items():
        told: dict[str, Any] = {"bound_s": found.bound_s, "worst_s": ran.worst_s}
        first = [
            *(found.asked, f"{found.pairs:.1f}"),
            f"{found.unshed.mean_s:.1f}, {found.unshed.worst_s:.1f}",
            f"{found.bound_s:.1f}",
        ]
        share = 100 * ran.counts.dropped / max(ran.counts.pairs, 1)
        row: list[object] = [*first, name, f"{ran.worst_s:.2f}", f"{share:.0f}"]
        if ran.counts.began_ns is None:
            result.rows.append([*row, "", "", "", "nothing was shed"])
            result.claims.append(Claim(f"{found.asked}, {name}: shedding began", 0, ">=", 1))
            continue
        every, kept = found.since(ran)
        recall = found.recall(ran)
        false = len(kept - every) / max(len(every), 1)
        said = "nothing" if ran.stated is None else f"{100 * ran.stated:.1f}"
        at_least = "" if ran.counts.is_judged else "at least "
        row += [len(every), "–" if recall is None else f"{100 * recall:.1f}", f"{100 * false:.1f}"]
        result.rows.append([*row, f"{at_least}{said}, of {ran.counts.judged_matches}"])
        told |= {"recall": recall, "false": false, "stated": ran.stated}
        result.figures[f"{found.asked}, {name}"] = told
        if name == "eSPICE":
            _claim(result, found, ran, recall, is_whole=is_whole)


def _claim(
    result: Result, found: Outcome, ran: Ran, recall: float | None, *, is_whole: bool
) -> None:
    """Add what must hold; of a sample there are too few matches to say more than of latency."""
    claims, asked = result.claims, found.asked
    worst = ran.worst_s / found.bound_s
    claims.append(Claim(f"{asked}: slowest result by the bound", worst, "<=", 1))
    if not is_whole:
        return
    if asked in EXACT:
        claims.append(Claim(f"{asked}: recall", recall or 0.0, ">=", 0.95))
    is_known = ran.stated is not None and recall is not None
    off = abs((ran.stated or 0.0) - (recall or 0.0)) if is_known else 1.0
    claims.append(Claim(f"{asked}: recall that is stated, off by", off, "<=", 0.05))
