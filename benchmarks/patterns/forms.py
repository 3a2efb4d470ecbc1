"""Default shedding beside a floor, random and BL, where windows share their work.

In the simulator: an event takes its time once if it fits while a window waits for a match, as in
our operator, and a row that is passed over takes none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import slackwater as sw
from benchmarks.frame import Claim, Result
from benchmarks.patterns.endured import Ran, ran
from benchmarks.patterns.floor import (
    PHASES,
    WINDOWS,
    FloatArray,
    floor_of,
    longest_wait_s,
    mean_recall_at,
)
from benchmarks.patterns.queries import Asked
from benchmarks.patterns.timed import reads_of
from benchmarks.side_by_side import side_by_side
from slackwater.runtime.operators.pattern.shed_pattern import SheddingPattern
from slackwater.runtime.shedding import Espice

OVERS, QUICK_OVERS = (1.2, 1.4, 1.7, 2.0), (1.7,)
TOLERANCE, STATED_WITHIN = 3.0, 0.05
"""Points of recall below the best rival; how far a stated recall may be off."""
DEFAULT = "default"
RIVALS: dict[str, Callable[..., Espice]] = {
    "BL": sw.shedding.baseline_shedding,
    "random": sw.shedding.random_shedding,
}
READ = 64
SEEDS = 5
AT_ONCE = 16
"""Rows that come at the same time: a simulated read has them all, and costs as much as of one."""


@dataclass(frozen=True)
class Times:
    """Seconds at half of what can be done, and seconds in all."""

    training_s: float
    span_s: float


@dataclass(frozen=True)
class Query:
    """A query over rows of some seconds, and how long its windows are."""

    asked: Asked
    window_s: float


@dataclass(frozen=True)
class Tried:
    """Result of a query at a load, with a seed.

    Attributes:
        asked: its name.
        over: so many times what can be done.
        recalls: {form: recall}, the floor's too.
        stated: by the default form; None: nothing.
        judged: matches that this is from.
        there: matches that there are, of windows that begin after shedding did.
        windows: of a stretch of the floor, in the mean of its phases.
        even: recall of stretches as long as the bound allows on average, whatever comes.
        even_worst: their slowest event by the bound.
        worst: the slowest event by the bound.
    """

    asked: str
    over: float
    recalls: dict[str, float]
    stated: float | None
    judged: int
    there: int
    windows: float
    even: float
    even_worst: float
    worst: float


class Stated(NamedTuple):
    """The recall of a run with the default form, and what its report states.

    Attributes:
        asked: name of the query.
        recall: true.
        stated: None: nothing.
        judged: matches that this is from.
    """

    asked: str
    recall: float
    stated: float | None
    judged: int


def add_forms(
    result: Result, make: Callable[[int], Sequence[Query]], *, times: Times, quick: bool
) -> None:
    """Add what each form keeps, at each load, to a result: medians over seeds."""
    seeds = 1 if quick else SEEDS
    overs = QUICK_OVERS if quick else OVERS
    tasks = [
        partial(_tried, query, times, over, seed)
        for seed in range(1, seeds + 1)
        for query in make(seed)
        for over in overs
    ]
    every = side_by_side(tasks, what="shed-bound, by default")
    for name, over in dict.fromkeys((one.asked, one.over) for one in every):
        own = [one for one in every if (one.asked, one.over) == (name, over)]
        recalls = {form: median(one.recalls[form] for one in own) for form in own[0].recalls}
        what = f"{name}, +{100 * (over - 1):.0f} %"
        told = ", ".join(f"{form} {100 * recall:.1f}" for form, recall in recalls.items())
        off = [abs(one.stated - one.recalls[DEFAULT]) for one in own if one.stated is not None]
        said = f"stated {len(off)} times, off by {100 * max(off):.1f}" if off else "nothing stated"
        there = f"{min(one.there for one in own)} matches or more"
        sample = f"{len(own)} seeds" if len(own) > 1 else "one seed"
        length = median(one.windows for one in own)
        result.notes.append(
            f"work shared among windows, {what}, {sample}, {there}: recall, %: {told} (stretches "
            f"of {length:.1f} windows); stretches of {WINDOWS} windows that heed no bound "
            f"{100 * median(one.even for one in own):.1f}, their slowest event "
            f"{median(one.even_worst for one in own):.1f} bounds; {said}"
        )
        result.figures[f"forms: {what}"] = {"each": [asdict(one) for one in own]}
        rivals = max(recall for form, recall in recalls.items() if form != DEFAULT)
        ahead = 100 * (recalls[DEFAULT] - rivals)
        result.claims += [
            Claim(
                f"{what}: recall by default less the best of floor, BL, random",
                ahead,
                ">=",
                -TOLERANCE,
            ),
            Claim(f"{what}: slowest event by the bound", max(one.worst for one in own), "<=", 1),
        ]
        if off:
            result.claims.append(
                Claim(f"{what}: recall that is stated, off by", max(off), "<=", STATED_WITHIN)
            )


def add_stated(result: Result, make: Callable[[int], Sequence[Query]], *, times: Times) -> None:
    """Add what the default form states of long runs at +70 %, beside what is true."""
    tasks = [
        partial(_stated, query, times, QUICK_OVERS[0], seed)
        for seed in range(1, SEEDS + 1)
        for query in make(seed)
    ]
    every = side_by_side(tasks, what="shed-bound, stated recall")
    for name in dict.fromkeys(one.asked for one in every):
        own = [one for one in every if one.asked == name]
        said = ", ".join(
            f"{100 * one.recall:.1f} "
            + ("(none)" if one.stated is None else f"({100 * one.stated:.1f})")
            for one in own
        )
        judged = [one.judged for one in own]
        result.notes.append(
            f"{name}, +{100 * (QUICK_OVERS[0] - 1):.0f} %, {times.span_s:g} s, {len(own)} seeds: "
            f"recall (stated), %: {said}; of {min(judged):,} to {max(judged):,} judged matches"
        )
        off = [abs(one.stated - one.recall) for one in own if one.stated is not None]
        result.claims += [
            Claim(f"{name}, long runs: share that states a recall", len(off) / len(own), ">=", 1),
            Claim(
                f"{name}, long runs: stated recall, off by",
                max(off, default=None),
                "<=",
                STATED_WITHIN,
            ),
        ]


def own_queries(seed: int, rows: int, span_s: float) -> list[Query]:
    """Return a sequence in sliding windows, and one by key with what must not come between."""
    draw = np.random.default_rng(seed)
    times = pa.array(times_of(rows, span_s, AT_ONCE))
    often = draw.choice(6, rows, p=[0.02, 0.04, 0.1, 0.2, 0.3, 0.34])
    first = pa.table({"time": times, "kind": often})
    second = pa.table(
        {"time": times, "key": draw.integers(0, 4, rows), "kind": draw.integers(0, 5, rows)}
    )
    one, two, three, four, bar = (sw.patterns.event(f"e{kind}", of_type=kind) for kind in range(5))

    def sliding(stream: sw.Stream, shed: Espice | None) -> sw.Stream:
        window = sw.sliding("4s", "1s")
        return stream.pattern(
            sw.patterns.seq(one, two, three, four), type="kind", window=window, shed=shed
        )

    def keyed(stream: sw.Stream, shed: Espice | None) -> sw.Stream:
        pattern = sw.patterns.seq(one, sw.patterns.no(bar), two, three)
        window = sw.tumbling("2s")
        return stream.pattern(pattern, by="key", type="kind", window=window, shed=shed)

    return [Query(Asked("sliding", first, sliding), 4.0), Query(Asked("keyed", second, keyed), 2.0)]


def times_of(rows: int, span_s: float, at_once: int = 1) -> npt.NDArray[np.int64]:
    """Return times in ns of rows that are spread evenly, so many at a time."""
    return np.arange(rows) // at_once * at_once * round(span_s * 1e9 / rows)


@dataclass(frozen=True)
class Overloaded:
    """A query at a load, and a bound that stretches of `WINDOWS` windows fill.

    Attributes:
        query: what is run.
        times: when the load begins, and ends.
        over: so many times what can be done.
        seed: of the runs.
        truth: all matches that there are.
        each_ns: what an event takes.
        load_s: shape (seconds,), what the events of each second take.
        bound_s: how long an event may wait.
    """

    query: Query
    times: Times
    over: float
    seed: int
    truth: set[tuple[int, str]]
    each_ns: float
    load_s: FloatArray
    bound_s: float

    @classmethod
    def of(cls, query: Query, times: Times, over: float, seed: int) -> Overloaded:
        """Return the query at that load; what an event takes follows from a run at leisure."""
        truth, work = _at_leisure(query.asked)
        surge = work[round(times.training_s) :]
        each_ns = over * len(surge) * 1e9 / surge.sum()
        bound_s = WINDOWS * query.window_s * (over - 1)
        return cls(query, times, over, seed, truth, each_ns, work * each_ns / 1e9, bound_s)

    def run(self, make: Callable[..., Espice]) -> Ran:
        """Run the query with a shedder."""
        return ran(
            self.query.asked,
            make(f"{round(self.bound_s * 1000)}ms", seed=self.seed),
            self.each_ns,
            training_s=self.times.training_s,
            seed=self.seed,
            over=self.over,
        )

    def counts_from_s(self, default: Ran) -> float:
        """Return when matches begin to count: what is worked on when shedding begins came then."""
        return (default.counts.began_ns or 0) / 1e9 - default.counts.f * self.bound_s

    def recall(self, one: Ran, from_s: float) -> float:
        """Return the share that a run found of the matches in windows that begin from then on."""
        there = self.there(from_s)
        return len(there & one.matches) / max(len(there), 1)

    def there(self, from_s: float) -> set[tuple[int, str]]:
        """Return the matches in windows that begin from then on."""
        return {match for match in self.truth if match[0] >= from_s * 1e9}


def _stated(query: Query, times: Times, over: float, seed: int) -> Stated:
    case = Overloaded.of(query, times, over, seed)
    default = case.run(sw.shedding.espice)
    recall = case.recall(default, case.counts_from_s(default))
    return Stated(query.asked.name, recall, default.stated, default.counts.judged_matches)


def _tried(query: Query, times: Times, over: float, seed: int) -> Tried:
    case = Overloaded.of(query, times, over, seed)
    default = case.run(sw.shedding.espice)
    from_s = case.counts_from_s(default)
    recalls = {DEFAULT: case.recall(default, from_s)}
    recalls |= {name: case.recall(case.run(make), from_s) for name, make in RIVALS.items()}
    floor = floor_of(
        case.truth, case.load_s, from_s=from_s, window_s=query.window_s, bound_s=case.bound_s
    )
    recalls["floor"] = floor.recall
    length_s = WINDOWS * query.window_s
    waits_s = [
        longest_wait_s(case.load_s, 1 / over, from_s, length_s, phase) for phase in range(PHASES)
    ]
    return Tried(
        query.asked.name,
        over,
        recalls,
        stated=default.stated,
        judged=default.counts.judged_matches,
        there=len(case.there(from_s)),
        windows=floor.windows,
        even=mean_recall_at(case.truth, 1 / over, from_s, length_s),
        even_worst=max(waits_s) / case.bound_s,
        worst=max(default.worst_s, default.counts.slowest_ns / 1e9) / case.bound_s,
    )


def _at_leisure(asked: Asked) -> tuple[set[tuple[int, str]], FloatArray]:
    """Return all matches, and how many events are worked on in each second."""
    machine = SheddingPattern(asked.step(sw.shedding.espice("1000h")), most_kept_rows=10**9)
    first = asked.rows["time"][0].as_py()
    seconds = np.zeros(1 + int((asked.rows["time"][-1].as_py() - first) / 1e9))
    found: set[tuple[int, str]] = set()
    for read in reads_of(asked.rows, READ):
        result = machine.work(read, 0)
        made = result.rows
        rows = read.ports[0]
        assert rows is not None
        seconds[int((rows.event_time_ns.item(0) - first) / 1e9)] += result.compared
        if made is not None:
            starts = np.asarray(made.columns["window_start"]).astype(np.int64).tolist()
            found |= set(zip(starts, made.columns["events"].tolist(), strict=True))
    return found, seconds
