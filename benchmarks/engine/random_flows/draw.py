"""A whole flow by a seed and a number: its sources, steps and sinks, and what must be in each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import slackwater as sw
from benchmarks.engine.random_flows.in_sql import SQL_STEPS
from benchmarks.engine.random_flows.lookups import looked_up, looked_up_again
from benchmarks.engine.random_flows.sources import draw_source, draw_types
from benchmarks.engine.random_flows.sql import Step
from benchmarks.engine.random_flows.steps import STEPS
from benchmarks.engine.random_flows.tables import TABLE_STEPS, split_updates
from benchmarks.engine.random_flows.twin import TIME, Twin, one_of
from benchmarks.engine.random_flows.windows_in_sql import WINDOW_STEPS

MOST_STEPS = 9
OF_ROWS: dict[str, Step] = {
    **STEPS,
    **SQL_STEPS,
    **WINDOW_STEPS,
    "reread": looked_up_again,
}
"""Steps whose input must not change."""
OF_ALL: dict[str, Step] = {**TABLE_STEPS, "lookup": looked_up}
DRAWN = {**OF_ROWS, **OF_ALL}


@dataclass
class DrawnFlow:
    """A flow, and what must be true of a run of it.

    Attributes:
        answers: {sink: its rows as pandas has them}.
        late: rows that the sources drop as late.
        kinds: kinds of its steps, of DRAWN, in order.
        settings: of the simulator: nodes, seed, models.
        limits: of memory and slices.
    """

    flow: sw.Dataflow
    answers: dict[str, Twin] = field(default_factory=dict)
    late: int = 0
    kinds: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    limits: sw.Limits = field(default_factory=sw.Limits)

    def simulated(self) -> sw.testing.SimulatedJob:
        """Return a run of it in the simulator, to be waited for."""
        return sw.Simulation(**self.settings).submit(self.flow, limits=self.limits)


def draw_flow(seed: int, number: int, *, most_rows: int = 150) -> DrawnFlow:
    """Return the flow of this number; the same whenever it is drawn."""
    rng = np.random.default_rng([seed, number])
    drawn = DrawnFlow(sw.Dataflow(f"random-{seed}-{number}"))
    types = draw_types(rng)
    twins: list[Twin] = []
    for _ in range(int(rng.integers(1, 4))):
        own = types if rng.random() < 0.8 else draw_types(rng)
        twin, late = draw_source(rng, drawn.flow, own, most_rows=most_rows)
        twins.append(twin)
        drawn.late += late
    for _ in range(int(rng.integers(1, MOST_STEPS))):
        # New ones are taken more often than old ones, so that flows are deep, and fan out.
        kind = one_of(rng, list(DRAWN))
        usable = [t for t in twins if not t.is_last and (kind in OF_ALL or not t.is_table)]
        if kind in OF_ALL and rng.random() < 0.5:
            usable = [t for t in usable if t.is_table] or usable
        recent = usable if rng.random() < 0.4 else usable[-2:]
        made = DRAWN[kind](rng, recent)
        if made is not None:
            drawn.kinds.append(kind)
            twins += made if isinstance(made, list) else [made]
    read = {name for step in drawn.flow.steps.values() for name in step.inputs}
    for twin in twins:
        if twin.stream.name not in read or rng.random() < 0.15:
            _end(rng, drawn, twin)
    drawn.settings, drawn.limits = _settings(rng), _limits(rng)
    return drawn


def _end(rng: np.random.Generator, drawn: DrawnFlow, twin: Twin) -> None:
    """Give it a sink, half of them with the rows' event times."""
    name = f"out-{len(drawn.answers) + 1}"
    if twin.changes == "whole" and rng.random() < 0.3:
        twin = split_updates(twin)
    if rng.random() < (0.8 if twin.is_table else 0.5) and "t" not in twin.stream.columns:
        stream = twin.stream.with_columns(t=sw.event_time())
        rows = twin.rows.assign(t=twin.rows[TIME])
        twin = replace(twin, stream=stream, schema=stream.schema, rows=rows)
    twin.stream.sink(name, sw.collect_sink())
    drawn.answers[name] = twin


def _settings(rng: np.random.Generator) -> dict[str, Any]:
    """Return how the simulator is to run it: its nodes, delays and costs."""
    return {
        "nodes": int(rng.integers(1, 5)),
        "seed": int(rng.integers(1 << 30)),
        "link": sw.testing.LinkModel(jitter_ns=int(one_of(rng, [0, 10**5, 10**8]))),
        "cost": sw.testing.CostModel(jitter=float(one_of(rng, [0, 1, 20]))),
    }


def _limits(rng: np.random.Generator) -> sw.Limits:
    """Return limits so small that slices are cut, and sources and stages wait for credit."""
    return sw.Limits(
        credit_rows=int(one_of(rng, [16, 200, 65_536])),
        gate_rows=int(one_of(rng, [30, 262_144])),
        min_slice_rows=int(one_of(rng, [7, 1_000])),
        max_slice_rows=int(one_of(rng, [10, 10_000])),
    )
