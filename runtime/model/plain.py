"""State as plain values, and back: what a snapshot is made of.

Plain are None, numbers, text, bytes, lists, tuples, dicts, NumPy arrays and Arrow arrays. So a
snapshot knows no class of ours: a later release can read it, whatever its own classes look like.
A machine may leave batches and messages in its state; here each becomes a dict that says what
it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from slackwater.runtime.model.batch import Batch
from slackwater.runtime.model.later import Later
from slackwater.runtime.model.message import Message, Progress, ReadTag
from slackwater.runtime.model.nullable import Nullable
from slackwater.runtime.shown import a_kind

_IS = "\0is"  # no column and no channel has this name
AS_THEY_ARE = frozenset({type(None), bool, int, float, str, bytes})
"""Most of a state is these: they are passed by before a call, and a place in words, is made."""


def to_plain(state: Any, *, where: str = "state") -> Any:  # noqa: PLR0911, PLR0912 - one for each
    """Return a state as plain values.

    Args:
        state: dicts, sequences, numbers, arrays, batches and messages.
        where: owner of the state, for the error.

    Raises:
        TypeError: something else is in it; says where.
    """
    match state:
        case None | bool() | int() | float() | str() | bytes():
            return state
        case np.generic():
            return state.item()
        case Decimal():
            return {_IS: "decimal", "text": str(state)}
        case Later():
            return state.plain
        case np.ndarray() if not state.dtype.hasobject:
            return state
        case pa.Array():
            if 2 * state.nbytes < state.get_total_buffer_size():
                return pa.concat_arrays([state])  # else what it is a slice of would come along
            return state
        case Nullable():
            return {_IS: "nullable", "values": state.values, "valid": state.valid}
        case Batch():
            return {
                _IS: "batch",
                "event_time_ns": state.event_time_ns,
                "stimulus_time_ns": state.stimulus_time_ns,
                "columns": to_plain(state.columns, where=where),
                "fields": state.fields,
            }
        case Message():
            return {
                _IS: "message",
                "batch": to_plain(state.batch, where=where),
                "progress": to_plain(state.progress, where=where),
                "tag": None if state.tag is None else tuple(state.tag),
            }
        case dict() if all(isinstance(key, str) for key in state):
            return {
                key: own if type(own) in AS_THEY_ARE else to_plain(own, where=f"{where}.{key}")
                for key, own in state.items()
            }
        case dict():
            pairs = [(key, to_plain(own, where=f"{where}[{key}]")) for key, own in state.items()]
            return {_IS: "map", "pairs": pairs}
        case tuple():
            return tuple(_each_plain(state, where))
        case list() | deque():
            return _each_plain(state, where)
    raise TypeError(
        f"{where} is {a_kind(state)}, which is not a plain value: let its owner's snapshot() "
        "return numbers, text, lists, dicts, arrays, batches and messages only"
    )


def _each_plain(values: Iterable[Any], where: str) -> list[Any]:
    return [
        own if type(own) in AS_THEY_ARE else to_plain(own, where=f"{where}[{n}]")
        for n, own in enumerate(values)
    ]


def from_plain(plain: Any) -> Any:  # noqa: PLR0911 - one for each kind
    """Return what `to_plain` was given; sequences are lists or tuples."""
    if type(plain) in AS_THEY_ARE:
        return plain
    match plain:
        case {"\0is": "batch"}:
            return Batch(
                event_time_ns=plain["event_time_ns"],
                stimulus_time_ns=plain["stimulus_time_ns"],
                columns=from_plain(plain["columns"]),
                **plain["fields"],
            )
        case {"\0is": "decimal"}:
            return Decimal(plain["text"])
        case {"\0is": "nullable"}:
            return Nullable(plain["values"], plain["valid"])
        case {"\0is": "message"}:
            return Message(
                from_plain(plain["batch"]),
                Progress.of_plain(plain["progress"]),
                None if plain["tag"] is None else ReadTag(*plain["tag"]),
            )
        case {"\0is": "map"}:
            return {key: from_plain(own) for key, own in plain["pairs"]}
        case dict():
            return {key: from_plain(own) for key, own in plain.items()}
        case tuple():
            return tuple(from_plain(own) for own in plain)
        case list():
            return [from_plain(own) for own in plain]
    return plain
