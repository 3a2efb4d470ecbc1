"""What a slot knows of its stages' next work is what a look at each of them finds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from slackwater.runtime.config import Limits
from slackwater.runtime.control.graph import FlowGraph
from slackwater.runtime.model import END_NS
from slackwater.runtime.plan.slot_plan import slot_plan
from slackwater.runtime.schedule import Slot
from slackwater.runtime.schedule.actions import Rest, Slice
from slackwater.runtime.schedule.stage import StageMachine
from slackwater.runtime.simulate import CostModel, LinkModel, Simulation
from slackwater.runtime.tune import Paths
from tests.support.any_flow import MS, AnyHolds, any_flow
from tests.support.states import canonical

SEEDS = range(12)


TIGHT = Limits(gate_rows=1, most_gate_rows=1)
"""Of which every gate is full."""


class Checked(Slot):
    """A slot that looks at all stages before each slice, and rest, as well."""

    checks = asked = 0

    def step(self, now_ns: int) -> Slice | None:
        self._turns_asked += 1
        if self._turns_asked % 20 == 1:
            self._ask_all(now_ns)
        for machine in self._stages.values():
            assert machine.next == machine.wakeup(), machine.stage.name
        if self._order is None:
            expected = self._by_looking(now_ns)
            assert self._ready.first(now_ns, self._has_credit) is expected
            Checked.checks += 1
        assert self.is_finished == all(one.is_finished for one in self._stages.values())
        return super().step(now_ns)

    _turns_asked = 0

    def _ask_all(self, now_ns: int) -> None:
        """Ask all that can be asked: nothing changes by it."""
        before = canonical(self.snapshot())
        for machine in self._stages.values():
            machine.report_at(now_ns)
            machine.waited_ns(now_ns)
            machine.came_ns(now_ns)
            if machine.intake is not None:
                for channel in machine.stage.inputs:
                    machine.intake.has_room(channel.name, TIGHT)
                machine.intake.idle_from_ns()
        self.recent()
        assert canonical(self.snapshot()) == before
        Checked.asked += 1

    def _by_looking(self, now_ns: int) -> StageMachine | None:
        able = [
            (now_ns if one.next.rank_ns is None else one.next.rank_ns, one.next.promise_ns, at, one)
            for at, one in enumerate(self._stages.values())
            if one.next is not None and one.next.at_ns <= now_ns and self._has_credit(one)
        ]
        return min(able, key=lambda entry: entry[:3])[3] if able else None

    def rest(self, now_ns: int) -> Rest:
        rest = super().rest(now_ns)
        times = [one.next.at_ns for one in self._stages.values() if one.next is not None]
        later = [at_ns for at_ns in times if at_ns > now_ns]
        owed_ns = min([one.outputs.owed_ns for one in self._stages.values()], default=END_NS)
        assert owed_ns > now_ns
        if self._by_looking(now_ns) is not None:
            assert rest.until_ns == now_ns
        elif owed_ns <= min(later, default=END_NS):
            assert rest.until_ns == (None if owed_ns == END_NS else owed_ns)
        else:
            assert rest.until_ns is not None
            assert min(later) <= rest.until_ns <= max(*later, self._looks.next_ns)
        return rest


class Checking(Simulation):
    """A run of such slots."""

    def _new_slot(self, name: str) -> Slot:
        part = replace(slot_plan(self._plan, name), interval_ns=self._sampled_ns)
        return Checked.of(part, start_ns=self._start_ns)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_next_work_of_a_slot_is_what_a_look_at_each_stage_finds(seed: int) -> None:
    plan: Any = any_flow(seed)
    before = Checked.checks, Checked.asked
    is_tuned = plan.deadline_ns is not None
    Checking(
        plan,
        egress=lambda *_: None,
        seed=seed,
        cost=CostModel(jitter=2.0),
        link=LinkModel(jitter_ns=20 * MS),
        policy=AnyHolds(Paths.of(FlowGraph.of(plan)).tuned, seed) if is_tuned else None,
    ).run()
    assert Checked.checks > before[0] or plan.limits.order is not None
    assert Checked.asked > before[1]
