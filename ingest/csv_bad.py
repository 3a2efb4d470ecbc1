"""Find the bad records of a piece of CSV that cannot be read whole.

```
piece ─▶ records of another length          one pass of Arrow
      ─▶ each column's values, once each    halves that cannot be read, down to one value
      ─▶ all others: read whole
```

A bad value costs a logarithm of its piece, so a file of bad records ends as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from slackwater.ingest.csv_columns import (
    Place,
    dotted,
    is_ours,
    not_text,
    read,
    wrong_lengths,
)
from slackwater.ingest.dialect import Dialect
from slackwater.ingest.misfits import cast_misfits, misfits
from slackwater.ingest.numerals import code_as, codes, inexact_as, is_same
from slackwater.ingest.records import Piece, piece_of, records
from slackwater.ingest.salvage import Salvaged, by_halves
from slackwater.ingest.times import is_time
from slackwater.runtime.model.arrow_functions import arrow_functions
from slackwater.runtime.model.schema import travels
from slackwater.runtime.shown import shown

__all__ = ["lengths_kept", "salvaged"]


def salvaged(
    of_piece: Sequence[tuple[int, bytes]],
    names: list[str],
    places: list[Place],
    dialect: Dialect,
    read_piece: Callable[[Piece, bool], pa.RecordBatch],
) -> Salvaged:
    """Return the good and bad ones of records that cannot be read whole."""
    bad, others = wrong_lengths(piece_of(of_piece).data, len(names), dialect)
    if others + len(bad) == len(of_piece):
        sound = [at for at in range(len(of_piece)) if at not in bad]
        table = _table(piece_of([of_piece[at] for at in sound]).data, len(names), places, dialect)
        for place in places:
            if place.at is None or not travels(place.field.type):
                continue
            for row, why in _bad_values(table[str(place.at)].combine_chunks(), place, dialect):
                bad.setdefault(sound[row], why)
    else:  # Arrow cuts them otherwise: each alone
        bad = {}
    return by_halves(of_piece, bad, read_piece)


def lengths_kept(piece: Piece, names: list[str], dialect: Dialect) -> Piece:
    """Return the records that have as many values as the header has names."""
    of_piece = records(piece, dialect.form)
    bad, others = wrong_lengths(piece.data, len(names), dialect)
    if others + len(bad) != len(of_piece):
        return piece
    return piece_of([each for at, each in enumerate(of_piece) if at not in bad])


def _table(data: bytes, width: int, places: list[Place], dialect: Dialect) -> pa.Table:
    """Return columns of records of the right length as bytes."""
    chosen = [place.at for place in places if place.at is not None] or [0]
    raw = {at: pa.binary() for at in chosen}
    if not data:
        return pa.table({str(at): pa.nulls(0, kind) for at, kind in raw.items()})
    as_they_came = Dialect(
        sep=dialect.sep, quote=dialect.quote, decimal="," if dialect.sep == "." else "."
    )
    return read(data, width, chosen, raw, as_they_came, None)


def _bad_values(column: pa.BinaryArray, place: Place, dialect: Dialect) -> list[tuple[int, str]]:
    """Return (row, reason) of each value that is not of its column's type."""
    coded = column.dictionary_encode()
    values: list[bytes] = coded.dictionary.to_pylist()
    reasons = _reasons(values, place, dialect)
    if not reasons:
        return []
    codes = coded.indices.to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(np.isin(codes, list(reasons))).tolist()
    return [(row, reasons[int(codes[row])]) for row in rows]


def _reasons(values: list[bytes], place: Place, dialect: Dialect) -> dict[int, str]:
    """Return {place: reason} of the values that are bad."""
    name, kind = place.field.name, place.field.type
    reasons, texts, of_text = dict[int, str](), list[str](), list[int]()
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    for at, value in enumerate(values):
        try:
            texts.append(value.decode("latin1" if is_bytes else "utf-8"))
            of_text.append(at)
        except UnicodeDecodeError:
            reasons[at] = not_text(name, dialect.encoding)
    if is_bytes or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return reasons
    for row, why in _misfits(texts, place, dialect).items():
        reasons[of_text[row]] = f"column {name!r}: {shown(texts[row])} {why}"
    return reasons


def _misfits(texts: list[str], place: Place, dialect: Dialect) -> dict[int, str]:
    """Return {place of a text: why} of those that are not of a column's type."""
    kind, functions = place.field.type, arrow_functions()
    is_no = f"is no {kind}"
    if not (is_ours(place) or is_time(kind)):
        return dict.fromkeys(misfits(len(texts), partial(_first_refused, texts, kind)), is_no)
    text = pa.array(texts, pa.string())
    if not pa.types.is_timestamp(kind):  # as Arrow, which trims all others
        text = functions.utf8_trim_whitespace(text)
    nulls = pa.array(dialect.null_texts, pa.string())
    text = functions.if_else(functions.is_in(text, value_set=nulls), None, text)
    written = dotted(text, kind, dialect)
    reasons = dict.fromkeys(cast_misfits(written, kind), is_no)
    if place.is_guess and is_ours(place):
        for row in np.flatnonzero(codes(text)).tolist():
            reasons[row] = code_as(kind)
        if pa.types.is_floating(kind):
            reasons = _inexact(written, kind, reasons)
    return reasons


def _inexact(text: pa.StringArray, kind: pa.DataType, reasons: dict[int, str]) -> dict[int, str]:
    """Add the numbers that a float would change."""
    values = text.to_pylist()
    for row, value in enumerate(values):
        if row not in reasons and value is not None and not is_same(value, float(value)):
            reasons[row] = inexact_as(kind)
    return reasons


def _first_refused(texts: list[str], kind: pa.DataType, start: int, stop: int) -> int | None:
    """Return the first text that Arrow's reader refuses."""
    written = "".join('"' + each.replace('"', '""') + '"\n' for each in texts[start:stop])
    try:
        read(written.encode(), 1, [0], {0: kind}, Dialect(), None)
    except pa.ArrowInvalid:
        if stop - start == 1:
            return start
        middle = (start + stop) // 2
        first = _first_refused(texts, kind, start, middle)
        return _first_refused(texts, kind, middle, stop) if first is None else first
    return None
