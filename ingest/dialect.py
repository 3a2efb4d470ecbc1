"""Settings of a text file's form: encoding, separator, quotes, header, comments, decimals."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from functools import cached_property

from slackwater.ingest.numerals import NULLS
from slackwater.runtime.errors import SettingError
from slackwater.runtime.shown import shown

__all__ = ["Dialect", "Form", "checked_encoding"]

_UTF8 = "utf-8"
_LINE_ENDS = "\r\n"


@dataclass(frozen=True, kw_only=True)
class Form:
    """Rules by which a text file is cut into records.

    Attributes:
        encoding: a codec of Python.
        sep: code of the character between values.
        quote: code of the character around values; None if line ends end each record.
        joins_lines: whether line ends within quotes belong to a value.
        comment: start of lines to skip; empty: none.
    """

    encoding: str = _UTF8
    sep: int = ord(",")
    quote: int | None = None
    joins_lines: bool = True
    comment: bytes = b""

    @cached_property
    def ends(self) -> bytes:
        """Bytes that end a value."""
        return bytes([self.sep]) + b"\n\r"


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """Form of a CSV file, as `sw.csv` describes it.

    Raises:
        SettingError: a setting is out of its range, or two contradict each other.
    """

    encoding: str = _UTF8
    sep: str = ","
    quote: str | None = '"'
    header: bool | tuple[str, ...] = True
    comment: str | None = None
    decimal: str = "."
    nulls: tuple[str, ...] | None = None
    newlines_in_values: bool = True

    def __post_init__(self) -> None:
        _check_character("sep", self.sep, "such as ';' or '\\t'")
        if self.quote is not None:
            _check_character("quote", self.quote, 'such as "\'"; or None, which quotes nothing')
        if self.decimal not in (".", ","):
            raise SettingError(
                f"decimal={shown(self.decimal)} is not a decimal sign; write decimal='.' or "
                "decimal=','"
            )
        given = {"sep": self.sep, "quote": self.quote, "decimal": self.decimal}
        for one, other, hint in (
            ("sep", "quote", "choose another quote=, or quote=None"),
            ("sep", "decimal", "such files separate by ';': sep=';'"),
            ("quote", "decimal", "choose another quote="),
        ):
            if given[one] == given[other]:
                raise SettingError(
                    f"{one}={shown(given[one])} and {other}={shown(given[other])} are one "
                    f"character, so values cannot be told apart; {hint}"
                )
        self._check_comment()
        self._check_header()
        if not isinstance(self.newlines_in_values, bool):
            raise SettingError(
                f"newlines_in_values={shown(self.newlines_in_values)} must be True (line ends in "
                "quotes belong to a value) or False (each line is a record)"
            )

    def _check_comment(self) -> None:
        comment = self.comment
        if comment is None:
            return
        if not isinstance(comment, str) or not comment or set(comment) & set(_LINE_ENDS):
            raise SettingError(
                f"comment={shown(comment)} cannot start a line; write comment='#', or None"
            )
        if comment[0] in (self.sep, self.quote):
            raise SettingError(
                f"comment={shown(comment)} begins like a value (sep={self.sep!r}, "
                f"quote={shown(self.quote)}); choose another, such as '#', or None"
            )

    def _check_header(self) -> None:
        header = self.header
        if isinstance(header, bool):
            return
        if not header or not all(isinstance(name, str) and name for name in header):
            raise SettingError(
                f"header={shown(list(header))} must name each column; write header=['ts', 'x'], "
                "True or False"
            )
        twice = next((name for name in header if header.count(name) > 1), None)
        if twice is not None:
            raise SettingError(
                f"header={shown(list(header))} has the name {twice!r} twice; give each column "
                "another"
            )

    @cached_property
    def form(self) -> Form:
        """Rules by which records are cut."""
        return Form(
            encoding=self.encoding,
            sep=ord(self.sep),
            quote=None if self.quote is None else ord(self.quote),
            joins_lines=self.newlines_in_values,
            comment=(self.comment or "").encode(),
        )

    @property
    def null_texts(self) -> tuple[str, ...]:
        """Texts that are null among numbers."""
        return NULLS if self.nulls is None else self.nulls


def _check_character(option: str, given: object, hint: str) -> None:
    is_one = isinstance(given, str) and len(given) == 1 and given.isascii()
    if not is_one or str(given) in "\r\n\0":
        raise SettingError(
            f"{option}={shown(given)} must be one ASCII character, no line end, {hint}"
        )


def checked_encoding(encoding: object) -> str:
    """Return the codec's name of its own, such as "utf-8".

    Raises:
        SettingError: Python has no such codec for text.
    """
    try:
        name = codecs.lookup(str(encoding)).name
        b"a".decode(name, "ignore")
        codecs.getincrementaldecoder(name)
    except LookupError:
        raise SettingError(
            f"encoding={shown(encoding)} is not a text encoding that Python knows; write for "
            "example 'utf-8', 'latin1', 'cp1252' or 'utf-16'"
        ) from None
    return name
