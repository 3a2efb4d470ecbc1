"""The step of an aggregate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NoReturn

from slackwater.runtime.closing.policy import Closing
from slackwater.runtime.model import Release, format_ns
from slackwater.runtime.operators.ground.drift import Drift
from slackwater.runtime.operators.ground.keep import silent_text
from slackwater.runtime.other_names import SaysOurName, answer_to
from slackwater.runtime.plan.promises import Summary
from slackwater.runtime.plan.step import GatedStep, Step
from slackwater.runtime.plan.traits import MARKS, Replica, Role, Sharing, StepTraits

AggregateName = Literal["count", "sum", "mean", "min", "max", "quantile"]


@dataclass(frozen=True)
class Aggregate(SaysOurName):
    """An aggregate of a column, such as its `quantile` at `level`. `count` needs no column."""

    _called, _place = "an aggregate", "aggregates"
    _inner = frozenset(("kind", "column", "level", "scale"))

    kind: AggregateName
    column: str | None = None
    level: float | None = None
    scale: int = 0
    """Digits after the point of a column of decimals, known once the step is made."""

    def _computed(self, other: object) -> NoReturn:
        raise TypeError(f"{self._called} is no column; {answer_to('aggregates', 'arithmetic')}")

    __add__ = __sub__ = __mul__ = __truediv__ = __gt__ = __lt__ = _computed
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = _computed


@dataclass(frozen=True)
class Window:
    """Windows [k·slide, k·slide + size) of event time, for all whole k.

    Tumbling windows have slide = size.
    """

    size_ns: int
    slide_ns: int

    @property
    def is_tumbling(self) -> bool:
        """Whether each event falls in one window."""
        return self.size_ns == self.slide_ns


Late = Literal["drop", "correct"]
"""The fate of a row that comes after the close of its window: it is counted, or the window's result
leaves again, as long as the frontier has not passed it."""
REVISION = "revision"
"""The column of late="correct": how often the result of a window and key had left before."""


CHANCE = "chance_missing"
"""The column of close=: the chance, when the window closed, that a row of it was still to come."""


@dataclass(frozen=True)
class CloseInTime:
    """A policy closes windows by the arrivals of rows, and not by the watermark.

    Attributes:
        policy: the policy that closes windows.
        type: the column that tells types of rows apart, each with its own delays; None: rows of one
            source are of one type.
        speed: how many times faster than the clock arrivals go; None if that is not known, as the
            sources are not replayed at one speed.
        every_ns: a tenth of the windows' slide: the policy hears at this interval how far arrivals
            have come.
        awaits: whether the promises of its gate tell that each source has been heard, where windows
            close by the clock: every source promises something before its end.
        untold: reasons why windows close by the clock of the slot instead: sources without an
            arrival column, and steps whose rows are new events. Empty if they close by arrivals.
    """

    policy: Closing
    type: str | None
    speed: float | None
    every_ns: int
    awaits: bool = False
    untold: tuple[str, ...] = ()

    @property
    def by_clock(self) -> bool:
        """Whether no source tells of arrivals."""
        return bool(self.untold)


@dataclass(frozen=True, kw_only=True)
class AggregateStep(GatedStep):
    """The aggregates of each key and window that had events leave as a row.

    Columns that leave: the keys, `window_start` and `window_end` (timestamp[ns], in the time zone
    of the sources' event times), then the aggregates. Its event time is the last moment in the
    window, end − 1 ns, or, with drift, in the last of the three windows: the bound later. Rows
    leave by window end, then by key in order of first appearance in the window's stream order.
    """

    keys: tuple[str, ...]
    window: Window
    aggregates: Mapping[str, Aggregate]
    release: Release
    replicas: int = 1
    late: Late = "drop"
    close: CloseInTime | None = None
    """None: by the watermark."""
    drift: Drift | None = None
    replica: Replica | None = None
    """In a plan: the number of this replica among several, which share by keys."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that could not count in full."""

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        return StepTraits(
            kind="aggregate",
            role=Role.AFTER_GATE,
            reads_fields=MARKS,
            gives_fields=MARKS,
            revises=self.late == "correct",
            reach_ns=self.window.size_ns + 2 * self._wait_ns,
            release=self.release,
            port_keys=(self.keys,),
            # The last moment in the earliest window still open; with drift in the high one.
            summaries=(Summary(self.window.slide_ns, self.window.size_ns + self._wait_ns - 1),),
            makes="windows",
            windows_ns=(self.window.size_ns, self.window.slide_ns),
            kept_by="promise" if self.late == "correct" else None,
            misses="windows",
            sharing=Sharing(self.replicas, "keys"),
            replica=self.replica,
            uses_clock=self.close is not None and self.close.by_clock,
            close=self.close,
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        columns = {each.column for each in self.aggregates.values() if each.column is not None}
        if self.close is not None and self.close.type is not None:
            columns.add(self.close.type)
        return columns | set(self.keys) | (self.drift.columns if self.drift else set())

    @property
    def _wait_ns(self) -> int:
        return self.drift.most_ns if self.drift else 0

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102
        # The rows of a key make its results. Not where windows close in time: when they do follows
        # from the rows of all keys.
        return (column if column in self.keys and self.close is None else None,)

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        window = self.window
        slide = "" if window.is_tumbling else f" every {format_ns(window.slide_ns)}"
        yield f"by       {', '.join(self.keys) or 'nothing: all rows together'}"
        yield f"window   {format_ns(window.size_ns)}{slide}"
        for name, aggregate in self.aggregates.items():
            yield f"gives    {name} = {_text(aggregate)}"
        if self.drift:
            yield f"drift    {self.drift.text}: of the window as it is, and moved either way"
        if self.late == "correct":
            yield "late     corrects: its window's row leaves again, with the next revision"
            yield f"keeps    {_panes_text(self, steps)}"
        if self.close is not None:
            yield from _close_text(self, self.close)


def _close_text(step: AggregateStep, close: CloseInTime) -> Iterator[str]:
    """Yield when windows close, and what that depends on."""
    yield f"closes   {close.policy.text}"
    if close.type is not None:
        yield f"         a type of rows for each {close.type}"
    if close.by_clock:
        yield (
            f"         by the clock of its slot, for {', '.join(close.untold)} tell no arrival: "
            "results depend on when rows come"
        )
    if step.replicas > 1:
        part = f"1/{step.replicas} of the budget"
        yield f"         each replica by the rows of its own keys, with {part}"


def _panes_text(step: AggregateStep, steps: Mapping[str, Step]) -> str:
    silent = silent_text(steps, step.inputs)
    text = "windows until all have promised their ends"
    return f"{text}; {silent}: of as many rows as most_kept_rows" if silent else text


def _text(aggregate: Aggregate) -> str:
    level = "" if aggregate.level is None else f", {aggregate.level:g}"
    column = "" if aggregate.column is None else aggregate.column or "''"
    return f"{aggregate.kind}({column}{level})"
