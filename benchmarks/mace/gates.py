"""Latency of the congestion flow with gates, predicted: what rows wait, and what work takes.

```
buses (late in waves) ──┐
                        congestion (gate, join within 5 s) ── jams
loops (as it happens) ──┘
```

The flow of [ssg] §6, 500 reports a second of each, whose buses come later and later for 20 s of
every 70, by 6 s or so, and then catch up, twice as many a second. The gate waits for them, or for
as long as its slack says; what it lets go then is a burst. Beyond the paper [mace].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import slackwater as sw
from benchmarks.frame import Options, Result
from benchmarks.mace.judge import HEADER, Judged, claims, figures, of, seeds_of, span_of, told
from benchmarks.mace.load import Floats
from benchmarks.mace.trial import LIMITS, PER_SLICE_NS, SAMPLE, Leaving, Measured
from benchmarks.picture import Picture
from benchmarks.side_by_side import side_by_side
from benchmarks.sltuner import late_city
from examples.city import zipf_delays
from slackwater.runtime.foresight import QueryGraph
from slackwater.runtime.foresight.gates import (
    GatedEstimate,
    GatedFlow,
    Series,
    SourceTimes,
    estimate_gated,
    gated_operators,
)
from slackwater.runtime.foresight.observed.slices import observed_slices
from slackwater.runtime.foresight.observed_graph import observed_graph
from slackwater.runtime.model import NS_PER_SECOND, Batch
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.prepare.prepare import prepare
from slackwater.runtime.simulate import CostModel, LinkModel, MeasuredSlice, NotedCost, Simulation

SECONDS = 140
SLACKS = (None, "1s", "2s", "4s")
"""Rules of the gate, in turn: ready-only, and slacks."""
LOAD = 0.7
MEDIAN, WORST = 0.05, 0.08
WIDTH_S = 0.1
TICK_NS = 20_000_000
RESULTS_PER_S = 250.0
ESTIMATES = ("gate alone", "work alone", "Mace + gate", "together")
LAGS = ("lags as they come", "lags of 8 %", "exact loads")
"""What is known: costs and selectivities of the first 8 % with the lag of each source over time, or
with lags of 8 % of its rows; or those of the whole run, which no prediction has."""
NODES = ("node-1", "node-2", "node-3")
STAGES = ("buses", "loops", "congestion", "jams")


@dataclass(frozen=True, eq=False)
class Drawn:
    """What runs in one seed.

    Attributes:
        flow: the congestion flow.
        times_s: {source: (arrivals, event times)}, shape (events,) each, in the order of arrival.
        costs_ns: {stage: what a row costs it}; of the join, as its gate lets it go.
        placement: {stage: node}.
    """

    flow: sw.Dataflow
    times_s: Mapping[str, tuple[Floats, Floats]]
    costs_ns: Mapping[str, float]
    placement: Mapping[str, str]

    @property
    def plan(self) -> Plan:
        """Its plan."""
        nodes = sorted(set(self.placement.values()))
        return prepare(self.flow, nodes, placement=self.placement, limits=LIMITS)


def run(options: Options) -> Result:
    """Predict and measure each seed."""
    seeds = seeds_of(options)
    seconds = SECONDS // 2 if options.quick else SECONDS
    result = Result(
        f"{seconds} s of 1,000 events a second, {len(seeds)} seeds, 3 nodes, slacks {_rules()} in "
        f"turn; costs and selectivities of the first 8 %, w {WIDTH_S:g} s; simulated",
        ["rule", "measured", "known", "estimate", "seeds", *HEADER],
    )
    found: list[tuple[str, Judged]] = []
    shown: list[tuple[str, Floats, GatedEstimate]] = []
    slacks = [SLACKS[(seed - 1 + (2 if options.quick else 0)) % len(SLACKS)] for seed in seeds]
    tasks = [
        partial(_one_seed, seed, seconds, slack) for seed, slack in zip(seeds, slacks, strict=True)
    ]
    for slack, (judged, lat_s, made) in zip(
        slacks, side_by_side(tasks, what="mace-gates"), strict=True
    ):
        found += [(_rule(slack), one) for one in judged]
        if len(shown) < len(SLACKS):
            shown.append((_rule(slack), lat_s, made))
    _tell(result, found)
    result.notes.append(f"drawn: {draw(shown)}")
    return result


def _one_seed(
    seed: int, seconds: int, slack: str | None
) -> tuple[list[Judged], Floats, GatedEstimate]:
    """Return each prediction beside what came, latency by subinterval, and the first of them."""
    drawn = draw_flow(seed, seconds=seconds, slack=slack)
    measured = simulate(drawn, seed=seed)
    sample = draw_flow(seed, seconds=seconds, slack=slack, share=SAMPLE)
    sampled = statistics_of(simulate(sample), drawn)
    known = statistics_of(measured, drawn)
    made = [
        predict(drawn, known if lags == LAGS[2] else sampled, is_known=lags != LAGS[1])
        for lags in LAGS
    ]
    judged = [_judged(measured, one, lags) for one, lags in zip(made, LAGS, strict=True)]
    return judged, measured.by_subinterval(WIDTH_S, len(made[0].gate_s)), made[0]


def _rule(slack: str | None) -> str:
    return "ready-only" if slack is None else f"slack {slack}"


def _rules() -> str:
    return ", ".join(_rule(slack) for slack in SLACKS)


def draw_flow(seed: int, *, seconds: int, slack: str | None, share: float = 1.0) -> Drawn:
    """Draw streams, costs and a placement; of the same streams only the first, if asked for."""
    rng = np.random.default_rng([seed, 7])
    times_ns = late_city.times(seconds)
    loop_ns = late_city.times(seconds, offset_ns=late_city.PERIOD_NS // 2)
    bus_ns = _ticked(zipf_delays(times_ns, rng))
    came_ns = _ticked(loop_ns)
    buses = late_city.bus_table(rng, times_ns, bus_ns)
    loops = late_city.loop_table(rng, loop_ns, came_ns)
    weights = rng.uniform(0.2, 1.0, len(STAGES))
    while len(set(places := rng.integers(0, len(NODES), len(STAGES)).tolist())) < len(NODES):
        pass
    placement = {stage: NODES[at] for stage, at in zip(STAGES, places, strict=True)}
    rows = dict(zip(STAGES, (500.0, 500.0, 1_000.0, RESULTS_PER_S), strict=True))
    busy = dict.fromkeys(NODES, 0.0)
    for stage, weight in zip(STAGES, weights, strict=True):
        busy[placement[stage]] += weight
    scale = LOAD * NS_PER_SECOND / max(busy.values())
    costs = {
        stage: float(scale * weight / rows[stage])
        for stage, weight in zip(STAGES, weights, strict=True)
    }
    few = round(share * len(times_ns))
    flow = sw.Dataflow("congestion", slack=slack)
    late_city.source(flow, "buses", buses.slice(0, few)).join(
        late_city.source(flow, "loops", loops.slice(0, few)),
        on="area",
        within=late_city.WITHIN,
        where=late_city.jam(),
        name="congestion",
    ).sink("jams", sw.callback_sink(print))
    times_s = {
        "buses": (_seconds(bus_ns), times_ns / NS_PER_SECOND),
        "loops": (_seconds(came_ns), loop_ns / NS_PER_SECOND),
    }
    return Drawn(flow, times_s, costs, placement)


def _ticked(times_ns: late_city.Ints) -> late_city.Ints:
    """Return when rows are handed over that arrive then: every tick, together."""
    return np.asarray(-(-times_ns // TICK_NS) * TICK_NS)


def _seconds(times_ns: late_city.Ints) -> Floats:
    return np.asarray((times_ns - times_ns[0]) / NS_PER_SECOND)


@dataclass(frozen=True, eq=False)
class Ran(Measured):
    """A run, and what each of its slices took."""

    slices: Sequence[MeasuredSlice]


def simulate(drawn: Drawn, *, seed: int = 0) -> Ran:
    """Run the flow in the simulator."""
    plan = drawn.plan
    left = Leaving()

    def leaves(sink: str, batch: Batch | None, is_end: bool) -> None:
        del sink, is_end
        if batch is not None:
            left.take(batch, host.now_ns)

    noted = NotedCost(CostModel(per_slice_ns=PER_SLICE_NS, stages=dict(drawn.costs_ns)))
    host = Simulation(
        plan,
        egress=leaves,
        seed=seed,
        cost=noted,
        link=LinkModel(delay_ns=0),
    )
    report = host.run()
    return Ran(*left.seconds(), report, plan, noted.slices)


def statistics_of(ran: Ran, whole: Drawn) -> tuple[QueryGraph, dict[str, Series]]:
    """Return what a run shows, such as one over a sample: costs and selectivities, and its rows."""
    stages = {stage.name: stage for stage in ran.report.stages}
    counts = {name: stages[name].rows_in for name in whole.times_s}
    rows = {
        name: SourceTimes.in_order(at_s[: counts[name]], event_s[: counts[name]]).series()
        for name, (at_s, event_s) in whole.times_s.items()
    }
    graph = observed_graph(
        observed_slices(ran.plan.stages, stages, ran.slices),
        slice_s=LIMITS.slice_ns / NS_PER_SECOND,
        times_s={name: whole.times_s[name][1][: counts[name]] for name in counts},
    )
    return graph.at_speed(None), rows


def predict(
    drawn: Drawn, sampled: tuple[QueryGraph, dict[str, Series]], *, is_known: bool
) -> GatedEstimate:
    """Return what the latency will be; lags are known as arrivals are, or from 8 % of the rows."""
    graph, rows = sampled
    d = int(max(at_s[-1] for at_s, _ in drawn.times_s.values()) / WIDTH_S) + 2
    sources = {}
    for name, (at_s, event_s) in drawn.times_s.items():
        if is_known:
            sources[name] = SourceTimes.in_order(at_s, event_s, ends=True).series()
            continue
        arrivals = np.histogram(at_s, np.arange(d + 1) * WIDTH_S)[0].astype(np.float64)
        few = _spread(len(at_s))
        times = SourceTimes.in_order(at_s[few], event_s[few], ends=True)
        sources[name] = times.ahead(arrivals, WIDTH_S, as_it_came=True)
    plan = drawn.plan
    flow = GatedFlow(graph=graph, gated=gated_operators(plan.stages), sources=sources, sampled=rows)
    nodes = dict.fromkeys(plan.slot_names, 1.0)
    return estimate_gated(flow, plan.slots, nodes, d=d, width_s=WIDTH_S)


SPREAD_ROWS = 25
"""A sample that is spread has runs of so many rows that follow each other."""


def _spread(count: int) -> Floats:
    """Return the places of 8 % of the rows, in short runs from all over them."""
    runs = max(round(count * SAMPLE / SPREAD_ROWS), 2)
    starts = np.linspace(0, count - SPREAD_ROWS, runs).astype(np.int64)
    return np.asarray((starts[:, None] + np.arange(SPREAD_ROWS)).ravel())


def _judged(measured: Measured, made: GatedEstimate, lags: str) -> Judged:
    lat_s = measured.by_subinterval(WIDTH_S, len(made.gate_s))
    has = ~np.isnan(lat_s)
    both_s = made.latency.mace_s + made.gate_s  # one added to the other
    series = (made.gate_s, made.work_s, both_s, made.latency.held_up_s)
    predicted = {name: float(each[has].max()) for name, each in zip(ESTIMATES, series, strict=True)}
    return Judged(WIDTH_S, lags, float(np.nanmax(lat_s)), predicted)


def _tell(result: Result, found: list[tuple[str, Judged]]) -> None:
    for rule in dict.fromkeys([*(rule for rule, _ in found), "all"]):
        own = [one for of_rule, one in found if rule in (of_rule, "all")]
        for lags in LAGS:
            mine = of(own, lags, WIDTH_S)
            for estimate in ESTIMATES:
                cells = [rule, span_of(mine), lags, estimate, len(mine), *told(mine, estimate)]
                result.rows.append(cells)
                result.figures[f"{rule}, {lags}, {estimate}"] = figures(mine, estimate)
            if rule == "all" and lags != LAGS[2]:
                result.claims += claims(lags, mine, ESTIMATES[-1], median=MEDIAN, worst=WORST)


def draw(shown: list[tuple[str, Floats, GatedEstimate]]) -> Path:
    """Draw measured and predicted latency over time; return the path of the picture."""
    title = "mace-gates: the congestion flow, longest latency of each 0.1 s"
    picture = Picture(title, (11.0, 2.6 * len(shown)), rows=len(shown), sharex=True)
    for panel, (rule, lat_s, made) in zip(picture.panels, shown, strict=True):
        at_s = np.arange(len(lat_s)) * WIDTH_S
        panel.plot(at_s, made.gate_s, color="tab:blue", linewidth=0.8, label="gate alone")
        panel.plot(at_s, made.work_s, color="tab:green", linewidth=0.8, label="work alone")
        panel.plot(at_s, made.latency.held_up_s, color="tab:red", linewidth=1.2, label="together")
        panel.plot(at_s, lat_s, "k.", markersize=2, label="measured")
        panel.set(title=rule, ylabel="latency, s")
    picture.panels[-1].set_xlabel("stimulus time, s")
    return picture.save("mace-gates", legend="first", columns=4)
