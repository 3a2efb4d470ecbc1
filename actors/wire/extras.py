"""What a frame may say beside its columns: of which read it is, and of arrivals."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from slackwater.actors.wire.buffers import INT64, misfit
from slackwater.runtime.errors import FrameError
from slackwater.runtime.model import Arrived, Int64Array, ReadTag

_TAG = struct.Struct("<4q")
TAG_SIZE = _TAG.size
_ARRIVED = struct.Struct("<3q")
ARRIVED_SIZE = _ARRIVED.size
_ROW_SIZE = 2 * INT64.itemsize


def add_tag(parts: list[Any], tag: ReadTag) -> int:
    """Put which read a frame is of before the other parts; return the bytes that it takes."""
    parts.insert(0, _TAG.pack(*tag))
    return TAG_SIZE


def read_tag(frame: bytes, at: int, *, rows: int) -> ReadTag:
    """Return which read a frame of so many rows is of.

    Raises:
        FrameError: it is too short for that, or says what cannot be.
    """
    if len(frame) < at + TAG_SIZE:
        raise FrameError(f"a frame of {len(frame)} bytes has no room for the read that it is of")
    tag = ReadTag(*_TAG.unpack_from(frame, at))
    if tag.number < 1 or not 0 <= tag.late <= rows <= tag.rows:
        raise FrameError(f"a frame of {rows} rows says that it is of the read {tuple(tag)}")
    return tag


def add_arrived(parts: list[Any], arrived: Arrived) -> int:
    """Put how far arrivals have come before the other parts; return the bytes that it takes."""
    parts.insert(0, _ARRIVED.pack(*arrived))
    return ARRIVED_SIZE


def read_arrived(frame: bytes, at: int) -> Arrived:
    """Return how far arrivals have come.

    Raises:
        FrameError: the frame is too short for it.
    """
    if len(frame) < at + ARRIVED_SIZE:
        raise FrameError(f"a frame of {len(frame)} bytes has no room for how far arrivals are")
    return Arrived(*_ARRIVED.unpack_from(frame, at))


def add_arrivals(parts: list[Any], arrivals: Any, *, rows: int) -> int:
    """Add the arrivals of rows; return the bytes that they take.

    Raises:
        FrameError: it is no array of two int64 for each row.
    """
    is_array = isinstance(arrivals, np.ndarray) and arrivals.dtype == INT64
    if not is_array or arrivals.shape != (rows, 2):
        raise misfit("arrivals", arrivals, f"a NumPy array of {rows} × 2 {INT64}")
    parts.append(arrivals.tobytes())
    return rows * _ROW_SIZE


def read_arrivals(frame: bytes, end: int, *, rows: int) -> tuple[Int64Array, int]:
    """Return the arrivals that end there, a view of the frame, and where they begin.

    Raises:
        FrameError: the frame is too short for them.
    """
    start = end - rows * _ROW_SIZE
    if start < 0:
        raise FrameError(f"a frame of {len(frame)} bytes has no room for arrivals of {rows} rows")
    return np.frombuffer(frame, INT64, 2 * rows, start).reshape(rows, 2), start
