"""Users write windows that follow from the rows of a key: sessions, counts, all rows.

clicks.aggregate(by="user", window=session("30m"), n=count())
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import SettingError, TypeMismatch
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model import Duration, duration_ns, format_ns
from slackwater.runtime.operators.ground.checks import no_function, predicate
from slackwater.runtime.shown import shown


@dataclass(frozen=True)
class Intervals(ABC):
    """Windows that are intervals: each belongs to a key, and follows from its rows."""

    word: ClassVar[str]
    """The word that users write."""
    starts_differ: ClassVar[bool] = False
    """Whether no two windows of a key begin at one time."""

    @property
    @abstractmethod
    def text(self) -> str:
        """Text of the windows in `explain`."""

    @property
    @abstractmethod
    def reach_ns(self) -> int | None:
        """Time for which an interval stays after its newest row; None if unlimited."""

    @property
    def result_delay_ns(self) -> int | None:
        """Event time from the newest row to the result; None if that is the end."""
        return self.reach_ns

    @property
    def longest_ns(self) -> int | None:
        """Greatest length of an interval; None if unlimited."""
        return None

    @property
    def columns(self) -> frozenset[str]:
        """Columns that say which rows are in an interval."""
        return frozenset()

    def bound(self, schema: pa.Schema, *, step: str) -> Intervals:
        """Return the windows of a step whose input has these columns; a subclass checks them."""
        del schema, step
        return self


@dataclass(frozen=True)
class Session(Intervals):
    """Rows of a key with no more than a gap between neighbours.

    Attributes:
        gap_ns: gap after each row; None if it has its own.
        gap: gap after a row, in nanoseconds, of the row's columns.
    """

    word = "session"
    starts_differ = True

    gap_ns: int | None
    gap: Expr | None = None

    @property
    def text(self) -> str:  # noqa: D102
        gap = str(self.gap) if self.gap_ns is None else format_ns(self.gap_ns)
        return f"session, until no row has come for {gap}"

    @property
    def reach_ns(self) -> int | None:  # noqa: D102
        return self.gap_ns

    @property
    def result_delay_ns(self) -> int:  # noqa: D102 - where each row has its own: not known
        return self.gap_ns or 0

    @property
    def columns(self) -> frozenset[str]:  # noqa: D102
        return frozenset() if self.gap is None else frozenset(self.gap.columns())

    def bound(self, schema: pa.Schema, *, step: str) -> Session:  # noqa: D102
        if self.gap is None:
            return self
        what = "the gap of session"
        no_function(self.gap, step=step, what=what)
        kind = self.gap.type_in(schema, step=step)
        gap = self.gap.cast("duration[ns]") if pa.types.is_duration(kind) else self.gap
        if gap is self.gap and not pa.types.is_integer(kind):
            raise TypeMismatch(
                f"step {step!r}: {what} {self.gap!s} is {kind}, and must be a duration, or whole "
                "nanoseconds; cast it, such as .cast('duration[s]')"
            )
        gap = gap if kind == pa.int64() else gap.cast("int64")
        return replace(self, gap=gap.bound(schema))


@dataclass(frozen=True)
class Everything(Intervals):
    """Windows of all rows of a key."""

    word = "everything"
    starts_differ = True

    @property
    def text(self) -> str:  # noqa: D102
        return "everything: all rows of a key, which leave at the end of the input"

    @property
    def reach_ns(self) -> None:  # noqa: D102
        return None


@dataclass(frozen=True)
class Rows(Intervals):
    """So many rows of a key.

    Attributes:
        size: rows of a window.
        every: rows from the begin of a window to the next.
    """

    word = "rows"

    size: int
    every: int

    @property
    def text(self) -> str:  # noqa: D102
        every = "" if self.every == self.size else f", one begins every {self.every:,}"
        return f"{self.size:,} rows of a key{every}; the rest leaves at the end"

    @property
    def reach_ns(self) -> None:  # noqa: D102
        return None

    @property
    def result_delay_ns(self) -> int:  # noqa: D102
        return 0


@dataclass(frozen=True)
class OpenedBy(Intervals):
    """Windows of one length, each from a row that fits."""

    word = "opened_by"

    where: Expr
    length_ns: int

    @property
    def text(self) -> str:  # noqa: D102
        return f"{format_ns(self.length_ns)} from each row with {self.where!s}"

    @property
    def longest_ns(self) -> int:  # noqa: D102
        return self.length_ns

    @property
    def reach_ns(self) -> int:  # noqa: D102
        return self.length_ns

    @property
    def columns(self) -> frozenset[str]:  # noqa: D102
        return frozenset(self.where.columns())

    def bound(self, schema: pa.Schema, *, step: str) -> OpenedBy:  # noqa: D102
        return replace(self, where=predicate(self.where, schema, step=step, what="opened_by"))


@checked_call
def session(gap: Duration | Expr) -> Session:
    """Return windows of rows of a key with no more than `gap` between neighbours.

    A session leaves once no row can come that is at most a gap after its last one.

    Args:
        gap: length of time, "30m"; or an expression, such as col("timeout"), for a gap after each
            row. Then a row joins rows before it whose gap reaches it. It is a duration, or whole
            nanoseconds, of more than zero and never null: other values end the job.

    Raises:
        SettingError: not a length of time, or not more than zero.
    """
    if isinstance(gap, Expr):
        return Session(None, gap)
    return Session(duration_ns(gap, what="session gap", positive=True))


@checked_call
def everything() -> Everything:
    """Return a window of all rows of a key, which leaves at the end."""
    return Everything()


@checked_call
def opened_by(where: Expr, length: Duration) -> OpenedBy:
    """Return windows of `length`, each from a row for which `where` is true.

    That row is in it, and a row at its end is not. Windows are of a key, and may overlap.

    Raises:
        SettingError: not a length of time, or not more than zero.
    """
    return OpenedBy(where, duration_ns(length, what="opened_by length", positive=True))


_MOST_WINDOWS = 1_000
"""Windows that a row may be in: each leaves a row."""
MOST_ROWS = 10**12
"""Rows of a window: so many never come."""


@checked_call
def rows(size: int, *, every: int | None = None) -> Rows:
    """Return windows of `size` rows of a key, in their order.

    Rows that are left leave at the end.

    Args:
        size: number of rows of a window.
        every: rows from the begin of a window to the next; `size` if None.

    Raises:
        SettingError: a number is less than 1, or more than a trillion; every > size, which would
            omit rows; or a row is in more than 1,000 windows.
    """
    every = size if every is None else every
    if size < 1 or every < 1:
        raise SettingError(f"rows({size}, every={every}): both must be at least 1")
    if every > size:
        raise SettingError(
            f"rows({size}, every={every}): every= must not be more than the size, or rows between "
            "the windows would be lost; filter them out first if that is meant"
        )
    if size > MOST_ROWS:
        raise SettingError(
            f"rows({shown(size)}): {MOST_ROWS:,} is the most; for all rows of a key write "
            "everything()"
        )
    if size > _MOST_WINDOWS * every:
        raise SettingError(
            f"rows({size:,}, every={every}) puts each row in {size // every:,} windows; "
            f"{_MOST_WINDOWS:,} is the most: make every= longer"
        )
    return Rows(size, every)
