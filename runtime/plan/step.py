"""What every step of a dataflow says of itself: frozen settings, never state.

Sources, sinks, shared gates and late rows are in `steps.py`; an operator's step is in its own
folder, in `runtime/operators/`. The builder checks steps, the plan places them, and nobody asks
which operator's a step is: only what it says here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar, Literal, NamedTuple, Self

import pyarrow as pa

from slackwater.runtime.errors import FlowError
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model import READY_ONLY, Release
from slackwater.runtime.plan.promises import Summary

Share = Literal["keys", "all"]
"""What each replica of a step gets: the rows of its keys; or all, of which it stores its share."""
Keep = Literal["promise", "slack"]
"""What a row is kept by, behind a gate that releases some before all older ones are there: until
nothing that it belongs with can follow, by what is promised; or by what has been released."""
Side = Literal["left", "right"]
"""Of a step with two ports."""


NO_LATE = (
    "step {who!r}: {of!r} is no operator that keeps rows, so none comes too late "
    "to count there; write pairs.late() on what join(...) or aggregate(...) returned"
)
"""Why a step has no late rows to be had."""


class Role(Enum):
    """What a step is to the plan; the value is the kind of its stage, unless it has its own."""

    SOURCE = "source"
    EACH_ROW = "stateless"
    """It looks at each row alone, and runs in the stage of what feeds it alone."""
    LATE_ROWS = "late"
    BEHIND_GATE = "operator"
    SHARED_GATE = "gate"
    SINK = "sink"


@dataclass(frozen=True)
class Replica:
    """Which replica of its step a stage is: number `index`, from 0, of `of`."""

    index: int
    of: int
    share: Share


class Sharing(NamedTuple):
    """How many replicas a step has, and what each gets."""

    replicas: int
    share: Share


@dataclass(frozen=True, kw_only=True)
class Step(ABC):
    """One step of a flow: its name, the names of its inputs, and the columns that leave it.

    What a step leaves out of all that is asked here is no default, but an error as it is made.

    Raises:
        FlowError: its class does not say all that a step must.
    """

    name: str
    inputs: tuple[str, ...]
    schema: pa.Schema

    def __new__(cls, *settings: object, **named: object) -> Self:
        """Return a step, if its class says all that is asked of one."""
        del settings, named
        if missing := sorted(getattr(cls, "__abstractmethods__", ())):
            raise FlowError(
                f"{cls.__name__} is no whole step yet: it does not say {', '.join(missing)}; "
                "what each means is written at Step, in runtime/plan/step.py"
            )
        return super().__new__(cls)

    @property
    @abstractmethod
    def kind(self) -> str:
        """What it is called in `explain`, and in reports if it has a stage of its own kind."""

    @property
    @abstractmethod
    def role(self) -> Role:
        """What it is to the plan."""

    @abstractmethod
    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """Return the columns of an input that it reads or passes on.

        Args:
            position: of the input among its inputs.
            there: the columns of that input.
            needed: what is needed of its own output.
        """

    @abstractmethod
    def names_before(self, column: str) -> tuple[str | None, ...]:
        """Return what a column of its output is called at each input; None: it is not there.

        There, to let only some rows come, by such columns, is the same as to let only those
        results go on: at all inputs of a port, and whichever port it is. By other columns it is
        not, such as those that it makes.
        """

    @property
    @abstractmethod
    def passes_on(self) -> bool:
        """Whether rows leave as the events that they came in as; else they are new ones."""

    @property
    @abstractmethod
    def revises(self) -> bool:
        """Whether a row that has left may leave again, corrected."""

    @property
    @abstractmethod
    def longest_ns(self) -> int:
        """How far from an event's time it may look, at most, its gate's slack apart."""

    @property
    @abstractmethod
    def runs_users_code(self) -> bool:
        """Whether it calls functions of the user's, inputs apart."""

    @abstractmethod
    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield its settings, a line each, as `explain` prints them; `steps` is {name: step}."""

    @abstractmethod
    def bare(self) -> Step:
        """Return it without what must not be unpickled where no slot runs: users' own things."""


@dataclass(frozen=True, kw_only=True)
class EachRowStep(Step):
    """A step that looks at each row alone: no state, no gate, promises pass through it."""

    @property
    def role(self) -> Role:
        """One that runs in the stage of what feeds it."""
        return Role.EACH_ROW

    @property
    def passes_on(self) -> bool:
        """It does: a row may change, or go, and is no other event."""
        return True

    @property
    def revises(self) -> bool:
        """It does not."""
        return False

    @property
    def longest_ns(self) -> int:
        """It looks no further than the row."""
        return 0


@dataclass(frozen=True, kw_only=True)
class ChoosingStep(EachRowStep):
    """One that lets those rows go on for which a predicate is true, and does nothing else.

    So it may stand elsewhere in a flow, if that lets the same rows go on (`runtime/rewrite/`).
    """

    predicate: Expr


@dataclass(frozen=True, kw_only=True)
class GatedStep(Step):
    """A step behind a gate, which has a field `release`: rows come to it in order.

    A class of these is made with a field `keeps_late: bool`, if its late rows can be had.
    """

    needs_rows: ClassVar[bool] = False
    """Whether only rows give it results: by a promise alone it does no more than forget."""

    @property
    @abstractmethod
    def ports(self) -> tuple[int, ...]:
        """The port at which each input comes in. Inputs of one port are put into one order."""

    @property
    @abstractmethod
    def port_keys(self) -> tuple[tuple[str, ...], ...]:
        """The key columns of each port: rows with equal ones must meet in one replica."""

    @property
    @abstractmethod
    def span_ns(self) -> int:
        """How long, in event time, a row stays in the operator's state: SW of [ssg] §2.1."""

    @property
    @abstractmethod
    def summaries(self) -> tuple[Summary, ...]:
        """How promises of each port go out."""

    @property
    @abstractmethod
    def kept_by(self) -> Keep | None:
        """What rows are kept by; None: late ones miss no less by either."""

    @property
    @abstractmethod
    def misses(self) -> str:
        """What late rows may miss, such as "partners"."""

    @property
    @abstractmethod
    def sharing(self) -> Sharing:
        """How many replicas it has, and what each of them gets."""

    def part(self, name: str, replica: Replica) -> Self:
        """Return one replica of it, under that name, whose gate is another stage.

        A class of steps that can have replicas has a field `replica`, too.
        """
        own: dict[str, Any] = {"release": READY_ONLY, "replica": replica}
        return replace(self, name=name, **own)

    @abstractmethod
    def pruned(self, needed: frozenset[str], *, keeps_late: bool) -> GatedStep:
        """Return it as it is run.

        Args:
            needed: what is needed of its output: other columns need not be made.
            keeps_late: whether somebody takes its late rows.
        """

    @abstractmethod
    def late_columns(
        self, inputs: Sequence[pa.Schema], *, side: Side | None, who: str
    ) -> tuple[Mapping[str, str] | None, ...]:
        """Return which columns its late rows leave with, of each port.

        Args:
            inputs: schemas of the ports.
            side: which port's rows are wanted; None: those of all.
            who: the step that asks, for the errors.

        Returns:
            For each port {column: name it came under}; None: its rows are left out.

        Raises:
            FlowError: no row comes too late there, or it has no sides.
        """

    @property
    @abstractmethod
    def counters(self) -> tuple[str, ...]:
        """What its machine counts: attributes of it, for the report."""

    @property
    @abstractmethod
    def has_time(self) -> bool:
        """Whether it goes by the clock, too (`Operator.due_ns`): then no two runs need be alike."""

    @abstractmethod
    def bare(self) -> GatedStep:
        """Return it without what must not be unpickled where no slot runs: users' own things."""

    @property
    def role(self) -> Role:
        """One that is a stage of its own kind."""
        return Role.BEHIND_GATE

    @property
    def longest_ns(self) -> int:
        """As long as its rows stay."""
        return self.span_ns


def release_of(step: Step) -> Release:
    """Return the rule of a step's gate; ready-only too where it has none."""
    found: Release = getattr(step, "release", READY_ONLY)
    return found


def stage_kind(step: Step) -> str:
    """Return the kind of the stage that a step begins, as reports have it."""
    if step.role is Role.BEHIND_GATE:
        return step.kind
    return Role.EACH_ROW.value if step.role is Role.LATE_ROWS else step.role.value


def all_columns(
    step: GatedStep, inputs: Sequence[pa.Schema], *, side: Side | None, who: str
) -> tuple[Mapping[str, str], ...]:
    """Return `GatedStep.late_columns` of a step with one port whose late rows keep all columns.

    Raises:
        FlowError: a side is asked for.
    """
    if side is not None:
        raise FlowError(f"step {who!r}: {step.name!r} has one input; write late()")
    return ({column: column for column in inputs[0].names},)
