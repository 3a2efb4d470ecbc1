"""Parts of steps: one sample shows any number of replicas and of source stages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from slackwater.runtime.foresight.observed.parts import as_sampled, divided, part_shares
from slackwater.runtime.foresight.query_graph import Workload, arrivals_of
from slackwater.runtime.model.hashes import KEY_GROUPS, even_groups, groups_owned
from slackwater.runtime.prepare.prepare import prepare
from slackwater.sampling import sample_flow

ROWS = 4_000


def folder(path: Path, *, files: int, keys: np.ndarray) -> Path:
    """Write files that overlap in time, each with its share of these keys."""
    rng = np.random.default_rng(1)
    for number, part in enumerate(np.array_split(keys, files)):
        times = np.sort(rng.integers(0, 10_000_000_000, len(part)))
        columns = {"ts": pa.array(times, pa.timestamp("ns")), "k": part, "x": part * 0.5}
        pq.write_table(pa.table(columns), path / f"{number}.parquet")
    return path


def counting(path: Path, replicas: int | str) -> sw.Dataflow:
    """Return means of keys over files in partitions."""
    flow = sw.Dataflow("counting")
    ticks = flow.source("ticks", sw.parquet(path, partitions="files"), event_time="ts")
    means = ticks.key_by("k").aggregate(
        window=sw.tumbling("1s"),
        mean=sw.mean("x"),  # of floats: rows are sent, not partial results
        name="means",
        replicas=replicas,  # type: ignore[arg-type]
    )
    means.sink("out", sw.collect_sink())
    return flow


@pytest.mark.parametrize("slots", [1, 3, 8])
def test_parts_together_have_the_work_and_the_rows_of_their_step(
    tmp_path: Path, slots: int
) -> None:
    keys = np.random.default_rng(2).integers(0, 40, ROWS)
    flow = counting(folder(tmp_path, files=4, keys=keys), "auto")
    sample = sample_flow(flow, cost=sw.testing.CostModel())
    plan = prepare(flow, [f"node-{n}" for n in range(slots)])
    parted = divided(sample, plan)
    assert parted.graph.names == tuple(stage.name for stage in plan.stages)
    shares = part_shares(plan, sample)

    def work(graph: object, arrivals: dict[str, np.ndarray]) -> Workload:
        return Workload.of(graph, arrivals, 0.1)  # type: ignore[arg-type]

    even = np.full(50, 100.0)
    whole = work(sample.graph, {arrivals_of("ticks"): even})
    parts = work(
        parted.graph,
        {
            arrivals_of(stage.name): even * shares[stage.name]
            for stage in plan.stages
            if not stage.inputs
        },
    )
    assert parts.load_s.sum() == pytest.approx(whole.load_s.sum())
    assert parts.arrivals["out"] == pytest.approx(whole.arrivals["out"])
    assert sum(shares[stage.name] for stage in plan.stages if not stage.inputs) == pytest.approx(1)


def test_a_replica_has_the_share_of_its_groups_of_keys(tmp_path: Path) -> None:
    hot = np.where(np.random.default_rng(3).random(ROWS) < 0.5, 7, np.arange(ROWS))
    flow = counting(folder(tmp_path, files=1, keys=hot), 4)
    sample = sample_flow(flow, rows=2_000, cost=sw.testing.CostModel())
    rows = sample.key_rows["means"]
    assert rows.sum() == pytest.approx(2_000, rel=0.1)
    plan = prepare(flow, ["a", "b", "c", "d"])
    shares = part_shares(plan, sample)
    replicas = [shares[f"means.{n}"] for n in range(1, 5)]
    assert sum(replicas) == pytest.approx(1)
    groups = tuple(plan.key_groups.values())
    seen = [float(rows[groups_owned(n, groups)].sum() / rows.sum()) for n in range(4)]
    assert replicas == pytest.approx(seen, abs=0.05)
    assert max(replicas) == pytest.approx(0.667, abs=0.05)  # the hot key, and a third of the rest
    assert min(replicas) == 0  # its slot reads the source


def test_differences_that_chance_explains_are_no_skew(tmp_path: Path) -> None:
    keys = np.random.default_rng(4).integers(0, 1_000_000, ROWS)
    flow = counting(folder(tmp_path, files=1, keys=keys), 64)
    sample = sample_flow(flow, cost=sw.testing.CostModel())
    plan = prepare(flow, [f"node-{n}" for n in range(64)])
    shares = part_shares(plan, sample)
    owned = {name: count for name, count in plan.key_groups.items() if count}
    largest = max(shares[name] / count for name, count in owned.items())
    assert sample.key_rows["means"].reshape(64, 2).sum(axis=1).max() > 1.5 * ROWS / 4 / 64
    assert largest < 1.3 / KEY_GROUPS


@pytest.mark.parametrize("replicas", [1, 2, 3, 7, 64, KEY_GROUPS])
def test_replicas_own_all_groups_once(replicas: int) -> None:
    owned = np.concatenate([groups_owned(n, even_groups(replicas)) for n in range(replicas)])
    assert owned.tolist() == list(range(KEY_GROUPS))


def test_a_sample_of_any_number_of_replicas_is_of_two(tmp_path: Path) -> None:
    path = folder(tmp_path, files=1, keys=np.arange(ROWS))
    for replicas, few in ((1, 1), (2, 2), (64, 2), ("auto", 2)):
        step = as_sampled(counting(path, replicas)).steps["means"]
        assert step.traits.sharing.replicas == few
