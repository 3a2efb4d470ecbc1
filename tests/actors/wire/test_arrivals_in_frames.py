"""Arrivals on the wire: with each row, and how far they have come."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.errors import FrameError
from slackwater.runtime.model import Arrived, ReadTag
from tests.actors.wire.test_frames import INT64S, assert_same, batch_with, codec
from tests.support.told import message_of


@given(rows=st.integers(1, 70), tag=st.booleans(), data=st.data())
def test_arrivals_travel_with_rows_and_how_far_they_are_without(
    rows: int, tag: bool, data: st.DataObject
) -> None:
    both = codec(with_arrivals=True)
    sent = batch_with(rows)
    sent = sent.with_(
        arrivals=np.array(
            data.draw(st.lists(st.tuples(INT64S, INT64S), min_size=rows, max_size=rows)), np.int64
        ).reshape(rows, 2)
    )
    arrived = data.draw(st.none() | st.builds(Arrived, INT64S, INT64S, INT64S))
    read = ReadTag(3, rows, 0, 8) if tag else None
    for batch in (sent, None):
        message = message_of(batch, 5, 6, read, arrived)
        got, _ = both.decode(both.encode(message, sent_at_ns=7))
        assert_same(got.batch, batch)
        assert (got.tag, got.progress.arrived) == (read, arrived)


@pytest.mark.parametrize("arrivals", [None, np.zeros((3, 1), np.int64), np.zeros((3, 2))])
def test_rows_without_sound_arrivals_are_not_sent_where_the_channel_has_them(
    arrivals: Any,
) -> None:
    batch = batch_with(3)
    batch = batch.with_(arrivals=arrivals)
    with pytest.raises(FrameError, match="arrivals"):
        codec(with_arrivals=True).encode(message_of(batch, 0, 0), sent_at_ns=0)


def test_the_ends_of_a_channel_must_agree_on_arrivals() -> None:
    with pytest.raises(FrameError, match="arrivals"):
        codec().check_hello(codec(with_arrivals=True).encode_hello())
