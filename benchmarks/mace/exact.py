"""Predictions from the loads as they were: what is still off is not the statistics' fault.

Rows of each subinterval are counted by rules written here, not by running anything.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pyarrow as pa

from benchmarks.mace.load import Floats
from benchmarks.mace.query import SLIDE_S, STAGES, Bools, chosen
from benchmarks.mace.trial import Queries
from slackwater.runtime.foresight import (
    LatencyEstimate,
    QueryGraph,
    QueryOperator,
    Workload,
    estimate_latency,
)
from slackwater.runtime.foresight.query_graph import arrivals_of
from slackwater.runtime.model import NS_PER_SECOND

FED_BY = {
    **{name: (before,) for before, name in pairwise(STAGES[:9])},
    "visitors": ("person",),
    "both": ("men", "visitors"),
    "share": ("both",),
    "report": ("share",),
    "out": ("report",),
}


Kept = Callable[[Bools], Floats]
"""Which events stay -> how much of each is counted, shape (events,)."""


def exact(queries: Queries, width_s: float) -> LatencyEstimate:
    """Return what is predicted where costs and loads are known exactly."""
    graph, work = loads_of(queries, width_s, _as_they_were)
    return estimate_latency(graph, work, queries.placement, dict.fromkeys(queries.nodes, 1.0))


def _as_they_were(stays: Bools) -> Floats:
    return stays.astype(np.float64)


def loads_of(queries: Queries, width_s: float, kept: Kept) -> tuple[QueryGraph, Workload]:
    """Return what there is to do, by subinterval: costs are exact, and so are arrivals.

    Args:
        queries: what runs.
        width_s: w.
        kept: what is known of which events stay.
    """
    count = int(queries.duration_s / width_s) + 2
    operators, sources = [], []
    arrivals: dict[str, Floats] = {}
    for number, table in enumerate(queries.tables, start=1):
        rows = _rows_out(table, queries.domain, width_s, count, kept)
        source = arrivals_of(f"{number}.visits")
        sources.append(source)
        arrivals[source] = rows["visits"]
        for name in STAGES:
            stage = f"{number}.{name}"
            inputs = tuple(f"{number}.{one}" for one in FED_BY.get(name, ())) or (source,)
            cost_s = queries.costs_ns[stage] / NS_PER_SECOND
            arrivals[stage] = rows[name]
            operators.append(
                QueryOperator(
                    name=stage,
                    inputs=inputs,
                    cost_s=(cost_s,) * len(inputs),
                    selectivity=(1.0,) * len(inputs),
                )
            )
    loads = [
        sum(cost * arrivals[name] for cost, name in zip(one.cost_s, one.inputs, strict=True))
        for one in operators
    ]
    graph = QueryGraph(tuple(sources), tuple(operators))
    return graph, Workload(width_s, arrivals, np.stack(loads))


def _rows_out(
    table: pa.Table, domain: str, width_s: float, count: int, kept: Kept
) -> dict[str, Floats]:
    """Return {stage: rows that leave it in each subinterval of stimulus time}."""
    at_s = table["ts"].to_numpy() / NS_PER_SECOND
    within, is_of = chosen(table, domain)

    def counted(times_s: Floats, weights: Floats | None = None) -> Floats:
        places = np.minimum((times_s / width_s).astype(np.int64), count - 1)
        return np.bincount(places, weights, minlength=count).astype(np.float64)

    # A window leaves with the first event behind its end, whoever that is of.
    ends_s = np.arange(SLIDE_S, at_s[-1], SLIDE_S)
    windows = counted(at_s[np.searchsorted(at_s, ends_s)])
    each = counted(at_s)
    inside, chosen_rows = counted(at_s, kept(within)), counted(at_s, kept(is_of))
    return {
        **dict.fromkeys(("visits", "page", "host", "path"), each),
        **dict.fromkeys(("within", "domain"), inside),
        **dict.fromkeys(("of_domain", "person"), chosen_rows),
        **dict.fromkeys(("men", "visitors", "both", "share", "report", "out"), windows),
    }
