"""Limits(fuse=False): every step is a stage, and results are the same."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.errors import SettingError
from slackwater.runtime.plan.plan import plan_stages

ROWS = pa.table({"ts": list(range(40)), "v": [float(n % 7) for n in range(40)]})


def flow() -> sw.Dataflow:
    made = sw.Dataflow("f")
    rows = made.source("rows", sw.table(ROWS), event_time="ts", time_unit="s")
    few = rows.filter(sw.col("v") > 2, name="few").with_columns(w=sw.col("v") * 2, name="twice")
    sums = few.aggregate(window=sw.tumbling("5s"), w=sw.sum("w"), name="sums")
    sums.select("w", name="bare").sink("out", sw.collect_sink())
    return made


def test_steps_without_state_are_stages_of_their_own_if_told() -> None:
    assert [s.name for s in plan_stages(flow().graph)] == ["rows", "sums", "out"]
    apart = plan_stages(flow().graph, fuse=False)
    assert [s.name for s in apart] == ["rows", "few", "twice", "sums", "bare", "out"]
    assert not any(stage.chain for stage in apart)


def test_results_are_the_same_and_each_step_is_placed_and_timed() -> None:
    found = []
    for limits in (sw.Limits(), sw.Limits(fuse=False)):
        with sw.Simulation(nodes=2) as nodes:
            placement = {} if limits.fuse else {"twice": "node-2"}
            job = nodes.submit(flow(), limits=limits, placement=placement)
            report = job.wait()
            found.append(job.result("out"))
    assert found[0].equals(found[1])
    stage = next(s for s in report.stages if s.name == "twice")
    assert (stage.node, stage.rows_in, stage.rows_out) == ("node-2", 22, 22)
    assert stage.service_ns > 0


@pytest.mark.parametrize("replicas", [1, 2])
def test_ties_are_in_one_order_whether_steps_are_fused_or_not(replicas: int) -> None:
    found = []
    for fuse in (True, False):
        made = sw.Dataflow("ties")
        one, two, three = (
            made.source(
                name,
                sw.table(pa.table({"ts": [0, 0, 1], "id": [n, n + 10, n + 20]})),
                event_time="ts",
                time_unit="s",
            )
            for n, name in enumerate(("a", "b", "c"))
        )
        kept = one.filter(sw.col("id") >= 0).dedupe("id", within="1s", replicas=replicas)
        other = two.filter(sw.col("id") < 99).merge(three)
        merged = kept.filter(sw.col("id") < 99).merge(other.filter(sw.col("id") >= 0))
        merged.dedupe("id", within="1s").sink("out", sw.collect_sink())
        with sw.Simulation(nodes=1) as nodes:
            job = nodes.submit(made, limits=sw.Limits(fuse=fuse))
            job.wait()
            found.append(job.result("out")["id"].to_pylist())
    assert len(found[0]) == 9
    assert found[0] == found[1]


def test_it_travels_with_the_limits_and_is_a_bool() -> None:
    assert not pickle.loads(pickle.dumps(sw.Limits(fuse=False))).fuse  # noqa: S301 our own
    with pytest.raises(SettingError, match="fuse=0 must be True or False"):
        sw.Limits(fuse=0)  # type: ignore[arg-type]
