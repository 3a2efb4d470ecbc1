"""Encode the optional parts of a frame: its read's tag, arrivals, and masks of nulls."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from slackwater.actors.wire.buffers import INT64, PADDING, misfit, padded, read_booleans
from slackwater.runtime.errors import FrameError
from slackwater.runtime.model import Arrived, BoolArray, Int64Array, ReadTag

_TAG = struct.Struct("<4q")
TAG_SIZE = _TAG.size
_ARRIVED = struct.Struct("<3q")
ARRIVED_SIZE = _ARRIVED.size
_ROW_SIZE = 2 * INT64.itemsize


def add_tag(parts: list[Any], tag: ReadTag) -> int:
    """Put a read's tag before the other parts; return its bytes."""
    parts.insert(0, _TAG.pack(*tag))
    return TAG_SIZE


def read_tag(frame: bytes, at: int, *, rows: int) -> ReadTag:
    """Return the tag of the read that a frame of `rows` rows belongs to.

    Raises:
        FrameError: the frame is too short for a tag, or its tag is impossible.
    """
    if len(frame) < at + TAG_SIZE:
        raise FrameError(f"a frame of {len(frame)} bytes has no room for its read's tag")
    tag = ReadTag(*_TAG.unpack_from(frame, at))
    if tag.number < 1 or not 0 <= tag.late <= rows <= tag.rows:
        raise FrameError(f"a frame of {rows} rows says that it belongs to the read {tuple(tag)}")
    return tag


def add_arrived(parts: list[Any], arrived: Arrived) -> int:
    """Put the arrival promise before the other parts; return its bytes."""
    parts.insert(0, _ARRIVED.pack(*arrived))
    return ARRIVED_SIZE


def read_arrived(frame: bytes, at: int) -> Arrived:
    """Return the arrival promise.

    Raises:
        FrameError: the frame is too short for the promise.
    """
    if len(frame) < at + ARRIVED_SIZE:
        raise FrameError(f"a frame of {len(frame)} bytes has no room for its arrival promise")
    return Arrived(*_ARRIVED.unpack_from(frame, at))


def add_masks(parts: list[Any], masks: Mapping[int, BoolArray], *, columns: int, rows: int) -> int:
    """Put the masks of columns with nulls before the other parts; return their bytes.

    Args:
        parts: of the frame.
        masks: {place of a column: which of its rows have a value}, in the order of places.
        columns: how many columns of numbers or text the frame has.
        rows: of the batch.
    """
    has_nulls = bytes(place in masks for place in range(columns))
    for place in sorted(masks, reverse=True):
        parts.insert(0, masks[place].tobytes() + PADDING[rows & 7])
    parts.insert(0, has_nulls + PADDING[columns & 7])
    return padded(columns) + len(masks) * padded(rows)


def read_masks(
    frame: bytes, at: int, *, columns: int, rows: int
) -> tuple[dict[int, BoolArray], int]:
    """Return the masks of columns with nulls, {place: mask}, and where the next part begins.

    Raises:
        FrameError: the frame is too short for them, or a byte is neither 0 nor 1.
    """
    has_nulls = frame[at : at + columns]
    end = at + padded(columns) + sum(has_nulls) * padded(rows)
    if len(has_nulls) < columns or max(has_nulls, default=0) > 1 or end > len(frame):
        raise FrameError(f"a frame of {len(frame)} bytes has no room for its masks of nulls")
    at += padded(columns)
    masks: dict[int, BoolArray] = {}
    for place, has_mask in enumerate(has_nulls):
        if has_mask:
            masks[place] = read_booleans(f"mask {place}", frame, at, rows=rows)
            at += padded(rows)
    return masks, end


def add_arrivals(parts: list[Any], arrivals: Any, *, rows: int) -> int:
    """Add the arrivals of rows; return their bytes.

    Raises:
        FrameError: the arrivals are no array of two int64 for each row.
    """
    is_array = isinstance(arrivals, np.ndarray) and arrivals.dtype == INT64
    if not is_array or arrivals.shape != (rows, 2):
        raise misfit("arrivals", arrivals, f"a NumPy array of {rows} × 2 {INT64}")
    parts.append(arrivals.tobytes())
    return rows * _ROW_SIZE


def read_arrivals(frame: bytes, end: int, *, rows: int) -> tuple[Int64Array, int]:
    """Return the arrivals that end at a byte, and their start; no copy.

    Raises:
        FrameError: the frame is too short for the arrivals.
    """
    start = end - rows * _ROW_SIZE
    if start < 0:
        raise FrameError(f"a frame of {len(frame)} bytes has no room for arrivals of {rows} rows")
    return np.frombuffer(frame, INT64, 2 * rows, start).reshape(rows, 2), start
