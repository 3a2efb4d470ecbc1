"""Channels: strangers, hostile frames and lost peers."""

from __future__ import annotations

import pickle
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
import zmq

from slackwater.actors.wire.channel import ChannelKeys, Sender
from slackwater.runtime.errors import ClusterError, WorkerDied
from tests.actors.wire.links import (
    KEYS,
    PATIENCE_S,
    ROOT,
    Link,
    codec,
    is_lost,
    message,
    receive,
    speeds,
    until,
)


@pytest.fixture
def tcp_link() -> Iterator[Link]:
    made = Link(is_local=False)
    yield made
    made.close()


STRANGERS = {
    "no keys": None,
    "keys of another job": ChannelKeys.generate(),
    "the receiver's public key, but none of the job's senders'": ChannelKeys(
        KEYS.receiver_public, KEYS.receiver_secret, *zmq.curve_keypair()
    ),
}


@pytest.mark.parametrize("keys", STRANGERS.values(), ids=STRANGERS)
def test_a_stranger_gets_nothing_through(tcp_link: Link, keys: ChannelKeys | None) -> None:
    receiver = tcp_link.receiver()
    stranger = tcp_link.raw(receiver, keys)
    forged = codec()
    stranger.send(forged.encode_hello())
    stranger.send(forged.encode(message(666), sent_at_ns=0))
    until(lambda: receiver.refused_peers > 0, [receiver])
    stranger.close(linger=0)  # it would try again and again
    sender = tcp_link.sender(receiver)
    sender.send(message(1), 0)
    assert speeds(receive(receiver, 1)) == [1]
    assert (receiver.messages, receiver.refused) == (1, 0)


def test_a_sender_with_wrong_keys_sees_that_it_is_refused(tcp_link: Link) -> None:
    receiver = tcp_link.receiver()
    for keys in STRANGERS.values():
        if keys is not None:
            sender = tcp_link.sender(receiver, keys=keys)
            until(lambda sender=sender: is_lost(sender), [sender])  # type: ignore[misc]


def test_a_receiver_has_one_sender_in_its_life(link: Link) -> None:
    receiver = link.receiver()
    first = link.sender(receiver)
    first.send(message(1), 0)
    assert speeds(receive(receiver, 1)) == [1]
    second = link.sender(receiver)
    until(lambda: is_lost(second), [second])
    first.close(linger_s=0)
    until(lambda: is_lost(receiver), [receiver])
    third = link.sender(receiver)
    until(lambda: is_lost(third), [third])
    assert receiver.receive(0) == []
    assert is_lost(receiver)


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
    until(lambda: receiver.receive(0) == [] and is_lost(receiver), [receiver])


def test_a_lost_sender_is_noticed_once_all_it_sent_is_read(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver)
    until(lambda: receiver.receive(0) == [] and receiver.is_connected, [receiver])
    sender.send(message(1), 0)
    sender.close()
    assert speeds(receive(receiver, 1)) == [1]
    until(lambda: is_lost(receiver), [receiver])
    receiver.grant(1)  # goes nowhere, and says so nowhere


def test_a_lost_receiver_is_noticed(link: Link) -> None:
    receiver = link.receiver()
    sender = link.sender(receiver)
    until(lambda: receiver.receive(0) == [] and receiver.is_connected, [receiver])
    assert not is_lost(sender)
    receiver.close()
    until(lambda: is_lost(sender), [sender])
    with pytest.raises(WorkerDied, match=f"{re.escape(receiver.endpoint)}.*1 rows"):
        sender.send(message(1), 0)


def test_a_receiver_that_was_never_there_is_lost(link: Link) -> None:
    receiver = link.receiver()
    receiver.close(linger_s=0)
    sender = link.sender(receiver)
    until(lambda: is_lost(sender), [sender])


def test_a_connection_that_is_not_made_yet_is_no_loss(tcp_link: Link) -> None:
    with socket.socket() as full, socket.socket() as first:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        first.connect(full.getsockname())  # the system drops packets of others from now on
        endpoint = f"tcp://127.0.0.1:{full.getsockname()[1]}"
        sender = Sender(endpoint, keys=KEYS, codec=codec(), context=tcp_link.context)
        assert not sender.has_connected(0.05)
        assert not is_lost(sender)
        sender.close(linger_s=0)


def test_whether_a_connection_was_made_or_refused_is_known(tcp_link: Link) -> None:
    receiver = tcp_link.receiver()
    made = tcp_link.sender(receiver)
    assert made.has_connected(PATIENCE_S)
    assert not is_lost(made)
    receiver.close(linger_s=0)
    until(lambda: is_lost(made), [made])
    refused = tcp_link.sender(receiver)
    assert refused.has_connected(PATIENCE_S)
    assert is_lost(refused)


FROZEN = """
import pickle, sys, zmq
from slackwater.actors.wire.channel import Sender
from tests.actors.wire.links import codec, message
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
            until(lambda: is_lost(receiver), [receiver])
        finally:
            peer.kill()


def test_a_silent_peer_is_lost_after_its_limit_and_within_a_tenth_more(link: Link) -> None:
    receiver = link.receiver(heartbeat_timeout_s=6.0)
    gap_ms = receiver.socket.getsockopt(zmq.HEARTBEAT_IVL)
    timeout_ms = receiver.socket.getsockopt(zmq.HEARTBEAT_TIMEOUT)
    assert isinstance(gap_ms, int)
    assert isinstance(timeout_ms, int)
    assert 6_000 < timeout_ms <= timeout_ms + gap_ms <= 6_600


def test_addresses_that_cannot_be_are_refused_by_name(tcp_link: Link) -> None:
    with pytest.raises(ClusterError, match=r"203\.0\.113\.9"):
        tcp_link.receiver(bind_host="203.0.113.9")
    for everywhere in ("0.0.0.0", "*", "::"):  # noqa: S104 (refused)
        with pytest.raises(ClusterError, match="every network of this node"):
            tcp_link.receiver(bind_host=everywhere)
    with pytest.raises(ClusterError, match="nowhere"):
        Sender("nowhere", keys=KEYS, codec=codec(), context=tcp_link.context)


def test_keys_travel_and_are_never_shown() -> None:
    assert pickle.loads(pickle.dumps(KEYS)) == KEYS  # noqa: S301  (our own bytes)
    assert repr(KEYS) == "ChannelKeys()"
    assert ChannelKeys.generate() != KEYS
