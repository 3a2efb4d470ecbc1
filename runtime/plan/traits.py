"""Traits of a step: facts that the plan, a slot and a prediction read, as one value.

A step makes its traits once, from its settings. So nobody asks which operator's a step is.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, NamedTuple, Protocol

from slackwater.runtime.model import READY_ONLY, Release
from slackwater.runtime.plan.promises import PASSES, Summary

Share = Literal["keys", "all"]
"""The rows that each replica of a step gets: those of its keys; or all, to store its share."""
Keep = Literal["promise", "slack"]
"""How long rows stay after a gate that releases some before all older ones are there: until, by
what is promised, nothing that belongs with them can follow; or by what has been released."""
Makes = Literal["rows", "windows", "pairs", "on its time"]
"""When results of a step after a gate are due: with a row; with the end of a window; with the later
of two rows; or at a time of the step's own."""


class Role(Enum):
    """Role of a step in the plan; the value is the kind of its stage, unless it has its own."""

    SOURCE = "source"
    EACH_ROW = "stateless"
    """The step looks at each row alone, and runs in the stage that feeds it alone."""
    LATE_ROWS = "late"
    AFTER_GATE = "operator"
    SHARED_GATE = "gate"
    SINK = "sink"


@dataclass(frozen=True)
class Replica:
    """Replica of a step that a stage is: number `index`, from 0, of `of`."""

    index: int
    of: int
    share: Share


class Sharing(NamedTuple):
    """Number of replicas of a step, and the rows that each gets."""

    replicas: int
    share: Share


ALONE = Sharing(1, "keys")


class Closes(Protocol):
    """How a step uses arrivals to close windows."""

    @property
    def policy(self) -> Any:
        """The policy by which windows close (`runtime/closing`)."""
        ...

    @property
    def speed(self) -> float | None:
        """How many times faster than the clock arrivals pass; None: they have no one speed."""
        ...

    @property
    def by_clock(self) -> bool:
        """Whether it uses the clock of its slot, since no source tells it of arrivals."""
        ...

    @property
    def every_ns(self) -> int:
        """How far arrivals may go on before the step must hear of it."""
        ...


@dataclass(frozen=True, kw_only=True)
class StepTraits:
    """Facts of a step.

    Attributes:
        kind: the step's name in `explain`, and in reports if it has a stage of its own kind.
        role: what it is to the plan.
        passes_on: whether rows leave as the events that they came in as; else they are new ones.
        revises: whether a row that has left may leave again, corrected.
        reach_ns: how far from an event's time it may look, at most, its gate's slack apart. Of a
            step after a gate: how long, in event time, a row stays in the operator's state.
            Source: SW of [ssg] §2.1.
        runs_users_code: whether it calls functions of the user's, inputs apart.

    Of a step after a gate:

    Attributes:
        release: the rule of the gate.
        ports: the port of each input. Inputs of one port are put into one order.
        port_keys: key columns of each port: rows with equal ones must meet in one replica.
        summaries: how promises of each port go out.
        makes: when results are due.
        windows_ns: (size, slide) of its windows, if all are of one size; None: they are not.
        counts_events: whether windows are numbers of events, whatever their times are.
        kept_by: the rule that rows are kept by; None: late rows miss no less by either.
        has_late_rows: whether its late rows can be had: the class has a field `keeps_late`.
        misses: what late rows may miss, such as "partners".
        sharing: number of replicas, and the rows that each gets.
        replica: the replica that it is; None: it is the whole step. The class has a field of this
            name, if a step may have replicas.
        uses_clock: whether it uses the clock too (`Result.due_ns`): no two runs need be alike.
        needs_rows: whether only rows give it results: by a promise alone it forgets, at most.
        shed: settings of its shedding; None: it sheds nothing.
        close: how it uses arrivals; None: it does not.
    """

    kind: str
    role: Role
    passes_on: bool = False
    revises: bool = False
    reach_ns: int = 0
    runs_users_code: bool = False
    release: Release = READY_ONLY
    ports: tuple[int, ...] = (0,)
    port_keys: tuple[tuple[str, ...], ...] = ((),)
    summaries: tuple[Summary, ...] = (PASSES,)
    makes: Makes = "rows"
    windows_ns: tuple[int, int] | None = None
    counts_events: bool = False
    kept_by: Keep | None = None
    has_late_rows: bool = True
    misses: str = "others"
    sharing: Sharing = ALONE
    replica: Replica | None = None
    uses_clock: bool = False
    needs_rows: bool = False
    shed: object | None = None
    close: Closes | None = None

    @property
    def has_one_port(self) -> bool:
        """Whether all inputs come in at one port."""
        return len(set(self.ports)) == 1


def each_row(kind: str, *, runs_users_code: bool = False) -> StepTraits:
    """Return the traits of a step that looks at each row alone."""
    return StepTraits(
        kind=kind, role=Role.EACH_ROW, passes_on=True, runs_users_code=runs_users_code
    )
