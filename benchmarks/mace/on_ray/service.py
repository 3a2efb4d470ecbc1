"""Operators that take a set time for each row: asleep, which needs no core, or at work on one.

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
from typing import Any, NamedTuple

from runtime.model import Batch, GateRead
from runtime.operators.aggregate.step import AggregateStep
from runtime.operators.ground.contract import Entry
from runtime.operators.join.step import JoinStep
from runtime.operators.registry import ENTRIES
from runtime.plan.plan import Plan, Stage
from runtime.plan.step import EachRowStep, GatedStep, Step

LEAST_NS = 1_000_000
"""A shorter sleep is carried over: timers are a tenth of that off."""
OWN_NS = 2_000_000
"""So much of a thread's own work counts at most where it was idle: it looks around then."""


class Moment(NamedTuple):
    """The time, ns; what the thread has used of a core; how often it has waited by itself."""

    wall_ns: int
    cpu_ns: int
    waits: int


Clock = Callable[[], Moment]


def now() -> Moment:
    """Return this moment of this thread."""
    waits = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    return Moment(time.monotonic_ns(), time.thread_time_ns(), waits)


class Account:
    """What a thread owes of the time that its rows take, ns; below 0: it is behind what was set.

    As long as it has not waited of its own accord, all time that has gone by counts, that in which
    others had its core, too: so a busy machine makes no row dearer, where rows sleep. Once it was
    idle, only what it has used of a core does, and what it was behind is forgotten: that cannot be
    made up for.

    Args:
        clock: tells the time.
        spend: takes so many ns; returns how many it took.
    """

    def __init__(self, clock: Clock, spend: Callable[[int], int]) -> None:
        self._clock, self._spend = clock, spend
        self._seen = clock()
        self.owed_ns = 0.0

    def take(self, work_ns: float) -> None:
        """Take so much time, what has been used since the last call counted."""
        seen, now = self._seen, self._clock()
        used_ns = now.wall_ns - seen.wall_ns
        if now.waits != seen.waits:
            used_ns = min(now.cpu_ns - seen.cpu_ns, OWN_NS)
            self.owed_ns = max(self.owed_ns, 0.0)
        self.owed_ns += work_ns - used_ns
        if self.owed_ns >= LEAST_NS:
            self.owed_ns -= self._spend(int(self.owed_ns))
        self._seen = self._clock()


def sleep(wanted_ns: int) -> int:
    """Sleep; return how long it was."""
    began_ns = time.monotonic_ns()
    time.sleep(wanted_ns / 1e9)
    return time.monotonic_ns() - began_ns


def burn(wanted_ns: int) -> int:
    """Use a core for so long, by this thread's own clock; return how long it was."""
    began_ns = time.thread_time_ns()
    while (used_ns := time.thread_time_ns() - began_ns) < wanted_ns:
        pass
    return used_ns


def now_on_core() -> Moment:
    """Return this moment of a thread whose work is its own: others' turns on its core are not."""
    moment = now()
    return moment._replace(wall_ns=moment.cpu_ns)


ASLEEP, AT_WORK = "asleep", "at work"
WAYS: dict[str, tuple[Clock, Callable[[int], int]]] = {
    ASLEEP: (now, sleep),
    AT_WORK: (now_on_core, burn),
}
_ACCOUNTS: dict[str, Account] = {}  # {way: account}, of this process, which is one slot's


@dataclass(frozen=True)
class Work:
    """What a row takes: so many ns, in one of `WAYS`."""

    row_ns: float
    way: str

    def take(self, rows: int) -> None:
        """Take the time of so many rows."""
        account = _ACCOUNTS.get(self.way)
        if account is None:
            account = _ACCOUNTS[self.way] = Account(*WAYS[self.way])
        account.take(rows * self.row_ns)


@dataclass(frozen=True, kw_only=True)
class WorkStep(EachRowStep):
    """Takes the time of the rows that pass, and leaves them alone."""

    work: Work

    @property
    def kind(self) -> str:
        """It works."""
        return "work"

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """What is needed behind it."""
        del position, there
        return needed

    @property
    def runs_users_code(self) -> bool:
        """It is code of a benchmark's."""
        return True

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield what a row takes."""
        del steps
        yield f"takes    {self.work.row_ns / 1e3:.0f} µs a row, {self.work.way}"

    def bare(self) -> WorkStep:
        """Return it: there is nothing to be left out."""
        return self


class WorkMachine:
    """Takes the time of each batch."""

    def __init__(self, step: WorkStep) -> None:
        self._work = step.work

    def apply(self, batch: Batch) -> Batch:
        """Return it as it is, later."""
        self._work.take(len(batch))
        return batch


@dataclass(frozen=True, kw_only=True)
class WorkedAggregate(AggregateStep):
    """Windows whose rows take a set time."""

    work: Work


@dataclass(frozen=True, kw_only=True)
class WorkedJoin(JoinStep):
    """A join whose rows take a set time."""

    work: Work


class WorkedOperator:
    """The machine of a step, which takes the time of the rows of each read first."""

    def __init__(self, step: WorkedAggregate | WorkedJoin, *, most_kept_rows: int) -> None:
        of = AggregateStep if isinstance(step, AggregateStep) else JoinStep
        self._work = step.work
        self._inner: Any = ENTRIES[of].machine(step, most_kept_rows=most_kept_rows)

    def process(self, released: GateRead, now_ns: int) -> Batch | None:
        """Return what the machine makes of it, later."""
        rows = sum(len(batch) for batch in released.batches)
        if rows:
            self._work.take(rows)
        made: Batch | None = self._inner.process(released, now_ns)
        return made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


# The machines of a slot are made from this table; these steps are made by `working` alone.
ENTRIES[WorkStep] = Entry(WorkStep, WorkMachine)
for _step in (WorkedAggregate, WorkedJoin):
    ENTRIES[_step] = Entry(_step, WorkedOperator)


def working(plan: Plan, costs_ns: Mapping[str, float], *, way: str) -> Plan:
    """Return a plan whose stages take so long for each row that comes in: {stage: ns}."""
    return replace(
        plan,
        stages=tuple(_working(stage, Work(costs_ns[stage.name], way)) for stage in plan.stages),
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
