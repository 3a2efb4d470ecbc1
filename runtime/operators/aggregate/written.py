"""Users write an aggregate with windows of event time and the aggregates of columns.

areas.aggregate(window=sliding("10s", "2s"), n=count(), worst=quantile("delay", 0.95))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NoReturn

from slackwater.runtime.calls import checked_call
from slackwater.runtime.closing.windows import WindowEnds
from slackwater.runtime.errors import SettingError
from slackwater.runtime.expressions.expressions import Expr
from slackwater.runtime.model import Duration, duration_ns, format_ns
from slackwater.runtime.other_names import SaysOurName, answer_to
from slackwater.runtime.shown import shown

AggregateName = Literal[
    "count", "sum", "mean", "min", "max", "quantile", "std", "var", "any", "all", "first", "last",
    "arg_max", "arg_min", "top_k", "count_distinct", "collect", "custom",
    "bit_and", "bit_or", "bit_xor", "covar", "corr", "slope", "intercept",
]  # fmt: skip
Closed = Literal["start", "end"]
"""The end of a window that is in it."""
Combine = Literal["exact", "anywhere"]
"""Results that partial results may make: those of which no bit changes, or floats too."""


@dataclass(frozen=True)
class Aggregate(SaysOurName):
    """An aggregate of a column, such as its `quantile` at `level`. `count` needs no column."""

    _called, _place = "an aggregate", "aggregates"
    _inner = frozenset(
        {"kind", "column", "level", "scale", "ddof", "condition", "by", "size", "distinct"}
        | {"columns", "source_column", "condition_text", "text"}
    )

    kind: AggregateName
    column: str | None = None
    level: float | None = None
    scale: int = 0
    """Digits after the point of a column of decimals, known once the step is made."""
    ddof: int | None = None
    """Of a variance or covariance: its divisor is the number of values less this."""
    by: str | None = None
    """Column whose greatest or least value chooses the row; of a covariance the other column."""
    size: int | None = None
    """Number of values that `top_k` has at most."""
    condition: Expr | None = None
    """Only rows for which it is true count; None if all do."""
    distinct: bool = False
    """Whether `top_k` has equal values once."""

    def _computed(self, other: object) -> NoReturn:
        raise TypeError(f"{self._called} is not a column; {answer_to('aggregates', 'arithmetic')}")

    __add__ = __sub__ = __mul__ = __truediv__ = __gt__ = __lt__ = _computed
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = _computed

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that it reads."""
        own = tuple(name for name in (self.column, self.by) if name is not None)
        return own if self.condition is None else (*own, *sorted(self.condition.columns()))

    @property
    def condition_text(self) -> str:
        """Text of its condition; "" if all rows count."""
        return "" if self.condition is None else self.condition.full_text()

    @property
    def text(self) -> str:
        """The aggregate as `explain` shows it."""
        column = "" if self.column is None else self.column or "''"
        options = [column] if column else []
        if self.level is not None:
            options.append(f"{self.level:g}")
        if self.by is not None:
            options.append(f"by={self.by}")
        if self.size is not None:
            options.append(str(self.size))
        if self.ddof is not None:
            options.append(f"ddof={self.ddof}")
        if self.distinct:
            options.append("distinct")
        where = "" if self.condition is None else f" where {self.condition!s}"
        return f"{self.kind}({', '.join(options)}){where}"

    @property
    def source_column(self) -> str | None:
        """Column of the rows, for errors."""
        return self.column


@dataclass(frozen=True)
class AggregateOfParts(Aggregate):
    """An aggregate of partial results, made by the plan alone."""

    of_rows: str | None = None
    """Column of the rows; None if they are counted."""
    counts: str | None = None
    """Of a mean: column with the number of values of each partial result."""

    @property
    def columns(self) -> tuple[str, ...]:  # noqa: D102
        return super().columns if self.counts is None else (*super().columns, self.counts)

    @property
    def source_column(self) -> str | None:  # noqa: D102
        return self.of_rows


@dataclass(frozen=True)
class Window(WindowEnds):
    """Windows of an aggregate; tumbling windows have slide = size.

    Attributes:
        closed: the end of a window that is in it. "end" is an offset of 1 ns, which the columns of
            results do not show.
    """

    closed: Closed = "start"

    @property
    def is_tumbling(self) -> bool:
        """Whether each event falls in one window."""
        return self.size_ns == self.slide_ns

    @property
    def has_whole_slides(self) -> bool:
        """Whether windows begin at whole slides since 1970."""
        return self.offset_ns == 0

    @property
    def shift_ns(self) -> int:
        """Time by which windows are later than columns show."""
        return int(self.closed == "end")

    @property
    def text(self) -> str:
        """Text of the windows in `explain`."""
        return self._text("" if self.is_tumbling else f" every {format_ns(self.slide_ns)}")

    def _text(self, slide: str) -> str:
        offset_ns = self.offset_ns - self.shift_ns
        offset = f", offset {format_ns(offset_ns)}" if offset_ns else ""
        closed = ", closed at the end" if self.closed == "end" else ""
        return f"{format_ns(self.size_ns)}{slide}{offset}{closed}"


def _window(size_ns: int, slide_ns: int, offset: Duration, closed: Closed) -> Window:
    offset_ns = duration_ns(offset, what="offset of windows") % slide_ns
    return Window(size_ns, slide_ns, offset_ns + (closed == "end"), closed)


@checked_call
def tumbling(size: Duration, *, offset: Duration = "0s", closed: Closed = "start") -> Window:
    """Return windows side by side: each event is in one window.

    Args:
        size: length of a window.
        offset: time by which windows begin after whole sizes since 1970, in UTC.
        closed: the end that is in a window: "start": [start, end); "end": (start, end].

    Raises:
        SettingError: not a length of time, or not more than zero.
    """
    size_ns = duration_ns(size, what="tumbling size", positive=True)
    return _window(size_ns, size_ns, offset, closed)


MOST_WINDOWS = 100_000
"""Windows that an event may be in: each leaves a row."""


@checked_call
def sliding(
    size: Duration, slide: Duration, *, offset: Duration = "0s", closed: Closed = "start"
) -> Window:
    """Return windows of `size`, one starting every `slide`.

    Each event is in size / slide windows.

    Args:
        size: length of a window.
        slide: time from the start of a window to the next.
        offset: time by which windows begin after whole slides since 1970, in UTC.
        closed: the end that is in a window: "start": [start, end); "end": (start, end].

    Raises:
        SettingError: not lengths of time more than zero; slide > size, which would leave events
            between the windows; or more than 100,000 windows for each event.
    """
    size_ns = duration_ns(size, what="sliding size", positive=True)
    slide_ns = duration_ns(slide, what="slide", positive=True)
    if slide_ns > size_ns:
        raise SettingError(
            f"slide={shown(slide)} must not be more than size={shown(size)}, or events between the "
            "windows would be lost; filter them out first if that is meant"
        )
    if size_ns > MOST_WINDOWS * slide_ns:
        raise SettingError(
            f"sliding({shown(size)}, {shown(slide)}) puts each event in {size_ns // slide_ns:,} "
            f"windows; {MOST_WINDOWS:,} is the most: make slide= longer"
        )
    return _window(size_ns, slide_ns, offset, closed)
