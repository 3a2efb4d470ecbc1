"""Merging the pieces of one read into one batch, in the total order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from slackwater.runtime.merge.lanes import Piece, in_order, order_of_writers
from slackwater.runtime.model import Batch, Columns, Int64Array, concat_columns, stable_order
from slackwater.runtime.model.batch import RowFields, concat_fields

_FEW_RUNS = 8


def merge_pieces(
    pieces: Sequence[Piece], ranks: Sequence[int], *, is_sorted: bool, has_ties: bool = False
) -> Batch:
    """Return the rows of the pieces in the order (event time, writer, order within it).

    Args:
        pieces: pieces of one port, at least one; in tie order, and of one writer in the order of
            their coming.
        ranks: the rank of each writer, by its place.
        is_sorted: they follow each other already (one writer, in order).
        has_ties: rows of one time in a piece may be of several writers, in any order.

    The rows no longer know their writers: after a gate, the gate is the writer.
    """
    _, first, start, stop = pieces[0]
    if len(pieces) == 1:
        rows = first.slice(start, stop)
        return without_writers(in_order(rows) if has_ties else rows)
    # This runs once for every small read, so it is spelt out, in one pass over the pieces: a call
    # per column and piece would take as long as the merging.
    time_parts: list[Int64Array] = []
    stimulus_parts: list[Int64Array] = []
    columns: Columns
    column_parts: list[tuple[str, list[Any]]] = [(name, []) for name in first.columns]
    field_parts: list[tuple[RowFields, int]] = []
    has_writers = has_fields = False
    for _, batch, start, stop in pieces:
        time_parts.append(batch.event_time_ns[start:stop])
        stimulus_parts.append(batch.stimulus_time_ns[start:stop])
        own = batch.columns
        for name, parts in column_parts:
            parts.append(own[name][start:stop])
        fields = batch.fields
        if fields:
            has_writers = has_writers or "writers" in fields
            fields = {n: v[start:stop] for n, v in fields.items() if n != "writers"}
            has_fields = has_fields or bool(fields)
        field_parts.append((fields, stop - start))
    times, stimuli = np.concatenate(time_parts), np.concatenate(stimulus_parts)
    fields = concat_fields(field_parts) if has_fields else {}
    if is_sorted:
        columns = {name: concat_columns(parts) for name, parts in column_parts}
        return Batch(event_time_ns=times, stimulus_time_ns=stimuli, columns=columns, **fields)
    if has_writers:
        writers = np.concatenate([_writers(piece, ranks) for piece in pieces])
        order = order_of_writers(times, writers)
    else:
        # Pieces stand in tie order and the sort is stable: ties come out in tie order.
        # Of a few runs in order an argsort is quicker: it finds them, and merges.
        is_many = len(pieces) > _FEW_RUNS
        order = stable_order(times) if is_many else times.argsort(kind="stable")
    columns = {}
    for name, parts in column_parts:
        columns[name] = concat_columns(parts).take(order)
    return Batch(
        event_time_ns=times[order],
        stimulus_time_ns=stimuli[order],
        columns=columns,
        **{name: values[order] for name, values in fields.items()},
    )


def without_writers(batch: Batch) -> Batch:
    """Return the same rows, which no longer know their writers."""
    return batch if batch.writers is None else batch.with_(writers=None)


def _writers(piece: Piece, ranks: Sequence[int]) -> Int64Array:
    place, batch, start, stop = piece
    if batch.writers is None:
        return np.full(stop - start, ranks[place], dtype=np.int64)
    return batch.writers[start:stop]
