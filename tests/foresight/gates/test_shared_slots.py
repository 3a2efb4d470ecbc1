"""Gates and sources in the same slots, predicted beside the runtime in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.foresight import QueryGraph, QueryOperator, Workload
from slackwater.runtime.foresight.gates import GatedEstimate, GatedFlow, SourceTimes, estimate_gated
from slackwater.runtime.foresight.gates.gated import gated_operators
from slackwater.runtime.foresight.held_up import HeldBack, held_up
from slackwater.runtime.foresight.query_graph import arrivals_of
from slackwater.runtime.model import NS_PER_SECOND, Batch
from slackwater.runtime.prepare.prepare import prepare
from slackwater.runtime.simulate import CostModel, LinkModel, Simulation

WIDTH_S = 0.1
GAP_S = 0.02
SECONDS = 16
LIMITS = Limits(
    fuse=False,
    credit_rows=1_000_000,
    min_slice_rows=4,
    max_slice_rows=4,
    source_gap_ns=1,
)


@dataclass(frozen=True, eq=False)
class Case:
    """Two sources that are merged, a third one beside them.

    ```
    prompt ─ both (gate) ─ out
    late ──┘                     beside ─ own
    ```

    Attributes:
        times_s: {source: (arrivals, event times)}, shape (rows,) each.
        costs_s: {stage: seconds for a row}.
        placement: {stage: slot}.
        slack: of the gate.
    """

    times_s: Mapping[str, tuple[np.ndarray, np.ndarray]]
    costs_s: Mapping[str, float]
    placement: Mapping[str, str]
    slack: str | None


def lagging(lag_s: float) -> np.ndarray:
    """Return how late each row is: more and more for 6 s; all that are late then come at once."""
    event_s = np.arange(0, SECONDS, GAP_S)
    up, down = (event_s - 4) * lag_s / 6, lag_s - (event_s - 10)
    return np.clip(np.minimum(up, down), 0, lag_s)


def case(
    lag_s: float,
    costs_s: Mapping[str, float],
    placement: Mapping[str, str],
    *,
    slack: str | None,
) -> Case:
    """Return rows every 20 ms; those beside come twice as densely in seconds 6 to 9."""
    event_s = np.arange(0, SECONDS, GAP_S)
    busy_s = np.arange(6, 9, GAP_S) + GAP_S / 2
    beside_s = np.sort(np.concatenate([event_s, busy_s]))
    late_s = np.maximum.accumulate(event_s + lagging(lag_s))
    times_s = {
        "prompt": (event_s, event_s),
        "late": (late_s, event_s),
        "beside": (beside_s, beside_s),
    }
    return Case(times_s, costs_s, placement, slack)


def measured(one: Case) -> tuple[np.ndarray, np.ndarray]:
    """Return each result's stimulus and latency, seconds, in the simulator."""
    flow = sw.Dataflow("shared", slack=one.slack)
    streams = {}
    for name, (at_s, event_s) in one.times_s.items():
        stamps = [np.round(each * NS_PER_SECOND).astype(np.int64) for each in (event_s, at_s)]
        table = pa.table({"ts": stamps[0], "arrival": stamps[1]})
        streams[name] = flow.source(
            name, sw.table(table), event_time="ts", arrival="arrival", speed=1.0
        )
    both = flow.merge(streams["prompt"], streams["late"], name="both")
    both.sink("out", sw.callback_sink(print))
    streams["beside"].sink("own", sw.callback_sink(print))
    plan = prepare(
        flow, sorted(set(one.placement.values())), placement=one.placement, limits=LIMITS
    )
    stimuli: list[np.ndarray] = []
    latencies: list[np.ndarray] = []

    def leaves(sink: str, batch: Batch | None, is_end: bool) -> None:
        del sink, is_end
        if batch is not None:
            at_s = batch.stimulus_time_ns / NS_PER_SECOND
            stimuli.append(at_s)
            latencies.append(run.now_ns / NS_PER_SECOND - at_s)

    costs_ns = {name: cost * NS_PER_SECOND for name, cost in one.costs_s.items()}
    model = CostModel(per_slice_ns=0, stages=costs_ns)
    run = Simulation(plan, egress=leaves, cost=model, link=LinkModel(delay_ns=0))
    run.run()
    return np.concatenate(stimuli), np.concatenate(latencies)


def predicted(one: Case) -> GatedEstimate:
    """Return the estimate, from the true costs and times."""
    inputs = {"both": ("prompt", "late"), "out": ("both",), "own": ("beside",)}
    names = ("prompt", "late", "beside", "both", "out", "own")
    operators = tuple(
        QueryOperator(
            name=name,
            inputs=fed,
            cost_s=(one.costs_s[name],) * len(fed),
            selectivity=(1.0,) * len(fed),
        )
        for name in names
        for fed in (inputs.get(name, (arrivals_of(name),)),)
    )
    graph = QueryGraph(tuple(arrivals_of(name) for name in one.times_s), operators)
    flow = sw.Dataflow("gates", slack=one.slack)
    streams = [
        flow.source(name, sw.table(pa.table({"ts": np.arange(2)})), event_time="ts")
        for name in ("prompt", "late")
    ]
    flow.merge(*streams, name="both").sink("out", sw.callback_sink(print))
    gated = gated_operators(prepare(flow, ["a"], limits=LIMITS).stages)
    sources = {
        name: SourceTimes.in_order(at_s, event_s, ends=True).series()
        for name, (at_s, event_s) in one.times_s.items()
    }
    d = int(max(at_s[-1] for at_s, _ in one.times_s.values()) / WIDTH_S) + 1
    slots = sorted(set(one.placement.values()))
    return estimate_gated(
        GatedFlow(graph=graph, gated=gated, sources=sources),
        one.placement,
        dict.fromkeys(slots, 1.0),
        d=d,
        width_s=WIDTH_S,
    )


def test_older_rows_that_come_late_take_the_time_from_then_on() -> None:
    stages = (("gate", "held", 0.0), ("out", "gate", 0.05), ("x", "new", 0.1))
    graph = QueryGraph(
        ("held", "new"),
        tuple(
            QueryOperator(name=name, inputs=(fed,), cost_s=(cost_s,), selectivity=(1.0,))
            for name, fed, cost_s in stages
        ),
    )
    held, new = np.array([0.0, 0, 0, 10, 0, 0]), np.array([12.0, 12, 12, 12, 0, 0])
    work = Workload(
        1.0,
        {"held": held, "new": new, "gate": held, "out": held, "x": new},
        np.stack([0 * held, 0.05 * held, 0.1 * new]),
    )
    begins_s = np.arange(6.0)
    urgency_s = np.array([0.0, 0.5, 0.5, 0.5, 4, 5])
    gates = {0: HeldBack([held], begins_s, urgency_s)}
    found = held_up(graph, work, [1, 0, 0], np.ones(2), gates=gates)
    assert found.finished_s[1, 3] == pytest.approx(4.0)  # let go evenly from 3 to 4: no wait
    assert found.finished_s[2, 2] == pytest.approx(3.6 + 0.5, abs=0.1)  # x of second 2 is newer
    assert found.finished_s[2, 3] == pytest.approx(4.8 + 0.5)
    again = held_up(graph, work, [1, 0, 0], np.ones(2), gates=gates, before=found)
    assert again.finished_s == pytest.approx(found.finished_s)


FREE = dict.fromkeys(("prompt", "late", "beside", "both", "out", "own"), 1e-6)
APART = {"prompt": "a", "late": "b", "beside": "c", "both": "d", "out": "e", "own": "f"}
SHARED: dict[str, tuple[dict[str, str], dict[str, float]]] = {
    "another source and the sink": ({"beside": "e"}, {"beside": 0.008, "out": 0.005}),
    "the late source and the sink": ({"late": "e"}, {"late": 0.008, "out": 0.004}),
    "the prompt source and the sink": ({"prompt": "e"}, {"prompt": 0.006, "out": 0.006}),
    "the late source and the gate": ({"late": "d"}, {"late": 0.008, "both": 0.004}),
}


@pytest.mark.parametrize("slack", [None, "1s"])
@pytest.mark.parametrize("who", SHARED)
def test_what_a_gate_lets_go_late_goes_before_what_is_newer_in_its_slot(
    who: str, slack: str | None
) -> None:
    """The late source is 3 s behind at last, and 150 of its rows come at once."""
    places, costs_s = SHARED[who]
    one = case(3.0, {**FREE, **costs_s}, {**APART, **places}, slack=slack)
    expected_s = predicted(one).latency.held_up_s
    stimulus_s, latency_s = measured(one)
    lat_s = np.full(len(expected_s), np.nan)
    cells = np.minimum((stimulus_s / WIDTH_S + 1e-9).astype(int), len(lat_s) - 1)
    np.fmax.at(lat_s, cells, latency_s)
    has = ~np.isnan(lat_s)
    assert expected_s[has].max() == pytest.approx(lat_s[has].max(), abs=2 * WIDTH_S)
    # Of a slack, at the gate's own slot, it is not told which input's rows are the older ones.
    is_rough = (who, slack) == ("the late source and the gate", "1s")
    off_s = 1.1 * WIDTH_S if is_rough else WIDTH_S / 2
    assert np.abs(expected_s - lat_s)[has].mean() <= off_s
