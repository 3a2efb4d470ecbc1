"""Cut text files into pieces of whole lines or CSV records, with line numbers.

A line end within quotes ends no record, and a quote that is never closed makes one record of the
rest of the file. So quotes are followed here, and the end of a piece decides nothing: a refused
value is named by its line.

```
file ─▶ decoded ─▶ cut at a record's end ─▶ Piece        (arrays: no step per record)
                      └─ refused, or comments: record by record, `record_walk.py`
```
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from slackwater.ingest import record_walk
from slackwater.ingest.dialect import Form
from slackwater.ingest.record_walk import Bad, BadText, count_lines, line_ends, walk

__all__ = [
    "CODECS",
    "Bad",
    "BadText",
    "Piece",
    "TextMark",
    "first_record",
    "joined",
    "line_of_record",
    "piece_of",
    "pieces",
    "records",
]

PIECE_BYTES = 1 << 20
CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}
"""{suffix of a file that is unpacked: its codec}."""
_PACKED = (  # (first bytes, the kind, what to do)
    (b"\x1f\x8b\x08", "packed by gzip", "let its name end in .gz, or unpack it, gunzip"),
    (b"BZh91AY&SY", "packed by bzip2", "let its name end in .bz2, or unpack it, bunzip2"),
    (b"\x28\xb5\x2f\xfd", "packed by zstd", "let its name end in .zst, or unpack it, unzstd"),
    (b"\x04\x22\x4d\x18", "packed by lz4", "let its name end in .lz4, or unpack it, unlz4"),
    (b"\xfd7zXZ\0", "packed by xz", "unpack it, unxz; .gz, .bz2, .zst and .lz4 are unpacked"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it, 7z x"),
    (b"PK\x03\x04", "a zip archive or a workbook, .xlsx", "unpack it, or save its sheet as CSV"),
    (b"\xd0\xcf\x11\xe0", "a workbook, .xls", "save its sheet as CSV"),
    (b"PAR1\x15", "a parquet file", "read it by sw.parquet(…)"),
    (b"ARROW1\0", "an Arrow file", "read it by sw.table(pyarrow.feather.read_table(…))"),
    (b"SQLite format 3\0", "a database of SQLite", "read a table of it into sw.table(…)"),
)

_FEW_BYTES = 4_096
"""Bytes of most first records."""
_BOM = b"\xef\xbb\xbf"
_UNDECODABLE = "\udcff"
"""Stands for bytes that the encoding does not have: as 0xff, which is never UTF-8."""

_Places = npt.NDArray[np.int64]


class TextMark(NamedTuple):
    """Where a file can be read on, so that its pieces are cut as before.

    Attributes:
        read: bytes that had been read, as UTF-8; 0: the file's start.
        rest: number of the last of these bytes, which no piece had.
        line: line of the first of those.
        skips: 1 if they are in a line that is refused by its length, else 0.
    """

    read: int = 0
    rest: int = 0
    line: int = 1
    skips: int = 0


@dataclass(frozen=True)
class Piece:
    """Whole records of a file.

    Attributes:
        data: bytes of the records.
        line: their first line, counted from 1.
        lines: the line of each record; None if no line of the piece was left out.
        bad: records that were left out, since they cannot be cut.
        mark: where `pieces` can begin with this one; None if only the piece before has one.
    """

    data: bytes
    line: int
    lines: tuple[int, ...] | None = None
    bad: tuple[Bad, ...] = ()
    mark: TextMark | None = None

    @property
    def is_blank(self) -> bool:
        """Whether the piece has only empty lines."""
        return not self.data.strip(b"\r\n")


def pieces(
    path: str, form: Form, *, keeps_bad: bool = False, mark: TextMark | None = None
) -> Iterator[Piece]:
    """Yield a file's records in pieces of about 1 MB, unpacked by the file's suffix.

    Args:
        path: path of the file.
        form: form of the records' ends.
        keeps_bad: whether records that cannot be cut are noted in their piece, not raised.
        mark: place to begin at; None if it is the file's start.

    Raises:
        BadText: a quote is not closed, or a record is too long.
        OSError, ArrowInvalid: the file cannot be read.
    """
    read, kept, line, skips = mark or TextMark()
    is_first = not read
    chunks = _chunks(path, form.encoding) if is_first else _chunks_after(path, form, read, kept)
    rest = b"" if is_first else next(chunks) or b""
    for more in chunks:
        mark = TextMark(read, len(rest), line, skips) if read else None
        read += len(more or b"")
        is_end = more is None
        data = rest + (more or b"")
        if is_first and data:
            data, is_first = data.removeprefix(_BOM), False
        if skips:  # the rest of a line that was refused by its length
            over = len(data) if is_end else int(next(iter(line_ends(data)), len(data) - 1)) + 1
            skips, line = int(not count_lines(data[:over])), line + count_lines(data[:over])
            data = data[over:]
        if not data:
            rest = b""
            continue
        piece, cut, skips = _cut(data, line, form, is_end=is_end, keeps_bad=keeps_bad)
        if piece.data or piece.bad:
            yield replace(piece, mark=mark)
        line += count_lines(data[:cut])
        rest = data[cut:]


def joined(parts: Iterable[Piece], least: int) -> Iterator[Piece]:
    """Yield pieces of at least some bytes, but of the longest record's at most.

    Args:
        parts: pieces that follow each other; those with lines left out stay as they are.
        least: bytes from which a piece is yielded.
    """
    held: list[Piece] = []
    size, least = 0, min(least, record_walk.LONGEST_BYTES)
    for piece in parts:
        is_whole = piece.lines is None and not piece.bad
        if held and not (is_whole and size < least):
            yield _one_of(held)
            held, size = [], 0
        if is_whole:
            held.append(piece)
            size += len(piece.data)
        else:
            yield piece
    if held:
        yield _one_of(held)


def _one_of(held: list[Piece]) -> Piece:
    if len(held) == 1:
        return held[0]
    return Piece(b"".join([each.data for each in held]), held[0].line, mark=held[0].mark)


def _chunks(path: str, encoding: str) -> Iterator[bytes | None]:
    """Yield the file as UTF-8, and None at its end."""
    codec = _packed_by(path)
    if codec is not None and not os.path.getsize(path):
        raise OSError(f"it has no bytes, and {codec} packs even nothing in some")
    with pa.input_stream(path, compression=codec) as file:
        start = file.read(PIECE_BYTES)
        _refuse_packed(start)
        if encoding == "utf-8":
            more = start
            while more:
                yield more
                more = file.read(PIECE_BYTES)
        else:
            decoder = codecs.getincrementaldecoder(encoding)("slackwater.undecodable")
            more = start
            while more:
                yield decoder.decode(more).encode(errors="surrogateescape")
                more = file.read(PIECE_BYTES)
            yield decoder.decode(b"", True).encode(errors="surrogateescape")
    yield None


def _chunks_after(path: str, form: Form, read: int, kept: int) -> Iterator[bytes | None]:
    """Yield the last `kept` of the first bytes, then what `_chunks` yields after these.

    Raises:
        OSError: the file ends before.
    """
    if form.encoding == "utf-8" and _packed_by(path) is None:
        with pa.input_stream(path, compression=None) as file:
            file.seek(read - kept)
            yield file.read(kept)
            while more := file.read(PIECE_BYTES):
                yield more
        yield None
        return
    tail, chunks = b"", _chunks(path, form.encoding)
    while read and (more := next(chunks)) is not None:
        read -= len(more)
        tail = (tail + more)[-kept:] if kept else b""
    if read:
        raise OSError("it ends before the position at which it is opened")
    yield tail
    yield from chunks


def _refuse_packed(start: bytes) -> None:
    """Check that a file does not begin as a packed one, or as no text.

    Raises:
        BadText: it does; says what to do.
    """
    for first, kind, way_out in _PACKED:
        if start.startswith(first):
            raise BadText(f"the file is {kind}, and no text", line=None, way_out=way_out)


def _packed_by(path: str) -> str | None:
    """Return the codec of a file's suffix, in either case; None if unknown."""
    return CODECS.get(os.path.splitext(path)[1].lower())


def _mark(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeDecodeError):
        raise problem
    return _UNDECODABLE, problem.end


codecs.register_error("slackwater.undecodable", _mark)


def _cut(
    data: bytes, line: int, form: Form, *, is_end: bool, keeps_bad: bool
) -> tuple[Piece, int, int]:
    """Return whole records, where the rest begins, and whether the rest's first line is refused."""
    if not _has_comments(data, form.comment):
        try:
            cut = len(data) if is_end else _last_end(data, line, form)
            _check_quotes(data[:cut], line, form, is_end=is_end)
        except BadText:
            if not keeps_bad:
                raise
        else:
            return Piece(data[:cut], line), cut, 0
    walked = walk(data, line, form, is_end=is_end)
    if walked.bad and not keeps_bad:
        raise walked.bad[0].error()
    joined = b"".join([data[start:end] for start, end in walked.spans])
    piece = Piece(joined, line, tuple(walked.lines), tuple(walked.bad))
    return piece, walked.rest, int(walked.is_in_line)


def _has_comments(data: bytes, comment: bytes) -> bool:
    return bool(comment) and (
        data.startswith(comment) or b"\n" + comment in data or b"\r" + comment in data
    )


def _last_end(data: bytes, line: int, form: Form) -> int:
    """Return the end of the last record; 0 if it may go on."""
    first, cut = _first_and_last(data, line, form)
    if first > record_walk.LONGEST_BYTES:
        raise _too_long(data, line, form)
    return cut


def _check_quotes(data: bytes, line: int, form: Form, *, is_end: bool) -> None:
    """Check that quotes are closed where a record must end."""
    if form.quote is None or form.quote not in data:
        return
    if not form.joins_lines:
        try:
            quotes = _quotes(data, line, form)
        except BadText as problem:
            raise record_walk.open_in_line(problem.line or line) from None
        opened = np.flatnonzero(np.searchsorted(quotes, line_ends(data)) % 2)
        if len(opened) or len(quotes) % 2:
            at = int(line_ends(data)[opened[0]]) if len(opened) else len(data) - 1
            raise record_walk.open_in_line(line + count_lines(data[:at]))
    elif is_end and (at_quote := _open_quote(data, line, form)) is not None:
        raise record_walk.never_closed(line + count_lines(data[:at_quote]))


def records(piece: Piece, form: Form) -> list[tuple[int, bytes]]:
    """Return (line, bytes) of each non-empty record of a piece."""
    walked = walk(piece.data, piece.line, form, is_end=True)
    lines = piece.lines
    if lines is None or len(lines) != len(walked.spans):
        lines = tuple(walked.lines)
    return [
        (line, piece.data[start:end])
        for line, (start, end) in zip(lines, walked.spans, strict=True)
    ]


def first_record(piece: Piece, form: Form) -> tuple[int, bytes] | None:
    """Return (line, bytes) of the first non-empty record; None if all are empty."""
    for size in (_FEW_BYTES, len(piece.data)):
        is_end = size >= len(piece.data)
        walked = walk(piece.data[:size], piece.line, form, is_end=is_end, most=1)
        if walked.spans:
            start, end = walked.spans[0]
            return (piece.lines or walked.lines)[0], piece.data[start:end]
    return None


def piece_of(chosen: Sequence[tuple[int, bytes]]) -> Piece:
    """Return a piece of some records of a piece."""
    ended = [text if text.endswith((b"\n", b"\r")) else text + b"\n" for _, text in chosen]
    lines = tuple(line for line, _ in chosen)
    return Piece(b"".join(ended), lines[0] if lines else 1, lines)


def line_of_record(piece: Piece, number: int, form: Form) -> int:
    """Return the line of the n-th non-empty record, counted from 0."""
    of_piece = records(piece, form)
    return of_piece[min(number, len(of_piece) - 1)][0] if of_piece else piece.line


def _first_and_last(data: bytes, line: int, form: Form) -> tuple[int, int]:
    """Return the ends of the first and last record, or (all bytes, 0)."""
    if form.quote is not None and form.joins_lines and form.quote in data:
        ends = _record_ends(data, line, form)
        return (int(ends[0]) + 1, int(ends[-1]) + 1) if len(ends) else (len(data), 0)
    end, stop = (b"\n", len(data)) if b"\n" in data else (b"\r", len(data) - 1)
    return data.find(end, 0, stop) + 1 or len(data), data.rfind(end, 0, stop) + 1


def _too_long(data: bytes, line: int, form: Form) -> BadText:
    start = data[: record_walk.LONGEST_BYTES + 1]
    has_quotes = form.quote is not None and form.joins_lines
    opened = _open_quote(start, line, form) if has_quotes else None
    return record_walk.too_long(
        line + count_lines(data[:opened] if opened else b""), is_quoted=opened is not None
    )


def _record_ends(data: bytes, line: int, form: Form) -> _Places:
    """Return the places of record ends: line ends outside quotes."""
    ends = line_ends(data)
    quotes = _quotes(data, line, form)
    outside: _Places = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return outside


def _open_quote(data: bytes, line: int, form: Form) -> int | None:
    """Return the place of the quote open at the end; None if none is."""
    quotes = _quotes(data, line, form)
    if not len(quotes) % 2:
        return None
    return _opening(quotes, len(quotes) - 1)


def _opening(quotes: _Places, at: int) -> int:
    """Return where the value of a quote was opened; the quote's number is even."""
    while at > 1 and quotes[at] == quotes[at - 1] + 1:  # doubled: it belongs to the text
        at -= 2
    return int(quotes[at])


def _quotes(data: bytes, line: int, form: Form) -> _Places:
    """Return the places of quotes that open or close values; doubled quotes do both.

    A quote in the middle of a value that has none before it is text, as in `5" pipe`.
    """
    of_bytes = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(of_bytes == form.quote)
    opening, closing = quotes[::2], quotes[1::2]
    is_field_end = np.isin(np.arange(256), list(form.ends))
    starts = (opening == 0) | is_field_end.take(of_bytes.take(opening - 1))
    starts[1:] |= opening[1:] == closing[: len(opening) - 1] + 1
    if not starts.all():
        quotes = _quotes_one_by_one(data, quotes.tolist(), form.ends)
        opening, closing = quotes[::2], quotes[1::2]
    after = closing + 1
    follows = of_bytes.take(np.minimum(after, len(data) - 1))
    odd = ~(is_field_end.take(follows) | (follows == form.quote)) & (after < len(data))
    for at in np.flatnonzero(odd).tolist():
        opened = _opening(quotes, 2 * at)
        value = data[opened : closing[at]]
        if b"\n" in value or b"\r" in value:
            raise record_walk.closed_late(line + count_lines(data[:opened]))
    return quotes


def _quotes_one_by_one(data: bytes, quotes: list[int], ends: bytes) -> _Places:
    places: list[int] = []
    at = 0
    while at < len(quotes):
        place = quotes[at]
        at += 1
        is_open = len(places) % 2 == 1
        if is_open and at < len(quotes) and quotes[at] == place + 1:
            places += [place, place + 1]
            at += 1
        elif is_open or place == 0 or data[place - 1] in ends:
            places.append(place)
    return np.array(places, np.int64)
