"""Times of expressions, `col("t").dt`: parts, truncation and text, in the column's zone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.runtime.calls import checked_methods
from slackwater.runtime.errors import OperatorError, TypeMismatch
from slackwater.runtime.expressions.comparable import family
from slackwater.runtime.expressions.function import (
    Call,
    Function,
    Operand,
    own_type,
    with_call,
)
from slackwater.runtime.expressions.whole import Kernel, refused
from slackwater.runtime.model import Column
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.nullable import valid_bits
from slackwater.runtime.model.schema import values_of
from slackwater.runtime.model.zones import (
    BEYOND,
    Ambiguous,
    NoTime,
    clock_of,
    instants_of,
    names_at,
    offset_text,
    offsets_at,
)
from slackwater.runtime.other_names import SaysItHasNoParts
from slackwater.runtime.shown import MOST_SHOWN, shown, text_of

__all__ = ["TIME_FUNCTIONS", "TimeMethods", "WithTimes", "format_read", "parsed_time"]

_E = TypeVar("_E", bound="WithTimes")

_MOST_S = (2**63 - 1) // 10**9 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR_NS = 3_600 * 10**9
_UNITS = {
    "ns": "nanosecond",
    "us": "microsecond",
    "ms": "millisecond",
    "s": "second",
    "m": "minute",
    "h": "hour",
    "d": "day",
    "w": "week",
    "mo": "month",
    "q": "quarter",
    "y": "year",
}
_FIXED_NS = {
    "nanosecond": 1,
    "microsecond": 10**3,
    "millisecond": 10**6,
    "second": 10**9,
    "minute": 60 * 10**9,
    "hour": _HOUR_NS,
    "day": 24 * _HOUR_NS,
    "week": 7 * 24 * _HOUR_NS,
}
_LONGEST = {"month": 120_000, "quarter": 40_000, "year": 10_000}
"""Longest periods that differ: Arrow's years have 16 bits, and times here 585 of them."""
_MONDAY_S = -3 * 24 * 3_600
_CODES = re.compile("%f|%.|[^%]+|%")
_FORMATTED = "aAbBcCdDeFgGhHIjmMnprRStTuUVwWxXyYzZf%"
_EVERY = re.compile(r"([1-9]\d{0,8})(ns|us|ms|s|mo|m|h|d|w|q|y)")


class WithTimes:
    """An expression with methods of times."""

    @property
    def dt(self) -> TimeMethods[Self]:
        """Methods of times: `col("seen").dt.hour()`."""
        return TimeMethods(self)

    def operation(self, op: str, *, option: Any = None, shown: str = "") -> Any:
        """Return an operation over the expression alone."""
        raise NotImplementedError


class Period(NamedTuple):
    """Length of the periods of `truncate`.

    Attributes:
        multiple: number of units.
        unit: name of the unit, as Arrow has it.
    """

    multiple: int
    unit: str

    def __str__(self) -> str:
        return f"{self.multiple} {self.unit}s" if self.multiple > 1 else self.unit


@checked_methods
class TimeMethods(SaysItHasNoParts, Generic[_E]):
    """Methods of timestamps and dates; hour, minute and second of a time of day too.

    They count in the column's zone; without one in UTC.

    Args:
        of: expression of the values.
    """

    _called = ".dt of an expression"
    _place = "time"

    def __init__(self, of: _E) -> None:
        self._of = of

    def year(self) -> _E:
        """Return the year."""
        return self._made("year")

    def month(self) -> _E:
        """Return the month, 1 to 12."""
        return self._made("month")

    def day(self) -> _E:
        """Return the day of the month, 1 to 31."""
        return self._made("day")

    def weekday(self) -> _E:
        """Return the day of the week, Monday 1 to Sunday 7."""
        return self._made("weekday")

    def day_of_year(self) -> _E:
        """Return the day of the year, 1 to 366."""
        return self._made("day_of_year")

    def hour(self) -> _E:
        """Return the hour, 0 to 23."""
        return self._made("hour")

    def minute(self) -> _E:
        """Return the minute, 0 to 59."""
        return self._made("minute")

    def second(self) -> _E:
        """Return the second, 0 to 59, without its fraction."""
        return self._made("second")

    def truncate(self, every: str) -> _E:
        """Return the begin of the period that a time is in.

        Args:
            every: its length: a whole number of ns, us, ms, s, m, h, d, w (from Monday), mo, q
                or y, such as "15m" or "1mo".

        Raises:
            TypeMismatch: it is not such a length.
        """
        match = _EVERY.fullmatch(every) if isinstance(every, str) else None
        if match is None:
            raise TypeMismatch(
                f"dt.truncate({shown(every)}): a length is a whole number and one of "
                f"{', '.join(_UNITS)}, such as '15m' or '1mo'"
            )
        period = Period(int(match[1]), _UNITS[match[2]])
        return self._made("truncate", period, shown=repr(every))

    def format(self, form: str) -> _E:
        """Return the time as text, by the codes of `strftime`: "%d.%m.%Y %H:%M"."""
        form = time_format("dt.format", form)
        for code in _CODES.findall(form):
            if code == "%" or (code[0] == "%" and code[1:] not in _FORMATTED):
                raise TypeMismatch(
                    f"dt.format({shown(form)}): there is no code {code!r}; there are: "
                    f"{' '.join(f'%{letter}' for letter in _FORMATTED)}"
                )
        return self._made("format", form, shown=repr(form))

    def _made(self, name: str, option: Any = None, *, shown: str = "") -> _E:
        made: _E = self._of.operation(f"dt.{name}", option=option, shown=shown)
        return made


def time_format(method: str, form: object) -> str:
    """Return a format of times.

    Raises:
        TypeMismatch: it is not text, or has no code.
    """
    if not isinstance(form, str) or "%" not in form:
        raise TypeMismatch(
            f"{method}({shown(form)}) takes codes of strftime, such as '%Y-%m-%d %H:%M'"
        )
    return form


def format_read(form: object) -> str:
    """Return a format of times to be read, in codes that Arrow and Python know.

    Raises:
        TypeMismatch: it is not a format, or no text can be read by it.
    """
    written = time_format("str.to_time", form)
    codes = _CODES.findall(written)
    if "%Z" in codes:
        raise TypeMismatch(
            f"str.to_time({shown(form)}): %Z is a short name, which several zones have; write %z "
            "for an offset, or zone='Europe/Berlin'"
        )
    plain = "".join(_SHORT_CODES.get(code, code) for code in codes)
    try:
        datetime.strptime(_SAMPLE.strftime(plain), plain)  # noqa: DTZ007 - only its codes count
    except (re.error, ValueError) as problem:
        if isinstance(problem, re.error) or _OF_FORMAT.search(text_of(problem)):
            raise TypeMismatch(
                f"str.to_time({shown(form)}): {text_of(problem)}; write codes of strptime, each "
                "once"
            ) from None
    return plain


_SAMPLE = datetime(2024, 10, 17, 13, 45, 59, 123_456, UTC)
_OF_FORMAT = re.compile("^(?!time data ).*(directive|stray)", re.DOTALL)
"""Python's words about a format; others are about a text."""
_SHORT_CODES = {
    "%D": "%m/%d/%y",
    "%e": "%d",
    "%F": "%Y-%m-%d",
    "%h": "%b",
    "%n": " ",
    "%R": "%H:%M",
    "%r": "%I:%M:%S %p",
    "%T": "%H:%M:%S",
    "%t": " ",
}
"""{code that Python does not read: the same in its codes}"""


def _time(since_ns: np.int64) -> np.datetime64:
    return np.datetime64(int(since_ns), "ns")


def _clock_shown(kind: pa.DataType, values: Any) -> pa.Array:
    """Return times, without a zone, as the clock of their zone shows them."""
    to = pa.timestamp("ns") if pa.types.is_timestamp(kind) else kind
    return pa.array(clock_of(kind, values), pa.int64()).view(to)


def _part(name: str, **options: Any) -> Callable[[Call], Kernel]:
    """Return the choice of a kernel that gives a part of times."""

    def kernel(call: Call) -> Kernel:
        part, kind = getattr(arrow_functions(), name), call.operands[0].type
        return lambda values: values_of(
            part(_clock_shown(kind, values), **options).cast(pa.int64())
        )

    return kernel


def _begins(period: Period, local: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the begins of times' periods, both in nanoseconds on their zone's clock."""
    multiple, unit = period
    tick_ns = 1 if _FIXED_NS.get(unit, 10**9) < 10**9 else 10**9  # begins long ago fit seconds
    ticks = local // tick_ns
    if unit in _LONGEST:
        seconds, multiple = pa.array(ticks).view(pa.timestamp("s")), min(multiple, _LONGEST[unit])
        floored = arrow_functions().floor_temporal(seconds, multiple=multiple, unit=unit)
        begins = values_of(floored.view(pa.int64()))
    else:
        length, first = multiple * _FIXED_NS[unit] // tick_ns, _MONDAY_S if unit == "week" else 0
        begins = (ticks - first) // length * length + first
    if len(local):  # the earliest begin decides: it wraps around first
        place = int(local.argmin())
        if begins[place] > ticks[place] or begins[place] < -(2**63 // tick_ns):
            raise _too_early(period, local, place)
    return begins * np.int64(tick_ns)


@with_call
def _truncate(call: Call, values: Any) -> Column:
    period: Period = call.option
    kind = call.operands[0].type
    local = clock_of(kind, values)
    begin = _begins(period, local)
    if kind.tz is None:
        return begin
    # A begin that a zone has twice is its first, and one that it leaves out the next time it has.
    utc = _in_utc(kind.tz, begin, ambiguous="earliest", skips=True)
    if period.multiple * _FIXED_NS.get(period.unit, _HOUR_NS + 1) <= _HOUR_NS:
        # An hour that a zone has twice is two: each begins by its own offset.
        own = values - (local - begin)
        utc = np.where(clock_of(kind, own) == begin, own, utc)
    if (utc > values).any():
        raise _too_early(period, values, int((utc > values).argmax()))
    return utc


def _too_early(period: Period, times: npt.NDArray[np.int64], place: int) -> OperatorError:
    return refused(f"the begin of the {period!s} of {_time(times[place])} {BEYOND}", place)


@with_call
def _format(call: Call, values: Any) -> Column:
    """Return times as text; `%S` has whole seconds, `%f` six digits of their fraction."""
    kind = call.operands[0].type
    zone = kind.tz or "UTC" if pa.types.is_timestamp(kind) else None
    ns = np.int64(10**9)  # Arrow's %S has all digits of the unit
    if pa.types.is_timestamp(kind):
        clock_s = clock_of(pa.timestamp("s", kind.tz), values // ns)
        shown = pa.array(clock_s).view(pa.timestamp("s"))
    else:
        shown = pa.array((values // ns).astype(np.int32)).view(pa.time32("s"))
    of_arrow = arrow_functions()
    parts, run = list[pa.Array](), ""
    for code in [*_CODES.findall(call.option), ""]:
        own = code == "%f" or (code in ("%z", "%Z") and zone is not None)
        if run and (own or not code):
            parts.append(of_arrow.strftime(shown, format=run))
        run = "" if own else run + code
        if own:
            parts.append(pa.array(_own_texts(code, zone or "", values), pa.string()))
    return parts[0] if len(parts) == 1 else of_arrow.binary_join_element_wise(*parts, "")


def _own_texts(code: str, zone: str, values: npt.NDArray[np.int64]) -> list[str]:
    """Return the texts of a code that Arrow has not, or not for all times."""
    if code == "%f":
        return [f"{each:06}" for each in (values // 1_000 % 10**6).tolist()]
    seconds = values // np.int64(10**9)
    if code == "%Z":
        return names_at(zone, seconds)
    return [offset_text(each).replace(":", "") for each in offsets_at(zone, seconds).tolist()]


def _in_utc(
    zone: str, clock_ns: npt.NDArray[np.int64], *, ambiguous: Ambiguous, skips: bool
) -> npt.NDArray[np.int64]:
    """Return the times at which a zone's clock shows these, all in nanoseconds.

    Raises:
        NoTime: as `instants_of`.
        OperatorError: one is beyond 64 bits; with its place.
    """
    ns = np.int64(10**9)
    clock_s: npt.NDArray[np.int64] = clock_ns // ns
    seconds = instants_of(zone, clock_s, ambiguous=ambiguous, skips=skips)
    utc = clock_ns + (seconds - clock_s) * ns
    wraps = np.abs(utc // ns - seconds) > 1
    if wraps.any():
        place = int(wraps.argmax())
        raise refused(f"{_time(clock_ns[place])} in {zone} {BEYOND}", place)
    if not skips:
        return utc
    is_left_out = seconds + offsets_at(zone, seconds) != clock_s  # a change has no fraction
    utc[is_left_out] = seconds[is_left_out] * ns
    return utc


def parsed_time(option: tuple[str, str | None, Ambiguous], text: pa.Array) -> Column:
    """Return times out of text, in nanoseconds.

    Args:
        option: (format, as `format_read`; zone, what an ambiguous hour is).
        text: shape (rows,), the texts.

    Raises:
        OperatorError: a text is not a time of the format, or is none in its zone; with its place.
    """
    form, zone, ambiguous = option
    of_arrow = arrow_functions()
    seconds = of_arrow.strptime(text, format=form, unit="s", error_is_null=True)
    whole = values_of(seconds.view(pa.int64()))
    if len(whole) and (np.abs(whole) > _MOST_S).any():
        place = int((np.abs(whole) > _MOST_S).argmax())
        raise refused(_too_far(text[place].as_py()), place)
    times = seconds.cast(pa.timestamp("ns"))
    # Arrow takes 30 February for 2 March; who is written back as it came is right.
    is_sure = of_arrow.equal(of_arrow.strftime(seconds, format=form), text)
    is_sure_or_null = values_of(is_sure) | ~valid_bits(text)
    if not is_sure_or_null.all():
        numbers = values_of(times.view(pa.int64())).copy()
        for place in (~is_sure_or_null).nonzero()[0].tolist():
            numbers[place] = _time_in(text[place].as_py(), form, place)
        times = pa.array(numbers, mask=~valid_bits(text)).view(pa.timestamp("ns"))
    numbers = values_of(times.view(pa.int64()))
    if zone is None or "%z" in form:  # the offset has made them UTC
        return numbers
    return _in_zone(numbers, text, zone, ambiguous)


def _time_in(text: str, form: str, place: int) -> int:
    """Return the time in a text, ns since 1970, by Python's slower rules."""
    try:
        time = datetime.strptime(text, form)  # noqa: DTZ007 - without a zone it is UTC below
    except ValueError as problem:
        raise refused(
            f"{shown(text)} is not a time of the format {shown(form)}: "
            f"{text_of(problem, MOST_SHOWN)}; filter out such rows first",
            place,
        ) from None
    if _is_past_year(text, form, time):
        raise refused(
            f"{text!r} is not a time of the format {form!r}: its year has no such day; filter out "
            "such rows first",
            place,
        )
    since = (time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH
    since_s = since.days * 86_400 + since.seconds
    if abs(since_s) > _MOST_S:
        raise refused(_too_far(text), place)
    return (since_s * 10**6 + since.microseconds) * 1_000


def _is_past_year(text: str, form: str, time: datetime) -> bool:
    """Return whether a text names a last day or week that its year lacks."""
    for code, (last, before, days) in _LAST.items():
        if code not in form or last not in text or time.strftime(code) == last:
            continue
        with suppress(ValueError):
            other = datetime.strptime(text.replace(last, before), form)  # noqa: DTZ007
            if timedelta(days) <= time - other < timedelta(days, hours=1):
                return True
    return False


_LAST = {
    "%j": ("366", "365", 1),
    **dict.fromkeys(("%U", "%W", "%V"), ("53", "52", 7)),
}
"""{code of a day or week: its greatest number, the one before it, days between both}."""


def _too_far(text: str) -> str:
    return (
        f"{shown(text)} is too far away for nanoseconds, 1677 to 2262; filter out such rows first, "
        "or leave the column as it is"
    )


def _in_zone(
    times: npt.NDArray[np.int64], text: pa.Array, zone: str, ambiguous: Ambiguous
) -> npt.NDArray[np.int64]:
    valid = valid_bits(text)
    utc = np.zeros(len(times), np.int64)
    rows = valid.nonzero()[0]
    try:
        utc[rows] = _in_utc(zone, times[rows], ambiguous=ambiguous, skips=False)
    except NoTime as problem:
        place, is_twice = int(rows[problem.place]), problem.is_twice
        fact = f"comes twice in {zone}" if is_twice else f"is left out by the clocks of {zone}"
        way_out = "say ambiguous='earliest', or " if is_twice else ""
        raise refused(
            f"{shown(text[place])} {fact}; {way_out}filter out such rows first", place
        ) from None
    except OperatorError as problem:
        problem.place = int(rows[problem.place or 0])
        raise
    return utc


def _time_of_calendar(op: str, operands: Sequence[Operand]) -> None:
    kind = operands[0].type
    if family(kind) != "timestamp":
        raise TypeMismatch(
            f"{op} takes a timestamp or a date, not {kind}; of text write .str.to_time(…)"
        )


def _time_with_clock(op: str, operands: Sequence[Operand]) -> None:
    if family(operands[0].type) != "time":
        _time_of_calendar(op, operands)


_DAY_PARTS, _CLOCK_PARTS = ("year", "month", "day", "day_of_year"), ("hour", "minute", "second")
TIME_FUNCTIONS = (
    *(Function(f"dt.{part}", _time_of_calendar, pa.int64(), _part(part)) for part in _DAY_PARTS),
    *(Function(f"dt.{part}", _time_with_clock, pa.int64(), _part(part)) for part in _CLOCK_PARTS),
    Function(
        "dt.weekday", _time_of_calendar, pa.int64(), _part("day_of_week", count_from_zero=False)
    ),
    Function("dt.truncate", _time_of_calendar, own_type, _truncate),
    Function("dt.format", _time_of_calendar, pa.string(), _format),
)
"""Rows of the table: functions of times in nanoseconds."""
