"""What an aggregate is to the flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal

import pyarrow as pa

from slackwater.runtime.closing.policy import Closing
from slackwater.runtime.model import Release, format_ns
from slackwater.runtime.operators.ground.drift import Drift
from slackwater.runtime.operators.ground.keep import replicas_text, silent_text
from slackwater.runtime.plan.promises import Summary
from slackwater.runtime.plan.step import GatedStep, Keep, Replica, Sharing, Side, Step, all_columns

AggregateName = Literal["count", "sum", "mean", "min", "max", "quantile"]


@dataclass(frozen=True)
class Aggregate:
    """One aggregate: `quantile` of `column` at `level`, say. `count` needs no column."""

    kind: AggregateName
    column: str | None = None
    level: float | None = None


@dataclass(frozen=True)
class Window:
    """Windows [k·slide, k·slide + size) of event time, for all whole k. Tumbling: slide = size."""

    size_ns: int
    slide_ns: int

    @property
    def is_tumbling(self) -> bool:
        """Whether each event falls in one window."""
        return self.size_ns == self.slide_ns


Late = Literal["drop", "correct"]
"""What becomes of a row that comes behind the close of its window: counted, or the window's row
leaves again, as long as the frontier has not passed it."""
REVISION = "revision"
"""The column of late="correct": how often the row of a window and key had left before."""


CHANCE = "chance_missing"
"""The column of close=: the chance, when the window closed, that a row of it was still to come."""


@dataclass(frozen=True)
class CloseInTime:
    """Windows close as a policy says, by the arrivals of rows, and not by the watermark.

    Attributes:
        policy: which.
        type: the column that tells types of rows apart, each with its own delays; None: they are
            of one type that are of one source.
        speed: how many times faster than the clock arrivals go; None: nobody knows, as its sources
            are not replayed at one speed.
        every_ns: a slide of the windows, in ten parts: so often it is told how far arrivals have
            come.
        awaits: whether by what its gate is promised it can be told that each source has been heard,
            where windows close by the clock: no source promises nothing before its end.
        untold: why it goes by the clock of its slot instead: sources without an arrival column,
            and steps whose rows are new events. Empty: it does not.
    """

    policy: Closing
    type: str | None
    speed: float | None
    every_ns: int
    awaits: bool = False
    untold: tuple[str, ...] = ()

    @property
    def by_clock(self) -> bool:
        """Whether nobody tells it of arrivals."""
        return bool(self.untold)


@dataclass(frozen=True, kw_only=True)
class AggregateStep(GatedStep):
    """Aggregates per key and window. A row leaves per key and window that had events.

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
    """In a plan: which of several this is; they share by keys."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that could not count in full."""

    @property
    def kind(self) -> str:
        """It aggregates."""
        return "aggregate"

    @property
    def ports(self) -> tuple[int, ...]:
        """One."""
        return (0,)

    @property
    def port_keys(self) -> tuple[tuple[str, ...], ...]:
        """A window needs all rows of its key."""
        return (self.keys,)

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:
        """The keys, and what is aggregated: needed or not."""
        del position, there, needed
        columns = {each.column for each in self.aggregates.values() if each.column}
        if self.close is not None and self.close.type is not None:
            columns.add(self.close.type)
        return columns | set(self.keys) | (self.drift.columns if self.drift else set())

    @property
    def span_ns(self) -> int:
        """As long as a window; and from where a clock may be behind to where it may be ahead."""
        return self.window.size_ns + 2 * self._wait_ns

    @property
    def _wait_ns(self) -> int:
        return self.drift.most_ns if self.drift else 0

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """The last moment in the earliest window still open; with drift in the high one."""
        return (Summary(self.window.slide_ns, self.window.size_ns + self._wait_ns - 1),)

    def names_before(self, column: str) -> tuple[str | None, ...]:
        """As here, if it is a key: the rows of a key make its results.

        Not where windows close in time: when they do follows from the rows of all keys.
        """
        return (column if column in self.keys and self.close is None else None,)

    @property
    def passes_on(self) -> bool:
        """It makes new rows."""
        return False

    @property
    def revises(self) -> bool:
        """If it corrects."""
        return self.late == "correct"

    @property
    def kept_by(self) -> Keep | None:
        """As long as panes may be corrected, by what is promised."""
        return "promise" if self.revises else None

    @property
    def misses(self) -> str:
        """Windows."""
        return "windows"

    @property
    def sharing(self) -> Sharing:
        """By keys."""
        return Sharing(self.replicas, "keys")

    def pruned(self, needed: frozenset[str], *, keeps_late: bool) -> AggregateStep:
        """Return it as it is run: it makes all its columns."""
        del needed
        return replace(self, keeps_late=keeps_late)

    def late_columns(
        self, inputs: Sequence[pa.Schema], *, side: Side | None, who: str
    ) -> tuple[Mapping[str, str] | None, ...]:
        """All columns of its rows."""
        return all_columns(self, inputs, side=side, who=who)

    @property
    def counters(self) -> tuple[str, ...]:
        """Rows that went too soon, there being too many."""
        return ("let_go", *(self.drift.counters if self.drift else ()))

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:
        """Yield its keys, window, columns, and how it takes late rows."""
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
        yield f"gate     {self.release.text}"
        if self.replicas > 1:
            yield replicas_text(self.sharing)

    @property
    def runs_users_code(self) -> bool:
        """It does not."""
        return False

    @property
    def has_time(self) -> bool:
        """It goes by the clock if its windows close in time and nobody tells of arrivals."""
        return self.close is not None and self.close.by_clock

    def bare(self) -> AggregateStep:
        """Return it: all it has is ours."""
        return self


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
    """Return how long windows that are corrected stay."""
    silent = silent_text(steps, step.inputs)
    text = "windows until all have promised their ends"
    return f"{text}; {silent}: of as many rows as most_kept_rows" if silent else text


def _text(aggregate: Aggregate) -> str:
    level = "" if aggregate.level is None else f", {aggregate.level:g}"
    return f"{aggregate.kind}({aggregate.column or ''}{level})"
