"""Both ends of channels in one process, for the tests beside."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import zmq
from zmq.utils.monitor import recv_monitor_message

from slackwater.actors.wire.channel import ChannelKeys, Receiver, Sender, wait
from slackwater.actors.wire.frames import FrameCodec
from slackwater.runtime.model import END_NS, Message, batch_of
from tests.support.told import message_of

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = pa.schema([("speed", pa.int64())])
KEYS = ChannelKeys.generate()
PATIENCE_S = 30.0


def codec(schema: pa.Schema = SCHEMA, **settings: Any) -> FrameCodec:
    return FrameCodec(schema, columns=schema.names, **settings)


def message(first: int, rows: int = 1) -> Message:
    times = np.arange(first, first + rows)
    return message_of(batch_of(times, {"speed": times}), first, first)


END = message_of(None, END_NS, 0)


class Link:
    """Both ends of channels, in one context, closed at the end of the test.

    Args:
        is_local: over Unix sockets, as on one host; else over TCP, as between hosts.
    """

    def __init__(self, *, is_local: bool) -> None:
        self._is_local = is_local
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._ends: list[Any] = []

    def receiver(self, **settings: Any) -> Receiver:
        usual = {"keys": KEYS, "codec": codec(), "is_local": self._is_local}
        made = Receiver(context=self.context, **{**usual, **settings})
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
        if keys is not None and not self._is_local:
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


def until(condition: Callable[[], bool], ends: Sequence[Any]) -> None:
    """Wait until the condition holds; the ends' descriptors say when to look again."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, f"waited {PATIENCE_S} s in vain"
        wait(ends, 0.02)


def is_lost(end: Any) -> bool:
    """Look at the peer of an end; return whether it is lost."""
    end.look_at_peer()
    return bool(end.is_peer_lost)


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
