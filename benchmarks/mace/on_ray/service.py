"""Operators that take a set time for each row, asleep, which needs no core.

```
stage   [of_domain]     ─▶   [work 25 rows × 0.2 ms ▸ of_domain]      a step before it, same stage
        [men, windows]  ─▶   [men: work, then windows]                within its machine
```

What a slot's thread uses itself (its scheduler, encoding, the operator as it is) counts as a part
of the set time, as [mace] §III-B has it; what a sleep was too long or too short goes to the next.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

from slackwater.actors.slot.host import AWAKE_NS, NAP_S
from slackwater.runtime.model import Batch, GateRead
from slackwater.runtime.model.state import Fields
from slackwater.runtime.operators.aggregate.step import AggregateStep
from slackwater.runtime.operators.ground.contract import PlainStateless, Result
from slackwater.runtime.operators.join.step import JoinStep
from slackwater.runtime.plan.plan import Plan, Stage
from slackwater.runtime.plan.step import EachRowStep, GatedStep, Step
from slackwater.runtime.plan.traits import StepTraits, each_row
from slackwater.runtime.registry.operators import MACHINES

LEAST_NS = 1_000_000
"""A shorter sleep is carried over: timers are a tenth of that off."""
OWN_NS = 2_000_000
"""So much of a thread's own work counts at most where it was idle: it looks around then."""
BEHIND_NS = 100_000_000
"""Being further behind than this is forgotten: a burst would be too cheap."""


class Moment(NamedTuple):
    """The time, ns; what the thread has used of a core; how often it has waited by itself."""

    wall_ns: int
    cpu_ns: int
    waits: int


class Passed(NamedTuple):
    """What has gone by between two moments, ns: at work, and idle."""

    used_ns: int
    idle_ns: int


Clock = Callable[[], Moment]


class Account:
    """What a thread owes of the time that its rows take, ns; below 0: it is behind what was set.

    Args:
        clock: reads the time of a thread.
        spend: takes so many ns; returns how many it took.
    """

    def __init__(self, clock: Clock, spend: Callable[[int], int]) -> None:
        self._clock, self._spend = clock, spend
        self._seen = clock()
        self.owed_ns = 0.0

    def take(self, work_ns: float) -> None:
        """Take so much time, what has been used since the last call counted."""
        passed = passed_between(self._seen, self._clock())
        if self.owed_ns < 0:  # what it was behind it would have made up for, were it not idle
            self.owed_ns = min(self.owed_ns + passed.idle_ns, 0.0)
        self.owed_ns = max(self.owed_ns + work_ns - passed.used_ns, -BEHIND_NS)
        if self.owed_ns >= LEAST_NS:
            self.owed_ns -= self._spend(int(self.owed_ns))
        self._seen = self._clock()


def passed_between(seen: Moment, now: Moment) -> Passed:
    """Return all time as work but what it waited for rows: others' turns on its core are its own.

    So a busy machine makes no row dearer. A slot that has had rows lately waits a millisecond at a
    time; else it may wait for longer, and all but what it used of a core counts as idle.
    """
    wall_ns, waits = now.wall_ns - seen.wall_ns, now.waits - seen.waits
    if waits and wall_ns > AWAKE_NS:
        return Passed(min(now.cpu_ns - seen.cpu_ns, OWN_NS), wall_ns)
    idle_ns = min(waits * round(NAP_S * 1e9), wall_ns)
    return Passed(wall_ns - idle_ns, idle_ns)


def this_moment() -> Moment:
    """Return this moment of this thread."""
    waits = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    return Moment(time.monotonic_ns(), time.thread_time_ns(), waits)


def sleep(wanted_ns: int) -> int:
    """Sleep; return how long it was."""
    began_ns = time.monotonic_ns()
    time.sleep(wanted_ns / 1e9)
    return time.monotonic_ns() - began_ns


@cache
def slots_account() -> Account:
    """Return the account of this process, which is one slot's."""
    return Account(this_moment, sleep)


@dataclass(frozen=True)
class Work:
    """Time that a row takes, ns."""

    row_ns: float

    def take(self, rows: int) -> None:
        """Take the time of so many rows."""
        slots_account().take(rows * self.row_ns)


class Arriving:
    """A step that brings its machine with it: the slot that unpickles it has its entry."""

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        MACHINES.update(OWN_MACHINES)
        vars(self).update(state)


@dataclass(frozen=True, kw_only=True)
class WorkStep(Arriving, EachRowStep):
    """Takes the time of the rows that pass, and leaves them alone."""

    work: Work

    def names_before(self, column: str) -> tuple[str | None, ...]:
        """Return its own name: what passes stays as it is."""
        return (column,)

    @cached_property
    def traits(self) -> StepTraits:
        """Traits of code of a benchmark's."""
        return each_row("work", runs_users_code=True)

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """Return what is needed downstream."""
        del position, there
        return needed

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield what a row takes."""
        del steps
        yield f"takes    {self.work.row_ns / 1e3:.0f} µs a row, asleep"


class WorkMachine(PlainStateless):
    """Takes the time of each batch."""

    def __init__(self, step: WorkStep) -> None:
        self._work = step.work

    def apply(self, batch: Batch) -> Batch:
        """Return it as it is, later."""
        self._work.take(len(batch))
        return batch


@dataclass(frozen=True, kw_only=True)
class WorkedAggregate(Arriving, AggregateStep):
    """Windows whose rows take a set time."""

    work: Work


@dataclass(frozen=True, kw_only=True)
class WorkedJoin(Arriving, JoinStep):
    """A join whose rows take a set time."""

    work: Work


class WorkedOperator:
    """The machine of a step, which takes the time of the rows of each read first."""

    STATE = Fields("_inner")

    def __init__(self, step: WorkedAggregate | WorkedJoin, *, most_kept_rows: int) -> None:
        of = AggregateStep if isinstance(step, AggregateStep) else JoinStep
        self._work = step.work
        self._inner: Any = MACHINES[of](step, most_kept_rows=most_kept_rows)

    def work(self, released: GateRead, now_ns: int) -> Result:
        """Return what the machine makes of it, later."""
        rows = sum(len(batch) for batch in released.batches)
        if rows:
            self._work.take(rows)
        result: Result = self._inner.work(released, now_ns)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


OWN_MACHINES: dict[type[Step], Callable[..., Any]] = {
    WorkStep: WorkMachine,
    WorkedAggregate: WorkedOperator,
    WorkedJoin: WorkedOperator,
}
"""For the slots of these benchmarks alone: the runtime's operators are in its registry."""


def working(plan: Plan, costs_ns: Mapping[str, float]) -> Plan:
    """Return a plan whose stages take so long for each row that comes in: {stage: ns}."""
    return replace(
        plan,
        stages=tuple(_working(stage, Work(costs_ns[stage.name])) for stage in plan.stages),
    )


def _working(stage: Stage, work: Work) -> Stage:
    step = stage.step
    if isinstance(step, AggregateStep | JoinStep):
        return replace(stage, step=_worked(step, work))
    before = WorkStep(
        name=f"{stage.name}: work", inputs=(step.name,), schema=_came(stage), work=work
    )
    if isinstance(step, EachRowStep):
        return replace(stage, step=before, chain=(step, *stage.chain))
    return replace(stage, chain=(before, *stage.chain))  # a source, or a sink


def _worked(step: AggregateStep | JoinStep, work: Work) -> GatedStep:
    given: dict[str, Any] = {one.name: getattr(step, one.name) for one in fields(step)}
    made = WorkedAggregate if isinstance(step, AggregateStep) else WorkedJoin
    return made(**given, work=work)


def _came(stage: Stage) -> Any:
    return stage.inputs[0].schema if stage.inputs else stage.step.schema
