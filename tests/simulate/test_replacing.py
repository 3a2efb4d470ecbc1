"""A running flow that is placed anew, in virtual time: results, ledger and ends as without it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw
from slackwater.report.render import report_text
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.errors import FlowError, SettingError, SlackwaterError, WorkerDied
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.measure.outcomes import SLACK_READY
from slackwater.runtime.measure.report import JobReport
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.plan.relocation import Relocation
from slackwater.runtime.plan.slots import SlotPlace
from slackwater.runtime.simulate import (
    CostModel,
    Fault,
    LinkModel,
    Replace,
    Simulation,
    SlotDies,
    SlotHangs,
    UserStops,
    any_faults,
)
from slackwater.runtime.tune import Paths
from tests.support.any_flow import MS, NODES, AnyHolds, any_flow
from tests.support.endless import EndlessInput
from tests.support.flows import ticking

S = 1_000_000_000
READY_ONLY_SEEDS = (31, 32, 43, 57, 66, 70, 86, 104, 123, 137, 139, 160)
"""Of `any_flow`: no slack, no deadline, and no source that is not waited for."""
OTHER_SEEDS = range(12)
MOVES = 3
CHAIN = {"numbers": "node-1", "gate": "node-2", "out": "node-3"}

Results = dict[str, list[Any]]


def moved(plan: Plan, chance: Random) -> Plan:
    """Return the plan with every stage in any of four slots; the fourth had none before."""
    slots = {stage.name: chance.choice((*NODES, "node-4")) for stage in plan.stages}
    return replace(
        plan, slots=slots, places={one: SlotPlace(one, one, 1) for one in slots.values()}
    )


def ran(
    plan: Plan, *, seed: int, moves: int = 0, within_ns: int = 2 * S, faults: tuple[Fault, ...] = ()
) -> tuple[Results, JobReport]:
    """Run a flow at random; return {sink: its rows, in order} and the report."""
    results: Results = {stage.name: [] for stage in plan.stages if stage.kind == "sink"}

    def egress(sink: str, batch: Any, is_end: bool) -> None:
        if is_end:
            results[sink].append("end")
        if batch is not None:
            columns = {"ts": batch.event_time_ns, **batch.columns}
            rows = zip(*(columns[one].tolist() for one in sorted(columns)), strict=True)
            results[sink] += map(repr, rows)  # a NaN is like another one

    tuned = Paths.of(FlowGraph.of(plan)).tuned
    one = Checked(
        plan,
        egress=egress,
        seed=seed,
        cost=CostModel(jitter=2.0),
        link=LinkModel(jitter_ns=(20, 200)[seed % 2] * MS),  # shorter and longer than a hand-over
        policy=AnyHolds(tuned, seed) if plan.deadline_ns is not None else None,
        faults=faults,
    )
    chance = Random(~seed)  # noqa: S311 - a draw, not a secret
    for _ in range(moves):
        one.replacing.add(Replace(chance.randrange(within_ns), moved(plan, chance)))
    try:
        return results, one.run()
    except SlackwaterError:
        return results, one.report()


class Checked(Simulation):
    """A run that looks at each move whether its slots have the same between them as before."""

    def relocate(self, relocation: Relocation) -> int:
        before = self.books()
        size = super().relocate(relocation)
        assert self.books() == before, f"{relocation.moves}"
        return size

    def books(self) -> Counter[tuple[str, str]]:
        """What all slots together say of each channel: credit, owed rows, counters; no zeros."""
        found: Counter[tuple[str, str]] = Counter()
        for slot in self._slots.values():
            state = slot.snapshot(leaving=())
            for name in ("sent", "received", "credit", "owed"):
                own = state["stream"][name]
                found.update({(channel, name): rows for channel, rows in own.items()})
            for channel, counters in state["measures"]["channels"].items():
                numbers = {one: n for one, n in counters.items() if isinstance(n, int)}
                found.update({(channel, one): n for one, n in numbers.items()})
        return +found


def in_order(plan: Plan, results: Results) -> Results:
    """Return results in an order that any run has: a sink of several writers takes turns."""
    alone = {stage.name for stage in plan.stages if len(stage.inputs) == 1}
    return {sink: rows if sink in alone else sorted(rows) for sink, rows in results.items()}


@pytest.mark.parametrize("seed", READY_ONLY_SEEDS[::2])
def test_ready_only_results_are_the_same_however_often_stages_move(seed: int) -> None:
    plan = any_flow(seed)
    results, before = ran(plan, seed=seed)
    again, report = ran(plan, seed=seed, moves=MOVES, within_ns=int(before.elapsed_s * 5e8) + 1)
    assert (before.state, report.state) == ("done", "done"), f"seed {seed}: {report.error}"
    assert any(one.problem is None for one in report.replaced), f"seed {seed}: nothing has moved"
    assert in_order(plan, again) == in_order(plan, results), f"seed {seed}"
    assert imbalances(report) == []
    if any(stage.is_gated and not stage.is_ready_only for stage in plan.stages):
        # In front of windows that close in time: how rows went on there depends on the clock.
        for ledger in (report.ledger, before.ledger):
            ledger.counts[SLACK_READY] = 0
    assert report.ledger == before.ledger, f"seed {seed}"


@pytest.mark.parametrize("seed", OTHER_SEEDS)
def test_the_ledger_balances_over_moves_of_any_flow_tuned_or_not(seed: int) -> None:
    results, report = ran(any_flow(seed), seed=seed, moves=MOVES, within_ns=S)
    assert report.state == "done", f"seed {seed}: {report.error}"
    assert imbalances(report) == [], f"seed {seed}"
    assert all(rows.count("end") == 1 for rows in results.values()), f"seed {seed}"


@pytest.mark.parametrize("seed", range(12))
def test_a_flow_that_is_placed_anew_while_anything_goes_wrong_ends_nevertheless(seed: int) -> None:
    plan = any_flow(seed)
    faults = any_faults(plan, seed=seed, within_ns=S)
    _, report = ran(plan, seed=seed, moves=MOVES, within_ns=S, faults=faults)
    assert report.state in ("done", "stopped", "failed"), f"seed {seed}"
    assert (report.error is not None) == (report.state == "failed"), f"seed {seed}"


# -- as a user has it --------------------------------------------------------------------------


def chain(sink: sw.connectors.Output | None = None, seconds: int = 2) -> sw.Dataflow:
    """A hundred numbers a second; its source, gate and sink have a slot each."""
    flow, numbers = ticking("chain", seconds=seconds)
    numbers.merge(name="gate").sink("out", sink or sw.collect_sink())
    return flow


def test_stages_move_to_new_slots_and_the_report_says_for_how_long_they_stood_still() -> None:
    still = sw.Simulation(nodes=4).submit(chain(), placement=CHAIN)
    job = sw.Simulation(nodes=4).submit(chain(), placement=CHAIN)
    job.replace({"gate": "node-4", "numbers": "node-3"}, at="500ms")
    job.replace({"*": "node-2"}, at="1200ms")
    report = job.wait()
    assert job.result("out").equals(still.result("out"))
    assert {stage.name: stage.slot for stage in report.stages} == dict.fromkeys(CHAIN, "node-2")
    one, other = report.replaced
    assert (one.at_s, other.at_s) == (0.5, 1.2)
    assert 0.05 <= one.gap_s < 0.06
    assert one.state_bytes > 0
    assert [str(move) for move in one.moves] == ["numbers node-1 → node-3", "gate node-2 → node-4"]
    assert "at 0.5 s re-placed: numbers node-1 → node-3, gate node-2 → node-4;" in report_text(
        report
    )
    assert JobReport.from_json(report.to_json()).replaced == report.replaced


def test_a_row_waits_for_a_move_no_longer_than_that_takes() -> None:
    job = sw.Simulation(nodes=3).submit(chain(), placement=CHAIN)
    job.replace({"gate": "node-1"}, at="1s")
    (sink,) = job.wait().sinks
    (one,) = job.report().replaced
    assert one.gap_s <= sink.latency.quantile(1) / 1e9 <= one.gap_s + 0.015


def test_a_slot_that_dies_in_a_move_ends_the_job_as_ever_with_its_cause() -> None:
    for seed in range(10):
        fault = SlotDies(slot="node-2", at_ns=510 * MS)
        job = sw.Simulation(nodes=3, seed=seed).submit(chain(), placement=CHAIN, faults=[fault])
        job.replace({"gate": "node-1"}, at="500ms")
        with pytest.raises(
            WorkerDied, match=r"'node-2' \(stages: gate\) died .* its process was killed"
        ):
            job.wait()
        (one,) = job.report().replaced
        assert one.problem == "slot 'node-2' died meanwhile", f"seed {seed}"


def test_a_slot_that_hangs_lets_nothing_move_and_the_others_go_on() -> None:
    faults = [SlotHangs(slot="node-2", at_ns=510 * MS), UserStops(at_ns=S)]
    job = sw.Simulation(nodes=3).submit(chain(), placement=CHAIN, faults=faults)
    job.replace({"gate": "node-1"}, at="500ms")
    report = job.wait()
    assert report.state == "stopped"
    assert report.replaced[0].problem == "slot 'node-2' does not answer meanwhile"
    assert report.stages[0].rows_in > 90


def test_a_move_behind_the_end_and_one_to_a_slot_that_has_ended_are_told_and_nothing_moves() -> (
    None
):
    job = sw.Simulation(nodes=3).submit(two_sources(), placement={"brief": "node-1", "*": "node-2"})
    job.replace({"long": "node-1"}, at="1s")
    (one,) = job.wait().replaced
    assert one.problem == (
        "stage 'long' cannot move to slot 'node-1': all stages of that have finished, and it has "
        "ended; choose another slot"
    )


def two_sources() -> sw.Dataflow:
    def rows(count: int) -> Any:
        times = pa.array([10 * n for n in range(count)], pa.timestamp("ms"))
        return sw.table(pa.table({"ts": times, "n": range(count)}))

    flow = sw.Dataflow("two")
    brief = flow.source("brief", rows(5), event_time="ts", speed=1.0)
    long = flow.source("long", rows(200), event_time="ts", speed=1.0)
    brief.merge(long, name="both").sink("out", sw.collect_sink())
    return flow


def test_the_rest_of_a_move_is_done_where_a_stage_has_finished_meanwhile() -> None:
    job = sw.Simulation(nodes=3).submit(two_sources(), placement={"brief": "node-1", "*": "node-2"})
    job.replace({"brief": "node-3", "both": "node-3"}, at="1s")
    (one,) = job.wait().replaced
    assert [str(move) for move in one.moves] == ["both node-2 → node-3"]
    assert job.result("out").num_rows == 205


@pytest.mark.parametrize(
    ("sink", "why"),
    [
        ("files", "it holds the lock and the open part of its files"),
        ("calls", "its output is open in that slot, and only your code can hand it over"),
    ],
)
def test_a_sink_that_holds_something_open_stays_and_the_refusal_says_what(
    sink: str, why: str, tmp_path: Path
) -> None:
    own = sw.jsonl_sink(tmp_path / "o.jsonl") if sink == "files" else sw.callback_sink(print)
    job = sw.Simulation(nodes=3).submit(chain(own), placement=CHAIN)
    with pytest.raises(FlowError, match=f"its sink 'out' cannot move from slot 'node-3'.*{why}"):
        job.replace({"out": "node-1"})
    job.replace({"*": "node-1"}, at="1s")  # all that can
    if sink == "files":
        report = job.wait()
        assert [stage.slot for stage in report.stages] == ["node-1", "node-1", "node-3"]
        assert len((tmp_path / "o.jsonl").read_text().splitlines()) == report.ledger.entered
    job.close()


def test_a_live_source_stays_and_what_is_not_there_is_refused() -> None:
    flow = sw.Dataflow("endless")
    flow.source("numbers", EndlessInput(), event_time="ts").sink("out", sw.collect_sink())
    job = sw.Simulation(nodes=2).submit(flow, placement={"*": "node-1"})
    with pytest.raises(FlowError, match=r"its source 'numbers' .* cannot be opened a second time;"):
        job.replace({"numbers": "node-2"})
    with pytest.raises(FlowError, match=r"placement names stage 'nubers'.* did you mean 'numbers'"):
        job.replace({"nubers": "node-2"})
    with pytest.raises(FlowError, match="placement names node 'node-9', which is not there"):
        job.replace({"out": "node-9"})
    job.close()


def test_a_job_that_has_run_is_not_placed_anew() -> None:
    job = sw.Simulation(nodes=3).submit(chain(), placement=CHAIN)
    job.wait()
    with pytest.raises(SettingError, match="job 'chain' has already run; in virtual time call"):
        job.replace({"gate": "node-1"})
