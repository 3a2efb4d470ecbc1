"""Steps that aggregate rows in windows: their base, and the step of intervals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import cached_property

from slackwater.runtime.model import END_NS, Release, format_ns
from slackwater.runtime.operators.aggregate.close import CloseInTime
from slackwater.runtime.operators.aggregate.custom_aggregate import CustomFunctions
from slackwater.runtime.operators.aggregate.interval_words import Intervals
from slackwater.runtime.operators.aggregate.schema import Late, ResultTime
from slackwater.runtime.operators.aggregate.written import Aggregate, Combine, Window
from slackwater.runtime.operators.ground.drift import Drift
from slackwater.runtime.plan.promises import PASSES, Summary
from slackwater.runtime.plan.step import USERS, GatedStep, Step
from slackwater.runtime.plan.traits import MARKS, Replica, Replicas, Role, Sharing, StepTraits

_TIMES = {
    "start": "the first moment of the window",
    "first": "that of the window's earliest row",
    "last": "that of the window's latest row",
}
"""Texts of the event times of results."""


@dataclass(frozen=True, kw_only=True)
class WindowStep(GatedStep):
    """The aggregates of each key and window that had events leave as a row.

    Columns that leave: the keys, `window_start` and `window_end` (timestamp[ns], in the time zone
    of the sources' event times), then the aggregates.
    """

    keys: tuple[str, ...]
    window: Window | Intervals
    aggregates: Mapping[str, Aggregate]
    release: Release
    replicas: Replicas = None
    late: Late = "drop"
    close: CloseInTime | None = None
    """None: by the watermark. It, `late`, `drift` and `combine` are set for numbered windows only,
    and stand here since fingerprints have them in this order."""
    drift: Drift | None = None
    combine: Combine = "exact"
    replica: Replica | None = None
    """In a plan: the number of this replica among several, which share by keys."""
    keeps_late: bool = False
    """In a plan: whether a `LateStep` takes the rows that could not count in full."""
    result_time: ResultTime | None = None
    """The event time of results; None: the last moment of the window."""
    custom: Mapping[str, CustomFunctions] | None = field(default=None, metadata=USERS)
    """Functions of the custom aggregates; None if no aggregate is custom."""
    early_ns: int = 0
    """Event time after which results leave before their windows' end; 0 if not by time."""
    early_rows: int = 0
    """Rows of a window and key after which they do; 0 if not by rows."""
    discards: bool = False
    """Whether a result has only the rows since the one before, of its window and key."""

    @property
    def leaves_early(self) -> bool:
        """Whether results leave before their windows' end."""
        return bool(self.early_ns or self.early_rows)

    @property
    def leaves_again(self) -> bool:
        """Whether results take the place of others that have left early."""
        return self.leaves_early and not self.discards

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        return {column for each in self.aggregates.values() for column in each.columns} | {
            *self.keys
        }

    def names_before(self, column: str) -> tuple[str | None, ...]:  # noqa: D102 - see Step
        # The rows of a key make its results.
        return (column if column in self.keys else None,)

    @property
    @abstractmethod
    def _summary(self) -> Summary:
        """Promise of its results, of that of its rows."""

    def _traits(self, *, kind: str) -> StepTraits:
        """Return the traits that all steps with windows have."""
        return StepTraits(
            kind=kind,
            role=Role.AFTER_GATE,
            runs_users_code=self.custom is not None,
            reads_fields=MARKS,
            gives_fields=MARKS,
            release=self.release,
            port_keys=(self.keys,),
            summaries=(self._summary,),
            misses="windows",
            sharing=Sharing.of(self.replicas),
            result_keys=self.keys,
            replica=self.replica,
        )

    def explained(self, steps: Mapping[str, Step]) -> Iterator[str]:  # noqa: D102 - see Step
        yield f"by       {', '.join(self.keys) or 'nothing: all rows together'}"
        yield f"window   {self.window.text}"
        for name, aggregate in self.aggregates.items():
            yield f"gives    {name} = {aggregate.text}"
        if self.result_time is not None:
            yield f"time     {_TIMES[self.result_time]}"
        if self.leaves_early:
            when = format_ns(self.early_ns) if self.early_ns else f"{self.early_rows:,} rows"
            text = f"early    results leave every {when} before the end, too"
            yield f"{text}, each of new rows alone" if self.discards else f"{text}, and again"


@dataclass(frozen=True, kw_only=True)
class IntervalStep(WindowStep):
    """Windows are intervals: each belongs to a key, and follows from its rows.

    The event time of a result is the last moment at which a row could have joined its interval.
    Rows leave by that time, then by the interval that began first in the stream's order.
    """

    window: Intervals

    @cached_property
    def traits(self) -> StepTraits:  # noqa: D102 - see Step
        window = self.window
        return replace(
            self._traits(kind="intervals"),
            changes="retractions" if self.leaves_again else "none",
            reach_ns=window.reach_ns or 0,
            makes="on its time",
            result_delay_ns=window.result_delay_ns,
            is_at_latest=(
                window.result_delay_ns is None
                and self.result_time is None
                and not self.leaves_early
            ),
            counts_events=window.reach_ns is None,
        )

    def reads(self, position: int, there: frozenset[str], needed: frozenset[str]) -> Set[str]:  # noqa: D102 - see Step
        return super().reads(position, there, needed) | self.window.columns

    @property
    def _summary(self) -> Summary:
        if self.result_time is None:
            return PASSES
        # A result is as old as the first row of an interval that is open.
        delay_ns = self.window.longest_ns
        return Summary(delay_ns=END_NS if delay_ns is None else delay_ns)
