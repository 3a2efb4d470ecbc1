"""1,000 connections of peers that have no keys, while a job is at work: it does not notice.

Nothing of theirs gets in, each is counted, and nothing stays of them.
`tests/actors/wire/test_hostile_frames.py` has a peer with the keys.
"""

from __future__ import annotations

import contextlib
import gc
import random
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import zmq

from slackwater.actors.connections.pending import MOST_BYTES
from slackwater.actors.sinks.outputs import collect_sink
from slackwater.actors.slot.host import SlotHost
from slackwater.actors.wire.channel import ChannelKeys
from slackwater.actors.wire.channel_end import PIECE_BYTES
from slackwater.runtime.flow.dataflow import Dataflow
from slackwater.runtime.plan.plan import plan_stages
from slackwater.runtime.plan.slot_plan import SlotPlan
from slackwater.runtime.sources.spec import END_OF_INPUT, EndOfInput
from tests.actors.wire.links import KEYS, Link, codec, is_lost, message, receive, speeds, until
from tests.support import waiting
from tests.support.refused_peers import CALLS, shouting

pytestmark = pytest.mark.usefixtures("nothing_leaks")

CONNECTIONS = 1_000


@pytest.fixture
def link() -> Iterator[Link]:
    made = Link(is_local=False)
    yield made
    made.close()


@dataclass(frozen=True)
class FedInput:
    """Ten rows each time that it is asked, and then nothing once, until `is_over`."""

    is_over: threading.Event

    def describe(self) -> str:
        return "numbers while there are strangers"

    def schema(self) -> pa.Schema:
        return pa.schema([("ts", pa.timestamp("ns")), ("n", pa.int64())])

    def open(self) -> FedReader:
        return FedReader(self)


class FedReader:
    def __init__(self, fed: FedInput) -> None:
        self._fed, self._asked = fed, 0

    def poll(self) -> pa.RecordBatch | EndOfInput | None:
        self._asked += 1
        if self._asked % 2:
            return None
        if self._fed.is_over.is_set():
            return END_OF_INPUT
        n = np.arange(10) + 5 * (self._asked - 2)
        return pa.record_batch([pa.array(n, pa.timestamp("ns")), n], ["ts", "n"])

    def close(self) -> None:
        pass


class Job:
    """Two slots in this process which take each other for hosts of their own."""

    def __init__(self, fed: FedInput) -> None:
        flow = Dataflow("numbers")
        flow.source("numbers", fed, event_time="ts").sink("out", collect_sink())
        where = {"numbers": "node-1", "out": "node-2"}
        parts = [
            SlotPlan(name=where[stage.name], node=where[stage.name], stages=(stage,))
            for stage in plan_stages(flow.graph)
        ]
        self.slots = [SlotHost(part, keys=KEYS) for part in parts]
        hosts = {"numbers": None, "out": None}
        endpoints: dict[str, str] = {}
        for slot in self.slots:
            endpoints |= slot.bind(hosts)
        (self.endpoint,) = endpoints.values()
        for slot in self.slots:
            slot.connect(endpoints)

    def start(self) -> None:
        for slot in self.slots:
            slot.start(time.time_ns())

    def rows(self) -> int:
        return sum(channel.rows_received for channel in self.slots[1].report().channels)

    def refused(self) -> int:
        return self.slots[1].report().refused_peers

    def close(self) -> None:
        for slot in self.slots:
            slot.stop()
            slot.join()
            for end in (*slot._receivers.values(), *slot._senders.values()):
                end.close(linger_s=0)
            slot._waker.close()
            slot._context.term()
        gc.unfreeze()  # a slot freezes what there is in its process


def greeting(mechanism: bytes, minor: int = 0) -> bytes:
    """Return the start of a connection as ZeroMQ's protocol 3 has it (RFC 23)."""
    return (
        b"\xff" + bytes(8) + b"\x7f\x03" + bytes([minor]) + mechanism.ljust(20, b"\0") + bytes(32)
    )


def hostile_bytes(chance: random.Random) -> bytes:
    noise = chance.randbytes(chance.randrange(2_000))
    command = chance.choice((b"\x05HELLO", b"\x08INITIATE", b"\x05READY", b"\x04PING", b""))
    long = struct.pack(">Q", chance.choice((2**20, 2**40, 2**63, 2**64 - 1)))
    return chance.choice(
        (
            b"",
            noise,
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + noise,
            b"\x16\x03\x01\x02\x00\x01" + noise,  # how TLS begins
            b"\x01\x00" + noise,  # ZeroMQ's protocols 1 and 2
            b"\xff" + bytes(7) + b"\x01\x7f\x01\x05" + noise,
            greeting(b"NULL") + b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x04PAIR" + noise,
            greeting(b"PLAIN") + b"\x04\x0a\x05HELLO\x01a\x01b" + noise,
            greeting(b"CURVE")[: chance.randrange(64)],
            greeting(b"CURVE", minor=chance.randrange(2)) + noise,
            greeting(b"CURVE")
            + b"\x04"
            + bytes([len(command) + len(noise) % 200])
            + command
            + noise,
            greeting(b"CURVE") + b"\x06" + long + noise,  # a command without end
            greeting(b"CURVE") + b"\x02" + long + noise,  # a message without end
            greeting(b"CURVE") + b"\x04\xc8\x05HELLO\x01" + chance.randbytes(193),
        )
    )


def has_hung_up(peer: socket.socket) -> bool:
    """Return whether the other end has closed a connection, what it said being thrown away."""
    peer.setblocking(False)
    try:
        while said := peer.recv(4_096):
            assert b"SLKW" not in said
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True


def test_a_job_lives_on_among_strangers_and_counts_each(
    chance: random.Random, capfd: pytest.CaptureFixture[str]
) -> None:
    fed = FedInput(threading.Event())
    job = Job(fed)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    host, _, port = job.endpoint.removeprefix("tcp://").rpartition(":")
    waiting_ones: list[socket.socket] = []
    wrong_keys: list[zmq.Socket[bytes]] = []
    stranger = ChannelKeys.generate()
    half_right = ChannelKeys(KEYS.receiver_public, KEYS.receiver_secret, *zmq.curve_keypair())
    try:
        job.start()
        waiting.until(lambda: job.rows() > 0, within_s=20, what="the job to be at work")
        for number in range(CONNECTIONS):
            if number % 25 == 0:
                made = context.socket(zmq.PAIR)
                made.setsockopt(zmq.RECONNECT_IVL, 86_400_000)  # once each, to be countable
                chance.choice((stranger, half_right, KEYS)).guard_sender(made)
                with made.get_monitor_socket(zmq.EVENT_CONNECTED) as connected:
                    made.connect(job.endpoint)
                    assert connected.poll(20_000)  # a socket closed before it would not be counted
                    made.disable_monitor()
                with contextlib.suppress(zmq.Again):  # it may have been refused already
                    made.send(codec().encode_hello(), zmq.NOBLOCK)
                wrong_keys.append(made)
                continue
            peer = socket.create_connection((host, int(port)), timeout=5)
            with contextlib.suppress(ConnectionError):  # it may have had enough already
                peer.sendall(hostile_bytes(chance))
            if number % 10 == 0:
                waiting_ones.append(peer)  # says no more, and stays
            else:
                peer.close()
        for made in wrong_keys:
            made.close(linger=0)
        for peer in waiting_ones:
            has_hung_up(peer)
            peer.close()
        waiting.until(
            lambda: job.refused() >= CONNECTIONS, within_s=20, what="strangers to be counted"
        )
        fed.is_over.set()
        reports = [slot.join() for slot in job.slots]
        assert [(report.state, report.error) for report in reports] == [("done", None)] * 2
        assert reports[1].refused_peers == CONNECTIONS
        with pa.ipc.open_stream(job.slots[1].collected("out")) as stream:
            numbers = stream.read_all()["n"].to_numpy()
        assert len(numbers) >= 100
        np.testing.assert_array_equal(numbers, np.arange(len(numbers)))
        assert reports[1].channels[0].rows_received == len(numbers)
    finally:
        job.close()
        context.destroy(linger=0)
    told = capfd.readouterr().err
    assert 1 <= told.count("refused a connection from 127.0.0.1 ") <= 1
    assert KEYS.sender_public.decode() not in told


def test_shouting_strangers_cost_little_memory_and_do_not_keep_the_sender_out(link: Link) -> None:
    receiver = link.receiver()
    with shouting(receiver.endpoint, longest=PIECE_BYTES) as (strangers, grown):
        assert grown < 64 * 2**20
        assert receiver.refused_peers >= CALLS - MOST_BYTES // PIECE_BYTES
        sender: Any = link.sender(receiver)
        until(lambda: receiver.receive(0) == [] and receiver.is_connected, [receiver])
        sender.send(message(1), 0)
        assert speeds(receive(receiver, 1)) == [1]
        # It has its sender: whoever waits is hung up on, and who comes now as well.
        strangers.communicate(b"call again\n", timeout=20)
        assert strangers.returncode == 0
    until(lambda: receiver.refused_peers == 2 * CALLS, [receiver])


def test_a_frame_of_many_pieces_is_whole_between_hosts(link: Link) -> None:
    receiver = link.receiver()
    sender: Any = link.sender(receiver)
    for rows in (1, 250_000, PIECE_BYTES // 24 - 2, 400_000, 2):
        sender.send(message(0, rows), 0)
        (got,) = receive(receiver, 1)
        assert speeds([got]) == list(range(rows))


def test_two_strangers_who_were_there_before_the_peer_are_told_apart_from_it(link: Link) -> None:
    receiver = link.receiver()
    host, _, port = receiver.endpoint.removeprefix("tcp://").rpartition(":")
    with (
        socket.create_connection((host, int(port))) as one,
        socket.create_connection((host, int(port))) as two,
    ):
        sender: Any = link.sender(receiver)
        until(lambda: has_hung_up(one) and has_hung_up(two), [receiver])
        until(lambda: receiver.receive(0) == [] and receiver.is_connected, [receiver])
        until(lambda: receiver.refused_peers == 2, [receiver])
        sender.send(message(1), 0)
        assert speeds(receive(receiver, 1)) == [1]
        sender.close(linger_s=0)
        until(lambda: receiver.receive(0) == [] and is_lost(receiver), [receiver])
        assert receiver.refused_peers == 2
