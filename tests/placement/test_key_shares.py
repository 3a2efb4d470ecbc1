"""Key groups of replicas, by the work that their slots have already."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.model.hashes import KEY_GROUPS, even_groups
from slackwater.runtime.placement.key_shares import (
    balanced,
    balanced_groups,
    group_weights,
    poured,
    with_groups,
)
from slackwater.runtime.placement.placement_text import placement_lines
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.prepare.prepare import prepare

MANY = 20_000
TIMES = np.arange(MANY)
ROWS = pa.table({"ts": TIMES, "key": TIMES * 7 % 499, "v": TIMES / 4, "whole": TIMES % 1_000})


def reads(flow: sw.Dataflow, sources: int) -> list[sw.Stream]:
    return [
        flow.source(f"s{n}", sw.table(ROWS), event_time="ts", time_unit="ms")
        for n in range(sources)
    ]


def summed(stream: sw.Stream, replicas: Any, **functions: Any) -> sw.Stream:
    return stream.aggregate(
        by="key",
        window=sw.tumbling("1s"),
        name="m",
        replicas=replicas,
        **(functions or {"mean": sw.mean("v"), "n": sw.count()}),
    )


def averages(replicas: Any, **functions: Any) -> sw.Dataflow:
    flow = sw.Dataflow("f")
    summed(*reads(flow, 1), replicas, **functions).sink("out", sw.collect_sink())
    return flow


def plan_of(flow: sw.Dataflow, cores: int, nodes: int = 1) -> Plan:
    return sw.Simulation(nodes=nodes, cores=cores).plan(flow)


def shares(plan: Plan) -> list[int]:
    return list(plan.key_shares.values())


@given(st.lists(st.sampled_from([0, 0.25, 0.5, 1, 2]), min_size=1, max_size=64), st.integers(1, 4))
def test_poured_work_is_all_there_and_as_level_as_can_be(has: list[float], units: int) -> None:
    work = {f"slot-{n}": own for n, own in enumerate(has)}
    shares = poured(work, units)
    assert sum(shares.values()) == pytest.approx(units)
    level = max(work[slot] + share for slot, share in shares.items() if share)
    for slot, share in shares.items():
        assert work[slot] + share == pytest.approx(level) or (not share and work[slot] >= level)


@pytest.mark.parametrize("slots", range(2, 65))
def test_a_slot_that_reads_the_only_source_owns_no_keys(slots: int) -> None:
    plan = plan_of(averages("auto"), slots)
    own = plan.key_shares
    assert sum(own.values()) == sum(plan.key_groups.values()) == KEY_GROUPS
    assert len(own) == slots
    idle = [name for name, groups in own.items() if not groups]
    assert [plan.slots[name] for name in idle] == [plan.slots["s0"]]
    others = [groups for groups in own.values() if groups]
    assert max(others) - min(others) <= 1


def test_replicas_that_all_have_a_source_beside_them_have_equal_shares() -> None:
    assert shares(plan_of(averages(3), 1)) == list(even_groups(3))
    flow = sw.Dataflow("two")
    for n, stream in enumerate(reads(flow, 2)):
        stream.aggregate(
            by="key", window=sw.tumbling("1s"), name=f"m{n}", replicas=2, n=sw.count()
        ).sink(f"out{n}", sw.collect_sink())
    assert shares(plan_of(flow, 2)) == [64, 64, 64, 64]


def test_a_second_aggregate_fills_the_slot_that_the_first_left() -> None:
    flow = sw.Dataflow("f")
    (source,) = reads(flow, 1)
    for name in ("first", "second"):
        source.aggregate(
            by="key", window=sw.tumbling("1s"), name=name, replicas=2, mean=sw.mean("v")
        ).sink(f"out-{name}", sw.collect_sink())
    own = plan_of(flow, 2).key_shares
    assert sorted([own["first.1"], own["first.2"]]) == [0, 128]
    assert [own["second.1"], own["second.2"]] == [64, 64]


def test_elsewhere_all_replicas_have_equal_shares() -> None:
    flow = sw.Dataflow("paced")
    paced = flow.source("s", sw.table(ROWS), event_time="ts", time_unit="ms", arrival="ts", speed=9)
    summed(paced, 2).sink("out", sw.collect_sink())
    assert shares(plan_of(flow, 2)) == [64, 64]
    assert shares(plan_of(averages(2, m=sw.quantile("v", 0.5)), 2)) == [64, 64]
    flow = sw.Dataflow("tuned", deadline="1s")
    summed(*reads(flow, 1), 2).sink("out", sw.collect_sink())
    assert shares(plan_of(flow, 2)) == [64, 64]
    flow = sw.Dataflow("join")
    left, right = reads(flow, 2)
    left.join(right, on="key", within="1s", replicas=4).sink("out", sw.collect_sink())
    assert shares(plan_of(flow, 4)) == [32] * 4


shares_of_replicas = st.lists(
    st.sampled_from([0, 1, 1, 1, 3]), min_size=1, max_size=KEY_GROUPS
).filter(any)


def shares_by(parts: list[int]) -> tuple[int, ...]:
    """Return shares in 128th in proportion to these; without one, none."""
    stops = np.rint(np.cumsum([0, *parts]) / sum(parts) * KEY_GROUPS).astype(int)
    return tuple(np.diff(stops).tolist())


def weights_by(counts: list[int]) -> npt.NDArray[np.float64]:
    return group_weights(np.resize(np.array(counts, np.float64), KEY_GROUPS))


@given(shares_of_replicas, st.lists(st.integers(0, 10_000), min_size=1, max_size=KEY_GROUPS))
def test_each_replica_owns_half_to_twice_its_share_of_groups(
    parts: list[int], counts: list[int]
) -> None:
    wanted = shares_by(parts)
    own = balanced_groups(wanted, weights_by(counts))
    assert sum(own) == KEY_GROUPS
    for count, share in zip(own, wanted, strict=True):
        assert -(-share // 2) <= count <= 2 * share


@given(shares_of_replicas)
def test_groups_with_as_many_rows_are_owned_by_shares(parts: list[int]) -> None:
    wanted = shares_by(parts)
    assert balanced_groups(wanted, weights_by([7])) == wanted


@given(st.integers(2, 16), st.integers(0, 2**32))
def test_replicas_get_their_shares_to_half_a_group(replicas: int, seed: int) -> None:
    counts = np.random.default_rng(seed).integers(500, 1_500, KEY_GROUPS)
    weights = weights_by(counts.tolist())
    own = balanced_groups(even_groups(replicas), weights)
    stops = np.cumsum([0, *own])
    parts = np.add.reduceat(weights, stops[:-1])
    wanted = np.array(even_groups(replicas)) / KEY_GROUPS
    assert np.abs(parts - wanted).max() <= weights.max()


def test_the_others_divide_what_a_hot_group_leaves() -> None:
    counts = [10_000, *[80] * (KEY_GROUPS - 1)]
    own = balanced_groups((32, 32, 32, 32), weights_by(counts))
    assert own[0] == 16  # half of its share: a sample may be wrong
    assert max(own[1:]) - min(own[1:]) <= 1


def test_a_sample_decides_on_groups_once_and_is_noted() -> None:
    flow = sw.Dataflow("join")
    left, right = reads(flow, 2)
    left.join(right, on="key", within="1s", replicas=2, name="pairs").sink("o", sw.collect_sink())
    even = prepare(flow, ["a", "b"])
    rows = np.ones(KEY_GROUPS)
    rows[:32] = 1_000
    plan = balanced(even, {"pairs": rows, "another": rows})
    assert plan.key_groups == {"pairs.1": 32, "pairs.2": 96}
    assert plan.key_shares == even.key_groups == {"pairs.1": 64, "pairs.2": 64}
    assert plan.balances["pairs"].rows == 32_096
    lines = [line for line in placement_lines(plan) if "owns" in line]
    assert [line.rpartition("; ")[2] for line in lines] == [
        f"owns {own} of 128 key groups, by the keys of 32,096 rows" for own in (32, 96)
    ]
    assert with_groups(plan, {"pairs.1": (32, 96), "pairs.2": (32, 96)}) is plan
    assert not with_groups(plan, {"pairs.1": (64, 64), "pairs.2": (64, 64)}).balances


@pytest.mark.parametrize("cores", [1, 2, 3])
def test_results_are_the_same_bytes_whoever_owns_the_keys(cores: int) -> None:
    functions = {"mean": sw.mean("v"), "n": sw.count(), "total": sw.sum("whole")}

    def ran(replicas: int, cores: int) -> tuple[pa.Table, sw.JobReport]:
        with sw.Simulation(nodes=1, cores=cores) as host:
            job = host.submit(averages(replicas, **functions))
            return job.result("out"), job.wait()

    expected, _ = ran(1, 1)
    assert len(expected) > 499
    for replicas in (2, 3, 5):
        rows, report = ran(replicas, cores)
        assert rows.equals(expected)
        assert report.ledger.is_balanced
        assert not report.skews
        assert not [note for note in report.notes if "got no row" in note]
        own = plan_of(averages(replicas), cores).key_groups
        assert [s.rows_in > 0 for s in report.stages if s.name in own] == [
            n > 0 for n in own.values()
        ]


def test_explain_says_who_owns_no_keys_and_why() -> None:
    lines = list(placement_lines(plan_of(averages(2), 2)))
    assert lines[1] == "  m.1  node-1/2; owns 128 of 128 key groups"
    assert lines[2].endswith("; owns no keys, as its slot reads a source")
    assert not [line for line in placement_lines(plan_of(averages(2), 1)) if "as its" in line]
