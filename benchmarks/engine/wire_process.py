"""One end of a wire in a process of its own: it sends, or receives, as a slot does or barely.

```
parent ──("send" or "receive", …)──▶ child: its end      a message each 250 µs ──▶ the other child
       ◀─────────────── answer ─────
```
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import zmq

from benchmarks.engine.child import Child
from benchmarks.engine.live import name_thread
from benchmarks.frame import check
from slackwater.actors.wire import local_sockets
from slackwater.actors.wire.channel import ChannelKeys, ChannelPoller, Receiver, Sender, Waker
from slackwater.actors.wire.frames import FrameCodec
from slackwater.actors.wire.keys import guard_local_receiver
from slackwater.actors.wire.waiting import sharpen_timers
from slackwater.runtime.model import START_NS, Batch, Columns, Message, Progress

__all__ = ["EVERY_NS", "LOOP", "Told", "WireProcess"]

EVERY_NS = 250_000
"""From one message to the next: about what a source sends at 10,000 events a second."""
GRANT_EVERY = 64
"""Messages: a slot grants an eighth of its credit at once."""
SCHEMA = pa.schema(  # of hop, too
    [(name, pa.int32()) for name in ("area", "delay_s", "vehicle", "line")]
    + [("speed", pa.float32())]
)
LOOP = "wire-loop"
LOST_S = 10.0
NAP_S = 0.001  # as a slot that has work


class Told(NamedTuple):
    """What an end says of a turn.

    Attributes:
        cpu_ns: of the thread that sent or received, by its own clock.
        times_ns: (messages,), when each was handed over or had been read, by the host's clock.
    """

    cpu_ns: int
    times_ns: np.ndarray[Any, np.dtype[np.int64]]


class WireProcess(Child):
    """The parent's end of one process; what is called is a method of `_Ends`."""

    def __init__(self, keys: ChannelKeys) -> None:
        super().__init__(_Ends, keys, within_s=6 * LOST_S)


class _Ends:
    """What one process has of the wires: an end of ours and a bare socket, by transport."""

    def __init__(self, keys: ChannelKeys) -> None:
        name_thread(LOOP)
        self._keys = keys
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._ours: dict[str, Receiver | Sender] = {}
        self._bare: dict[str, zmq.Socket[bytes]] = {}
        self._waker = Waker()
        gc.collect()
        gc.freeze()  # as a slot does

    def bind(self, transport: str, *, is_local: bool) -> tuple[str, str]:
        """Listen with an end of ours and with a bare socket; return where."""
        receiver = Receiver(
            keys=self._keys, codec=_codec(), context=self._context, is_local=is_local
        )
        self._ours[transport] = receiver
        check(
            receiver.endpoint.startswith(local_sockets.SCHEME) == is_local,
            f"the temp folder takes no Unix socket: {receiver.endpoint}",
        )
        bare = self._bare[transport] = _plain(self._context)
        if is_local:
            path = local_sockets.private_path()
            check(path is not None, "the temp folder takes no Unix socket")
            guard_local_receiver(bare)
            bare.bind(f"{local_sockets.SCHEME}{path}")
        else:
            self._keys.guard_receiver(bare)
            bare.bind("tcp://127.0.0.1:0")
        return receiver.endpoint, bare.getsockopt_string(zmq.LAST_ENDPOINT)

    def connect(self, transport: str, endpoints: tuple[str, str]) -> None:
        """Connect to both."""
        ours, bare = endpoints
        self._ours[transport] = Sender(ours, keys=self._keys, codec=_codec(), context=self._context)
        socket = self._bare[transport] = _plain(self._context)
        if not bare.startswith(local_sockets.SCHEME):
            self._keys.guard_sender(socket)
        socket.connect(bare)

    def settle(self) -> None:
        """All is connected: leave nothing in the temp folder, and sharpen this thread's timers.

        Not before: libzmq's threads would have timers as sharp, which no slot's have.
        """
        sharpen_timers()
        for socket in self._bare.values():
            where = socket.getsockopt_string(zmq.LAST_ENDPOINT)
            if where.startswith(local_sockets.SCHEME):
                local_sockets.remove(where.removeprefix(local_sockets.SCHEME))

    def send_ours(self, transport: str, rows: int, count: int, start_ns: int) -> Told:
        """Send as a slot: wait for channels until a message is due, look, send."""
        sender = self._ours[transport]
        assert isinstance(sender, Sender)
        poller = ChannelPoller({"out": sender}, waker=self._waker)
        batch = _batch(rows) if rows else None
        message = Message(batch, Progress.after(batch, START_NS))
        granted = 0

        def send() -> None:
            nonlocal granted
            for _ in poller.ready():
                granted += sum(sender.poll())
            sender.send(message, time.time_ns())

        def rest(ns: int) -> None:
            poller.wait(min(ns / 1e9, NAP_S))

        told = _paced(count, start_ns, rest, send)
        deadline_s = time.monotonic() + LOST_S
        while granted < count // GRANT_EVERY and time.monotonic() < deadline_s:
            poller.wait(NAP_S)
            for _ in poller.ready():
                granted += sum(sender.poll())
        check(granted == count // GRANT_EVERY, "grants got lost")
        return told

    def receive_ours(self, transport: str, rows: int, count: int) -> Told:
        """Receive as a slot: wait for channels, read what is there, grant now and then."""
        receiver = self._ours[transport]
        assert isinstance(receiver, Receiver)
        poller = ChannelPoller({"in": receiver}, waker=self._waker)
        times: list[int] = []
        got = 0
        lost_s = time.monotonic() + LOST_S + count * EVERY_NS / 1e9
        began_ns = time.thread_time_ns()
        while len(times) < count and time.monotonic() < lost_s:
            poller.wait(NAP_S if times else LOST_S)
            for _ in poller.ready():
                for message, _sent_ns in receiver.receive(time.time_ns()):
                    times.append(time.perf_counter_ns())
                    got += message.rows
                    if len(times) % GRANT_EVERY == 0:
                        receiver.grant(1)
        cpu_ns = time.thread_time_ns() - began_ns
        check(receiver.refused == 0, f"a frame was refused: {receiver.last_refusal}")
        check(len(times) == count and got == rows * count, "messages got lost")
        return Told(cpu_ns, np.array(times))

    def send_bare(self, transport: str, rows: int, count: int, start_ns: int) -> Told:
        """Send the bytes of a frame of so many rows, again and again; nothing comes back."""
        socket = self._bare[transport]
        batch = _batch(rows) if rows else None
        message = Message(batch, Progress.after(batch, START_NS))
        frame = _codec().encode(message, sent_at_ns=0)
        return _paced(
            count,
            start_ns,
            lambda ns: time.sleep(ns / 1e9),
            lambda: socket.send(frame, zmq.NOBLOCK.value),
        )

    def receive_bare(self, transport: str, rows: int, count: int) -> Told:
        """Receive them, each by a `recv` that waits."""
        socket = self._bare[transport]
        socket.rcvtimeo = round(LOST_S * 1_000)
        times = []
        size = 0
        began_ns = time.thread_time_ns()
        for _ in range(count):
            size += len(socket.recv())
            times.append(time.perf_counter_ns())
        cpu_ns = time.thread_time_ns() - began_ns
        batch = _batch(rows) if rows else None
        message = Message(batch, Progress.after(batch, START_NS))
        check(size == count * len(_codec().encode(message, sent_at_ns=0)), "bytes got lost")
        return Told(cpu_ns, np.array(times))


def _paced(
    count: int, start_ns: int, rest: Callable[[int], None], send: Callable[[], object]
) -> Told:
    """Send so many messages, each when it is due; the thread's CPU has the waiting in it."""
    times = []
    began_ns = time.thread_time_ns()
    for due_ns in range(start_ns, start_ns + count * EVERY_NS, EVERY_NS):
        while (left_ns := due_ns - time.perf_counter_ns()) > 0:
            rest(left_ns)
        times.append(time.perf_counter_ns())
        send()
    return Told(time.thread_time_ns() - began_ns, np.array(times))


def _batch(rows: int) -> Batch:
    times = np.arange(rows, dtype=np.int64)
    columns: Columns = {field.name: times.astype(field.type.to_pandas_dtype()) for field in SCHEMA}
    return Batch(event_time_ns=times, stimulus_time_ns=times, columns=columns)


def _codec() -> FrameCodec:
    return FrameCodec(SCHEMA, columns=SCHEMA.names)


def _plain(context: zmq.Context[zmq.Socket[bytes]]) -> zmq.Socket[bytes]:
    socket = context.socket(zmq.PAIR)
    socket.sndhwm = socket.rcvhwm = 0
    socket.linger = 0
    return socket
