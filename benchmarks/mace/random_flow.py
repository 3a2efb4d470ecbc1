"""Random flows for `provision`: filters, maps, merges, joins and windows over bursts, set costs.

```
a ──▶ filter ──┬──▶ map ──▶ window ──▶ sink        costs: set for each row of each operator
b ──▶ map ─────┴──▶ merge ──▶ sink                 links: of every other flow, thin and long
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.foresight import Workload
from slackwater.runtime.foresight.excess import cumulative_excess
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.predicted.what_if import with_costs
from slackwater.runtime.foresight.query_graph import arrivals_of
from slackwater.runtime.foresight.rates import OnOff
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.simulate import CostModel, LinkModel
from slackwater.sampling import sample_flow

WIDTH_S = 0.1
OTHER_S = 1e-6
"""What a row costs sources and sinks."""
SAMPLE_ROWS = 1_000
MOST = 0.45
"""Of a core, that one operator takes at most: in a burst that is more than a core."""
LIMITS = Limits(
    credit_rows=10_000_000,
    gate_rows=10_000_000,
    min_slice_rows=1,
    max_slice_rows=1,
    source_gap_ns=1,
)
"""Queues without bound, and slices of few rows, as near to the paper's model as a run allows."""

MAPS, FILTERS, MERGES, JOINS, WINDOWS = "map", "filter", "merge", "join", "window"
SHARES = {MAPS: 0.25, FILTERS: 0.3, MERGES: 0.2, JOINS: 0.1, WINDOWS: 0.15}

PRIMES = (7, 11, 5, 13, 3, 17, 19, 23, 29, 31)
"""Column j of a source's rows goes round in so many steps: what filters keep of any thousand rows
is what they keep of all, also one behind the other."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class RandomFlow:
    """A flow, what its rows cost, and where it is to run.

    Attributes:
        flow: without a deadline.
        times_s: {source: when its rows arrive, shape (rows,)}.
        seconds: for how long.
        cost_s: {operator's stage: seconds of a row}; sources and sinks `OTHER_S`.
        shares: of a core that each operator takes on average.
        sample: of the first rows, with these costs.
        cores: slots of each node.
        link: what lies between nodes; None: as the simulator has it.
        floor_s: the worst backlog of an operator alone on a node, and the way: no placement of any
            number of nodes does better than the first.
    """

    flow: sw.Dataflow
    times_s: Mapping[str, Floats]
    seconds: float
    cost_s: Mapping[str, float]
    shares: tuple[float, ...]
    sample: FlowSample
    cores: int
    link: LinkModel | None
    floor_s: float

    def host(self, nodes: int) -> sw.Simulation:
        """Return so many nodes, where rows cost exactly that."""
        cost = CostModel(
            per_slice_ns=0,
            per_row_ns=OTHER_S * NS_PER_SECOND,
            stages={name: cost * NS_PER_SECOND for name, cost in self.cost_s.items()},
        )
        return sw.Simulation(nodes, cores=self.cores, cost=cost, link=self.link)

    def trace(self) -> dict[str, Floats]:
        """Return {source: rows that arrive in each subinterval}."""
        return trace_of(self.times_s, self.seconds)


def trace_of(times_s: Mapping[str, Floats], seconds: float) -> dict[str, Floats]:
    """Return {source: rows that arrive in each subinterval}."""
    edges = np.arange(round(seconds / WIDTH_S) + 1) * WIDTH_S
    return {name: np.histogram(at_s, edges)[0].astype(float) for name, at_s in times_s.items()}


def random_flow(
    seed: int, *, seconds: float, attempt: int = 0, is_even: bool = False
) -> RandomFlow:
    """Draw a flow whose operators have more to do than one node can, and none more than 0.45.

    Two or three sources of 20 to 50 rows/s in on-off periods; 5 to 9 operators that have 1.3 to
    2.8 times what a node can do. Flows of odd seeds have links. They have no windows and no joins:
    a bound from below is one of results, which those have for few rows.

    Args:
        seed: of what is drawn.
        seconds: for how long rows come.
        attempt: another flow of the same seed.
        is_even: rows come evenly within a period, as A-2 of [mace] has it; else by Poisson.
    """
    rng = np.random.default_rng([seed, 20, attempt])
    while True:  # until there is as much to do as no node can, the largest parts cut
        found = _draw(rng, seconds, is_linked=seed % 2 == 1, is_even=is_even)
        if sum(found.shares) > 1.1 * found.cores:
            return found


def _draw(
    rng: np.random.Generator, seconds: float, *, is_linked: bool, is_even: bool
) -> RandomFlow:
    times_s = _arrivals(rng, seconds, is_even=is_even)
    kinds = SHARES if not is_linked else {kind: SHARES[kind] for kind in (MAPS, FILTERS, MERGES)}
    flow, operators = _flow(rng, times_s, kinds)
    cores = int(rng.choice([1, 1, 2]))
    sample = sample_flow(flow, rows=SAMPLE_ROWS)
    unit = with_costs(sample, dict.fromkeys(operators, 1.0))
    load = _load(unit, times_s, seconds)
    mean = np.array([load[name].mean() / WIDTH_S for name in operators])
    weight = rng.uniform(0.2, 1.0, len(operators)) * mean
    share = np.minimum(weight / weight.sum() * float(rng.uniform(1.3, 2.8)) * cores, MOST)
    cost_s = {name: float(s / m) for name, s, m in zip(operators, share, mean, strict=True)}
    others = {name: OTHER_S for name in sample.graph.names if name not in cost_s}
    known = with_costs(sample, cost_s | others)
    load = _load(known, times_s, seconds)
    alone = [float(cumulative_excess(one, 1.0, width_s=WIDTH_S).max()) for one in load.values()]
    link = _link(rng, times_s, seconds) if is_linked else None
    way_s = 0.0 if link is None else 3 * link.delay_ns / NS_PER_SECOND
    return RandomFlow(
        flow=flow,
        times_s=times_s,
        seconds=seconds,
        cost_s=cost_s,
        shares=tuple(map(float, share)),
        sample=known,
        cores=cores,
        link=link,
        floor_s=max(alone) + way_s,
    )


def _load(sample: FlowSample, times_s: Mapping[str, Floats], seconds: float) -> dict[str, Floats]:
    arrivals = {arrivals_of(name): counts for name, counts in trace_of(times_s, seconds).items()}
    work = Workload.of(sample.graph, arrivals, WIDTH_S)
    return dict(zip(sample.graph.names, work.load_s, strict=True))


def _arrivals(rng: np.random.Generator, seconds: float, *, is_even: bool) -> dict[str, Floats]:
    times_s = {}
    for name in "abc"[: int(rng.integers(2, 4))]:
        load = OnOff(
            float(rng.uniform(20, 50)),
            rate_ratio=float(rng.uniform(3, 20)),
            high_s=float(rng.uniform(2, 6)),
        )
        parts = [
            _within(rng, start_s, end_s, rate * (end_s - start_s), is_even=is_even)
            for start_s, end_s, rate in load.rates(rng, until_s=seconds)
        ]
        times_s[name] = np.concatenate(parts)
    return times_s


def _within(
    rng: np.random.Generator, start_s: float, end_s: float, mean: float, *, is_even: bool
) -> Floats:
    """Return when the rows of a period arrive, one at least."""
    if is_even:
        return np.linspace(start_s, end_s, max(round(mean), 1), endpoint=False)
    return np.sort(rng.uniform(start_s, end_s, max(rng.poisson(mean), 1)))


def _link(rng: np.random.Generator, times_s: Mapping[str, Floats], seconds: float) -> LinkModel:
    """Return links whose bursts may be more than they carry, and 5 to 150 ms long."""
    most = max(len(at_s) for at_s in times_s.values()) / seconds
    return LinkModel(
        delay_ns=int(rng.uniform(5e6, 150e6)),
        bytes_per_s=most * 48 / float(rng.uniform(0.1, 0.4)),
    )


def _flow(
    rng: np.random.Generator, times_s: Mapping[str, Floats], kinds: Mapping[str, float]
) -> tuple[sw.Dataflow, list[str]]:
    """Return the flow, and its operators: each is a gate that lets all go at once, and a step."""
    flow = sw.Dataflow("random")
    count = int(rng.integers(5, 10))
    streams = [
        flow.source(
            name,
            sw.table(_rows(rng, at_s, columns=count)),
            event_time="ts",
            arrival="ts",
            speed=1.0,
        )
        for name, at_s in times_s.items()
    ]
    operators = []
    for j in range(count):
        kind = str(rng.choice(list(kinds), p=np.array(list(kinds.values())) / sum(kinds.values())))
        first, second = (streams[int(n)] for n in rng.choice(len(streams), 2, replace=False))
        # One of four goes on to something else, too; and two are left, for all that come in pairs.
        if len(streams) > 2 and rng.random() > 0.25:
            streams.remove(first)
        name = f"{kind}{j}"
        made = _step(kind, name, first, second, column=f"x{j}", most=float(rng.uniform(0.3, 0.9)))
        if kind in (MAPS, FILTERS):
            streams.append(made)
        else:
            made.sink(f"out-{j}", sw.collect_sink())
        operators.append(name)
    for number, stream in enumerate(streams):
        stream.select("n").sink(f"out-of-{number}", sw.collect_sink())
    return flow, operators


def _step(
    kind: str, name: str, first: sw.Stream, second: sw.Stream, *, column: str, most: float
) -> sw.Stream:
    """Return what an operator makes of one stream, or of two.

    Merges of two streams that come at different paces are the last of their way, as joins are:
    after them a channel steps back in stimulus time (docs/papers/mace-differences.md, "A FIFO per
    channel").
    """
    if kind == WINDOWS:
        counts = {"c": sw.count()}
        return first.aggregate(counts, window=sw.tumbling("1s"), by="k", slack="0s", name=name)
    if kind == JOINS:
        left, right = first.select("k", "n"), second.select("k", "n")
        pairs = left.join(right, on="k", within="100ms", slack="0s", keep="slack", name=name)
        return pairs.select("n")
    if kind == MERGES:
        return first.merge(second, name=name, slack="0s").select("n")
    gate = first.merge(name=name, slack="0s")
    if kind == FILTERS:
        return gate.filter(sw.col(column) < most)
    return gate.with_columns({column: sw.col(column) + 1.0})


def _rows(rng: np.random.Generator, at_s: Floats, *, columns: int) -> pa.Table:
    """Return rows whose columns are spread evenly, so that any thousand of them are like all.

    How far off statistics of a sample are is what `mace-training` measures.
    """
    n = np.arange(len(at_s))
    drawn = {f"x{j}": (n + int(rng.integers(p))) % p / p for j, p in enumerate(PRIMES[:columns])}
    ts = np.rint(at_s * NS_PER_SECOND).astype("int64")
    return pa.table({"ts": pa.array(ts, pa.timestamp("ns")), "n": n, "k": n * 7 % 20, **drawn})
