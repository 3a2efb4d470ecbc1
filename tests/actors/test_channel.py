"""Channels: everything arrives once and in order, from the job's own peer and nobody else."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pytest
import zmq
from zmq.utils.monitor import recv_monitor_message

from actors.channel import ChannelKeys, Receiver, Sender, wait
from actors.frames import FrameCodec
from runtime.errors import ClusterError, FrameError, WorkerDied
from runtime.model import END_NS, Message, batch_of

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = pa.schema([("speed", pa.int64())])
KEYS = ChannelKeys.generate()
PATIENCE_S = 30.0


def codec(schema: pa.Schema = SCHEMA, **settings: Any) -> FrameCodec:
    return FrameCodec(schema, columns=schema.names, with_writers=False, **settings)


def message(first: int, rows: int = 1) -> Message:
    times = np.arange(first, first + rows)
    return Message(batch_of(times, {"speed": times}), first, first)


END = Message(None, END_NS, 0)


class Link:
    """Both ends of channels, in one context, closed at the end of the test."""

    def __init__(self) -> None:
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._ends: list[Any] = []

    def receiver(self, **settings: Any) -> Receiver:
        made = Receiver(context=self.context, **{"keys": KEYS, "codec": codec(), **settings})
        self._ends.append(made)
        return made

    def sender(self, receiver: Receiver, **settings: Any) -> Sender:
        settings = {"keys": KEYS, "codec": codec(), **settings}
        made = Sender(receiver.endpoint, context=self.context, **settings)
        self._ends.append(made)
        return made

    def raw(self, receiver: Receiver, keys: ChannelKeys | None) -> zmq.Socket[bytes]:
        """Return a bare socket: a peer that may say anything."""
        socket = self.context.socket(zmq.PAIR)
        socket.sndhwm = 0
        if keys is not None:
            keys.guard_sender(socket)
        socket.connect(receiver.endpoint)
        self._ends.append(socket)
        return socket

    def wait_for(self, event: int, events: zmq.Socket[bytes]) -> None:
        """Read a monitor until it tells of this event."""
        self._ends.append(events)
        events.rcvtimeo = round(PATIENCE_S * 1_000)
        while recv_monitor_message(events)["event"] != event:
            pass

    def close(self) -> None:
        for end in self._ends:
            if isinstance(end, zmq.Socket):
                end.close(linger=0)
            else:
                end.close(linger_s=0)
        self.context.term()


@pytest.fixture
def link() -> Iterator[Link]:
    made = Link()
    yield made
    made.close()


def until(condition: Callable[[], bool], ends: Sequence[Any]) -> None:
    """Wait until the condition holds; the ends' descriptors say when to look again."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, f"waited {PATIENCE_S} s in vain"
        wait(ends, 0.02)


def receive(receiver: Receiver, count: int) -> list[Message]:
    got: list[Message] = []

    def has_all() -> bool:
        got.extend(message for message, _ in receiver.receive(0))
        return len(got) >= count

    until(has_all, [receiver])
    return got


def speeds(messages: Sequence[Message]) -> list[int]:
    batches = [message.batch for message in messages]
    return [int(v) for batch in batches if batch is not None for v in batch.columns["speed"]]


def test_100_000_messages_arrive_once_and_in_order(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver)
    count = 100_000

    def send_all() -> None:
        for number in range(count):
            sender.send(message(number), number)
        sender.send(END, count)

    thread = threading.Thread(target=send_all)
    thread.start()
    got = receive(receiver, count + 1)
    thread.join()
    assert speeds(got) == list(range(count))
    assert got[-1].is_end
    assert (
        (sender.messages, sender.rows) == (receiver.messages, receiver.rows) == (count + 1, count)
    )
    assert sender.bytes == receiver.bytes
    assert receiver.refused == 0
    until(lambda: sender.poll() == [] and sender.is_settled, [sender])
    assert not sender.is_peer_lost
    assert not receiver.is_peer_lost


def test_credit_bounds_what_a_sender_holds_for_a_slow_receiver(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver)
    credit_rows, batch_rows, batches = 40_000, 10_000, 600  # 600 batches of 240 kB: 144 MB
    credit, sent, waiting, most_waiting = credit_rows, 0, 0, 0
    memory = psutil.Process()
    before, most_bytes = memory.memory_info().rss, 0
    while receiver.rows < batches * batch_rows:
        credit += sum(sender.poll())
        while credit >= batch_rows and sent < batches:  # as fast as it can
            sender.send(message(sent * batch_rows, batch_rows), 0)
            credit -= batch_rows
            sent += 1
        waiting = sent * batch_rows - receiver.rows
        most_waiting = max(most_waiting, waiting)
        for got, _ in receiver.receive(0, max_messages=1):  # one at a time
            receiver.grant(got.rows)
        most_bytes = max(most_bytes, memory.memory_info().rss - before)
        wait([sender, receiver], 0.02)
    assert most_waiting <= credit_rows
    assert most_bytes < 50e6


def test_link_time_is_summed_over_messages(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver)
    sender.send(message(1), 100)
    sender.send(message(2), 200)
    until(lambda: bool(receiver.receive(250)) or receiver.messages == 2, [receiver])
    until(lambda: bool(receiver.receive(250)) or receiver.messages == 2, [receiver])
    assert receiver.link_ns == 150 + 50


STRANGERS = {
    "no keys": None,
    "keys of another job": ChannelKeys.generate(),
    "the receiver's public key, but none of the job's senders'": ChannelKeys(
        KEYS.receiver_public, KEYS.receiver_secret, *zmq.curve_keypair()
    ),
}


@pytest.mark.parametrize("keys", STRANGERS.values(), ids=STRANGERS)
def test_a_stranger_gets_nothing_through(link: Link, keys: ChannelKeys | None) -> None:
    receiver = link.receiver()
    events = receiver.socket.get_monitor_socket()
    stranger = link.raw(receiver, keys)
    forged = codec()
    stranger.send(forged.encode_hello())
    stranger.send(forged.encode(message(666), sent_at_ns=0))
    link.wait_for(zmq.EVENT_DISCONNECTED, events)
    receiver.socket.disable_monitor()
    sender = link.sender(receiver)
    sender.send(message(1), 0)
    assert speeds(receive(receiver, 1)) == [1]
    assert (receiver.messages, receiver.refused) == (1, 0)


def test_a_sender_with_wrong_keys_sees_that_it_is_refused(link: Link) -> None:
    receiver = link.receiver()
    for keys in STRANGERS.values():
        if keys is not None:
            sender = link.sender(receiver, keys=keys)
            until(lambda sender=sender: sender.is_peer_lost, [sender])  # type: ignore[misc]


def test_a_receiver_has_one_sender_in_its_life(link: Link) -> None:
    receiver = link.receiver()
    first = link.sender(receiver)
    first.send(message(1), 0)
    assert speeds(receive(receiver, 1)) == [1]
    second = link.sender(receiver)
    until(lambda: second.is_peer_lost, [second])
    first.close(linger_s=0)
    until(lambda: receiver.is_peer_lost, [receiver])
    third = link.sender(receiver)
    until(lambda: third.is_peer_lost, [third])
    assert receiver.receive(0) == []
    assert receiver.is_peer_lost


def test_2_000_hostile_frames_are_counted_and_a_good_one_still_arrives(link: Link) -> None:
    seed = 7
    chance = np.random.default_rng(seed)
    receiver = link.receiver()
    peer, forged = link.raw(receiver, KEYS), codec()
    peer.send(forged.encode_hello())
    sound = codec()
    sound.encode_hello()
    sound_frame = sound.encode(message(5, rows=3), sent_at_ns=0)
    for number in range(2_000):
        noise = chance.bytes(int(chance.integers(0, 300)))
        if number % 4 == 1:
            # Any 72 bytes would be a sound body behind this header.
            noise = sound_frame[:64] + noise + b"x" * (len(noise) == 72)
        elif number % 4 == 2:
            noise = sound_frame[: int(chance.integers(0, len(sound_frame)))]
        if number % 4 == 3:
            peer.send_multipart([noise, sound_frame[:-1]])
        else:
            peer.send(noise)
    peer.send(forged.encode(message(42), sent_at_ns=0))
    assert speeds(receive(receiver, 1)) == [42], f"seed {seed}"
    assert (receiver.refused, receiver.messages) == (2_500, 1)
    assert receiver.last_refusal


def test_a_sender_lives_on_after_hostile_grants(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver)
    sender.send(message(1), 0)
    receive(receiver, 1)
    for noise in (b"", b"x" * 64, b"x" * 500):
        receiver.socket.send(noise)
    receiver.grant(9)
    granted: list[int] = []
    until(lambda: bool(granted.extend(sender.poll()) or granted), [sender])  # type: ignore[func-returns-value]
    assert granted == [9]
    assert sender.refused == 3


def test_a_frame_longer_than_the_limit_costs_its_peer_the_connection(link: Link) -> None:
    receiver = link.receiver(codec=codec(max_bytes=1_000))
    peer, forged = link.raw(receiver, KEYS), codec(max_bytes=1_000)
    peer.send(forged.encode_hello())
    peer.send(b"x" * 5_000)
    until(lambda: receiver.receive(0) == [] and receiver.is_peer_lost, [receiver])


def test_a_message_too_long_for_a_frame_goes_in_pieces(link: Link) -> None:
    receiver = link.receiver(codec=codec(max_bytes=1_000))
    sender = link.sender(receiver, codec=codec(max_bytes=1_000))
    sender.send(Message(None, -5, -6), 0)
    whole = message(0, rows=100)
    sender.send(Message(whole.batch, 70, 71), 0)
    sender.send(END, 0)
    got = receive(receiver, 1 + 4 + 1)
    assert speeds(got) == list(range(100))
    promises = [(message.promise_ns, message.promise_stimulus_ns) for message in got]
    assert promises == [*[(-5, -6)] * 4, (70, 71), (END_NS, 0)]


def test_ends_with_different_columns_refuse_each_other_by_name(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver, codec=codec(pa.schema([("flow", pa.int64())])))
    until(lambda: receiver.receive(0) == [] and receiver.refused == 1, [receiver])
    until(lambda: sender.poll() == [] and sender.refused == 1, [sender])
    assert "'flow'" in str(receiver.last_refusal)
    with pytest.raises(FrameError, match=r"'speed'.*'flow'"):
        sender.send(Message(None, 0, 0), 0)
    assert not receiver.is_connected
    assert not sender.is_connected


def test_both_ends_know_when_they_are_connected(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver)
    assert not receiver.is_connected
    until(lambda: receiver.receive(0) == [] and receiver.is_connected, [receiver])
    until(lambda: sender.poll() == [] and sender.is_connected, [sender])


def test_a_lost_sender_is_noticed_once_all_it_sent_is_read(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver)
    until(lambda: receiver.receive(0) == [] and receiver.is_connected, [receiver])
    sender.send(message(1), 0)
    sender.close()
    assert speeds(receive(receiver, 1)) == [1]
    until(lambda: receiver.is_peer_lost, [receiver])
    receiver.grant(1)  # goes nowhere, and says so nowhere


def test_a_lost_receiver_is_noticed(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver)
    until(lambda: receiver.receive(0) == [] and receiver.is_connected, [receiver])
    assert not sender.is_peer_lost
    receiver.close()
    until(lambda: sender.is_peer_lost, [sender])
    with pytest.raises(WorkerDied, match=r"127\.0\.0\.1.*1 rows"):
        sender.send(message(1), 0)


def test_a_receiver_that_was_never_there_is_lost(link: Link) -> None:
    receiver = link.receiver()
    receiver.close(linger_s=0)
    sender = link.sender(receiver)
    until(lambda: sender.is_peer_lost, [sender])


FROZEN = """
import pickle, sys, zmq
from actors.channel import Sender
from tests.actors.test_channel import codec, message
keys, endpoint = pickle.load(sys.stdin.buffer)
sender = Sender(endpoint, keys=keys, codec=codec(), context=zmq.Context())
sender.send(message(1), 0)
sys.stdin.buffer.read()
"""


def test_a_frozen_peer_is_lost_when_its_heartbeat_stops(link: Link) -> None:
    receiver = link.receiver(heartbeat_timeout_s=1.0)
    command = [sys.executable, "-c", FROZEN]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE) as peer:  # noqa: S603  (ours)
        assert peer.stdin is not None
        try:
            peer.stdin.write(pickle.dumps((KEYS, receiver.endpoint)))
            peer.stdin.flush()
            assert speeds(receive(receiver, 1)) == [1]
            peer.send_signal(signal.SIGSTOP)
            until(lambda: receiver.is_peer_lost, [receiver])
        finally:
            peer.kill()


def stream(receiver: Receiver, *, settles: bool) -> None:
    """Send 24 MB, more than the kernel buffers, and the end; close and leave."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    sender = Sender(receiver.endpoint, keys=KEYS, codec=codec(), context=context)
    for number in range(100):
        sender.send(message(number * 10_000, 10_000), 0)
    sender.send(END, 0)
    if settles:
        until(lambda: sender.poll() is not None and sender.is_settled, [sender])
    sender.close()
    sender.close()
    context.term()


def test_a_sender_that_closes_when_it_is_settled_loses_nothing(link: Link) -> None:
    receiver = link.receiver()
    thread = threading.Thread(target=stream, args=(receiver,), kwargs={"settles": True})
    thread.start()
    while not receiver.has_ended:
        for got, _ in receiver.receive(0, max_messages=1):
            if got.rows:
                receiver.grant(got.rows)
        wait([receiver], 0.02)
    thread.join()
    assert receiver.rows == 1_000_000
    assert not receiver.is_peer_lost


def test_a_sender_that_closes_too_early_is_noticed_if_it_loses_a_frame(link: Link) -> None:
    receiver = link.receiver()
    stream(receiver, settles=False)
    until(
        lambda: receiver.receive(0) == [] and (receiver.has_ended or receiver.is_peer_lost),
        [receiver],
    )
    assert receiver.has_ended == (receiver.rows == 1_000_000)


def test_after_the_end_a_receiver_sends_and_takes_nothing_more(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver)
    sender.send(END, 0)
    sender.send(message(1), 0)
    until(lambda: bool(receiver.receive(0)) or receiver.refused == 1, [receiver])
    until(lambda: receiver.receive(0) == [] and receiver.refused == 1, [receiver])
    assert receiver.has_ended
    receiver.grant(5)
    until(lambda: sender.poll() == [] and sender.is_settled, [sender])
    receiver.close()
    assert sender.poll() == []
    assert not sender.is_peer_lost


def test_addresses_that_cannot_be_are_refused_by_name(link: Link) -> None:
    with pytest.raises(ClusterError, match=r"203\.0\.113\.9"):
        link.receiver(bind_host="203.0.113.9")
    with pytest.raises(ClusterError, match="nowhere"):
        Sender("nowhere", keys=KEYS, codec=codec(), context=link.context)


def test_keys_travel_and_are_never_shown() -> None:
    assert pickle.loads(pickle.dumps(KEYS)) == KEYS  # noqa: S301  (our own bytes)
    assert repr(KEYS) == "ChannelKeys()"
    assert ChannelKeys.generate() != KEYS
