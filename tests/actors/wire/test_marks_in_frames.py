"""The marks of rows on the wire: a byte each where there are any, and none that we do not know."""

from __future__ import annotations

import numpy as np
import pytest

from slackwater.runtime.errors import FrameError
from tests.actors.wire.test_frames import assert_same, batch_with, codec, sound_frame
from tests.support.told import message_of


@pytest.mark.parametrize("rows", [1, 8, 9, 1_000])
def test_marks_of_rows_travel_and_cost_no_byte_where_there_are_none(rows: int) -> None:
    plain, some = batch_with(rows), batch_with(rows)
    some = some.with_(marks=(np.arange(rows) % 3 == 0).astype(np.uint8))
    frames = [codec().encode(message_of(batch, 5, 6), sent_at_ns=7) for batch in (plain, some)]
    assert len(frames[1]) - len(frames[0]) == (rows + 7) // 8 * 8
    assert_same(codec().decode(frames[1])[0].batch, some)
    assert_same(codec().decode(frames[0])[0].batch, plain)


def test_marks_that_there_are_not_and_marks_of_no_rows_are_refused() -> None:
    some = batch_with(3)
    some = some.with_(marks=np.array([0, 0, 128], dtype=np.uint8))
    with pytest.raises(FrameError, match="with unknown marks"):
        codec().decode(codec().encode(message_of(some, 5, 6), sent_at_ns=7))
    some = some.with_(marks=np.array([0, 1], dtype=np.uint8))
    with pytest.raises(FrameError, match="'marks' is to travel as a NumPy array of 3 uint8"):
        codec().encode(message_of(some, 5, 6), sent_at_ns=7)
    bare = bytearray(codec().encode(message_of(None, 5, 6), sent_at_ns=7))
    bare[6] |= 4
    with pytest.raises(FrameError, match="a frame without a batch"):
        codec().decode(bytes(bare))
    short = bytearray(sound_frame())
    short[6] |= 4
    short[8:16] = (2**40).to_bytes(8, "little")
    with pytest.raises(FrameError, match="no room for marks"):
        codec().decode(bytes(short))
