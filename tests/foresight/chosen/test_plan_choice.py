"""Which plan is chosen, and how a user takes it: the cost of work is known exactly here."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import slackwater as sw
from slackwater.cli.main import app
from slackwater.runtime.config import Limits
from slackwater.runtime.foresight import QueryGraph
from slackwater.runtime.foresight.chosen.plan_choice import Sampler, choose_plan
from slackwater.runtime.foresight.curves import JoinCurve
from slackwater.runtime.foresight.observations import StageObservations
from slackwater.runtime.foresight.observed.flow_sample import FlowSample
from slackwater.runtime.foresight.observed_graph import observed_graph
from slackwater.runtime.prepare.prepare import prepare
from slackwater.sampling import sample_flow
from tests.support.filtered_flows import written

COUNT = 400


def ticks() -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "ts": pa.array(np.arange(COUNT) * 10**6, pa.timestamp("ns")),
            "k": rng.integers(0, 2, COUNT),
            "x": rng.random(COUNT),
            "review": rng.random(COUNT),
        }
    )


def stocks() -> sw.Dataflow:
    flow = sw.Dataflow("stocks")
    falling = flow.source("ticks", sw.table(ticks()), event_time="ts").filter(
        sw.col("x") < 0.2, name="falling"
    )
    pairs = falling.join(falling, on="k", within="1s", name="pairs")
    good = (sw.col("review") < 0.2) & (sw.col("review_right") < 0.2)
    pairs.filter(good, name="good").sink("out", sw.collect_sink())
    return flow


def costing(row_s: dict[str, float], pairs: JoinCurve | None = None) -> Sampler:
    """Return a sampler that counts rows, and takes what a row costs a step from here.

    A stage costs what its steps cost, each for the rows that come to it; `pairs` may have a curve
    where it is a stage of its own.
    """

    def sampled(flow: sw.Dataflow, limits: Limits) -> FlowSample:
        sample = sample_flow(flow, rows=COUNT, limits=limits)
        planned = {stage.name: stage for stage in prepare(flow, ["here"], limits=limits).stages}
        apart = sample_flow(flow, rows=COUNT, limits=Limits(fuse=False))
        rows = {stage.name: stage.rows_in for stage in apart.stages}
        stages = []
        for one in sample.stages:
            steps = [planned[one.name].step, *planned[one.name].chain]
            cost_s = sum(row_s.get(step.name[:4], 0.0) * rows[step.name] for step in steps)
            lengths = [max(one.rows_in, 1)]
            stages.append(
                StageObservations(
                    name=one.name,
                    inputs=one.inputs,
                    rows_in=one.rows_in,
                    rows_out=one.rows_out,
                    rows=lengths,
                    busy_s=[cost_s],
                )
            )
        graph = observed_graph(stages, slice_s=1e9)
        if pairs is not None and not limits.fuse:
            operators = [
                replace(one, curve=pairs) if one.name == "pairs" else one for one in graph.operators
            ]
            graph = QueryGraph(graph.sources, tuple(operators))
        return FlowSample(graph, sample.rows, 0.0, tuple(stages))

    return sampled


def test_a_dear_filter_goes_behind_what_drops_much_and_before_what_makes_much() -> None:
    flow = stocks()
    row_s = {"tick": 1e-4, "fall": 1e-4, "pair": 1e-3, "good": 1e-2}
    host = sw.Simulation(nodes=1)
    choice = choose_plan(host, flow, 100, sample=costing(row_s))
    assert choice.written.prediction.estimate.is_unbounded
    best = choice.chosen
    assert best.rewrites == (
        "split good",
        "good.1 before pairs",
        "good.2 before pairs",
        "share good.1, good.2",
    )
    assert not best.prediction.estimate.is_unbounded
    assert best.cores < 0.6
    assert choice.written.cores > 1
    job, other = host.submit(flow), host.submit(best.flow)
    assert written(job.result("out")) == written(other.result("out"))
    assert written(other.result("out")) == written(
        host.submit(sw.rewritten(flow, *best.rewrites)).result("out")
    )
    text = choice.text()
    assert "as written" in text
    assert 'submit(sw.rewritten(flow, "split good", "good.1 before pairs"' in text
    plain = json.loads(json.dumps(choice.to_json()))
    assert plain["chosen"] == list(best.rewrites)
    assert plain["considered"][0]["worst_s"] is None  # without bound


def test_a_cheap_filter_goes_to_the_source() -> None:
    row_s = {"tick": 1e-4, "fall": 1e-3, "pair": 1e-3, "good": 1e-6}
    choice = choose_plan(sw.Simulation(nodes=1), stocks(), 10, sample=costing(row_s))
    assert choice.chosen.rewrites[-1] == "good.1 before falling"


def test_plans_are_ranked_by_the_pairs_that_a_denser_stream_will_have() -> None:
    """A filter behind a join sees few pairs in a thin stream, and many in a dense one.

    The join itself costs next to nothing; before it, the filter sees every falling tick.
    """
    row_s = {"tick": 1e-6, "fall": 1e-6, "pair": 1e-6, "good": 1e-3}
    few = JoinCurve(within_s=1.0, row_s=(1e-6, 1e-6), pair_s=0.0, result=0.01)

    def best_at(rate: float, speed: float | None) -> tuple[str, ...]:
        ask = partial(choose_plan, sw.Simulation(nodes=1), stocks())
        found = ask(rate, sample=costing(row_s, few), speed=speed).found
        assert found is not None
        return found.plans[0][1].rewrites

    thin, dense = best_at(10, 1.0), best_at(10_000, 1.0)
    assert not any("before pairs" in one for one in thin)
    assert {"good.1 before pairs", "good.2 before pairs"} <= set(dense)
    assert best_at(10, None) == best_at(10_000, None)  # as dense as the sample, only faster


def test_a_flow_stays_as_it_is_written_where_nothing_is_gained() -> None:
    flow = sw.Dataflow("plain")
    rows = flow.source("ticks", sw.table(ticks()), event_time="ts")
    rows.filter(sw.col("x") < 0.5, name="falling").sink("out", sw.collect_sink())
    choice = sw.Simulation(nodes=1).choose_plan(flow, 100)
    assert choice.chosen is choice.written
    assert choice.text() == "plans       this one only: no filter may stand elsewhere"
    none = sw.Dataflow("none")
    none.source("ticks", sw.table(ticks()), event_time="ts").sink("out", sw.collect_sink())
    assert sw.Simulation(nodes=1).choose_plan(none, 100).considered[1:] == ()


def test_explain_with_rates_says_the_latency_and_the_plans() -> None:
    text = sw.Simulation(nodes=1).explain(stocks(), rates=100)
    assert text.index("falling (filter)") < text.index("latency     worst") < text.index("plans  ")
    assert "plans  " not in sw.Simulation(nodes=1).explain(stocks())


def test_plans_without_a_stage_that_is_placed_by_hand_are_left_out() -> None:
    flow = sw.Dataflow("forked")
    rows = flow.source("ticks", sw.table(ticks()), event_time="ts")
    rows.sink("all", sw.collect_sink())
    near = rows.with_columns(y=sw.col("x") * 2, name="near").filter(sw.col("x") < 0.1, name="late")
    near.sink("out", sw.collect_sink())
    host = sw.Simulation(nodes=2)
    free = host.choose_plan(flow, 100)
    assert [one.rewrites for one in free.considered] == [(), ("late before near",)]
    # `late` is the stage then, and there is none called `near`.
    by_hand = host.choose_plan(flow, 100, placement={"near": "node-2"})
    assert [one.rewrites for one in by_hand.considered] == [()]


FLOW = """
import numpy as np, pyarrow as pa
import slackwater as sw
ts = pa.array(np.arange(2000) * 1_000_000, pa.timestamp("ns"))
table = pa.table({"ts": ts, "n": np.arange(2000), "k": np.arange(2000) % 7})
flow = sw.Dataflow("typed")
a = flow.source("a", sw.table(table), event_time="ts")
pairs = a.join(a, on="k", within="200ms", name="pairs")
pairs.filter(sw.col("n") < 100, name="few").sink("out", sw.collect_sink())
"""


@pytest.mark.parametrize("as_json", [False, True])
def test_the_command_line_prints_the_plans_considered(tmp_path: Path, as_json: bool) -> None:
    (tmp_path / "flow.py").write_text(FLOW, encoding="utf-8")
    words = ["plan", str(tmp_path / "flow.py"), "--rate", "1000", *(["--json"] if as_json else [])]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    if as_json:
        plans = json.loads(done.output)["plans"]
        assert plans["considered"][0]["rewrites"] == []
        assert ["few before pairs"] in [one["rewrites"] for one in plans["considered"]]
    else:
        assert "the same results of each" in done.output
        assert "few before pairs" in done.output
