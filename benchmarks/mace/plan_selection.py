"""Which of three plans is best, said from a few hundred events: [mace] §IX-A.1, Fig. 9 and 10.

The stock query (`benchmarks/mace/stock_query.py`) over trades that follow each other, from anywhere
in the day, with reviews made up; replayed as they came, on one simulated node. What a row costs
each step is drawn by the seed, the user-defined select two to six times as much as the dearest
other. Statistics are those of the plan as written, of the first events; those of the other plans
are carried over (`runtime/foresight/carried.py`). What a filter costs, and lets go on, is taken
from a run of the same events with the filters far up, if it sees more rows there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.frame import Claim, Options, Result, Spread, check
from benchmarks.mace.judge import Judged, worst_of
from benchmarks.mace.stock_query import (
    PLANS,
    REVIEWS,
    STEPS,
    UDS,
    WITHIN_S,
    arrivals_by,
    drawn_ticks,
    load_of,
    rows_by_plan,
    stock_flow,
    three_plans,
)
from benchmarks.mace.trial import LIMITS, PER_SLICE_NS, Leaving, Measured
from benchmarks.picture import Picture
from benchmarks.side_by_side import side_by_side
from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight import LatencyEstimate, Workload, estimate_latency
from slackwater.runtime.foresight.carried import StepStatistics, carried
from slackwater.runtime.foresight.chosen.plan_choice import price_of
from slackwater.runtime.foresight.curves import JoinCurve
from slackwater.runtime.foresight.query_graph import arrivals_of
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.model import NS_PER_SECOND, Batch, Column
from slackwater.runtime.prepare.prepare import prepare
from slackwater.runtime.rewrite.moves import FlowPlan
from slackwater.runtime.rewrite.search import far_up, search_plans
from slackwater.runtime.simulate import CostModel, LinkModel, Simulation

EVENTS, QUICK_EVENTS = 30_000, 6_000
SEEDS, QUICK_SEEDS = 10, 2
SIZES = (125, 250, 500, 1_000, 2_000, 4_000)
QUICK_SIZES = (500, 2_000)
SAMPLE = 500
WIDTH_S = 1.0
LOAD = 0.7
"""Of the plan with the most work."""
NODE = "node-1"
FOUND = "of the search"
PAPER = "[mace] Fig. 10: 500 events tell the plans apart; the best one has the select in between"


@dataclass(frozen=True, eq=False)
class Case:
    """What a seed draws: trades with reviews, how many reviews are good, what rows cost."""

    table: pa.Table
    good_below: int
    costs_ns: Mapping[str, float]

    def flow(self, table: pa.Table) -> sw.Dataflow:
        """Return the query as written, over these trades."""
        return stock_flow(table, good_below=self.good_below, sink=sw.callback_sink(print))


@dataclass(frozen=True, eq=False)
class Ran:
    """A run: latency, a digest of its results, what the parts of it did."""

    measured: Measured
    digest: str

    @property
    def report(self) -> JobReport:
        """What each stage did."""
        return self.measured.report


def drawn_case(rng: np.random.Generator, events: int) -> Case:
    """Draw a case, scaled to the load of the plan with the most work."""
    table = drawn_ticks(rng, events)
    good_below = round(REVIEWS * float(rng.uniform(0.1, 0.4)))
    weights = {name: float(rng.uniform(0.2, 1.0)) for name in STEPS}
    dear = float(rng.uniform(2.0, 6.0)) * max(weights.values())
    weights |= dict.fromkeys(UDS, dear)
    span_s = table["ts"][-1].as_py() / NS_PER_SECOND
    most_s = max(load_of(rows, weights) for rows in rows_by_plan(table, good_below).values())
    scale = LOAD * span_s / most_s
    return Case(table, good_below, {name: scale * weight for name, weight in weights.items()})


def run_plan(case: Case, plan: FlowPlan, *, table: pa.Table | None = None, seed: int = 0) -> Ran:
    """Run a plan in the simulator, over the case's trades or others."""
    over = case.table if table is None else table
    whole = case.flow(over)
    # The plan's steps, but the source over these trades.
    steps = {**plan.graph.steps, "ticks": whole.steps["ticks"]}
    flow = whole.with_steps(steps.values())
    planned = prepare(flow, [NODE], limits=LIMITS)
    left = Leaving()
    digest = hashlib.sha256()

    def leaves(sink: str, batch: Batch | None, is_end: bool) -> None:
        del sink, is_end
        if batch is not None:
            left.take(batch, going.now_ns)
            for row in zip(*(_plain(column) for column in batch.columns.values()), strict=True):
                digest.update(repr(row).encode())

    going = Simulation(
        planned,
        egress=leaves,
        seed=seed,
        cost=CostModel(per_slice_ns=PER_SLICE_NS, stages=case.costs_ns),
        link=LinkModel(delay_ns=0),
    )
    report = going.run()
    measured = Measured(*left.seconds(), report, planned)
    return Ran(measured, digest.hexdigest())


def _plain(column: Column) -> list[object]:
    found: list[object] = column.tolist() if isinstance(column, np.ndarray) else column.to_pylist()
    return found


@dataclass(frozen=True, eq=False)
class Sampled:
    """What the first events show: statistics of the steps, and what a pair in reach gives."""

    statistics: StepStatistics
    curve: JoinCurve

    def estimate(self, case: Case, plan: FlowPlan, *, width_s: float = WIDTH_S) -> LatencyEstimate:
        """Return what the latency of a plan will be, the arrivals being known."""
        steps = plan.graph.steps
        graph = carried(self.statistics, steps, plan.atoms, curves={"pairs": self.curve})
        arrivals = {arrivals_of("ticks"): arrivals_by(case.table, width_s)}
        work = Workload.of(graph, arrivals, width_s)
        return estimate_latency(graph, work, dict.fromkeys(steps, NODE), {NODE: 1.0})


def sampled(case: Case, written: FlowPlan, count: int, *, seed: int) -> Sampled:
    """Run the first events: through the plan as written, and with its filters far up.

    Raises:
        SettingError: no pair is among them, so nothing is known of what the select costs.
    """
    table = case.table.slice(0, count)
    statistics = _statistics(case, written, table, seed=seed)
    if not statistics.rows_in[UDS[0]]:
        raise SettingError(f"among {count} events there is no pair: take a larger sample")
    up = far_up(written)
    further = _statistics(case, up, table, seed=seed)
    statistics = statistics.with_filters_of(further, up.atoms)
    row_s = statistics.row_s["pairs"]
    curve = JoinCurve(within_s=WITHIN_S, row_s=(row_s, row_s), pair_s=0.0, result=1.0)
    ticks = arrivals_by(table, WIDTH_S)
    each_side = ticks * statistics.rows_in["pairs"] / 2 / ticks.sum()
    reach = float(curve.events_out(np.stack([each_side, each_side]), WIDTH_S).sum())
    # A filter takes its share of a side and of the results alike, so this stays as it is.
    result = statistics.rows_out["pairs"] / reach if reach else 0.0
    return Sampled(statistics, replace(curve, result=result))


def _statistics(case: Case, plan: FlowPlan, table: pa.Table, *, seed: int) -> StepStatistics:
    seen = {one.name: one for one in run_plan(case, plan, table=table, seed=seed).report.stages}
    return StepStatistics(
        plan.graph.steps,
        {name: float(one.rows_in) for name, one in seen.items()},
        {name: float(one.rows_out) for name, one in seen.items()},
        {
            name: one.service_ns / NS_PER_SECOND / one.rows_in if one.rows_in else 0.0
            for name, one in seen.items()
        },
    )


@dataclass(frozen=True, eq=False)
class OfSeed:
    """What one seed gave: {plan: worst latency measured}, {size: {plan: predicted}}."""

    measured_s: Mapping[str, float]
    predicted: Mapping[int, Mapping[str, Judged]]
    rewrites: tuple[str, ...]
    """What the search did, from `SAMPLE` events."""

    def is_told(self, size: int) -> bool:
        """Whether the best of the three as predicted is the best as measured."""
        said = self.predicted.get(size)
        if not said:
            return False
        least = min(PLANS, key=lambda plan: said[plan].predicted_s["Mace"])
        return least == min(PLANS, key=lambda plan: self.measured_s[plan])


def run(options: Options) -> Result:
    """Predict and measure the plans of each seed."""
    events = QUICK_EVENTS if options.quick else EVENTS
    sizes = QUICK_SIZES if options.quick else SIZES
    seeds = options.seeds(SEEDS, QUICK_SEEDS)
    tasks = [partial(one_seed, seed, events, sizes) for seed in seeds]
    found = side_by_side(tasks, what="plan-selection")
    result = Result(
        f"{events:,} trades, three plans and the search's on one node, {len(seeds)} seeds; "
        "simulated",
        ["plan", "measured, s", *(f"from {size:,}, s" for size in sizes), "error from 500"],
    )
    for plan in (*PLANS, FOUND):
        _tell(result, plan, found, sizes)
    told = [sum(one.is_told(size) for one in found) for size in sizes]
    result.rows.append(["best plan told, of seeds", len(found), *told, ""])
    best = [one.measured_s[FOUND] / min(one.measured_s[plan] for plan in PLANS) for one in found]
    result.figures["best plan told"] = dict(zip(map(str, sizes), told, strict=True))
    result.figures["search / best of three, measured"] = Spread.of(best)
    between = sum(min(PLANS, key=lambda p: one.measured_s[p]) == PLANS[1] for one in found)
    result.claims = [
        Claim(
            f"best plan told from {SAMPLE} events, seeds of {len(seeds)}",
            told[sizes.index(SAMPLE)],
            ">=",
            len(seeds),
        ),
        Claim(f"best plan is the one in between, seeds of {len(seeds)}", between, ">=", len(seeds)),
        Claim(
            "worst latency of the search's plan / best of the three, worst seed",
            max(best),
            "<=",
            1.0,
        ),
    ]
    result.notes = [
        "results of all plans are the same to the byte, in each seed",
        f"the search, seed {options.seed}: {'; '.join(found[0].rewrites)}",
        PAPER,
        f"drawn: {draw(found, sizes)}",
    ]
    return result


def one_seed(seed: int, events: int, sizes: Sequence[int]) -> OfSeed:
    """Draw a case; measure its plans, and predict them from samples of each size."""
    case = drawn_case(np.random.default_rng(seed), events)
    plans = three_plans(case.flow(case.table))
    written = plans[PLANS[0]]
    known = {size: _sampled_or_none(case, written, size, seed) for size in sizes}
    plans[FOUND] = _searched(case, known[SAMPLE])
    ran = {name: run_plan(case, plan, seed=seed) for name, plan in plans.items()}
    digests = {one.digest for one in ran.values()}
    check(len(digests) == 1, f"seed {seed}: plans give other results: {digests}")
    predicted = {
        size: {
            name: worst_of(ran[name].measured, one.estimate(case, plan), f"first {size}")
            for name, plan in plans.items()
        }
        for size, one in known.items()
        if one is not None
    }
    worst = {name: float(one.measured.latency_s.max()) for name, one in ran.items()}
    return OfSeed(worst, predicted, plans[FOUND].rewrites)


def _sampled_or_none(case: Case, written: FlowPlan, size: int, seed: int) -> Sampled | None:
    try:
        return sampled(case, written, size, seed=seed)
    except SettingError:
        return None


def _searched(case: Case, known: Sampled | None) -> FlowPlan:
    """Return the plan that branch and bound finds by statistics of a sample."""
    flow = FlowPlan(case.flow(case.table).graph)
    check(known is not None, f"{SAMPLE} events show nothing")
    assert known is not None
    arrivals = {arrivals_of("ticks"): arrivals_by(case.table, WIDTH_S)}
    price = price_of(known.statistics, arrivals, width_s=WIDTH_S, curves={"pairs": known.curve})
    return search_plans(flow, price, keep=1).plans[0][1]


def _tell(result: Result, plan: str, found: Sequence[OfSeed], sizes: Sequence[int]) -> None:
    measured = [one.measured_s[plan] for one in found]
    said = {
        size: [one.predicted[size][plan] for one in found if size in one.predicted]
        for size in sizes
    }
    cells = [
        str(Spread.of([each.predicted_s["Mace"] for each in said[size]])) if said[size] else "–"
        for size in sizes
    ]
    errors = [each.error("Mace") for each in said[SAMPLE]]
    error = f"{100 * float(np.median(errors)):.0f} %, {100 * max(errors):.0f} %" if errors else "–"
    result.rows.append([plan, str(Spread.of(measured)), *cells, error])
    result.figures[plan] = {
        "measured_s": [round(one, 3) for one in measured],
        **{
            f"predicted_s from {size}": [round(each.predicted_s["Mace"], 3) for each in said[size]]
            for size in sizes
        },
    }


def draw(found: Sequence[OfSeed], sizes: Sequence[int]) -> Path:
    """Draw predicted latency over the size of the sample, measured beside it; return the path."""
    title = f"worst latency predicted and measured, median of {len(found)} seeds"
    picture = Picture(f"plan-selection: {title}", (8.0, 4.5))
    (panel,) = picture.panels
    colours = ("tab:red", "tab:green", "tab:blue", "tab:grey")
    for plan, colour in zip((*PLANS, FOUND), colours, strict=True):
        predicted_s: dict[int, list[float]] = {
            size: [
                one.predicted[size][plan].predicted_s["Mace"]
                for one in found
                if size in one.predicted
            ]
            for size in sizes
        }
        there = [size for size in sizes if predicted_s[size]]
        medians_s = [float(np.median(predicted_s[size])) for size in there]
        label = f"select {plan}" if plan in PLANS else "plan of the search"
        panel.plot(there, medians_s, "o-", color=colour, label=label)
        measured = float(np.median([one.measured_s[plan] for one in found]))
        panel.axhline(measured, color=colour, linestyle="--", linewidth=0.9)
    panel.set(xscale="log", yscale="log", xlabel="events that statistics are taken from")
    panel.set_ylabel("worst latency, s (dashed: measured)")
    panel.set_ylim(top=2 * panel.get_ylim()[1])
    return picture.save("plan-selection", columns=4)
