"""Encode the optional parts of a frame: tag, arrivals, masks of nulls, row fields."""

from __future__ import annotations

import struct
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from slackwater.actors.wire.buffers import (
    FEW_ROWS,
    PADDING,
    largest,
    misfit,
    padded,
    read_booleans,
)
from slackwater.runtime.errors import FrameError
from slackwater.runtime.model import Arrived, BoolArray, ReadTag
from slackwater.runtime.model.batch import ROW_FIELDS, RowFields

_TAG = struct.Struct("<4q")
TAG_SIZE = _TAG.size
_ARRIVED = struct.Struct("<3q")
ARRIVED_SIZE = _ARRIVED.size
FIRST_FLAG = 1 << 8
"""Flag of the first of `ROW_FIELDS`; a frame has 16 bits of flags."""


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
        parts: parts of the frame.
        masks: {place of a column: which of its rows have a value}, in the order of places.
        columns: how many columns of numbers or text the frame has.
        rows: number of rows of the batch.
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


class CarriedField(NamedTuple):
    """Field of rows (`ROW_FIELDS`) that a channel carries.

    Attributes:
        name: name of the field.
        dtype: type of its values.
        width: values of a row.
        size: bytes of a row.
        flag: its bit in the flags of a frame that has it.
        is_required: whether all frames with rows have it.
        most: returns the largest value that means something; None if any value does.
    """

    name: str
    dtype: np.dtype[Any]
    width: int
    size: int
    flag: int
    is_required: bool
    most: Callable[[], int] | None


def carried_fields(names: Container[str]) -> tuple[CarriedField, ...]:
    """Return the fields of these names, in the order in which a frame has them."""
    made: list[CarriedField] = []
    for place, (name, field) in enumerate(ROW_FIELDS.items()):
        if name in names:
            dtype = np.dtype(field.dtype)
            size, flag = dtype.itemsize * field.width, FIRST_FLAG << place
            is_required = field.absent is None
            made.append(CarriedField(name, dtype, field.width, size, flag, is_required, field.most))
    return tuple(made)


def add_fields(
    parts: list[Any], fields: RowFields, carried: Sequence[CarriedField], *, rows: int
) -> tuple[int, int]:
    """Add the fields of rows after the other parts; return their flags and bytes.

    Raises:
        FrameError: a field that all batches of a channel have is missing, or its values are not
            those of `rows` rows.
    """
    flags = added = 0
    for name, dtype, width, size, flag, is_required, _ in carried:
        values = fields.get(name)
        if values is None and not is_required:
            continue
        shape = (rows,) if width == 1 else (rows, width)
        if (
            not isinstance(values, np.ndarray)
            or (values.dtype is not dtype and values.dtype != dtype)
            or values.shape != shape
        ):
            each = "" if width == 1 else f" × {width}"
            raise misfit(name, values, f"a NumPy array of {rows}{each} {dtype}")
        is_copied = rows <= FEW_ROWS or not values.flags.c_contiguous
        parts.append(values.tobytes() if is_copied else values)
        if over := rows * size & 7:
            parts.append(PADDING[over])
        flags |= flag
        added += padded(rows * size)
    return flags, added


def read_fields(
    frame: bytes, carried: Sequence[CarriedField], flags: int, *, rows: int
) -> tuple[RowFields, int]:
    """Return the fields of rows at a frame's end, as views, and where they begin.

    Raises:
        FrameError: the frame is too short for them, lacks one that all frames of a channel have,
            or a value is above the field's largest.
    """
    end = len(frame)
    fields: RowFields = {}
    for name, dtype, width, size, flag, is_required, most in reversed(carried):
        if not flags & flag:
            if is_required:
                raise FrameError(f"a frame of {rows} rows has no {name}")
            continue
        end -= padded(rows * size)
        if end < 0:
            raise FrameError(f"a frame of {len(frame)} bytes has no room for {name} of {rows} rows")
        values = np.frombuffer(frame, dtype, rows * width, end)
        if most is not None and rows and largest(values) > most():
            raise FrameError(f"a frame has rows with unknown {name}")
        fields[name] = values if width == 1 else values.reshape(rows, width)
    return fields, end
