"""9,000 frames from a peer that has the keys, mutated from sound ones: refused, or harmless.

6,000 of data, 1,500 grants, 1,500 hellos; `tests/actors/wire/test_hostile_peers.py` has peers that
have no keys. Repeat a run with the seed that it printed.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from slackwater.actors.wire.frames import FrameCodec, GrantFrame
from slackwater.runtime.errors import FrameError
from slackwater.runtime.model import END_NS, START_NS, Batch, Message, batch_of
from slackwater.runtime.model.batch import ROW_FIELDS
from tests.actors.wire.links import KEYS, Link, codec, until
from tests.support.tampering import tampered_frame
from tests.support.told import message_of

pytestmark = pytest.mark.usefixtures("nothing_leaks")

SCHEMA = pa.schema([("line", pa.string()), ("speed", pa.float64()), ("late", pa.bool_())])
FIELDS = frozenset({"writers", "marks", "arrivals"})
DATA, GRANTS, HELLOS = 6_000, 1_500, 1_500


@pytest.fixture
def link() -> Iterator[Link]:
    made = Link(is_local=False)
    yield made
    made.close()


def text_codec() -> FrameCodec:
    return codec(SCHEMA, row_fields=FIELDS)


class Forgetful(FrameCodec):
    """Judges each frame by itself: one promise far ahead makes liars of all who follow."""

    def decode(self, frame: bytes) -> tuple[Message, int]:
        self._promised_ns = START_NS
        return super().decode(frame)


def numbered(made: FrameCodec, number: int) -> FrameCodec:
    made._sent = number
    return made


def data_frames(chance: random.Random) -> Iterator[Callable[[int], bytes]]:
    """Yield functions from a frame's number to a sound frame of data."""
    while True:
        rows = chance.choice((0, 1, 2, 9, 70))
        words = [None if n % 3 == 2 else chance.choice(("20", "żółć", "")) for n in range(rows)]
        batch = Batch(
            event_time_ns=np.arange(rows),
            stimulus_time_ns=np.arange(rows) + 5,
            columns={
                "line": pa.array(words, pa.string()),
                "speed": np.arange(rows) / 2,
                "late": np.arange(rows) % 2 == 0,
            },
        )
        numbers = np.arange(rows)
        batch = batch.with_(writers=numbers + 3, arrivals=np.column_stack((numbers, numbers)))
        if chance.random() < 0.3:
            batch = batch.with_(marks=(numbers % 2).astype(np.uint8))
        message = message_of(batch if chance.random() < 0.9 else None, chance.randrange(1_000), 3)

        def at(number: int, message: Message = message) -> bytes:
            return numbered(text_codec(), number).encode(message, sent_at_ns=7)

        yield at


def check_sound(message: Message) -> None:
    """Check that a message is one which an honest peer could have sent."""
    batch = message.batch
    if batch is None:
        return
    for name in SCHEMA.names:
        assert len(batch.columns[name]) == message.rows
    assert FIELDS - {"marks"} <= batch.fields.keys() <= FIELDS
    for name, values in batch.fields.items():
        field = ROW_FIELDS[name]
        assert values.shape == ((message.rows, 2) if field.width == 2 else (message.rows,))
        assert values.dtype == field.dtype
        assert field.most is None or not (values > field.most()).any()
    assert batch.event_time_ns.shape == batch.stimulus_time_ns.shape == (message.rows,)
    line: Any = batch.columns["line"]
    line.validate(full=True)
    assert set(np.unique(batch.columns["late"].view(np.uint8))) <= {0, 1}
    again, _ = text_codec().decode(text_codec().encode(message, sent_at_ns=0))
    assert again.progress.promise_ns == message.progress.promise_ns
    assert again.batch is not None
    assert line.equals(again.batch.columns["line"])
    assert again.batch.fields.keys() == batch.fields.keys()
    for name in batch.fields:
        np.testing.assert_array_equal(again.batch.fields[name], batch.fields[name])
    for name in ("speed", "late"):
        np.testing.assert_array_equal(again.batch.columns[name], batch.columns[name])


def test_hostile_frames_of_data_are_refused_or_mean_what_they_say(
    link: Link, chance: random.Random
) -> None:
    settings: dict[str, Any] = {"columns": SCHEMA.names, "row_fields": FIELDS}
    receiver = link.receiver(codec=Forgetful(SCHEMA, **settings))
    peer = link.raw(receiver, KEYS)
    peer.send(text_codec().encode_hello())
    until(lambda: receiver.receive(0) == [] and receiver.is_connected, [receiver])
    judge = Forgetful(SCHEMA, **settings)
    judge.check_hello(text_codec().encode_hello())
    taken, refused, rows = 0, 0, 0
    frames = data_frames(chance)
    for sound in itertools.islice(frames, DATA):
        frame = tampered_frame(sound(judge._received), next(frames)(judge._received), chance)
        try:
            message, _ = judge.decode(frame)
        except FrameError:
            refused += 1
        else:
            check_sound(message)
            assert not message.progress.is_end, "END_NS is none of the numbers that are put in"
            taken, rows = taken + 1, rows + message.rows
        peer.send(frame)
        receiver.receive(0)  # what has come by now
    peer.send(
        numbered(text_codec(), judge._received).encode(message_of(None, END_NS, 0), sent_at_ns=0)
    )
    until(lambda: receiver.receive(0) == [] and receiver.has_ended, [receiver])
    assert (receiver.refused, receiver.messages, receiver.rows) == (refused, taken + 1, rows)
    assert refused > DATA / 2
    assert taken > DATA / 100  # a changed number of a column is for the keys to prevent


def test_hostile_grants_are_refused_or_mean_what_they_say(
    link: Link, chance: random.Random
) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver)
    sender.send(message_of(None, 0, 0), 0)
    until(lambda: bool(receiver.receive(0)), [receiver])
    judge = codec()
    judge.check_hello(codec().encode_hello())
    granted, refused = [], 0
    for _ in range(GRANTS):
        one, other = (
            numbered(codec(), judge._received).encode_grant(
                GrantFrame(chance.randrange(1, 99), is_final=False)
            )
            for _ in range(2)
        )
        frame = tampered_frame(one, other, chance)
        try:
            granted.append(judge.decode_grant(frame).rows)
        except FrameError:
            refused += 1
        receiver.socket.send(frame)
    last = numbered(codec(), judge._received).encode_grant(GrantFrame(4_242, is_final=False))
    receiver.socket.send(last)
    got: list[int] = []
    until(lambda: bool(got.extend(sender.poll())) or got[-1:] == [4_242], [sender])  # type: ignore[func-returns-value]
    assert got == [rows for rows in [*granted, 4_242] if rows]
    assert sender.refused == refused > GRANTS / 2


def test_hostile_hellos_are_refused_and_the_true_one_is_taken(
    link: Link, chance: random.Random
) -> None:
    receiver = link.receiver(codec=text_codec())
    peer = link.raw(receiver, KEYS)
    hello, refused = text_codec().encode_hello(), 0
    for _ in range(HELLOS):
        frame = tampered_frame(hello, codec().encode_hello(), chance)
        try:
            text_codec().check_hello(frame)
        except FrameError:
            refused += 1
            peer.send(frame)
    peer.send(hello)
    until(lambda: receiver.receive(0) == [] and receiver.is_connected, [receiver])
    assert receiver.refused == refused > HELLOS / 2


LIES = {
    "a promise that runs back": (message_of(None, 9, 0), "promises 9, and 10 had been promised"),
    "a row older than promised": (
        message_of(batch_of(np.array([11, 9]), {"speed": np.zeros(2, np.int64)}), 11, 0),
        "has a row of 9, older than the promised 10",
    ),
    "one row, older than promised": (
        message_of(batch_of(np.array([9]), {"speed": np.zeros(1, np.int64)}), 11, 0),
        "has a row of 9, older than the promised 10",
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_well_formed_frame_that_lies_is_refused_by_name_and_changes_nothing(lie: str) -> None:
    message, told = LIES[lie]
    sends, receives = codec(), codec(may_be_late=False)
    receives.decode(sends.encode(message_of(None, 10, 0), sent_at_ns=0))
    with pytest.raises(FrameError, match=told):
        receives.decode(sends.encode(message, sent_at_ns=0))
    honest = message_of(batch_of(np.array([10]), {"speed": np.zeros(1, np.int64)}), 10, 0)
    sends._sent = 1
    assert receives.decode(sends.encode(honest, sent_at_ns=0))[0].rows == 1


def test_a_frame_that_comes_twice_or_out_of_turn_is_refused_by_its_number() -> None:
    sends, receives = codec(), codec()
    first, second, third = (sends.encode(message_of(None, n, 0), sent_at_ns=0) for n in range(3))
    receives.decode(first)
    for frame, number in ((first, 0), (third, 2)):
        with pytest.raises(FrameError, match=f"frame {number} came where frame 1 was due"):
            receives.decode(frame)
    receives.decode(second)


def test_rows_behind_a_promise_come_where_the_plan_lets_them_and_nowhere_else() -> None:
    late = message_of(batch_of(np.array([9]), {"speed": np.zeros(1, np.int64)}), 11, 0)
    sends, receives = codec(), codec(may_be_late=True)
    receives.decode(sends.encode(message_of(None, 10, 0), sent_at_ns=0))
    assert receives.decode(sends.encode(late, sent_at_ns=0))[0].rows == 1
