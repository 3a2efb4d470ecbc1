"""Times as text: which types, and a guess by the rules of Arrow's CSV reader."""

from __future__ import annotations

import pyarrow as pa

from slackwater.ingest.numerals import Misfit, cast_text
from slackwater.runtime.model.arrow_functions import arrow_functions

__all__ = ["guessed_time", "is_time"]

_GUESSES = (
    pa.date32(),
    pa.timestamp("ns"),
    pa.timestamp("s"),
    pa.timestamp("ns", "UTC"),
    pa.timestamp("s", "UTC"),
)
"""Nanoseconds first, since later times may be finer; seconds where those do not fit."""


def is_time(kind: pa.DataType) -> bool:
    """Return whether values of a type are the text of a time."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind))


def guessed_time(text: pa.StringArray) -> pa.DataType | None:
    """Return the type of text that consists of times; None if it does not."""
    values = arrow_functions().drop_null(text)
    for kind in _GUESSES if len(values) else ():
        if all(not isinstance(cast_text(some, kind), Misfit) for some in (values[:1], values)):
            return kind
    return None
