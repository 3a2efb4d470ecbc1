"""A running job is placed anew: for how long its slots stand still, and whether that is worth it.

On Ray: a join of two sources, three local nodes; its stages move between slots, again and again,
with a state of some thousand rows, and of some hundred thousand. The results are those of a run
without it. In the simulator: chains of steps whose costs a seed draws, all in one slot that falls
behind or nearly does; moved as a search finds, or left, and the worst latency of each.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import slackwater as sw
from benchmarks.frame import Claim, Options, Result, Spread, check, counted
from slackwater.runtime.foresight import QueryGraph, QueryOperator
from slackwater.runtime.foresight.chosen.worthwhile import GAP, worthwhile_moves
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.query_graph import arrivals_of
from slackwater.runtime.measure import JobReport, Replaced, imbalances
from slackwater.runtime.simulate import CostModel

MOVES, QUICK_MOVES = 20, 6
RATE = 1_000
STATES = {"1,000 rows": "500ms", "100,000 rows": "50s"}
"""{about what the join remembers: within how long it joins}; the history of a minute is there."""
HISTORY_S, LIVE_S = 60, 120
HERE = {"a": "node-1", "b": "node-2", "pairs": "node-3", "out": "node-3"}
TURNS = ("node-1", "node-2", "node-3")
REST_S = 0.3
MOST_GAP_S = 0.25
SEEDS, QUICK_SEEDS = 20, 6
STEPS = ("one", "two", "three", "four")
EVENTS_PER_S, SECONDS = 50, 20
AT_S = 3.0


@dataclass(frozen=True, eq=False)
class Chain:
    """A flow of a source and four steps, and what it costs, drawn by a seed.

    Attributes:
        times_ms: of its events.
        cost_s: {step: CPU seconds of an event}.
    """

    times_ms: npt.NDArray[np.int64]
    cost_s: Mapping[str, float]

    @classmethod
    def drawn(cls, seed: int) -> Chain:
        """Return one: seconds of double rate and of half; all steps, 0.2 to 1.2 of a core."""
        rng = np.random.default_rng(seed)
        rates = EVENTS_PER_S * rng.choice([0.5, 2.0], SECONDS)
        counts = rng.poisson(rates)
        times = [1_000 * (n + np.sort(rng.random(count))) for n, count in enumerate(counts)]
        shares = rng.uniform(0.5, 1.5, len(STEPS))
        loads = shares / shares.sum() * rng.uniform(0.2, 1.2)
        costs = loads / (1.25 * EVENTS_PER_S)
        return cls(
            np.concatenate(times).astype(np.int64),
            dict(zip(STEPS, map(float, costs), strict=True)),
        )

    def flow(self) -> sw.Dataflow:
        """Return the flow."""
        rows = pa.table({"ts": pa.array(self.times_ms, pa.timestamp("ms")), "n": self.numbers})
        flow = sw.Dataflow("chain")
        stream = flow.source("a", sw.table(rows), event_time="ts", speed=1.0)
        for step in STEPS:
            stream = stream.merge(name=step, slack="0s")
        stream.sink("out", sw.collect_sink())
        return flow

    @property
    def numbers(self) -> npt.NDArray[np.int64]:
        """The events, counted through."""
        return np.arange(len(self.times_ms))

    def simulation(self, seed: int) -> sw.Simulation:
        """Return nodes that take just so long for an event."""
        costs = {step: 1e9 * cost_s for step, cost_s in self.cost_s.items()}
        cost = CostModel(per_slice_ns=10_000, per_row_ns=1_000, stages=costs)
        return sw.Simulation(nodes=3, seed=seed, cost=cost)

    def sample(self) -> FlowSample:
        """Return what is known of the costs: all."""
        names = ("a", *STEPS, "out")
        before = (arrivals_of("a"), *names)
        operators = [
            QueryOperator(
                name=name,
                inputs=(source,),
                cost_s=(self.cost_s.get(name, 1e-6),),
                selectivity=(1.0,),
            )
            for name, source in zip(names, before, strict=False)
        ]
        return FlowSample(
            QueryGraph((arrivals_of("a"),), tuple(operators)), {"a": len(self.times_ms)}, 0.0
        )

    def counts(self) -> npt.NDArray[np.float64]:
        """Return its events in each 100 ms."""
        width_ms = 100
        found = np.bincount(self.times_ms // width_ms, minlength=SECONDS * 1_000 // width_ms)
        return found.astype(np.float64)


def run(options: Options) -> Result:
    """Measure gaps on Ray, then what moves are worth in virtual time."""
    moves = QUICK_MOVES if options.quick else MOVES
    seeds = range(options.seed, options.seed + (QUICK_SEEDS if options.quick else SEEDS))
    result = Result(
        f"{moves} moves each of a join and its sink between three local nodes, {RATE:,} rows/s of "
        f"both sources; {len(seeds)} simulated chains of {len(STEPS)} steps, {SECONDS} s each",
        ["what", "moves", "state, KiB", "gap, ms", "worst latency, ms"],
    )
    with sw.Cluster.local(nodes=3) as cluster:
        for name, within in STATES.items():
            _gaps(result, cluster, name, within, moves)
    _worths(result, seeds)
    return result


# -- gaps on Ray -------------------------------------------------------------------------------


def _gaps(result: Result, cluster: sw.Cluster, name: str, within: str, moves: int) -> None:
    job = cluster.submit(_twins(within), placement=HERE, detach=False)
    rest = threading.Event()
    found: list[Replaced] = []
    while job.report().ledger.entered < 2 * RATE * (HISTORY_S + 1):
        rest.wait(REST_S)
    for n in counted(range(moves), of=moves, what=f"replacing, {name}"):
        slot = TURNS[n % len(TURNS)]
        found.append(job.replace({"pairs": slot, "out": slot}))
        rest.wait(REST_S)
    job.stop()
    report = job.wait()
    check(all(one.problem is None for one in found), "a move was given up")
    check(imbalances(report) == [], "the ledger does not balance")
    numbers = job.result("out")["n"].to_numpy()
    same = bool(np.array_equal(numbers, np.arange(len(numbers))))
    gaps = Spread.of([1e3 * one.gap_s for one in found])
    state = Spread.of([one.state_bytes / 1024 for one in found])
    worst_ms = _worst_s(report) * 1e3
    result.rows.append([f"Ray, {name}", str(len(found)), state, gaps, worst_ms])
    result.figures[name] = {"gap_ms": gaps, "state_kib": state, "worst_latency_ms": worst_ms}
    result.claims += [
        Claim(f"{name}: ready-only output identical", float(same), ">=", 1.0),
        Claim(f"{name}: the gap, median, s", gaps.median / 1e3, "<=", MOST_GAP_S),
    ]
    job.close()


def _twins(within: str) -> sw.Dataflow:
    """Two sources of the same numbers: a minute of history at once, then as the clock goes."""
    count = RATE * (HISTORY_S + LIVE_S)
    times = 1_000 * np.arange(count) // RATE
    arrival = np.maximum(times - 1_000 * HISTORY_S, 0)
    columns = {
        name: pa.array(ms, pa.timestamp("ms")) for name, ms in (("ts", times), ("at", arrival))
    }
    rows = sw.table(pa.table({**columns, "n": np.arange(count)}))
    flow = sw.Dataflow("twins")
    a, b = (
        flow.source(name, rows, event_time="ts", arrival="at", speed=1.0) for name in ("a", "b")
    )
    a.join(b, on="n", within=within, name="pairs").sink("out", sw.collect_sink())
    return flow


# -- what moves are worth, simulated -----------------------------------------------------------


def _worths(result: Result, seeds: range) -> None:
    gained: dict[bool, list[float]] = {True: [], False: []}  # {worth it: s of the worst latency}
    same = True
    for seed in counted(seeds, of=len(seeds), what="replacing, chains"):
        is_worth, stayed, moved = _chain(seed)
        same &= stayed[1].equals(moved[1])
        gained[is_worth].append(_worst_s(stayed[0]) - _worst_s(moved[0]))
    gap_s = float(GAP.removesuffix("ms")) / 1e3
    for is_worth, of in gained.items():
        if not of:
            continue
        word = "worth it" if is_worth else "not worth it"
        spread = Spread.of([1e3 * one for one in of])
        result.rows.append([f"simulated, {word}: less by", str(len(of)), "", "", spread])
        result.figures[word] = {"gained_ms": spread}
    result.claims.append(Claim("simulated: ready-only output identical", float(same), ">=", 1.0))
    if gained[True]:
        least = min(gained[True])
        result.claims.append(Claim("worth it: least gain of the worst latency, s", least, ">=", 0))
    if gained[False]:
        most = max(gained[False])
        result.claims.append(Claim("not worth it: most that was missed, s", most, "<=", gap_s))


def _chain(
    seed: int,
) -> tuple[bool, tuple[JobReport, pa.Table], tuple[JobReport, pa.Table]]:
    """Return whether a move is worth it by the rule; what comes of staying, and of moving."""
    chain = Chain.drawn(seed)
    here = {"a": "node-1"} | dict.fromkeys((*STEPS, "out"), "node-2")
    host, sample = chain.simulation(seed), chain.sample()
    made = host.predict(chain.flow(), {"a": chain.counts()}, sample=sample, horizon=f"{SECONDS}s")
    is_worth = isinstance(worthwhile_moves(made, here), dict)
    stays = host.submit(chain.flow(), placement=here)
    moves = host.submit(chain.flow(), placement=here)
    wanted = {name: slot for name, slot in made.plan.slots.items() if slot != here[name]}
    if wanted:
        moves.replace(wanted, at=f"{AT_S}s")
    return is_worth, (stays.wait(), stays.result("out")), (moves.wait(), moves.result("out"))


def _worst_s(report: JobReport) -> float:
    (sink,) = report.sinks
    return sink.latency.quantile(1) / 1e9
