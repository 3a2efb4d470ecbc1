"""Read the good records of a piece that cannot be read whole.

Bad records are found by tests of single values, by halves of what has any bad one. What passes is
read whole; only where the reader is stricter than the tests, by halves too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from slackwater.ingest.record_walk import Bad, BadText
from slackwater.ingest.records import Piece, piece_of

__all__ = ["Salvaged", "by_halves", "first_bad", "in_parts"]

_MOST_RECORDS = 8_192
"""Records of a part: a bad one costs a hundred times a good one, and its slot has other work."""


class Salvaged(NamedTuple):
    """A piece without its bad records.

    Attributes:
        piece: good records.
        block: their columns; None if no record is good.
        bad: the others, in order.
    """

    piece: Piece
    block: pa.RecordBatch | None
    bad: list[Bad]


def in_parts(
    of_piece: Sequence[tuple[int, bytes]], bad: Sequence[Bad]
) -> Iterator[tuple[Sequence[tuple[int, bytes]], list[Bad]]]:
    """Yield a piece's records in parts, each with the bad ones before the next part.

    Args:
        of_piece: (line, bytes) of each record.
        bad: records that could not be cut, in order.
    """
    kept = 0
    for stop in range(_MOST_RECORDS, max(len(of_piece), 1) + _MOST_RECORDS, _MOST_RECORDS):
        up_to = len(bad)
        if stop < len(of_piece):
            up_to = bisect_left(bad, of_piece[stop][0], key=lambda record: record.line)
        yield of_piece[stop - _MOST_RECORDS : stop], list(bad[kept:up_to])
        kept = up_to


def first_bad(
    of_piece: Sequence[tuple[int, bytes]],
    problem: BadText,
    read: Callable[[Piece, bool], pa.RecordBatch],
) -> BadText:
    """Return the problem of the first bad record: one of another kind may stand before.

    Args:
        of_piece: (line, bytes) of each record.
        problem: problem of one of these records.
        read: function that reads a piece, as that of `by_halves`.
    """
    while problem.line is not None:
        before = of_piece[: bisect_left(of_piece, problem.line, key=lambda record: record[0])]
        if not before:
            break
        try:
            read(piece_of(before), True)
        except BadText as earlier:
            problem, of_piece = earlier, before
        else:
            break
    return problem


def by_halves(
    of_piece: Sequence[tuple[int, bytes]],
    reasons: dict[int, str],
    read: Callable[[Piece, bool], pa.RecordBatch],
) -> Salvaged:
    """Return a piece's good records as rows, and the others with reasons.

    Args:
        of_piece: (line, bytes) of each record.
        reasons: {place of a record: why it is bad}.
        read: reads a piece, or raises BadText; if true is given, with the best reason.
    """
    bad = [Bad(of_piece[at][0], why, of_piece[at][1]) for at, why in reasons.items()]
    good = [each for at, each in enumerate(of_piece) if at not in reasons]
    kept: list[tuple[int, bytes]] = []
    waiting = [good] if good else []
    while waiting:
        part = waiting.pop()
        try:
            block = read(piece_of(part), len(part) == 1)
            if len(block) == len(part):
                if len(part) == len(good):
                    return Salvaged(piece_of(part), block, sorted(bad))
                kept += part
                continue
            why = f"{len(block)} records are in one"
        except BadText as problem:
            why = problem.fact
        if len(part) == 1:
            bad.append(Bad(part[0][0], why, part[0][1]))
        else:
            middle = len(part) // 2
            waiting += [part[middle:], part[:middle]]
    piece = piece_of(kept)
    return Salvaged(piece, read(piece, False) if kept else None, sorted(bad))
