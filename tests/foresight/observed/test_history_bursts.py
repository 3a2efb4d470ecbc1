"""Histories that are long, or end behind: bursts are seen, and placements compared as they end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.provisioning import fewest_nodes
from slackwater.runtime.foresight.chosen.placements import (
    better_of,
    coarser,
    linked_placement,
    links_matter,
)
from slackwater.runtime.foresight.predicted.predicting import ahead_of
from slackwater.runtime.simulate import CostModel, LinkModel
from slackwater.sampling import sample_of_history
from tests.foresight.observed.test_history import tuning, worst_s
from tests.support.known_work import MS

COST = CostModel(per_slice_ns=0, per_row_ns=1_000, stages={"gate": 2 * MS, "gate-2": 2 * MS})


def gated(at_s: np.ndarray, *names: str, deadline: str = "60s") -> sw.Dataflow:
    """Return a flow in which the same rows come to each of some gates."""
    flow = sw.Dataflow("bursts", deadline=deadline)
    table = pa.table(
        {
            "ts": pa.array((at_s * 1e9).astype("int64"), pa.timestamp("ns")),
            "n": np.arange(len(at_s)),
        }
    )
    for name in names or ("gate",):
        rows = flow.source(f"of-{name}", sw.table(table), event_time="ts", arrival="ts", speed=1)
        rows.merge(name=name).sink(f"out-{name}", sw.collect_sink())
    return flow


def test_bursts_of_a_long_history_make_rows_wait_as_those_of_a_short_one_do(tmp_path: Path) -> None:
    """300 rows of 2 ms at once, every 1.5 s, for a minute and a half: each time 0.6 s of work."""
    flow = gated(np.repeat(np.arange(60) * 1.5, 300))
    host = sw.Simulation(1, cost=COST)
    report = host.submit(flow, tuning=tuning(tmp_path)).wait()
    made = host.predict(flow, history=tmp_path)
    recorded = sample_of_history(flow, tmp_path).recorded
    assert made.work.width_s == pytest.approx(0.1)
    assert ahead_of(recorded, "15min", None) == ("15min", 0.1)
    assert made.worst_s == pytest.approx(worst_s(report), abs=0.101), "all come within a tenth"
    assert made.has_backlog


def test_two_bursts_at_once_are_placed_apart_however_long_the_history_is(tmp_path: Path) -> None:
    flow = gated(np.repeat(np.arange(4) * 1.5, 300), "gate", "gate-2")
    host = sw.Simulation(2, cost=COST)
    host.submit(flow, tuning=tuning(tmp_path), placement={"*": "node-1"}).wait()
    made = host.predict(flow, history=tmp_path, horizon="60s")
    wide = host.predict(flow, history=tmp_path, width="1.5s")
    assert made.plan.slots["gate"] != made.plan.slots["gate-2"]
    assert made.worst_s < 0.7
    looked_at = coarser(made, most=300)
    assert coarser(made) is made
    assert looked_at.work.load_s.shape[1] == 300
    assert looked_at.work.load_s.sum() == pytest.approx(made.work.load_s.sum())
    assert looked_at.work.width_s == pytest.approx(0.2)
    assert wide.has_backlog == (max(one.worst_s for one in wide.estimate.nodes) > 0.1)


def test_long_links_matter_however_long_subintervals_are() -> None:
    assert links_matter(LinkModel(delay_ns=50 * MS), width_s=1.5)
    assert not links_matter(LinkModel(delay_ns=1 * MS), width_s=1.5)


def crowded(tmp_path: Path) -> tuple[sw.Simulation, sw.Dataflow]:
    """Two gates, each with 1.2 times what a core can do for as long as the record is."""
    flow = gated(np.arange(0, 10, 1 / 60), "gate", "gate-2")
    slow = {"gate": 20 * MS, "gate-2": 20 * MS}
    host = sw.Simulation(2, cost=replace(COST, stages=slow))
    together = {"*": "node-1"}
    host.submit(flow, tuning=tuning(tmp_path), placement=together).wait()
    return host, flow


def test_of_two_placements_that_end_behind_the_one_that_is_less_so_is_taken(tmp_path: Path) -> None:
    """The record ends, so both are bounded: 14 s for both gates on a slot, 2 s apart."""
    host, flow = crowded(tmp_path)
    together = host.predict(flow, history=tmp_path, placement={"*": "node-1"})
    apart = host.predict(flow, history=tmp_path, placement={"gate": "node-2", "gate-2": "node-1"})
    assert together.estimate.is_unbounded
    assert apart.estimate.is_unbounded
    assert apart.worst_s < together.worst_s / 3
    assert better_of(together, apart).plan is apart.plan
    assert host.predict(flow, history=tmp_path).considered["search"] == pytest.approx(2.0, abs=0.1)
    endless = [
        host.predict(flow, 120, history=tmp_path, placement=one.plan.slots)
        for one in (together, apart)
    ]
    assert better_of(*endless).plan is endless[0].plan, (
        "at a rate that stays both are without bound"
    )


def test_provision_says_of_a_record_how_far_behind_it_ends(tmp_path: Path) -> None:
    _, flow = crowded(tmp_path)
    found = fewest_nodes(flow, history=tmp_path, deadline_s=5.0)
    assert found.nodes is not None
    text = found.text()
    assert "fall" not in text
    assert "by the end of what is on record" in text
    assert "of what it can do, so it has a backlog then" in text


def test_over_thin_links_nothing_is_moved_while_nobody_knows_what_rows_weigh(
    tmp_path: Path,
) -> None:
    """A history does not say: they were taken to weigh nothing, and stages moved as if so."""
    host, flow = crowded(tmp_path)
    made = host.predict(flow, history=tmp_path, placement={"*": "node-1"})
    made = replace(made, plan=replace(made.plan, placed_by={}))
    thin = LinkModel(delay_ns=0, bytes_per_s=1_000)
    assert linked_placement(made, host.slots, thin, [made.plan.slots]) == dict(made.plan.slots)
    long = LinkModel(delay_ns=20 * MS)
    assert linked_placement(made, host.slots, long, [made.plan.slots]) != dict(made.plan.slots)
