"""Traits of a step: facts for the plan, slots and predictions, as one value.

A step makes its traits once, from its settings. So no code asks which operator a step has.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from slackwater.runtime.model import READY_ONLY, Release
from slackwater.runtime.plan.promises import PASSES, Summary

Share = Literal["keys", "all"]
"""Rows that each replica of a step gets: those of its keys; or all, to store its share."""
Keep = Literal["promise", "slack"]
"""Bound for rows kept after a gate with a slack: until no row that belongs with them can follow, by
the promises or by the rows released."""
Changes = Literal["none", "revisions", "upserts", "retractions"]
"""Changes that rows of a stream carry: none, all are inserts; updates without their old halves;
these and deletions; or updates with old halves, and deletions."""
ChangeKind = Literal["inserts", "updates", "deletions"]
"""Kind of a change of a row."""
Takes = Literal["none", "revisions", "retractions", "any"]
"""Changes of an input that a step can use."""
Makes = Literal["rows", "windows", "pairs", "on its time"]
"""Time when results of a step after a gate are due: with a row; with the end of a window; with the
later of two rows; or at a time that the step sets."""


class Role(Enum):
    """Role of a step; the value is the default kind of its stage."""

    SOURCE = "source"
    EACH_ROW = "stateless"
    """The step looks at each row alone, and runs in the stage that feeds it alone."""
    SIDE_ROWS = "side"
    """The step takes late rows of its input, or rows that its input diverted."""
    AFTER_GATE = "operator"
    SHARED_GATE = "gate"
    SINK = "sink"


@dataclass(frozen=True)
class Replica:
    """Replica of a step that a stage is: number `index`, from 0, of `of`."""

    index: int
    of: int
    share: Share
    has_gate: bool = False
    """Whether the gate is its own; else a shared gate feeds it."""


Replicas: TypeAlias = int | Literal["auto"] | None
"""Written number of replicas: "auto": one for each slot of the job; None: not written."""


class Sharing(NamedTuple):
    """Number of replicas of a step, and the rows that each gets."""

    replicas: int
    share: Share
    is_written: bool = False
    """Whether the user wrote `replicas=`, perhaps 1."""

    @classmethod
    def of(cls, written: Replicas, share: Share = "keys") -> Sharing:
        """Return the sharing of a step with `replicas=written`; "auto" is 1 until it is planned."""
        return cls(written if isinstance(written, int) else 1, share, written is not None)


ALONE = Sharing(1, "keys")
MARKS = frozenset({"marks"})
"""Fields of a step that puts rows together: what it makes has the marks of them all."""


class Closes(Protocol):
    """Use of arrivals by a step to close windows."""

    @property
    def policy(self) -> Any:
        """Policy by which windows close (`runtime/closing`)."""
        ...

    @property
    def speed(self) -> float | None:
        """Speed of arrivals relative to the clock; None if sources have different speeds."""
        ...

    @property
    def by_clock(self) -> bool:
        """Whether the step uses its slot's clock, since no source tells it arrivals."""
        ...

    @property
    def every_ns(self) -> int:
        """Longest stretch of arrivals before the step must hear of them."""
        ...


@dataclass(frozen=True, kw_only=True)
class StepTraits:
    """Facts of a step.

    Attributes:
        kind: the step's name in `explain`, and in reports if its stage has its own kind.
        role: its role in the plan.
        passes_on: whether rows leave as the same events; else they are new events.
        changes: changes that its results carry, beside those of an input that it passes on.
        kinds: kinds of these changes.
        takes_changes: changes of an input that it can use, of each or of all alike.
        takes_late: whether changes that come late count, too, from then on.
        may_drop: whether it looks at each row alone, and may make none or several of one.
        reach_ns: longest distance from an event's time that it may look, without its gate's slack.
            Of a step after a gate: the time, in event time, that a row stays in the operator's
            state. Source: SW of [ssg] §2.1.
        diverts: whether rows that it cannot use leave by a stream of their own.
        runs_users_code: whether it calls users' functions, inputs apart.
        reads_fields: fields of rows (`ROW_FIELDS`) that it reads, beside those that its gate reads.
        gives_fields: fields of rows that it adds.
        combines: whether a row that leaves stands for several that came, made beside the source.

    Of a step after a gate:

    Attributes:
        release: the rule of the gate.
        ports: the port of each input. Rows of one port have one order.
        port_keys: key columns of each port: rows with equal ones must meet in one replica.
        summaries: relation of outgoing promises to those of each port.
        makes: when results are due.
        is_at_latest: whether all results have the latest event time that there is.
        result_delay_ns: event time from the newest row of a result to its own, where it is due
            on its time; None if it leaves at the end.
        windows_ns: (size, slide) of its windows; None if sizes differ, or it has no windows.
        counts_events: whether all windows are of a set number of events.
        keep_rule: the rule by which rows are kept; None if both rules lose the same late rows.
        has_late_rows: whether another step can take its late rows: the class has a field
            `keeps_late`.
        misses: things that late rows may miss, such as "partners".
        sharing: number of replicas, and the rows that each gets.
        result_keys: columns of its results that have the key of the rows they are made of; None if
            the operator itself gives results the hash of their key, where `orders_keys`.
        replica: the replica that it is; None if it is the whole step. The class has a field of this
            name if a step may have replicas.
        uses_clock: whether it uses the clock, too (`Result.due_ns`): two runs may differ.
        needs_rows: whether only rows give it results: by a promise alone it only forgets.
        is_light: whether a row costs no more than to read, divide and send it.
        shed: settings of its shedding; None if it sheds nothing.
        close: its use of arrivals; None if it does not use them.
    """

    kind: str
    role: Role
    passes_on: bool = False
    changes: Changes = "none"
    kinds: frozenset[ChangeKind] = frozenset({"inserts", "updates", "deletions"})
    takes_changes: Takes | tuple[Takes, ...] = "none"
    takes_late: bool = False
    may_drop: bool = False
    reach_ns: int = 0
    runs_users_code: bool = False
    diverts: bool = False
    reads_fields: frozenset[str] = frozenset()
    gives_fields: frozenset[str] = frozenset()
    combines: bool = False
    release: Release = READY_ONLY
    ports: tuple[int, ...] = (0,)
    port_keys: tuple[tuple[str, ...], ...] = ((),)
    summaries: tuple[Summary, ...] = (PASSES,)
    makes: Makes = "rows"
    is_at_latest: bool = False
    result_delay_ns: int | None = 0
    windows_ns: tuple[int, int] | None = None
    counts_events: bool = False
    keep_rule: Keep | None = None
    has_late_rows: bool = True
    misses: str = "others"
    sharing: Sharing = ALONE
    result_keys: tuple[str, ...] | None = ()
    replica: Replica | None = None
    uses_clock: bool = False
    needs_rows: bool = False
    is_light: bool = False
    shed: object | None = None
    close: Closes | None = None

    puts_in_order: bool = False
    """Of a sink: whether its gate puts the rows of a step's replicas into one order."""

    @property
    def has_gate(self) -> bool:
        """Whether rows reach the step through a gate, or it is one."""
        return self.role in (Role.AFTER_GATE, Role.SHARED_GATE) or self.puts_in_order

    @property
    def owns_keys(self) -> bool:
        """Whether each replica has a gate, to which the rows of its keys are sent.

        One gate stays for all replicas where it decides by the rows of all keys, or by load.
        """
        sharing = self.sharing
        return (
            sharing.is_written
            and sharing.share == "keys"
            and all(self.port_keys)
            and self.close is None
            and self.shed is None
            and (self.replica is None or self.replica.has_gate)
        )

    @property
    def orders_keys(self) -> bool:
        """Whether results leave by event time and hash of the key, whatever replicas."""
        return self.owns_keys and self.release == READY_ONLY

    @property
    def why_no_order(self) -> str:
        """Reason why results of replicas leave in no fixed order; "": they have one."""
        if self.sharing.share == "all":
            return "share='all' divides the rows of a key"
        if self.close is not None:
            return "windows close in time"
        if self.shed is not None:
            return "events are shed by load"
        if not all(self.port_keys):
            return "the step has no key"
        return "" if self.release == READY_ONLY else f"the gate releases by {self.release.text}"

    @property
    def has_single_port(self) -> bool:
        """Whether all inputs have one port."""
        return len(set(self.ports)) == 1


def each_row(
    kind: str,
    *,
    runs_users_code: bool = False,
    diverts: bool = False,
    may_drop: bool = True,
    reads_fields: frozenset[str] = frozenset(),
) -> StepTraits:
    """Return the traits of a step that looks at each row alone."""
    return StepTraits(
        kind=kind,
        role=Role.EACH_ROW,
        passes_on=True,
        takes_changes="any",
        may_drop=may_drop,
        reads_fields=reads_fields,
        runs_users_code=runs_users_code,
        diverts=diverts,
    )
