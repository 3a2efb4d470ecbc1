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

import pyarrow as pa
import pyarrow.compute as pc

import slackwater as sw
from benchmarks.frame import Claim, Options, Result
from benchmarks.patterns.bound_picture import Drawn, draw
from benchmarks.patterns.endured import Ran, ran
from benchmarks.patterns.forms import (
    AT_ONCE,
    SEEDS,
    Query,
    Times,
    add_forms,
    add_stated,
    own_queries,
    times_of,
)
from benchmarks.patterns.queries import Asked, query_1_of_all, query_2, query_3, query_4
from benchmarks.side_by_side import side_by_side
from slackwater.runtime.shedding import Espice

TRAINING_S, SURGE_S = 150, 300
QUICK_S = (40, 60)
OVER = 2.0
ROWS, QUICK_ROWS = 45_000, 6_000
"""Of the options' quotes: every event is in each of several windows, and each pair costs time."""
SIZE = 500
"""Events of a window of these."""
EXACT = ("Q3", "Q4")
SHARED = Times(60, 1260)
SHARED_ROWS = 105_000
"""Where windows share their work: at each of four loads, with five seeds."""
LONG = Times(60, 4860)
"""Long enough for a recall to be known to five points."""
SHARED_SIZE_4 = 1_000
"""Q4 has few matches in shorter windows."""
SHEDDERS: dict[str, Callable[..., Espice]] = {
    "eSPICE": sw.shedding.espice,
    "BL": sw.shedding.baseline_shedding,
    "random": sw.shedding.random_shedding,
}


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
    at_once = AT_ONCE if options.quick else 1
    seed = options.seed
    queries = [
        _timed(query_1_of_all(rate_hz=1 if options.quick else 4), None, span_s),
        _timed(query_2(seed, count=10, size=SIZE), rows, span_s, at_once),
        _timed(query_3(seed, size=SIZE), rows, span_s, at_once),
        _timed(query_4(seed, size=SIZE), rows, span_s, at_once),
    ]
    tasks = [partial(_outcome, one, training_s, span_s, seed) for one in queries]
    result = Result(
        f"simulated: {training_s} s of training, then {surge_s} s of {OVER:g} times what can be "
        "done; bound: half of the mean latency without shedding; windows that begin after "
        f"shedding did. By default: {SHARED_ROWS:,} rows, {SHARED.training_s} s and "
        f"{SHARED.span_s - SHARED.training_s} s"
        + (", of two queries at +70 %, one seed" if options.quick else ""),
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
    add_forms(result, partial(_shared, quick=options.quick), times=SHARED, quick=options.quick)
    if not options.quick:
        rows = round(LONG.span_s * SHARED_ROWS / SHARED.span_s)
        add_stated(result, lambda one: own_queries(one, rows, LONG.span_s), times=LONG)
    path = draw([_drawn(found) for found in every], surge_s=training_s)
    result.notes.append(f"picture: {path}")
    return result


def _shared(seed: int, *, quick: bool) -> list[Query]:
    """Return the queries that are tried by default; of a sample two of them."""
    span_s, rows = SHARED.span_s, SHARED_ROWS
    own = own_queries(seed, rows, span_s)
    if quick:
        return own

    # Recordings know no seed: each seed begins elsewhere in them, so that stretches fall elsewhere.
    def timed(asked: Asked, size: int) -> Query:
        first = len(asked.rows) * (seed - 1) // SEEDS
        times = -(-(rows + first) // len(asked.rows))
        every = pa.concat_tables([asked.rows] * times).slice(first).combine_chunks()
        again = Asked(asked.name, every, asked.build)
        return Query(_timed(again, rows, span_s, AT_ONCE), size * span_s / rows)

    # Of 660 s; each seed has another part.
    part_s = 75.0 * (seed - 1)
    return [
        Query(_timed(query_1_of_all(rate_hz=1), None, span_s, from_s=part_s), 15.0),
        timed(query_2(seed, count=10, size=SIZE), SIZE),
        timed(query_3(seed, size=SIZE), SIZE),
        timed(query_4(seed, size=SHARED_SIZE_4), SHARED_SIZE_4),
        *own,
    ]


def _drawn(found: Outcome) -> Drawn:
    courses = {"unshed": found.unshed.course}
    courses |= {name: ran.course for name, ran in found.shed.items()}
    recalls = {name: (found.recall(ran), ran.stated) for name, ran in found.shed.items()}
    return Drawn(found.asked, found.bound_s, courses, recalls)


def _timed(
    asked: Asked, rows: int | None, span_s: float, at_once: int = 1, *, from_s: float = 0.0
) -> Asked:
    """Return a query over rows of so long a time; None: theirs as they are, from then on."""
    table = asked.rows
    if rows is None:
        times = table["time"].to_numpy()
        seconds = (times - times[0]) / 1e9
        kept = table.filter(pa.array((seconds >= from_s) & (seconds < from_s + span_s)))
        times = kept["time"].to_numpy() - times[0]
    else:
        kept = table.slice(0, rows)
        times = times_of(len(kept), span_s, at_once)
    return Asked(asked.name, kept.set_column(0, "time", pa.array(times)), asked.build)


def _outcome(asked: Asked, training_s: float, span_s: float, seed: int) -> Outcome:
    leisure = sw.shedding.espice("1h", drops="pairs")

    def one(of: Asked, shed: Espice, pair_ns: float) -> Ran:
        return ran(of, shed, pair_ns, training_s=training_s, over=OVER, seed=seed)

    truth = one(asked, leisure, 1.0)
    # What is twice what can be done is the surge, not the mean of both.
    calm = asked.rows.filter(pc.less(asked.rows["time"], int(training_s * 1e9)))
    before = one(Asked(asked.name, calm, asked.build), leisure, 1.0)
    pairs = truth.counts.pairs - before.counts.pairs
    pair_ns = OVER * (span_s - training_s) * 1e9 / pairs
    unshed = one(asked, sw.shedding.espice("1000h", drops="pairs"), pair_ns)
    bound_s = unshed.mean_s / 2
    bound = f"{round(bound_s * 1000)}ms"
    shed = {
        name: one(asked, make(bound, seed=seed, drops="pairs"), pair_ns)
        for name, make in SHEDDERS.items()
    }
    each = pairs / max(asked.rows.num_rows - calm.num_rows, 1)
    return Outcome(asked.name, each, truth, unshed, bound_s, shed)


def _tell(result: Result, found: Outcome, *, is_whole: bool) -> None:
    for name, one in found.shed.items():
        told: dict[str, Any] = {"bound_s": found.bound_s, "worst_s": one.worst_s}
        first = [
            *(found.asked, f"{found.pairs:.1f}"),
            f"{found.unshed.mean_s:.1f}, {found.unshed.worst_s:.1f}",
            f"{found.bound_s:.1f}",
        ]
        share = 100 * one.counts.dropped / max(one.counts.pairs, 1)
        row: list[object] = [*first, name, f"{one.worst_s:.2f}", f"{share:.0f}"]
        if one.counts.began_ns is None:
            result.rows.append([*row, "", "", "", "nothing was shed"])
            result.claims.append(Claim(f"{found.asked}, {name}: shedding began", 0, ">=", 1))
            continue
        every, kept = found.since(one)
        recall = found.recall(one)
        false = len(kept - every) / max(len(every), 1)
        said = "nothing" if one.stated is None else f"{100 * one.stated:.1f}"
        row += [len(every), "–" if recall is None else f"{100 * recall:.1f}", f"{100 * false:.1f}"]
        result.rows.append([*row, f"{said}, of {one.counts.judged_matches}"])
        told |= {"recall": recall, "false": false, "stated": one.stated}
        result.figures[f"{found.asked}, {name}"] = told
        if name == "eSPICE":
            _claim(result, found, one, recall, is_whole=is_whole)


def _claim(
    result: Result, found: Outcome, one: Ran, recall: float | None, *, is_whole: bool
) -> None:
    """Add what must hold; of a sample there are too few matches to say more than of latency."""
    claims, asked = result.claims, found.asked
    worst = one.worst_s / found.bound_s
    claims.append(Claim(f"{asked}: slowest result by the bound", worst, "<=", 1))
    if not is_whole:
        return
    if asked in EXACT:
        claims.append(Claim(f"{asked}: recall", recall or 0.0, ">=", 0.95))
    if one.stated is None:
        return
    off = abs(one.stated - (recall or 0.0))
    claims.append(Claim(f"{asked}: recall that is stated, off by", off, "<=", 0.05))
