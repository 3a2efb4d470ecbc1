"""Cut text files into pieces of whole lines or CSV records, with line numbers.

A line end within quotes ends no record, and a quote that is never closed makes one record of the
rest of the file. So quotes are followed here, and the end of a piece decides nothing: a refused
value is named by its line.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["BadText", "Piece", "line_of_record", "pieces", "records"]

PIECE_BYTES = 1 << 20
LONGEST_BYTES = 16 << 20
"""Bytes of the longest record: as many as a row between two slots may have."""
_QUOTE, _LF, _CR = b'"\n\r'
_BOM = b"\xef\xbb\xbf"

_Places = npt.NDArray[np.int64]


class BadText(Exception):
    """Text that cannot be read.

    Attributes:
        line: its line, counted from 1; None if not known.
    """

    def __init__(self, fact: str, *, line: int | None, way_out: str) -> None:
        super().__init__(fact)
        self.line, self.way_out = line, way_out

    def __str__(self) -> str:
        place = "" if self.line is None else f"line {self.line}: "
        return f"{place}{self.args[0]}; {self.way_out}"


@dataclass(frozen=True)
class Piece:
    """Whole records of a file.

    Attributes:
        data: bytes of the records.
        line: their first line, counted from 1.
    """

    data: bytes
    line: int

    @property
    def is_blank(self) -> bool:
        """Whether the piece has only empty lines."""
        return self.data.isspace() and not self.data.strip(b"\r\n")


def pieces(path: str, *, has_quotes: bool) -> Iterator[Piece]:
    """Yield a file's records in pieces of about 1 MB; unpacks a `.gz`.

    Args:
        path: the file.
        has_quotes: whether line ends within quotes belong to a value, as in CSV.

    Raises:
        BadText: a quote is not closed, or a record is longer than LONGEST_BYTES.
        OSError, ArrowInvalid: the file cannot be read.
    """
    rest, line, is_first = b"", 1, True
    with pa.input_stream(path, compression="detect") as file:
        while more := file.read(PIECE_BYTES):
            data = rest + more
            if is_first:
                data, is_first = data.removeprefix(_BOM), False
            first, cut = _first_and_last(data, line, has_quotes=has_quotes)
            if first > LONGEST_BYTES:
                raise _too_long(data, line, has_quotes=has_quotes)
            if cut:
                yield Piece(data[:cut], line)
                line += _count_lines(data[:cut])
            rest = data[cut:]
    if not rest:
        return
    if has_quotes and (opened := _open_quote(rest, line)) is not None:
        raise BadText(
            "a quote is opened here and never closed, so the rest of the file would be one value",
            line=line + _count_lines(rest[:opened]),
            way_out="close it, or double a quote that belongs to the text",
        )
    yield Piece(rest, line)


def records(piece: Piece) -> Iterator[tuple[int, bytes]]:
    """Yield (line, bytes) of each non-empty CSV record of a piece."""
    data, start, line = piece.data, 0, piece.line
    for end in [*_record_ends(data, line).tolist(), len(data) - 1]:
        record = data[start : end + 1]
        if record.strip(b"\r\n"):
            skipped = len(record) - len(record.lstrip(b"\r\n"))
            yield line + _count_lines(record[:skipped]), record
        line += _count_lines(record)
        start = end + 1


def line_of_record(piece: Piece, number: int) -> int:
    """Return the line of the n-th non-empty CSV record, counted from 0."""
    return next(islice(records(piece), number, None))[0]


def _first_and_last(data: bytes, line: int, *, has_quotes: bool) -> tuple[int, int]:
    """Return the ends of the first and last record, or (all bytes, 0)."""
    if has_quotes and b'"' in data:
        ends = _record_ends(data, line)
        return (int(ends[0]) + 1, int(ends[-1]) + 1) if len(ends) else (len(data), 0)
    end, stop = (b"\n", len(data)) if b"\n" in data else (b"\r", len(data) - 1)
    return data.find(end, 0, stop) + 1 or len(data), data.rfind(end, 0, stop) + 1


def _too_long(data: bytes, line: int, *, has_quotes: bool) -> BadText:
    opened = _open_quote(data[: LONGEST_BYTES + 1], line) if has_quotes else None
    fact = f"a record is longer than {LONGEST_BYTES >> 20} MiB"
    if opened is None:
        return BadText(fact, line=line, way_out="end its line, or cut its text")
    return BadText(
        f"a quote is opened here, and {fact}",
        line=line + _count_lines(data[:opened]),
        way_out="close it, or double a quote that belongs to the text",
    )


def _count_lines(data: bytes) -> int:
    return data.count(b"\n") or data.count(b"\r")


def _line_ends(data: bytes) -> _Places:
    """Return the places of line ends; carriage returns in a file without line feeds."""
    of_bytes = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(of_bytes == _LF)
    return ends if len(ends) else np.flatnonzero(of_bytes[:-1] == _CR)  # the last may go on


def _record_ends(data: bytes, line: int) -> _Places:
    """Return the places of record ends: line ends outside quotes."""
    ends = _line_ends(data)
    if b'"' not in data:
        return ends
    quotes = _quotes(data, line)
    outside: _Places = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return outside


def _open_quote(data: bytes, line: int) -> int | None:
    """Return the place of the quote open at the end; None if none is."""
    if b'"' not in data:
        return None
    quotes = _quotes(data, line)
    if not len(quotes) % 2:
        return None
    return _opening(quotes, len(quotes) - 1)


def _opening(quotes: _Places, at: int) -> int:
    """Return where the value of a quote was opened; the quote's number is even."""
    while at > 1 and quotes[at] == quotes[at - 1] + 1:  # doubled: it belongs to the text
        at -= 2
    return int(quotes[at])


def _quotes(data: bytes, line: int) -> _Places:
    """Return the places of quotes that open or close values; doubled quotes do both.

    A quote in the middle of a value that has none before it is text, as in `5" pipe`.
    """
    of_bytes = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(of_bytes == _QUOTE)
    opening, closing = quotes[::2], quotes[1::2]
    starts = (opening == 0) | _IS_FIELD_END.take(of_bytes.take(opening - 1))
    starts[1:] |= opening[1:] == closing[: len(opening) - 1] + 1
    if not starts.all():
        quotes = _quotes_one_by_one(data, quotes.tolist())
        opening, closing = quotes[::2], quotes[1::2]
    after = closing + 1
    follows = of_bytes.take(np.minimum(after, len(data) - 1))
    odd = ~_MAY_FOLLOW.take(follows) & (after < len(data))
    for at in np.flatnonzero(odd).tolist():
        opened = _opening(quotes, 2 * at)
        value = data[opened : closing[at]]
        if b"\n" in value or b"\r" in value:
            raise BadText(
                "a quote is opened here, and closed in the middle of a value in a later line",
                line=line + _count_lines(data[:opened]),
                way_out="close it in its line, or double a quote that belongs to the text",
            )
    return quotes


_IS_FIELD_END = np.isin(np.arange(256), list(b",\n\r"))  # {byte: whether it ends a field}
_MAY_FOLLOW = np.isin(np.arange(256), list(b',\n\r"'))  # {byte: whether it may follow a value}


def _quotes_one_by_one(data: bytes, quotes: list[int]) -> _Places:
    places: list[int] = []
    at = 0
    while at < len(quotes):
        place = quotes[at]
        at += 1
        is_open = len(places) % 2 == 1
        if is_open and at < len(quotes) and quotes[at] == place + 1:
            places += [place, place + 1]
            at += 1
        elif is_open or place == 0 or data[place - 1] in b",\n\r":
            places.append(place)
    return np.array(places, np.int64)
