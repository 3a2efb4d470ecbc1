"""Worth of replicas: what `plan` says of numbers of them, and what runs with as many do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.runtime.foresight.chosen.replica_choice import numbers_to_try
from slackwater.runtime.foresight.predicted.replica_worth import ReplicaTable, ReplicaWorth
from slackwater.runtime.plan.traits import Replicas
from slackwater.sampling import sample_flow
from tests.support.typed import said

RATE, SECONDS = 2_000, 2
COST = sw.testing.CostModel(per_row_ns=1_000, per_slice_ns=20_000, stages={"sums": 700_000.0})
"""At `RATE` events/s 1.4 cores of work."""


def summing(
    replicas: Replicas,
    *,
    keys: int = 200,
    hot: float = 0.0,
    seconds: int = SECONDS,
    deadline: str | None = None,
) -> sw.Dataflow:
    """Return sums of keys in windows, of rows that come at `RATE`."""
    rng = np.random.default_rng(5)
    many = RATE * seconds
    drawn = np.where(rng.random(many) < hot, 0, rng.integers(0, keys, many))
    ts = pa.array(np.arange(many) * (1_000_000_000 // RATE), pa.timestamp("ns"))
    table = pa.table({"ts": ts, "k": drawn, "v": rng.random(many)})
    flow = sw.Dataflow("summing", deadline=deadline)
    rows = flow.source("rows", sw.table(table), event_time="ts", speed=1)
    sums = rows.key_by("k").aggregate(
        window=sw.tumbling("50ms"), total=sw.mean("v"), name="sums", replicas=replicas
    )
    sums.sink("out", sw.collect_sink())
    return flow


def measured_s(flow: sw.Dataflow, slots: int) -> float:
    """Return the worst latency of a simulated run."""
    with sw.Simulation(slots, cost=COST) as nodes:
        (sink,) = nodes.submit(flow).wait().sinks
    return sink.latency.quantile(1.0) / 1e9


@pytest.mark.parametrize(("hot", "seconds"), [(0.0, SECONDS), (0.8, 4)])
def test_each_number_of_replicas_has_the_latency_of_a_run(hot: float, seconds: int) -> None:
    """The work of the whole input is known, so only Mace's own error is left."""
    flow = summing("auto", hot=hot, seconds=seconds)
    slots = 5  # one for the source, and one for each replica
    sample = sample_flow(flow, rows=RATE * seconds, cost=COST)
    host = sw.Simulation(slots, cost=COST)
    for replicas in (1, 2, 4):
        written = summing(replicas, hot=hot, seconds=seconds)
        made = host.predict(written, float(RATE), sample=sample, horizon=seconds, width="50ms")
        ran_s = measured_s(written, slots)
        assert made.worst_s == pytest.approx(ran_s, rel=0.15, abs=0.06), replicas


def test_auto_is_the_fewest_replicas_with_nearly_the_least_latency() -> None:
    host = sw.Simulation(8, cost=COST)
    made = host.predict(summing("auto"), float(RATE))
    table = made.replicas
    assert table is not None
    assert [row.replicas for row in table.rows] == [1, 2, 4, 8]
    assert table.rows[0].worst_s == float("inf")
    best = table.best.replicas
    assert best in (2, 4)
    names = [stage.name for stage in made.plan.stages]
    assert [name for name in names if name.startswith("sums")] == [
        f"sums.{n}" for n in range(1, best + 1)
    ]
    least = host.predict(summing("auto"), 100.0).replicas
    assert least is not None
    assert least.best.replicas == 1


def test_a_job_has_as_many_replicas_as_its_prediction() -> None:
    with sw.Simulation(8, cost=COST) as nodes:
        job = nodes.submit(summing("auto"), rates=float(RATE))
        made = nodes.predict(summing("auto"), float(RATE))
        assert job.plan.slots == made.plan.slots
        again = nodes.submit(summing("auto"), rates=made)
        assert again.plan.slots == made.plan.slots
        assert nodes.plan(summing("auto")).slots.keys() >= {"sums.8"}
        job.wait()
        again.wait()
        assert job.result("out").equals(again.result("out"))


def test_more_replicas_do_not_raise_the_rate_of_a_hot_key() -> None:
    table = sw.Simulation(8, cost=COST).replica_table(summing(1, hot=0.9), float(RATE), sample=RATE)
    assert table is not None
    most = {row.replicas: row.most for row in table.rows}
    assert most[8] < 1.25 * most[1]
    even = sw.Simulation(8, cost=COST).replica_table(summing(1), float(RATE), sample=RATE)
    assert even is not None
    most = {row.replicas: row.most for row in even.rows}
    assert most[8] > 4 * most[1]


def test_a_job_with_replicas_is_a_history_for_other_numbers_of_them(tmp_path: Path) -> None:
    host = sw.Simulation(6, cost=COST)
    tuning = sw.Tuning(policy="even split", history=tmp_path)
    host.submit(summing(3, hot=0.5, deadline="5s"), tuning=tuning).wait()
    made = host.predict(summing("auto", hot=0.5, deadline="5s"), history=tmp_path)
    table = made.replicas
    assert table is not None
    assert [row.replicas for row in table.rows] == [1, 2, 4, 6]
    sums = [name for name in made.cores_by if name.startswith("sums")]
    assert sum(made.cores_by[name] for name in sums) == pytest.approx(1.4, rel=0.1)
    hot = max(made.sample.shares[name] for name in sums)
    assert hot > 0.5 or table.best.replicas > 3  # of three, one had two thirds of the rows


def test_explain_says_what_auto_is() -> None:
    host = sw.Simulation(4, cost=COST)
    assert 'replicas="auto" of sums is 4, one for each slot' in host.explain(summing("auto"))
    text = host.explain(summing("auto"), rates=float(RATE))
    assert "what more are worth" in text
    assert "one for each slot:" not in text


def test_provision_counts_the_replicas_that_a_deadline_needs() -> None:
    from slackwater.provisioning import fewest_nodes  # noqa: PLC0415

    def fewest(replicas: Replicas) -> int | None:
        flow = summing(replicas)
        sample = sample_flow(flow, cost=COST)
        return fewest_nodes(flow, 3.0 * RATE, deadline_s=0.2, sample=sample, most=12).nodes

    nodes = fewest("auto")
    assert nodes is not None
    assert 5 <= nodes <= 9  # 4.2 cores of work, divided unevenly
    assert fewest(1) is None


def test_the_command_prints_the_table_and_has_it_in_its_json(tmp_path: Path) -> None:
    path = tmp_path / "flow.py"
    path.write_text(
        "import slackwater as sw\n"
        "flow = sw.Dataflow('f')\n"
        "rows = flow.source('rows', sw.table({'t': list(range(2000)), 'k': [n % 50 for n in "
        "range(2000)]}), event_time='t', time_unit='ms')\n"
        "counts = rows.key_by('k').aggregate(window=sw.tumbling('1s'), n=sw.count(), name='n')\n"
        "counts.sink('out', sw.collect_sink())\n"
    )
    asked = ("plan", str(path), "--rate", "100", "--nodes", "4")
    text = said(*asked)
    assert "replicas    of n: what more are worth (all of these steps alike; *: the best)" in text
    table = json.loads(said(*asked, "--json"))["replicas"]
    assert [row["replicas"] for row in table["each"]] == [1, 2, 4]
    assert table["best"] == 1


def worth(replicas: int, worst_s: float, load: float = 0.5, most: float = 100.0) -> ReplicaWorth:
    """Return the worth of a number of replicas."""
    return ReplicaWorth(
        replicas=replicas,
        worst_s=worst_s,
        keeps_deadline=None,
        limit="node-1",
        load=load,
        runs=("sums",),
        most=most,
    )


@pytest.mark.parametrize(
    ("rows", "best"),
    [
        ([worth(1, 1.0), worth(2, 0.99), worth(4, 0.98)], 1),  # some hundredths are not worth it
        ([worth(1, 1.0), worth(2, 0.5), worth(4, 0.49)], 2),
        ([worth(1, 1.0, load=0.97), worth(2, 1.0)], 2),  # bursts need room
        ([worth(1, 1.0, load=0.97), worth(2, 2.0, load=0.95)], 1),
        ([worth(1, float("inf"), most=50), worth(2, float("inf"), most=90)], 2),
        ([worth(1, float("inf"), most=99), worth(2, float("inf"), most=100)], 1),
    ],
)
def test_the_best_number_is_the_least_that_is_worth_it(rows: list[ReplicaWorth], best: int) -> None:
    table = ReplicaTable(steps=("sums",), rows=tuple(rows), is_auto=True)
    assert table.best.replicas == best


def test_numbers_are_powers_of_two_and_one_for_each_slot() -> None:
    assert numbers_to_try(1) == [1]
    assert numbers_to_try(6, also={3}) == [1, 2, 3, 4, 6]
    assert numbers_to_try(64) == [1, 2, 4, 8, 16, 32, 64]
    assert numbers_to_try(500)[-1] == 128
