"""Guess types of text files from their first megabyte, or take the given ones."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import ClassVar, Self

import pyarrow as pa

from slackwater.ingest.dialect import Form
from slackwater.ingest.inputs import FileInput, Good, Mark, Part
from slackwater.ingest.record_walk import Bad
from slackwater.ingest.records import CODECS, Piece, first_record, piece_of
from slackwater.runtime.model.diverted import OnBad

__all__ = ["RE_ENCODE", "SAY_TIME", "SAY_TYPE", "TextInput", "marks_of", "suffixes_of"]

RE_ENCODE = (
    "say its encoding, such as encoding='latin1' (iconv -f latin1 -t utf-8 converts it), or choose "
    "others with columns=[…]"
)

SAY_TYPE = (
    "say a type that all have, such as types={{{name!r}: 'string'}} (or 'float64', which rounds)"
)
"""The hint for a value that is not of the type so far."""

SAY_TIME = (
    "say a type that all have, such as types={{{name!r}: 'timestamp[ns]'}}, "
    "'timestamp[ns, tz=UTC]' where all have a zone; or read text, types={{{name!r}: 'string'}}, "
    "and parse it: sw.col({name!r}).str.to_time('%d.%m.%Y %H:%M:%S', zone='UTC')"
)
"""The same hint for times."""


@dataclass(frozen=True, kw_only=True)
class TextInput(FileInput):
    """Text files whose types are guessed from their first megabyte.

    Attributes:
        on_bad: "error", or "skip" and "divert": records that cannot be read are handed over apart.
        only_first: whether only the first record of a file is read: a look at it is to be short.
    """

    on_bad: OnBad = "error"
    only_first: bool = False

    untold: ClassVar[str] = "say them with types={'column': 'float64', …}"

    def of_first_rows(self, columns: tuple[str, ...]) -> Self:  # noqa: D102 - see FileInput
        return replace(super().of_first_rows(columns), only_first=True)

    def _wanted(self, parts: Iterable[Piece], form: Form) -> Iterator[Piece]:
        """Yield the pieces of a file; if only the first record is read, that."""
        for piece in parts:
            if not self.only_first:
                yield piece
            elif (first := first_record(piece, form)) is not None:
                yield piece_of([first])
                return

    def _in_order(self, bad: list[Bad], good: Good | None) -> Iterator[Part]:
        """Yield the records of a piece: diverted ones in their places, others before good ones.

        A diverted row has the time of the rows before it, wherever the file was cut.
        """
        if self.on_bad == "divert" and bad and good is not None and good.lines is not None:
            yield from _interleaved(bad, good.block, good.lines())
            return
        if bad:
            yield bad
        if good is not None:
            yield good

    def _untold(self, files: list[str]) -> pa.Schema:
        return pa.schema(self.types) if self.types else super()._untold(files)


def _interleaved(bad: list[Bad], block: pa.RecordBatch, lines: list[int]) -> Iterator[Part]:
    """Yield good and bad records by their lines."""
    start = 0
    for stop, records in groupby(bad, lambda record: bisect_left(lines, record.line)):
        if stop > start:
            yield _rows(block, lines, start, stop)
        yield list(records)
        start = stop
    if start < len(lines):
        yield _rows(block, lines, start, len(lines))


def _rows(block: pa.RecordBatch, lines: list[int], start: int, stop: int) -> Good:
    return Good(block.slice(start, stop - start), lambda: lines[start:stop])


def marks_of(piece: Piece) -> Iterator[Mark]:
    """Yield the mark of a piece, if it has one."""
    if piece.mark is not None:
        yield Mark(piece.mark)


def suffixes_of(*plain: str) -> tuple[str, ...]:
    """Return suffixes of files in folders, plain and compressed."""
    return plain + tuple(ending + packed for ending in plain for packed in CODECS)
