"""Shared memory of a channel: frames come whole and in order, and have room or take the socket."""

from __future__ import annotations

import os
import struct
from collections import deque
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.actors.wire import shared_memory
from slackwater.actors.wire.shared_memory import SharedIn, SharedOut
from slackwater.runtime.errors import FrameError
from tests.actors.wire.links import Link, codec, message, receive, speeds

ROOM = shared_memory.RING_BYTES
PLACE = struct.Struct("<4sQQ")


def ends(folder: Path) -> tuple[SharedOut, SharedIn]:
    link = str(folder / "memory")
    made = SharedIn.made(link)
    if made is None:
        pytest.skip("this system has no such memory")
    out = SharedOut.at(link)
    assert out is not None
    os.unlink(link)
    made.is_linked()
    return out, made


@given(st.lists(st.tuples(st.integers(0, ROOM // 8 * 5), st.integers(0, 4)), max_size=30))
def test_frames_come_as_they_were_written_whenever_they_are_read(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int]]
) -> None:
    """Each step writes a frame of so many bytes, then reads so many frames."""
    out, back = ends(tmp_path_factory.mktemp("m"))
    under_way: deque[tuple[bytes, bytes]] = deque()
    for number, (size, reads) in enumerate(steps):
        parts = [np.full(size // 3, number, np.uint8), b"", bytes([number]) * (size - size // 3)]
        place = out.put(parts, size)
        if place is None:
            assert sum(len(own) for _, own in under_way) + 2 * size > ROOM
        else:
            under_way.append((place, bytes([number]) * size))
        for _ in range(min(reads, len(under_way))):
            place, expected = under_way.popleft()
            assert back.frame(place) == expected
    assert all(back.frame(place) == expected for place, expected in under_way)
    place = out.put([b"x" * ROOM], ROOM)  # all of it is free again
    assert place is not None
    assert back.frame(place) == b"x" * ROOM
    for end in (out, back):
        end.close()
        end.close()


@pytest.mark.parametrize("place", [(0, 1), (5, ROOM), (ROOM - 1, 2), (5, 2**63)])
def test_a_place_where_no_frame_can_be_is_refused(tmp_path: Path, place: tuple[int, int]) -> None:
    out, back = ends(tmp_path)
    first = out.put([b"abcde"], 5)
    assert first is not None
    assert back.frame(first) == b"abcde"
    with pytest.raises(FrameError, match="are not a frame"):
        back.frame(PLACE.pack(b"SLKM", *place))
    assert back.frame(b"a frame of the socket") == b"a frame of the socket"
    out.close()
    back.close()


def test_memory_that_may_be_cut_short_is_not_used(tmp_path: Path) -> None:
    link = tmp_path / "memory"
    link.write_bytes(bytes(64 + ROOM))
    assert SharedOut.at(str(link)) is None
    assert SharedOut.at(str(tmp_path / "none")) is None


def test_long_and_short_messages_of_a_local_channel_keep_their_order() -> None:
    link = Link(is_local=True)
    receiver = link.receiver()
    sender = link.sender(receiver)
    sizes = [1, 4_000, 3, 300_000, 20_000, 2, 400_000]  # the last has no room beside the others
    first = 0
    for rows in sizes:
        sender.send(message(first, rows), 0)
        first += rows
    got = receive(receiver, len(sizes))
    assert [one.rows for one in got] == sizes
    assert speeds(got) == list(range(first))
    assert sender.bytes == receiver.bytes
    link.close()


def test_a_sender_without_the_memory_uses_the_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharedOut, "at", lambda _: None)
    link = Link(is_local=True)
    receiver = link.receiver(codec=codec())
    link.sender(receiver).send(message(0, 30_000), 0)
    assert speeds(receive(receiver, 1)) == list(range(30_000))
    link.close()
