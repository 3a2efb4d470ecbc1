"""Cut text record by record, so that an unclosed quote costs one line.

```
1,"a          the quote is never closed: this line is bad,
2,b           and reading goes on in the next line
# note        a comment: skipped
3,"c          a value over two lines
d"
```

A quote closes at the end of the next odd run of quotes: pairs are doubled quotes of the text. So
each quote is looked at once, however many records are bad.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from slackwater.ingest.dialect import Form

__all__ = ["Bad", "BadText", "Walk", "count_lines", "line_ends", "walk"]

LONGEST_BYTES = 16 << 20
"""Bytes of the longest record: as many as a row between two slots may have."""
KEPT_BYTES = 1 << 20
"""Bytes of a bad record that are reported."""
_LF, _CR = b"\n\r"

_Places = npt.NDArray[np.int64]


class BadText(Exception):
    """Text that cannot be read.

    Attributes:
        line: its line, counted from 1; None if not known.
    """

    def __init__(self, fact: str, *, line: int | None, way_out: str) -> None:
        super().__init__(fact)
        self.fact, self.line, self.way_out = fact, line, way_out

    def __str__(self) -> str:
        place = "" if self.line is None else f"line {self.line}: "
        return f"{place}{self.fact}; {self.way_out}"


class Bad(NamedTuple):
    """A record that cannot be read.

    Attributes:
        line: its first line, counted from 1.
        reason: few words.
        text: its first bytes, as they came.
        way_out: the hint of its error.
    """

    line: int
    reason: str
    text: bytes
    way_out: str = "correct it there"

    def error(self) -> BadText:
        """Return the error that it is where bad records end a job."""
        return BadText(self.reason, line=self.line, way_out=self.way_out)


class Walk(NamedTuple):
    """Records of some text.

    Attributes:
        spans: (start, end) of each record that is neither empty nor bad.
        lines: the line of each.
        bad: records that cannot be cut.
        rest: where the record begins that may go on after the text.
        is_in_line: whether the last record is bad by its length, and its line goes on.
    """

    spans: list[tuple[int, int]]
    lines: list[int]
    bad: list[Bad]
    rest: int
    is_in_line: bool


def walk(data: bytes, line: int, form: Form, *, is_end: bool, most: int | None = None) -> Walk:
    """Return the records of text that begins with a record.

    Args:
        data: text of the records.
        line: number of its first line.
        form: form of the records' ends.
        is_end: whether nothing follows; else the last record may go on.
        most: number of records after which to stop; None if it stops at the end.
    """
    ends, quotes = _ends(data, is_end=is_end), _Quotes(data, form)
    spans: list[tuple[int, int]] = []
    refused: list[tuple[int, int, BadText]] = []
    start, at, is_in_line = 0, 0, False
    while start < len(data) and (most is None or len(spans) < most):
        while at < len(ends) and ends[at] < start:
            at += 1
        if form.comment and data.startswith(form.comment, start):
            end, problem = (ends[at] if at < len(ends) else None), None
        else:
            end, problem = _record_end(start, at, ends, quotes, form, is_end=is_end)
        is_long = (len(data) if end is None else end + 1) - start > LONGEST_BYTES
        if is_long:
            problem = problem or too_long(0, is_quoted=False)
            is_in_line = end is None
        if end is None and not (is_end or is_in_line):
            break  # it may go on
        stop = len(data) if end is None else end + 1
        if problem is not None:
            refused.append((start, stop, problem))
        elif not (form.comment and data.startswith(form.comment, start)) and data[start:stop].strip(
            b"\r\n"
        ):
            spans.append((start, stop))
        start = stop
    counted = line_ends(data)
    lines = np.searchsorted(counted, [start for start, _ in spans]) + line
    lines_of_bad = (np.searchsorted(counted, [each[0] for each in refused]) + line).tolist()
    bad = [
        Bad(of, problem.fact, data[begin : min(stop, begin + KEPT_BYTES)], problem.way_out)
        for of, (begin, stop, problem) in zip(lines_of_bad, refused, strict=True)
    ]
    return Walk(spans, lines.tolist(), bad, start, is_in_line)


def _record_end(
    start: int, at: int, ends: list[int], quotes: _Quotes, form: Form, *, is_end: bool
) -> tuple[int | None, BadText | None]:
    """Return the last byte of a record, or of its bad lines; None if unknown."""
    end = ends[at] if at < len(ends) else None
    run = quotes.first_from(start)
    while run < len(quotes.places) and (end is None or quotes.places[run] < end):
        if not quotes.opens(run, start):
            run += 1
            continue
        run = quotes.closing_run(run)
        close = quotes.end_of(run)
        is_unsure = not is_end and (close is None or close + 1 >= len(quotes.data))
        if close is not None and not is_unsure and (end is None or close < end):
            run += 1  # closed in its line
        elif end is not None and not form.joins_lines:
            return end, open_in_line(0)
        elif close is None and (is_end or len(quotes.data) - start > LONGEST_BYTES):
            return end, never_closed(0) if is_end else too_long(0, is_quoted=True)
        elif is_unsure or close is None:
            return None, None
        elif not quotes.may_follow(close):
            return end, closed_late(0)
        else:
            at = _first_after(ends, at, close)
            last = ends[at] if at < len(ends) else None
            if (len(quotes.data) if last is None else last) - start > LONGEST_BYTES:
                return end, too_long(0, is_quoted=True)
            end, run = last, run + 1
    return end, None


def _first_after(ends: list[int], at: int, place: int) -> int:
    while at < len(ends) and ends[at] < place:
        at += 1
    return at


class _Quotes:
    """Runs of quotes in some text."""

    def __init__(self, data: bytes, form: Form) -> None:
        self.data, self._form = data, form
        self.places: list[int] = []
        self._sizes: list[int] = []
        self._odd: list[int] = []
        self._at = 0
        if form.quote is None or form.quote not in data:
            return
        places = np.flatnonzero(np.frombuffer(data, np.uint8) == form.quote)
        firsts = np.flatnonzero(np.diff(places, prepend=-2) > 1)
        sizes = np.diff(firsts, append=len(places))
        self.places, self._sizes = places[firsts].tolist(), sizes.tolist()
        odd = np.where(sizes % 2, np.arange(len(sizes)), len(sizes))
        self._odd = [*np.minimum.accumulate(odd[::-1])[::-1].tolist(), len(sizes)]

    def first_from(self, start: int) -> int:
        """Return the first run from a place on; places must not decrease."""
        while self._at < len(self.places) and self.places[self._at] < start:
            self._at += 1
        return self._at

    def opens(self, run: int, start: int) -> bool:
        """Return whether a run begins a value, and is not text such as `5" pipe`."""
        at = self.places[run]
        return at == start or self.data[at - 1] in self._form.ends

    def closing_run(self, run: int) -> int:
        """Return the run that closes what a run opens."""
        return run if self._sizes[run] % 2 == 0 else self._odd[run + 1]

    def end_of(self, run: int) -> int | None:
        """Return the last quote of a run; None if there is no such run."""
        return self.places[run] + self._sizes[run] - 1 if run < len(self.places) else None

    def may_follow(self, close: int) -> bool:
        """Return whether a value may be closed here."""
        return close + 1 >= len(self.data) or self.data[close + 1] in self._form.ends


def line_ends(data: bytes) -> _Places:
    """Return the places of line ends; carriage returns in a file without line feeds."""
    of_bytes = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(of_bytes == _LF)
    return ends if len(ends) else np.flatnonzero(of_bytes[:-1] == _CR)  # the last may go on


def count_lines(data: bytes) -> int:
    """Return the number of line ends."""
    return data.count(b"\n") or data.count(b"\r")


def _ends(data: bytes, *, is_end: bool) -> list[int]:
    """Return where records may end for Arrow: also at a lone carriage return."""
    of_bytes = np.frombuffer(data, np.uint8)
    is_line_end = of_bytes == _LF
    if b"\r" in data:
        is_line_end |= (of_bytes == _CR) & (np.append(of_bytes[1:], 0 if is_end else _LF) != _LF)
    return np.flatnonzero(is_line_end).tolist()


def never_closed(line: int) -> BadText:
    """Return the error of a quote that is open at the end of a file."""
    return BadText(
        "a quote is opened here and never closed, so the rest of the file would be one value",
        line=line,
        way_out="close it, or double a quote that belongs to the text",
    )


def open_in_line(line: int) -> BadText:
    """Return the error of a quote that is open at the end of its line."""
    return BadText(
        "a quote is opened here and not closed in its line",
        line=line,
        way_out="close it, or say newlines_in_values=True",
    )


def closed_late(line: int) -> BadText:
    """Return the error of a quote that seems to close another value."""
    return BadText(
        "a quote is opened here, and closed in the middle of a value in a later line",
        line=line,
        way_out="close it in its line, or double a quote that belongs to the text",
    )


def too_long(line: int, *, is_quoted: bool) -> BadText:
    """Return the error of a record that is too long."""
    fact = f"a record is longer than {LONGEST_BYTES >> 20} MiB"
    if not is_quoted:
        return BadText(fact, line=line, way_out="end its line, or cut its text")
    return BadText(
        f"a quote is opened here, and {fact}",
        line=line,
        way_out="close it, or double a quote that belongs to the text",
    )
