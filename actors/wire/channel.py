"""Connect the two ends of a channel: one edge of the plan, one ZeroMQ connection.

```
Sender ── hello, data, mark, … ──▶ Receiver        hello: my columns; mark: of a checkpoint
       ◀── hello, grant, grant, … ──               grant: how many rows may follow
```

Nothing blocks except connecting on one host, for less than a millisecond. Each end is used from one
thread.

*Transports*: between two hosts TCP with CURVE, which encrypts, and admits only holders of the job's
keys. On one host a Unix socket in the clear, in a folder that the kernel reserves for our user
(`actors/wire/local_sockets.py`); long frames go through shared memory beside it
(`actors/wire/shared_memory.py`). The receiver chooses, and its endpoint names its choice; TCP is
never in the clear. The rest is the same on both.

*Sockets*: PAIR, because a channel has exactly one peer. ROUTER would need an envelope and drop what
it cannot route; DEALER would share frames out among several peers. PAIR has a known fault: it can
turn a reconnecting peer away while the old connection dies. That cannot happen here, since no end
reconnects. The frames under way when a connection breaks cannot be known, so a broken connection is
a lost peer, and the job fails by name. A receiver admits one sender of its job in its life
(`actors/wire/keys.py`).

*Before the key*: of a connection that has not shown the job's key, libzmq buffers up to one
message. So a long frame travels over TCP in pieces of 512 KiB, and few connections may wait at a
time. Once the sender is there, all others are hung up on at once (`actors/wire/refused_peers.py`).
The socket listens until its sender leaves, though it admits no other: a lost sender does not
return, and the job fails. libzmq (4.3.5) cannot stop listening alone: `unbind` also ends the
accepted connections. What the sender sends from then on does not arrive, and neither end is told.
Closing or shutting down the listening socket without libzmq's knowledge ends the process.

*Memory*: high-water marks are off (0), since at a mark a socket drops or blocks. Credit bounds the
rows under way: a stage sends only rows that it has been granted.

*The end*: the receiver answers the end of the stream with a last grant and sends nothing more; then
the sender `is_settled`, and may close. A sender that closes earlier can lose frames, however long
it lingers: each frame that the receiver still sends costs undelivered ones. With 24 MB under way,
each of 4 runs lost 3 to 9 of 102 frames; 4 runs with a silent receiver lost none. The receiver then
sees a lost peer.
"""

from __future__ import annotations

import weakref

import zmq
from zmq.utils.monitor import recv_monitor_message

from slackwater.actors.wire import local_sockets
from slackwater.actors.wire.channel_end import AT_ONCE, HEARTBEAT_TIMEOUT_S, LINGER_S, Context, End
from slackwater.actors.wire.frames import FrameCodec, FrameTooLongError, GrantFrame
from slackwater.actors.wire.keys import ChannelKeys, guard_local_receiver
from slackwater.actors.wire.listening import listen
from slackwater.actors.wire.refused_peers import RefusedPeers
from slackwater.actors.wire.shared_memory import LEAST_BYTES, SharedIn, SharedOut
from slackwater.actors.wire.waiting import ChannelPoller, Waker, wait
from slackwater.runtime.errors import ClusterError, FrameError, WorkerDied
from slackwater.runtime.model import NO_PROGRESS, Mark, Message

__all__ = ["ChannelKeys", "ChannelPoller", "Receiver", "Sender", "Waker", "wait"]

CONNECT_S = 10.0
"""Wait for libzmq's thread to connect on one host, at most; it takes less than 1 ms."""
_NEVER_MS = 86_400_000
"""A day until libzmq retries a broken connection, which the receiver would refuse. libzmq's own
settings for "never" left `Context.term` hanging (4.3.5): RECONNECT_IVL -1 after a handshake that
failed, RECONNECT_STOP after a connection that was refused."""


class Sender(End):
    """The channel's end that sends messages and is granted credit.

    Args:
        endpoint: endpoint of the receiver, which must listen by now.
        keys: keys of the job. A Unix socket needs none.
        codec: codec of this end alone, with the receiver's columns.
        context: context of the process; `term()` it after the last `close`, or unsent frames are
            lost.
        heartbeat_timeout_s: a peer that is silent for longer is lost.

    Raises:
        ClusterError: no such endpoint.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        keys: ChannelKeys,
        codec: FrameCodec,
        context: Context,
        heartbeat_timeout_s: float = HEARTBEAT_TIMEOUT_S,
    ) -> None:
        super().__init__(codec, context, heartbeat_timeout_s)
        self.endpoint = endpoint
        self._last_sent = NO_PROGRESS  # by the last message sent
        self._is_settled = False
        self._shared: SharedOut | None = None
        is_local = endpoint.startswith(local_sockets.SCHEME)
        if not is_local:
            self._use_pieces()
            keys.guard_sender(self._socket)
        self._socket.setsockopt(zmq.RECONNECT_IVL, _NEVER_MS)
        within_ms = max(1, round(heartbeat_timeout_s * 1_000))
        self._socket.setsockopt(zmq.CONNECT_TIMEOUT, within_ms)  # heartbeats begin after both
        self._socket.setsockopt(zmq.HANDSHAKE_IVL, within_ms)
        losses = zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED  # broken; never made
        self._events = self._socket.get_monitor_socket(losses | zmq.EVENT_CONNECTED)
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as problem:
            self.close(linger_s=0)
            raise ClusterError(
                f"channel cannot connect to {endpoint!r}: {problem}; give the receiver's "
                "endpoint, tcp://host:port or ipc://path"
            ) from problem
        if is_local:
            self._is_lost = not self.has_connected(CONNECT_S) or self._is_lost
            if not self._is_lost:
                path = endpoint.removeprefix(local_sockets.SCHEME)
                self._shared = SharedOut.at(local_sockets.memory_link(path))
                local_sockets.remove(path)
        self._put(codec.encode_hello())

    @property
    def is_settled(self) -> bool:
        """Whether the receiver has all frames, the end of the stream included."""
        return self._is_settled

    @property
    def is_peer_lost(self) -> bool:
        """Whether the receiver was gone, or had refused us, before the stream's end.

        As of the last `look_at_peer`, or `send`.
        """
        return self._is_lost and not self._is_settled

    def look_at_peer(self) -> None:
        """Note whether the receiver is gone.

        Call it regularly: a loss does not end a `wait`.
        """
        if not (self._is_lost or self._is_settled or self._is_closed):
            while not self._is_lost and self._events.poll(0):
                self._is_lost = self._event() != zmq.EVENT_CONNECTED

    def has_connected(self, within_s: float) -> bool:
        """Wait for the connection; return whether it was made, or refused.

        Args:
            within_s: longest wait, in seconds. A connection that is not made by then may come
                later: a packet that a cut link has lost is sent again after a second.
        """
        if not self._events.poll(round(within_s * 1_000)):
            return False
        self._is_lost = self._event() != zmq.EVENT_CONNECTED
        return True

    def _event(self) -> int:
        event: int = recv_monitor_message(self._events)["event"]
        return event

    def close(self, *, linger_s: float = LINGER_S) -> None:
        """Close this end: when it `is_settled`, or the job has failed; see `End.close`."""
        if not self._is_closed:
            self._socket.disable_monitor()
            self._events.close(linger=0)
            if self._shared is not None:
                self._shared.close()
        super().close(linger_s=linger_s)

    def send(self, message: Message, now_ns: int) -> None:
        """Send a message; one too long for a frame travels in several.

        Raises:
            WorkerDied: the receiver is lost, and `is_peer_lost` has said so.
            FrameError: the batch has not the channel's columns, the receiver has other
                columns, or one row alone is too long.
        """
        if self.last_refusal is not None and not self._is_connected:
            raise FrameError(f"channel to {self.endpoint}: {self.last_refusal}")
        try:
            parts, size = self._codec.encode_parts(message, sent_at_ns=now_ns)
        except FrameTooLongError:
            if message.batch is None or message.rows < 2:
                raise
            for half in message.split(message.rows // 2, self._last_sent):
                self.send(half, now_ns)
            return
        frame = None
        if size >= LEAST_BYTES and self._shared is not None:
            frame = self._shared.put(parts, size)
        if frame is None:
            frame = b"".join(parts)
        self._is_lost = self._is_lost or not self._put(frame)
        if self._is_lost:
            raise WorkerDied(
                f"channel to {self.endpoint}: the receiver is gone, so {message.rows} rows "
                "cannot be sent; see the log of the worker there, and run the job again"
            )
        self._last_sent = message.progress.with_arrived(None)
        self.messages += 1
        self.rows += message.rows
        self.bytes += size

    def mark(self, mark: Mark) -> None:
        """Send a mark after what was sent; a stream that has ended needs none.

        A receiver that is gone does not get it, and `is_peer_lost` says so.
        """
        if not (self._last_sent.is_end or self._is_settled):
            self._is_lost = self._is_lost or not self._put(self._codec.encode_mark(mark))

    def had_ended(self) -> None:
        """Take note that the receiver had the end before this channel began."""
        self._is_settled = True

    def poll(self) -> list[int]:
        """Return granted credit: rows of each grant, in order."""
        granted = []
        for frame in self._read(AT_ONCE):
            try:
                if self._is_connected:
                    grant = self._codec.decode_grant(frame)
                    self._is_settled = self._is_settled or grant.is_final
                    if grant.rows:
                        granted.append(grant.rows)
                else:
                    self._codec.check_hello(frame)
                    self._is_connected = True
            except FrameError as problem:
                self._refuse(problem)
        return granted


class Receiver(End):
    """The channel's end that listens, receives messages and grants credit.

    Args:
        keys: keys of the job.
        codec: codec of this end alone, with the sender's columns.
        context: context of the process; `term()` it after the last `close`.
        bind_host: this node's address, as the sender can reach it; it listens on a free port.
        is_local: the sender runs on this host (`local_sockets.host_identity`): a Unix socket
            then, unless the temp folder takes none.
        heartbeat_timeout_s: a peer that is silent for longer is lost.

    Attributes:
        endpoint: address for the sender, `tcp://host:port` or `ipc://path`.
        link_ns: time on the way, summed over messages; by two clocks on two hosts.
        least_link_ns: time on the way of the quickest message; None if none came yet.

    Raises:
        ClusterError: the address is not one of this node.
    """

    def __init__(
        self,
        *,
        keys: ChannelKeys,
        codec: FrameCodec,
        context: Context,
        bind_host: str = "127.0.0.1",
        is_local: bool = False,
        heartbeat_timeout_s: float = HEARTBEAT_TIMEOUT_S,
    ) -> None:
        super().__init__(codec, context, heartbeat_timeout_s)
        self.link_ns = 0
        self.least_link_ns: int | None = None
        self._has_greeted = False
        self._has_ended = False
        self._unlink: weakref.finalize[..., Receiver] | None = None
        self._refused_peers: RefusedPeers | None = None
        self._shared: SharedIn | None = None
        if not (is_local and self._has_bound_locally()):
            self._bind_tcp(keys, bind_host)
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)

    @property
    def refused_peers(self) -> int:
        """Connections refused so far over TCP: none was the job's sender."""
        return 0 if self._refused_peers is None else self._refused_peers.refused

    @property
    def has_ended(self) -> bool:
        """Whether the end of the stream has been received."""
        return self._has_ended

    def had_ended(self) -> None:
        """Take note that the end had been received before this channel began."""
        self._has_ended = True

    @property
    def is_peer_lost(self) -> bool:
        """Whether the sender was gone before its end of stream, all frames read.

        As of the last `look_at_peer`.
        """
        return self._is_lost and not self._has_ended

    def look_at_peer(self) -> None:
        """Note whether the sender is gone.

        Call it regularly: a loss may not end a `wait`.
        """
        if self._has_greeted and not (self._has_ended or self._is_closed):
            # Without a high-water mark, a socket with a peer can always be written to.
            self._is_lost = self._is_lost or not self._can_do()

    def receive(
        self, now_ns: int, *, max_messages: int = AT_ONCE
    ) -> list[tuple[Message | Mark, int]]:
        """Return the messages and marks that have arrived, in order.

        Each has its time of sending (ns); that of a mark is 0.

        Frames that are malformed or out of turn are refused, counted and named in
        `last_refusal`; the channel goes on.

        Args:
            now_ns: wall clock now, for `link_ns`.
            max_messages: most frames to read, >= 1; the rest waits.
        """
        received: list[tuple[Message | Mark, int]] = []
        shared = self._shared
        for came in self._read(max_messages):
            try:
                frame = came if shared is None else shared.frame(came)
                if self._is_connected and self._codec.is_mark(frame):
                    received.append((self._codec.decode_mark(frame), 0))
                    continue
                delivered = self._accept(frame)
            except FrameError as problem:
                self._refuse(problem)
                continue
            if delivered is not None:
                message, sent_at_ns = delivered
                self.messages += 1
                self.rows += message.rows
                self.bytes += len(frame)
                # A frame is sent before it arrives, so a negative time only says that two clocks
                # differ.
                took_ns = max(now_ns - sent_at_ns, 0)
                self.link_ns += took_ns
                if self.least_link_ns is None or took_ns < self.least_link_ns:
                    self.least_link_ns = took_ns
                received.append(delivered)
        return received

    def grant(self, rows: int) -> None:
        """Grant the sender this many rows more, >= 1; no effect after the end."""
        if not self._has_ended:
            self._put(self._codec.encode_grant(GrantFrame(rows, is_final=False)))

    def close(self, *, linger_s: float = LINGER_S) -> None:
        """Close this end; see `End.close`."""
        self.unlink()
        if self._refused_peers is not None and not self._is_closed:
            self._refused_peers.close()
        if self._shared is not None:
            self._shared.close()
        super().close(linger_s=linger_s)

    def unlink(self) -> None:
        """Remove a Unix socket from the temp folder: no process can connect from now on.

        A sender removes it once connected, and a process that exits removes its own. This call is
        for a receiver whose sender may never arrive. Call it from any thread, any number of times.
        """
        if self._unlink is not None:
            self._unlink()

    def _has_bound_locally(self) -> bool:
        path = local_sockets.private_path()
        if path is None:
            return False
        self._unlink = weakref.finalize(self, local_sockets.remove, path)
        guard_local_receiver(self._socket)
        try:
            self._socket.bind(local_sockets.SCHEME + path)
        except zmq.ZMQError:  # a file system that has no sockets
            self._unlink()
            return False
        self._shared = SharedIn.made(local_sockets.memory_link(path))
        return True

    def _bind_tcp(self, keys: ChannelKeys, bind_host: str) -> None:
        self._use_pieces()
        keys.guard_receiver(self._socket)
        try:
            self._refused_peers = listen(self._socket, bind_host, what="listen", peers=1)
        except ClusterError:
            self.close(linger_s=0)
            raise

    def _accept(self, frame: bytes) -> tuple[Message, int] | None:
        if not self._has_greeted:
            # Before the sender's is checked, so that both ends can name what differs.
            self._put(self._codec.encode_hello())
            self._has_greeted = True
            if self._shared is not None:
                self._shared.is_linked()
        if not self._is_connected:
            self._codec.check_hello(frame)
            self._is_connected = True
            return None
        if self._has_ended:
            raise FrameError("a frame came after the end of its stream")
        delivered = self._codec.decode(frame)
        if delivered[0].progress.is_end:
            self._has_ended = True
            self._put(self._codec.encode_grant(GrantFrame(0, is_final=True)))
        return delivered
