"""Merging the pieces of one read into one batch, in the total order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from runtime.merge.lanes import Piece
from runtime.model import Batch, Column, Int64Array, concat_columns

_FEW_RUNS = 8
_FEW_ROWS = 512


def merge_pieces(pieces: Sequence[Piece], ranks: Sequence[int], *, is_sorted: bool) -> Batch:
    """Return the rows of the pieces in the order (event time, writer, order within it).

    Args:
        pieces: of one port, at least one; in tie order, and of one writer in the order of
            their coming.
        ranks: the rank of each writer, by its place.
        is_sorted: they follow each other already (one writer, in order).

    The rows no longer know their writers: behind a gate, the gate is the writer.
    """
    if len(pieces) == 1 and pieces[0].batch.writers is None:
        return pieces[0].cut()
    # This runs once for every small read, so it is spelt out: a call per column and piece
    # would take as long as the merging.
    times = np.concatenate([batch.event_time_ns[i:j] for _, batch, i, j in pieces])
    order = None if is_sorted else _order(pieces, ranks, times)
    stimuli = np.concatenate([batch.stimulus_time_ns[i:j] for _, batch, i, j in pieces])
    columns: dict[str, Column] = {}
    for name in pieces[0].batch.columns:
        column = concat_columns([batch.columns[name][i:j] for _, batch, i, j in pieces])
        columns[name] = column if order is None else column.take(order)
    if order is None:
        return Batch(times, stimuli, columns)
    return Batch(times[order], stimuli[order], columns)


def _order(pieces: Sequence[Piece], ranks: Sequence[int], times: Int64Array) -> Int64Array:
    for piece in pieces:
        if piece.batch.writers is not None:
            writers = np.concatenate([_writers(piece, ranks) for piece in pieces])
            return np.lexsort((writers, times))
    # Pieces stand in tie order and the sort is stable: ties come out in tie order.
    return merge_order(times, len(pieces))


def _writers(piece: Piece, ranks: Sequence[int]) -> npt.NDArray[np.int64]:
    own = piece.batch.writers
    if own is None:
        return np.full(piece.stop - piece.start, ranks[piece.writer], dtype=np.int64)
    return own[piece.start : piece.stop]


def merge_order(times_ns: Int64Array, runs: int) -> Int64Array:
    """Return the stable sorting permutation of times that consist of `runs` sorted runs.

    Two ways, one result. A stable argsort is quickest for a few runs, which it finds and merges.
    For many, (time, position) packed in one integer goes through NumPy's vectorised sort.
    """
    rows = times_ns.shape[0]
    if runs > _FEW_RUNS and rows > _FEW_ROWS:
        base = int(times_ns.min())
        bits = rows.bit_length()
        if int(times_ns.max()) - base < 1 << (63 - bits):
            packed = times_ns - base
            packed <<= bits
            packed |= np.arange(rows)
            packed.sort()
            packed &= (1 << bits) - 1
            return packed
    return times_ns.argsort(kind="stable")
