"""Arrow types by the names that Arrow knows, and prints."""

from __future__ import annotations

import re

import pyarrow as pa

__all__ = ["arrow_type"]

_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)(?:, ?tz=(.+))?\]")
_DECIMAL = re.compile(r"decimal(128|256)?\((\d+), ?(-?\d+)\)")
_DICTIONARY = re.compile(r"dictionary<values=(.+), indices=.+, ordered=.+>")


def arrow_type(name: str) -> pa.DataType | None:  # noqa: PLR0911 - one for each kind
    """Return the type of a name; None if no type has it.

    Args:
        name: such as "int64", "timestamp[ms, tz=UTC]" or "decimal128(10, 2)"; "timestamp" is in
            nanoseconds. A dictionary's is that of its values.
    """
    name = name.strip()
    if name == "timestamp":
        return pa.timestamp("ns")
    if match := _TIMESTAMP.fullmatch(name):
        return pa.timestamp(match[1], tz=match[2])
    if match := _DECIMAL.fullmatch(name):
        decimal = pa.decimal256 if match[1] == "256" else pa.decimal128
        try:
            return decimal(int(match[2]), int(match[3]))
        except ValueError:
            return None
    if match := _DICTIONARY.fullmatch(name):
        return arrow_type(match[1])
    try:
        return pa.type_for_alias(name)
    except ValueError:
        return None
