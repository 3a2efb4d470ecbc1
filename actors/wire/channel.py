"""The two ends of a channel: one edge of the plan, one ZeroMQ connection.

```
Sender ── hello, data, data, … ──▶ Receiver        hello: these are my columns
       ◀── hello, grant, grant, … ──               grant: so many rows may follow
```

Nothing here blocks but the connecting on one host, for less than a millisecond; each end is
used from one thread.

*Transports*: between two hosts TCP with CURVE, which encrypts and lets in nobody without the
job's keys. On one host a Unix socket in the clear, in a folder that the kernel keeps for our
own user (`actors/wire/local_sockets.py`). The receiver chooses, and its endpoint says which: there
is no TCP in the clear. All else is the same on both.

*Sockets*: PAIR, because a channel has exactly one peer: no envelope as with ROUTER, which
drops what it cannot route, and no sharing out among several peers as with DEALER. PAIR's
known fault, that a reconnecting peer can be turned away while its old connection dies, does
not arise: a connection is never made again. What was under way when it broke cannot be
known, so a broken connection is a lost peer, and the job fails by name. A receiver admits
one sender of its job in its life (`actors/wire/keys.py`).

*Before the key*: libzmq takes in as much of a connection that has not shown the job's key as one
message may be long. So a long frame goes over TCP in pieces of 512 KiB, few connections may
be waiting at a time, and once the sender is there all others are hung up on at once
(`actors/wire/refused_peers.py`). The socket goes on listening until its sender leaves, though
nobody else will ever be let in: a sender that was lost does not come back, the job fails. But
libzmq (4.3.5) has no word for "listen no more": `unbind` ends the connections that were accepted,
too. What the sender sends from then on does not arrive, and neither end is told. And a listening
socket that is closed, or shut down, behind libzmq's back ends the process.

*Memory*: high-water marks are off (0), since at a mark a socket drops or blocks. Credit
bounds what is under way: a stage sends only rows that it has been granted.

*The end*: the receiver answers the end of the stream with a last grant and sends nothing
more; then the sender `is_settled`, and may close. One that closes before can lose frames,
however long it lingers: whatever the receiver still sends to it costs what it had not yet
delivered (24 MB under way: 3 to 9 of 102 frames in each of 4 runs, none in 4 runs with a
silent receiver). The receiver then sees a lost peer.
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
from slackwater.actors.wire.waiting import ChannelPoller, Waker, wait
from slackwater.runtime.errors import ClusterError, FrameError, WorkerDied
from slackwater.runtime.model import START_NS, Message

__all__ = ["ChannelKeys", "ChannelPoller", "Receiver", "Sender", "Waker", "wait"]

CONNECT_MS = 10_000
"""How long to wait for libzmq's thread to connect on one host; it takes less than 1 ms."""
_NEVER_MS = 86_400_000
"""A day until a broken connection is tried again, which its receiver would refuse. libzmq's
own ways to say never left `Context.term` hanging (4.3.5): RECONNECT_IVL -1 after a handshake
that failed, RECONNECT_STOP after a connection that was refused."""


class Sender(End):
    """The end that sends messages and is granted credit.

    Args:
        endpoint: the receiver's; it must be listening by now.
        keys: the job's. A Unix socket needs none.
        codec: of its own, with the receiver's columns.
        context: the process's; `term()` it after the last `close`, or what is unsent is lost.
        heartbeat_timeout_s: a peer silent for so long is lost.

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
        self._promise = (START_NS, START_NS)  # the last one sent, and its stimulus
        self._is_settled = False
        is_local = endpoint.startswith(local_sockets.SCHEME)
        if not is_local:
            self._use_pieces()
            keys.guard_sender(self._socket)
        self._socket.setsockopt(zmq.RECONNECT_IVL, _NEVER_MS)
        losses = zmq.EVENT_DISCONNECTED | zmq.EVENT_CLOSED  # it broke; it was never made
        events = losses | zmq.EVENT_CONNECTED if is_local else losses
        self._losses = self._socket.get_monitor_socket(events)
        try:
            self._socket.connect(endpoint)
        except zmq.ZMQError as problem:
            self.close(linger_s=0)
            raise ClusterError(
                f"cannot connect a channel to {endpoint!r}: {problem}; give the receiver's "
                "endpoint, tcp://host:port or ipc://path"
            ) from problem
        if is_local:
            self._is_lost = not self._has_connected()
            if not self._is_lost:
                local_sockets.remove(endpoint.removeprefix(local_sockets.SCHEME))
        self._put(codec.encode_hello())

    @property
    def is_settled(self) -> bool:
        """Whether the receiver has everything, the end of the stream included."""
        return self._is_settled

    @property
    def is_peer_lost(self) -> bool:
        """Whether the receiver is gone, or refused us, before the stream was at its end.

        To be asked now and then: a loss does not end a `wait`.
        """
        if not (self._is_lost or self._is_settled or self._is_closed):
            self._is_lost = bool(self._losses.poll(0))
        return self._is_lost and not self._is_settled

    def close(self, *, linger_s: float = LINGER_S) -> None:
        """Close this end: once it `is_settled`, or when the job has failed; see `End.close`."""
        if not self._is_closed:
            self._socket.disable_monitor()
            self._losses.close(linger=0)
        super().close(linger_s=linger_s)

    def send(self, message: Message, now_ns: int) -> None:
        """Send a message; one that is too long for a frame goes in pieces, in order.

        Raises:
            WorkerDied: the receiver is lost, and `is_peer_lost` has said so.
            FrameError: the batch is not of the channel's columns, the receiver has other
                columns, or one row alone is too long.
        """
        if self.last_refusal is not None and not self._is_connected:
            raise FrameError(f"channel to {self.endpoint}: {self.last_refusal}")
        try:
            frame = self._codec.encode(message, sent_at_ns=now_ns)
        except FrameTooLongError:
            if message.batch is None or message.rows < 2:
                raise
            for half in message.split(message.rows // 2, self._promise):
                self.send(half, now_ns)
            return
        self._is_lost = self._is_lost or not self._put(frame)
        if self._is_lost:
            raise WorkerDied(
                f"channel to {self.endpoint}: the receiver is gone, so {message.rows} rows "
                "cannot be sent; see the log of the worker there, and run the job again"
            )
        self._promise = (message.promise_ns, message.promise_stimulus_ns)
        self.messages += 1
        self.rows += message.rows
        self.bytes += len(frame)

    def poll(self) -> list[int]:
        """Return credit that has come: rows of each grant, in order."""
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

    def _has_connected(self) -> bool:
        """Wait for the one event that connecting on one host ends with."""
        if not self._losses.poll(CONNECT_MS):
            return False
        event: int = recv_monitor_message(self._losses)["event"]
        return event == zmq.EVENT_CONNECTED


class Receiver(End):
    """The end that listens, receives messages and grants credit.

    Args:
        keys: the job's.
        codec: of its own, with the sender's columns.
        context: the process's; `term()` it after the last `close`.
        bind_host: this node's address, as the sender can reach it; a free port is taken.
        is_local: the sender runs on this host (`local_sockets.host_identity`): a Unix socket
            then, unless the temp folder takes none.
        heartbeat_timeout_s: a peer silent for so long is lost.

    Attributes:
        endpoint: what the sender connects to, `tcp://host:port` or `ipc://path`.
        link_ns: time on the way summed over messages, by two clocks on two hosts.
        least_link_ns: that of the quickest message; None before the first.

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
        if not (is_local and self._has_bound_locally()):
            self._bind_tcp(keys, bind_host)
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)

    @property
    def refused_peers(self) -> int:
        """Connections refused so far, over TCP: not the job's sender."""
        return 0 if self._refused_peers is None else self._refused_peers.refused

    @property
    def has_ended(self) -> bool:
        """Whether the end of the stream has been received."""
        return self._has_ended

    @property
    def is_peer_lost(self) -> bool:
        """Whether the sender is gone before the end of its stream, all it sent being read.

        To be asked now and then: a loss may not end a `wait`.
        """
        if self._has_greeted and not (self._has_ended or self._is_closed):
            # Without a high-water mark, a socket that has a peer can always be written to.
            self._is_lost = self._is_lost or not self._can_do()
        return self._is_lost and not self._has_ended

    def receive(self, now_ns: int, *, max_messages: int = AT_ONCE) -> list[tuple[Message, int]]:
        """Return messages that have arrived, in order, each with when it was sent (ns).

        Frames that are malformed or out of turn are refused, counted and named in
        `last_refusal`; the channel goes on.

        Args:
            now_ns: wall clock, for `link_ns`.
            max_messages: look at no more frames than this, >= 1; the rest waits.
        """
        received = []
        for frame in self._read(max_messages):
            try:
                delivered = self._accept(frame)
            except FrameError as problem:
                self._refuse(problem)
                continue
            if delivered is not None:
                message, sent_at_ns = delivered
                self.messages += 1
                self.rows += message.rows
                self.bytes += len(frame)
                # What came after its clock was read was sent after that, too; and no way takes
                # less than no time, however far two clocks are apart.
                took_ns = max(now_ns - sent_at_ns, 0)
                self.link_ns += took_ns
                if self.least_link_ns is None or took_ns < self.least_link_ns:
                    self.least_link_ns = took_ns
                received.append(delivered)
        return received

    def grant(self, rows: int) -> None:
        """Let the sender send so many rows more, at least 1. After the end: nothing to do."""
        if not self._has_ended:
            self._put(self._codec.encode_grant(GrantFrame(rows, is_final=False)))

    def close(self, *, linger_s: float = LINGER_S) -> None:
        """Close this end; see `End.close`."""
        self.unlink()
        if self._refused_peers is not None and not self._is_closed:
            self._refused_peers.close()
        super().close(linger_s=linger_s)

    def unlink(self) -> None:
        """Take a Unix socket out of the temp folder: who has not connected by now cannot.

        The sender does it when it has connected, and a process that ends does it for itself;
        this is for a receiver whose sender may never come. From any thread, any number of times.
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
            # Before theirs is checked, so that both ends can name what differs.
            self._put(self._codec.encode_hello())
            self._has_greeted = True
        if not self._is_connected:
            self._codec.check_hello(frame)
            self._is_connected = True
            return None
        if self._has_ended:
            raise FrameError("a frame came behind the end of its stream")
        delivered = self._codec.decode(frame)
        if delivered[0].is_end:
            self._has_ended = True
            self._put(self._codec.encode_grant(GrantFrame(0, is_final=True)))
        return delivered
