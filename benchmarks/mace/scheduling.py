"""[mace] Theorem 1, §III-D: worst latency under stimulus order and under what others do.

Three sources with bursts feed six sinks, whose rows cost from 2 to 20 ms each, drawn by the seed:
some things are cheap and some are not. On one slot, and over three with gates between, each stage
in a slot drawn by the seed. Beside it the paper's model, event by event: two operators behind each
source on one node. One row to a slice, so that orders and not slices are compared; every row gives
a result, as the theorem has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import slackwater as sw
from benchmarks.frame import Claim, Options, Result, Spread, check, counted
from benchmarks.mace.orders import FifoOrder, LongestQueue, RoundRobin
from slackwater.runtime.foresight.query_graph import QueryGraph, QueryOperator
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.model import Batch
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.simulate import CostModel, Simulation
from tests.support.event_system import Policy, Waiting, run_events

MS = 1_000_000
SECONDS, QUICK_SECONDS = 40, 15
SEEDS, QUICK_SEEDS = 5, 2
LOAD = 0.85
SOURCES = ("a", "b", "c")
LEAST_MS, MOST_MS = 2.0, 20.0
WIDTH_S = 0.25
OURS = "stimulus"
POLICIES = (
    OURS,
    "FIFO",
    "round robin",
    "longest queue",
    "priorities",
    "coarse, round robin",
    "coarse, longest queue",
)
PLACES = ("one node", "several nodes", "event model")

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Load:
    """What arrives, and what a row costs.

    Attributes:
        times_s: {source: times at which its rows arrive, ascending}.
        cost_ms: {sink: what a row costs there}; sinks `x1` and `x2` are fed by source `x`.
    """

    times_s: Mapping[str, Floats]
    cost_ms: Mapping[str, float]

    @property
    def slice_s(self) -> float:
        """The longest slice."""
        return max(self.cost_ms.values()) / 1e3


def drawn(seconds: int, seed: int) -> Load:
    """Return a load of `LOAD` of one core on average: bursts of a second or two, four times."""
    rng = np.random.default_rng(seed)
    cost_ms = {
        f"{source}{n}": float(np.exp(rng.uniform(np.log(LEAST_MS), np.log(MOST_MS))))
        for source in SOURCES
        for n in (1, 2)
    }
    times_s = {}
    for source in SOURCES:
        row_s = sum(cost_ms[f"{source}{n}"] for n in (1, 2)) / 1e3
        shape = np.where(rng.random(seconds) < 0.25, 4.0, 0.5)
        rates = np.maximum(shape / shape.mean() * LOAD / len(SOURCES) / row_s, 1)
        counts = rng.poisson(rates)
        times_s[source] = np.concatenate(
            [second + np.sort(rng.random(n)) for second, n in enumerate(counts)]
        )
    return Load(times_s, cost_ms)


def order_of(policy: str, load: Load) -> Any:
    """Return the order of that name; priorities have the cheapest first."""
    orders: dict[str, Any] = {
        OURS: sw.schedule.StimulusOrder(),
        "FIFO": FifoOrder(),
        "round robin": RoundRobin(),
        "longest queue": LongestQueue(),
        # Sources cost nothing, and come first as they do for a longest queue.
        "priorities": sw.schedule.Priorities({s: -cost for s, cost in load.cost_ms.items()}),
        "coarse, round robin": sw.schedule.CoarseStimulus(WIDTH_S, RoundRobin()),
        "coarse, longest queue": sw.schedule.CoarseStimulus(WIDTH_S, LongestQueue()),
    }
    return orders[policy]


def build(load: Load, *, gated: bool) -> sw.Dataflow:
    """Return the flow; `gated`: with a merge of two sources in front of each pair of sinks."""
    flow = sw.Dataflow("scheduling")
    streams = {}
    for source in SOURCES:
        at = (load.times_s[source] * 1e9).astype("datetime64[ns]")
        rows = pa.table({"ts": at, "n": np.arange(len(at))})
        streams[source] = flow.source(source, sw.table(rows), event_time="ts", speed=1.0)
    for number, source in enumerate(SOURCES):
        stream = streams[source]
        if gated:
            other = streams[SOURCES[(number + 1) % len(SOURCES)]]
            stream = flow.merge(stream, other, name=f"merge-{source}")
        for n in (1, 2):
            stream.sink(f"{source}{n}", sw.collect_sink())
    return flow


class Run(Simulation):
    """A run that keeps the latency of each result."""

    def __init__(self, plan: Plan, **options: Any) -> None:
        self.latency_s: list[Floats] = []
        super().__init__(plan, egress=self._leave, **options)

    def _leave(self, sink: str, batch: Batch | None, is_end: bool) -> None:
        del sink, is_end
        if batch is not None:
            self.latency_s.append((self.now_ns - batch.stimulus_time_ns) / 1e9)


def simulated(load: Load, policy: str, seed: int, *, nodes: int) -> Floats:
    """Return the latencies of all results, s, of one run."""
    flow = build(load, gated=nodes > 1)
    host = sw.Simulation(nodes)
    placement = {"*": host.nodes[0]}
    scale = 1.0
    if nodes > 1:
        rng = np.random.default_rng(seed)
        steps = [*SOURCES, *(f"merge-{source}" for source in SOURCES), *load.cost_ms]
        placement = {step: host.nodes[int(rng.integers(nodes))] for step in steps}
        scale = _scale(load, placement)
    limits = sw.Limits(max_slice_rows=1, min_slice_rows=1, order=order_of(policy, load))
    plan = host.plan(flow, placement=placement, limits=limits)
    cost = CostModel(
        per_slice_ns=0,
        per_row_ns=1_000,
        stages={sink: ms * MS * scale for sink, ms in load.cost_ms.items()},
    )
    found = Run(plan, seed=seed, cost=cost)
    check(imbalances(found.run()) == [], f"{policy}: the ledger does not balance")
    latency_s = np.concatenate(found.latency_s)
    rows = sum(map(len, load.times_s.values())) * 2 * (1 if nodes == 1 else 2)
    check(len(latency_s) == rows, f"{policy}: {len(latency_s)} results of {rows}")
    return latency_s


def _scale(load: Load, placement: Mapping[str, str]) -> float:
    """Return what costs are to be multiplied by for the busiest of several nodes to have `LOAD`."""
    rows = {source: len(times) for source, times in load.times_s.items()}
    seconds = max(float(times[-1]) for times in load.times_s.values())
    busy_s: dict[str, float] = {}
    for number, source in enumerate(SOURCES):
        came = rows[source] + rows[SOURCES[(number + 1) % len(SOURCES)]]
        for sink in (f"{source}1", f"{source}2"):
            node = placement[sink]
            busy_s[node] = busy_s.get(node, 0.0) + came * load.cost_ms[sink] / 1e3
    return LOAD * seconds / max(busy_s.values())


def by_events(load: Load, policy: str) -> Floats:
    """Return the latencies of the paper's model: an operator behind an operator of each source."""
    operators = []
    for source in SOURCES:
        for name, feeds in ((f"{source}1", source), (f"{source}2", f"{source}1")):
            cost_s = (load.cost_ms[name] / 1e3,)
            operators.append(
                QueryOperator(name=name, inputs=(feeds,), cost_s=cost_s, selectivity=(1.0,))
            )
    graph = QueryGraph(SOURCES, tuple(operators))
    arrivals_s = {source: times.tolist() for source, times in load.times_s.items()}
    ran = run_events(graph, arrivals_s, [0] * len(operators), policy=event_policy(policy, load))
    return ran.latency_s


def event_policy(policy: str, load: Load) -> Policy | None:
    """Return the policy of that name for the event model; what waits is in order of coming."""
    costs = [load.cost_ms[f"{source}{n}"] for source in SOURCES for n in (1, 2)]

    def cheapest(waiting: list[Waiting], node: int) -> int:
        del node
        return min(range(len(waiting)), key=lambda n: (costs[waiting[n].operator], waiting[n]))

    within: dict[str, Callable[[], Policy | None]] = {
        OURS: lambda: None,
        "FIFO": lambda: _first_come,
        "round robin": _TakingTurns,
        "longest queue": lambda: _longest,
        "priorities": lambda: cheapest,
    }
    if not policy.startswith("coarse"):
        return within[policy]()
    inner = within[policy.partition(", ")[2]]()
    assert inner is not None

    def coarse(waiting: list[Waiting], node: int) -> int:
        first = min(int(one.stimulus_s / WIDTH_S) for one in waiting)
        among = [n for n, one in enumerate(waiting) if int(one.stimulus_s / WIDTH_S) == first]
        return among[inner([waiting[n] for n in among], node)]

    return coarse


def _first_come(waiting: list[Waiting], node: int) -> int:
    del waiting, node
    return 0


class _TakingTurns:
    def __init__(self) -> None:
        self._turns: dict[int, int] = {}
        self._turn = 0

    def __call__(self, waiting: list[Waiting], node: int) -> int:
        del node
        self._turn += 1
        chosen = min(range(len(waiting)), key=lambda n: self._turns.get(waiting[n].operator, 0))
        self._turns[waiting[chosen].operator] = self._turn
        return chosen


def _longest(waiting: list[Waiting], node: int) -> int:
    del node
    counts: dict[int, int] = {}
    for one in waiting:
        counts[one.operator] = counts.get(one.operator, 0) + 1
    return min(range(len(waiting)), key=lambda n: -counts[waiting[n].operator])


def run(options: Options) -> Result:
    """Run every policy over the same loads."""
    seconds = QUICK_SECONDS if options.quick else SECONDS
    seeds = options.seeds(SEEDS, QUICK_SEEDS)
    result = Result(
        f"{seconds} s of virtual time, {len(seeds)} seeds, simulated; s, median of the seeds",
        ["where", "policy", "worst", "p99", "worst / that of stimulus"],
    )
    found: dict[tuple[str, str], list[Floats]] = {}
    rounds = [(seed, policy) for seed in seeds for policy in POLICIES]
    for seed, policy in counted(rounds, of=len(rounds), what="scheduling"):
        for place, latency_s in _each_place(drawn(seconds, seed), policy, seed):
            found.setdefault((place, policy), []).append(latency_s)
    slices_s = np.array([drawn(seconds, seed).slice_s for seed in seeds])
    for place in PLACES:
        _tell(result, place, [found[place, policy] for policy in POLICIES], slices_s)
    result.notes += [
        f"coarse: stimulus order across subintervals of {WIDTH_S:g} s",
        "priorities: the cheapest rows first",
        "[mace] has no figure for this: Theorem 1 says that on one node stimulus order is the best",
    ]
    return result


def _each_place(load: Load, policy: str, seed: int) -> Iterator[tuple[str, Floats]]:
    yield "one node", simulated(load, policy, seed, nodes=1)
    yield "several nodes", simulated(load, policy, seed, nodes=3)
    yield "event model", by_events(load, policy)


def _tell(result: Result, place: str, found: Sequence[Sequence[Floats]], slices_s: Floats) -> None:
    worst = np.array([[float(one.max()) for one in of_policy] for of_policy in found])
    p99 = np.array([[float(np.quantile(one, 0.99)) for one in of_policy] for of_policy in found])
    ratio = worst / worst[0]
    for policy, *figures in zip(POLICIES, worst, p99, ratio, strict=True):
        spreads = [Spread.of(values.tolist()) for values in figures]
        result.rows.append([place, policy, *spreads])
        names = ("worst_s", "p99_s", "worst_ratio")
        result.figures[f"{place}, {policy}"] = dict(zip(names, spreads, strict=True))
    if place == "several nodes":
        return
    # A row that is under way is not interrupted, in the simulator nor is a source's.
    allowed_s = slices_s if place == "one node" else 1e-9
    for policy, of_policy in zip(POLICIES[1:], worst[1:], strict=True):
        result.claims.append(
            Claim(
                f"{place}: stimulus order's worst latency above that of {policy} and a row, s",
                float((worst[0] - of_policy - allowed_s).max()),
                "<=",
                0.0,
            )
        )
