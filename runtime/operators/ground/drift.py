"""`drift=` tells an operator how far event times may be off.

```
true time      somewhere in  [t − bound, t + bound]       bound: half of T_a, [thesis] Eq. 3.16
```

A source's clock is known up to half of the round trip that measured it ([thesis] Eq. 3.14). One
length is the bound of all events, or a column has each event's own. A window that is moved by
∓bound has the rows whose times are moved by ±bound: so operators move rows, not windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import ColumnError, OperatorError, SettingError, TypeMismatch
from slackwater.runtime.model import (
    Batch,
    Duration,
    Int64Array,
    duration_ns,
    format_ns,
)
from slackwater.runtime.model.nullable import Nullable, without_mask
from slackwater.runtime.model.schema import UNIT_NS
from slackwater.runtime.nearest import choices
from slackwater.runtime.operators.ground.checks import column_type, is_whole
from slackwater.runtime.operators.ground.user_code import row_of
from slackwater.runtime.shown import shown

BOUNDS_CUT = "bounds_cut"
"""The count of rows whose own bound was more than the most, and was cut to it."""
CERTAIN = "certain"
"""The column of a pair that allows for clocks."""


@dataclass(frozen=True)
class Drift:
    """A bound says how far an event's time may be off, either way.

    Attributes:
        most_ns: the most of all bounds; without a column, the bound of every event.
        column: the column with each event's own bound, as whole numbers; None: all have one bound.
        unit_ns: the unit of the column.
    """

    most_ns: int
    column: str | None = None
    unit_ns: int = 1

    @property
    def columns(self) -> frozenset[str]:
        """The columns that the bound is read of."""
        return frozenset() if self.column is None else frozenset({self.column})

    def counts(self, bounds_cut: int) -> dict[str, int]:
        """Return the counts of a machine with drift: bounds cut, where rows have their own."""
        return {} if self.column is None else {BOUNDS_CUT: bounds_cut}

    @property
    def text(self) -> str:  # noqa: D102
        if self.column is None:
            return f"± {format_ns(self.most_ns)}"
        return f"± {self.column}, at most {format_ns(self.most_ns)}"

    def bounds_ns(self, batch: Batch, *, step: str) -> tuple[Int64Array, int]:
        """Return the bound of each row, shape (rows,), and the number of bounds cut.

        Raises:
            OperatorError: a bound is less than zero; names the row.
        """
        if self.column is None:
            return np.full(len(batch), self.most_ns), 0
        own = batch.columns[self.column]
        if isinstance(own := without_mask(own), Nullable):
            raise OperatorError(
                f"step {step!r}: drift={self.column!r} has a null bound; a bound says how far an "
                "event's time may be off, either way: fill it, such as "
                f"col({self.column!r}).fill_null(0)\n{row_of(batch, int(own.valid.argmin()))}"
            )
        assert isinstance(own, np.ndarray), "checked when the step was made: whole numbers"
        if len(own) and own.dtype.kind == "i" and own.min() < 0:
            raise OperatorError(
                f"step {step!r}: drift={self.column!r} has a negative bound; a bound says how far "
                f"an event's time may be off, either way: write zero or more into the column\n"
                f"{row_of(batch, int(own.argmin()))}"
            )
        is_cut = own > self.most_ns // self.unit_ns  # in that unit, so that nothing overflows
        known = np.where(is_cut, 0, own).astype(np.int64) * self.unit_ns
        bounds = np.where(is_cut, self.most_ns, known)
        return bounds, int(np.count_nonzero(is_cut))


@dataclass(frozen=True)
class ClockBound:
    """A column with each event's own bound, and the most in it: `sw.clocks.clock_bound`."""

    column: str
    most: Duration
    unit: Unit = "ns"


Unit: TypeAlias = Literal["ns", "us", "ms", "s"]
DriftGiven: TypeAlias = Duration | ClockBound | None
"""A length, a column's name, or `clock_bound(column, most=…)`."""


@checked_call
def clock_bound(column: str, *, most: Duration, unit: Unit = "ns") -> ClockBound:
    """Return a value of `drift=`, for a column of small values or another unit.

    Results of a window wait for `most`: with a column's name alone, for half a window.

    Args:
        column: each event's own bound: how far its time may be off, either way; a whole number,
            0 or more. A source with `clock=` has one.
        most: no event counts as further off than this. A larger bound is cut to it, and is counted
            as `bounds_cut` in the report.
        unit: the unit of the column.
    """
    return ClockBound(column, most, unit)


def checked_drift(
    given: Any, schemas: Sequence[pa.Schema], *, span_ns: int, span: str, step: str
) -> Drift | None:
    """Return the bound that `drift=` says; None if it was not written.

    Args:
        given: the value that was written.
        schemas: schemas of all inputs: each has the column, if there is one.
        span_ns: the length of the window, or how far apart two events may be.
        span: the name of that setting, such as "window=".
        step: the step's name, for errors.

    Raises:
        SettingError: negative, no length, or more than half of the span.
        ColumnError, TypeMismatch: the column is not there, or its values are not whole.
    """
    if given is None:
        return None
    half_ns = span_ns // 2
    if isinstance(given, ClockBound):
        column = _column(given.column, schemas, step=step)
        most_ns = duration_ns(given.most, what=f"step {step!r}: clock_bound(most)")
        if given.unit not in UNIT_NS:
            raise SettingError(
                f"step {step!r}: clock_bound(unit={shown(given.unit)}) must be 'ns', 'us', 'ms' or "
                "'s', that of the column"
            )
        drift = Drift(most_ns, column, UNIT_NS[given.unit])
        return _at_most(drift, half_ns, span_ns, span, step=step)
    try:
        most_ns = duration_ns(given, what=f"step {step!r}: drift")
    except SettingError as problem:
        if not isinstance(given, str):
            raise SettingError(
                f"{problem}; or the name of a column with each event's own bound, such as "
                "drift='bound_ns', or a sw.clocks.clock_bound('bound_ms', …)"
            ) from None
        if _looks_like_a_length(given):
            raise
        return Drift(half_ns, _column(given, schemas, step=step))
    return _at_most(Drift(most_ns), half_ns, span_ns, span, step=step)


def _looks_like_a_length(text: str) -> bool:
    return text.strip()[:1] in "+-.0123456789"


def _at_most(drift: Drift, half_ns: int, span_ns: int, span: str, *, step: str) -> Drift:
    if drift.most_ns > half_ns:
        raise SettingError(
            f"step {step!r}: drift of {format_ns(drift.most_ns)} is more than half of "
            f"{span}{format_ns(span_ns)}: then no event is sure to be in it (it must be no shorter "
            "than twice the drift, the round trip T_a that clocks were measured by); lengthen it, "
            "or measure the clocks better"
        )
    return drift


def _column(name: Any, schemas: Sequence[pa.Schema], *, step: str) -> str:
    for schema in schemas:
        if isinstance(name, str) and name not in schema.names:
            raise ColumnError(
                f"step {step!r}: drift={name!r} is neither a length such as '5ms' nor a column "
                f"that its rows have; {choices(name, schema.names)}"
            )
        kind = column_type(schema, name, step=step)
        if not is_whole(kind):
            up = ".ceil()" if pa.types.is_floating(kind) else ""  # a bound may not shrink
            raise TypeMismatch(
                f"step {step!r}: drift={name!r} is {kind}, and a bound is a whole number; cast "
                f"it, such as .with_columns({name}=col({name!r}){up}.cast('int64'))"
            )
    column: str = name
    return column
