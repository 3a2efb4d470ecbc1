"""A stage that lets a row pass its gate does as one that puts each down: states, counts, output."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import slackwater as sw
from slackwater.runtime.config import Limits
from slackwater.runtime.model import END_NS, START_NS, Batch, Message
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Stage, plan_stages
from slackwater.runtime.schedule.intake import GateIntake
from slackwater.runtime.schedule.stage import StageMachine
from tests.support.rules import rule
from tests.support.states import canonical
from tests.support.told import message_of

ROW = st.tuples(st.integers(-4, 2), st.integers(0, 1))  # (event time beside the others', key)
WRITER = st.integers(0, 1)
ONE = st.tuples(st.just("one"), WRITER, ROW)
SENT = st.tuples(st.just("sent"), WRITER, st.lists(ROW, max_size=12))
RUN = st.tuples(st.just("run"), st.sampled_from([1, 2, 64]))
RULE = st.tuples(st.just("rule"), st.sampled_from([None, -1, 0, 2]))
RESTORE = st.tuples(st.just("restore"))
SOME = st.one_of(SENT, RUN, RULE, RESTORE)
STEPS = st.lists(st.integers(0, 3).flatmap(lambda n: ONE if n else SOME), min_size=20, max_size=60)


def _stage(*, slack: str, keep: Any) -> Stage:
    flow = sw.Dataflow("alone", slack=slack)
    table = pa.table({name: pa.array([0], pa.int64()) for name in ("ts", "v", "k")})
    left, right = (
        flow.source(name, sw.table(table), event_time="ts", time_unit="ns", speed=1.0)
        for name in ("left", "right")
    )
    joined = left.join(right, on="k", within="5ns", keep=keep, name="pairs")
    joined.filter(sw.col("v") != 3).sink("out", sw.collect_sink())
    plan = place(flow.name, plan_stages(flow.graph), ["a"])
    return next(stage for stage in plan.stages if stage.name == "pairs")


STAGES = [
    _stage(slack=slack, keep=keep) for slack in ("0s", "2ns") for keep in ("promise", "slack")
]


class Pair:
    """Two machines of one stage, given the same; one puts each row down."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.machines = [self._machine(), self._machine()]
        self.sent, self.now_ns = [0, 0], 1_000
        self.promised = [START_NS, START_NS]

    def _machine(self) -> StageMachine:
        return StageMachine(self.stage, start_ns=0, limits=Limits())

    def send(self, writer: int, rows: list[tuple[int, int]]) -> None:
        base = sum(self.sent) // 2
        times = sorted(max(base + beside, self.promised[writer]) for beside, _ in rows)
        self.promised[writer] = max([self.promised[writer], base - 4, *times])
        numbers = np.arange(len(rows), dtype=np.int64) + sum(self.sent)
        columns = {"ts": np.array(times), "v": numbers, "k": np.array([key for _, key in rows])}
        batch = (
            Batch(
                event_time_ns=np.array(times),
                stimulus_time_ns=self.now_ns + numbers,
                columns=columns,
            )
            if rows
            else None
        )
        self.sent[writer] += len(rows)
        self.deliver(writer, message_of(batch, self.promised[writer], self.now_ns))

    def one(self, writer: int, row: tuple[int, int]) -> None:
        """A row comes, and is worked on at once."""
        self.send(writer, [row])
        self.run(64)

    def deliver(self, writer: int, message: Message) -> None:
        self.now_ns += 7
        for machine in self.machines:
            machine.deliver(self.stage.inputs[writer].name, message, self.now_ns)

    def run(self, max_rows: int) -> None:
        self.now_ns += 11
        self.machines[0].intake._may_pass = False  # type: ignore[attr-defined]
        found = []
        for machine in self.machines:
            message, *work = machine.work(self.now_ns, max_rows=max_rows)
            sends = [] if message is None else machine.outgoing(message, self.now_ns)
            told = [(channel.name, to_plain(part)) for channel, part in sends]
            found.append((canonical(told), work, machine.next))
        assert found[0] == found[1]

    def set_rule(self, slack: int | None) -> None:
        for machine in self.machines:
            machine.set_rule(rule(slack))

    def restore(self) -> None:
        """Each goes on from the other's snapshot."""
        states = [from_plain(to_plain(save(machine))) for machine in self.machines]
        self.machines = [self._machine(), self._machine()]
        for machine, state in zip(self.machines, reversed(states), strict=True):
            restore(machine, state)

    def check(self) -> None:
        long, short = [
            (
                canonical(to_plain(save(machine))),
                machine.report_at(self.now_ns).to_plain(),
                machine.next,
            )
            for machine in self.machines
        ]
        assert long == short


@given(st.sampled_from(STAGES), STEPS)
def test_a_row_alone_changes_a_stage_as_it_does_by_the_long_way(
    stage: Stage, steps: list[Any]
) -> None:
    pair = Pair(stage)
    does = {
        "one": pair.one,
        "sent": pair.send,
        "run": pair.run,
        "rule": pair.set_rule,
        "restore": pair.restore,
    }
    for what, *given_ in steps:
        does[what](*given_)
        pair.check()
    for writer in (0, 1):
        pair.deliver(writer, message_of(None, END_NS, pair.now_ns))
        pair.run(64)
        pair.check()


def test_a_row_passes_only_a_gate_that_has_nothing_else_to_do() -> None:
    plain, sampled = (
        StageMachine(STAGES[0], start_ns=0, limits=Limits(), is_sampled=one)
        for one in (False, True)
    )
    for machine, may_pass in ((plain, True), (sampled, False)):
        assert isinstance(machine.intake, GateIntake)
        assert machine.intake._may_pass is may_pass
