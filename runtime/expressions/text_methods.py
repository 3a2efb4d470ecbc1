"""Text of expressions, `col("s").str`: methods, and their kernels by Arrow.

Patterns are RE2's regular expressions (https://github.com/google/re2/wiki/Syntax), unless
`literal=True`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, Self, TypeVar

import numpy as np
import pyarrow as pa

from slackwater.runtime.calls import checked_methods
from slackwater.runtime.errors import TypeMismatch
from slackwater.runtime.expressions.function import (
    Call,
    Function,
    Operand,
    Results,
    with_call,
)
from slackwater.runtime.expressions.time_methods import WithTimes, format_read, parsed_time
from slackwater.runtime.expressions.whole import Kernel
from slackwater.runtime.model import Column
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.schema import is_text, values_of
from slackwater.runtime.model.zones import check_zone
from slackwater.runtime.other_names import SaysItHasNoParts
from slackwater.runtime.shown import shown, text_of

__all__ = ["TEXT_FUNCTIONS", "TextMethods", "WithText", "check_place"]

_E = TypeVar("_E", bound=WithTimes)


class WithText(WithTimes):
    """An expression with methods of text and of times."""

    @property
    def str(self) -> TextMethods[Self]:
        """Methods of text: `col("line").str.lower()`."""
        return TextMethods(self)


@checked_methods
class TextMethods(SaysItHasNoParts, Generic[_E]):
    """Methods of an expression that is text. A result is null where the text is.

    Args:
        of: expression of the values.
    """

    _called = ".str of an expression"
    _place = "text"

    def __init__(self, of: _E) -> None:
        self._of = of

    def lower(self) -> _E:
        """Return the text in lower case, by Unicode's rules."""
        return self._made("str.lower")

    def upper(self) -> _E:
        """Return the text in upper case, by Unicode's rules."""
        return self._made("str.upper")

    def strip(self, characters: str | None = None) -> _E:
        """Return the text without these characters at both ends; None if white space is meant."""
        written = "" if characters is None else repr(characters)
        return self._made("str.strip", option=(characters,), shown=written)

    def length(self) -> _E:
        """Return the number of characters (code points)."""
        return self._made("str.length")

    def slice(self, start: int, length: int | None = None) -> _E:
        """Return `length` characters from `start` on; None if all are meant.

        A `start` below 0 counts from the end.
        """
        if length is not None and length < 0:
            raise TypeMismatch(f"str.slice: length={length} must be 0 or more")
        check_place("str.slice", start=start, length=length)
        written = str(start) if length is None else f"{start}, {length}"
        return self._made("str.slice", option=(start, length), shown=written)

    def contains(self, pattern: str, *, literal: bool = False) -> _E:
        """Return whether the pattern is found in the text."""
        return self._matching("contains", pattern, literal=literal)

    def starts_with(self, prefix: str) -> _E:
        """Return whether the text begins so."""
        return self._made("str.starts_with", option=(prefix,), shown=repr(prefix))

    def ends_with(self, suffix: str) -> _E:
        """Return whether the text ends so."""
        return self._made("str.ends_with", option=(suffix,), shown=repr(suffix))

    def replace(self, pattern: str, value: str, *, literal: bool = False) -> _E:
        r"""Return the text with each match replaced; `\1` in `value` is the first group."""
        if literal and pattern == "":  # Arrow would look for it forever
            raise TypeMismatch("str.replace('') has nothing to replace; write a text of 1 or more")
        made = self._matching("replace", pattern, value, literal=literal)
        if not literal:
            _check_replacement(pattern, value)
        return made

    def extract(self, pattern: str, group: int = 1) -> _E:
        """Return a group of the first match; null where the pattern is not found.

        Raises:
            TypeMismatch: the pattern is not a regular expression, or has no such group.
        """
        _check_pattern("extract", pattern)
        if group < 1:
            raise TypeMismatch(f"str.extract: group={group} must be 1 or more")
        named = _named_groups(pattern)
        try:
            fields = arrow_functions().extract_regex(pa.array([""]), named).type
        except pa.ArrowInvalid as problem:
            raise TypeMismatch(f"str.extract({shown(pattern)}): {text_of(problem)}") from None
        if fields.num_fields < group:
            raise TypeMismatch(
                f"str.extract({shown(pattern)}): group={group}, and the pattern has "
                f"{fields.num_fields}; put what is wanted in parentheses"
            )
        written = repr(pattern) if group == 1 else f"{pattern!r}, {group}"
        return self._made("str.extract", option=(named, group), shown=written)

    def split(self, by: str) -> _E:
        """Return the parts between each `by` as a list."""
        if not by:
            raise TypeMismatch("str.split('') has nothing to split by; write a text of 1 or more")
        return self._made("str.split", option=(by,), shown=repr(by))

    def to_time(
        self,
        form: str,
        *,
        zone: str | None = None,
        ambiguous: Literal["raise", "earliest", "latest"] = "raise",
    ) -> _E:
        """Return the text as a timestamp.

        Args:
            form: codes of `strptime`, such as "%d.%m.%Y %H:%M:%S"; of fractions of seconds, `%f`,
                microseconds. ISO 8601 needs none: `.cast("timestamp")`.
            zone: zone of times in the text, such as "Europe/Berlin" or "+02:00"; the timestamp is
                in it, also where the text has an offset (`%z`). None if it has no zone.
            ambiguous: the time meant by an hour that a zone has twice.

        Raises:
            TypeMismatch: no format, no such zone, or no such word.
        """
        codes = format_read(form)
        if zone is not None:
            _check_zone(zone)
        parsed_time((codes, zone, ambiguous), pa.array([], pa.string()))
        more = [] if zone is None else [f"zone={zone!r}"]
        more += [] if ambiguous == "raise" else [f"ambiguous={ambiguous!r}"]
        written = ", ".join([repr(form), *more])
        return self._made("str.to_time", option=(codes, zone, ambiguous), shown=written)

    def _made(self, op: str, *, option: Any = (), shown: str = "") -> _E:
        made: _E = self._of.operation(op, option=option, shown=shown)
        return made

    def _matching(self, name: str, pattern: str, *more: str, literal: bool) -> _E:
        if not literal:
            _check_pattern(name, pattern)
        written = ", ".join([*map(repr, (pattern, *more)), *(["literal=True"] if literal else [])])
        return self._made(f"str.{name}", option=(pattern, *more, literal), shown=written)


def check_place(method: str, **numbers: int | None) -> None:
    """Check that places and lengths fit 64 bits.

    Raises:
        TypeMismatch: one does not.
    """
    for name, number in numbers.items():
        if number is not None and not -(2**63) < number < 2**63:
            raise TypeMismatch(f"{method}: {name}={shown(number)} must fit 64 bits")


def _check_zone(zone: str) -> None:
    try:
        check_zone(zone)
    except pa.ArrowInvalid:
        raise TypeMismatch(
            f"str.to_time: zone={shown(zone)} is not a time zone; write one such as 'Europe/Berlin'"
        ) from None


def _check_pattern(name: str, pattern: str) -> None:
    try:
        arrow_functions().match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as problem:
        raise TypeMismatch(
            f"str.{name}({shown(pattern)}) is not a regular expression: {text_of(problem)}; write "
            "literal=True for plain text"
        ) from None


def _check_replacement(pattern: str, value: str) -> None:
    try:
        arrow_functions().replace_substring_regex(pa.array([""]), pattern, value)
    except pa.ArrowInvalid as problem:
        why = text_of(problem).rstrip(".")
        raise TypeMismatch(
            f"str.replace({shown(pattern)}, {shown(value)}): {why}; write \\\\ for a backslash, "
            "\\1 for the first group, or literal=True"
        ) from None


def _named_groups(pattern: str) -> str:
    r"""Return a pattern whose groups all have names, as Arrow wants: (\d) is (?P<g1>\d)."""
    number = itertools.count(1)

    def named(part: re.Match[str]) -> str:
        text = part[0]
        if text in ("(?P<", "(?<"):
            next(number)
            return "(?P<"
        return f"(?P<g{next(number)}>" if text == "(" else text

    return _PATTERN_PARTS.sub(named, pattern)


_PATTERN_PARTS = re.compile(
    r"""
    \\Q.*?(?:\\E|\Z)                                        # literal text
    |\\.                                                   # an escaped character
    |\[\^?\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*\]              # a class; "]" may be its first
    |\((?:\?P?<|\?)?                                       # begin of a group
    """,
    re.VERBOSE | re.DOTALL,
)
"""Parts of a pattern in which "(" is a group, or is none."""


def _arrow(name: str) -> Callable[[Call], Kernel]:
    """Return the choice of a kernel that is a function of Arrow, with the options."""

    def kernel(call: Call) -> Kernel:
        function = getattr(arrow_functions(), name)
        return (lambda text: function(text, *call.option)) if call.option else function

    return kernel


def _arrow_test(name: str) -> Callable[[Call], Kernel]:
    def kernel(call: Call) -> Kernel:
        test = _arrow(name)(call)
        return lambda text: values_of(test(text))

    return kernel


def _strip(call: Call) -> Kernel:
    (characters,) = call.option
    return _arrow("utf8_trim_whitespace" if characters is None else "utf8_trim")(
        call._replace(option=() if characters is None else call.option)
    )


@with_call
def _slice(call: Call, text: pa.Array) -> Column:
    start, length = call.option
    of_arrow = arrow_functions()
    if length is None:
        return of_arrow.utf8_slice_codeunits(text, start)
    if start >= 0:
        return of_arrow.utf8_slice_codeunits(text, start, min(start + length, 2**63 - 1))
    from_there = of_arrow.utf8_slice_codeunits(text, start)
    return of_arrow.utf8_slice_codeunits(from_there, 0, length)


def _contains(call: Call) -> Kernel:
    pattern, literal = call.option
    name = "match_substring" if literal else "match_substring_regex"
    return _arrow_test(name)(call._replace(option=(pattern,)))


def _replace(call: Call) -> Kernel:
    pattern, value, literal = call.option
    name = "replace_substring" if literal else "replace_substring_regex"
    return _arrow(name)(call._replace(option=(pattern, value)))


@with_call
def _extract(call: Call, text: pa.Array) -> Column:
    pattern, group = call.option
    of_arrow = arrow_functions()
    fields = of_arrow.extract_regex(text, pattern)
    wanted = of_arrow.struct_field(fields, [group - 1])
    empty = of_arrow.equal(wanted, "").fill_null(False).to_numpy(zero_copy_only=False)
    if not empty.any():
        return wanted
    rows = empty.nonzero()[0]
    of_rows = zip(text.take(pa.array(rows)).to_pylist(), fields.take(pa.array(rows)), strict=True)
    empty[rows] = [_is_absent(pattern, group, each, groups.as_py()) for each, groups in of_rows]
    return of_arrow.if_else(pa.array(empty), None, wanted)


def _is_absent(pattern: str, group: int, text: str, groups: dict[str, str]) -> bool:
    """Return whether a group has no part in a match; Arrow gives empty text then."""
    if "[:" in pattern:  # a class of RE2, which Python takes for another
        return False
    try:
        match = re.search(pattern, text, re.ASCII)
    except re.error:  # a pattern of RE2 alone
        return False
    if match is None or [each or "" for each in match.groups()] != list(groups.values()):
        return False
    return match[group] is None


@with_call
def _length(_call: Call, text: pa.Array) -> Column:
    return values_of(arrow_functions().utf8_length(text)).astype(np.int64)


@with_call
def _to_time(call: Call, text: pa.Array) -> Column:
    return parsed_time(call.option, text)


def _zoned(_op: str, _operands: Sequence[Operand], option: Any) -> pa.DataType:
    return pa.timestamp("ns", option[1])  # in the zone that is given


def _text(op: str, operands: Sequence[Operand]) -> None:
    kind = operands[0].type
    if not is_text(kind):
        raise TypeMismatch(f"{op} takes text, not {kind}; write .cast('string') first")


_STRING, _BOOL = pa.string(), pa.bool_()
TEXT_FUNCTIONS = (
    Function("str.lower", _text, _STRING, _arrow("utf8_lower")),
    Function("str.upper", _text, _STRING, _arrow("utf8_upper")),
    Function("str.strip", _text, _STRING, _strip),
    Function("str.length", _text, pa.int64(), _length),
    Function("str.slice", _text, _STRING, _slice),
    Function("str.contains", _text, _BOOL, _contains),
    Function("str.starts_with", _text, _BOOL, _arrow_test("starts_with")),
    Function("str.ends_with", _text, _BOOL, _arrow_test("ends_with")),
    Function("str.replace", _text, _STRING, _replace),
    Function("str.extract", _text, _STRING, _extract),
    Function("str.split", _text, pa.list_(_STRING), _arrow("split_pattern")),
    Function("str.to_time", _text, _zoned, _to_time, refuses=Results.ALL),
)
"""Rows of the table: functions of text, an Arrow array."""
