"""Columns by which the clock of a source is corrected, in `clock.py`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slackwater.runtime.calls import checked_call
from slackwater.runtime.errors import SettingError
from slackwater.runtime.shown import shown

__all__ = ["ClockColumns", "clock_columns"]


@dataclass(frozen=True, kw_only=True)
class ClockColumns:
    """Columns that say how far off the clock of an event's time is.

    Attributes:
        offset: the column of what to add to the event time to have ours; integers.
        bound: the column of how far off that can be, >= 0; integers. None if nothing is known.
        unit: unit of both columns.

    Raises:
        SettingError: there is no such unit.
    """

    offset: str
    bound: str | None
    unit: Literal["ns", "us", "ms", "s"]

    def __post_init__(self) -> None:
        if self.unit not in ("ns", "us", "ms", "s"):
            raise SettingError(
                f"clock_columns: unit={shown(self.unit)} must be 'ns', 'us', 'ms' or 's', that of "
                "the integers in these columns"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return (self.offset,) if self.bound is None else (self.offset, self.bound)

    @property
    def text(self) -> str:
        """How `explain` says it."""
        within = "" if self.bound is None else f" ± {self.bound}"
        return f"its clock corrected by {self.offset}{within} in {self.unit}"


@checked_call
def clock_columns(
    offset: str, bound: str | None = None, *, unit: Literal["ns", "us", "ms", "s"]
) -> ClockColumns:
    """Name the columns by which a source's clock is corrected, for `clock=`.

    Args:
        offset: the column of what to add to the event time to have ours (as NTP's offset is:
            below 0 for a clock that is ahead); integers without nulls.
        bound: the column of how far off the offset can be: half of the round trip, and what the
            clocks have drifted since; integers without nulls, >= 0.
        unit: unit of both columns. It has no default: a wrong one could not be seen.

    Raises:
        SettingError: there is no such unit.

    Source: [thesis] Eq. 3.13 to 3.15.
    """
    return ClockColumns(offset=offset, bound=bound, unit=unit)
