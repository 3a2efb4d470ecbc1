"""Frame messages between Spark and a source: a header and an Arrow body, over CURVE.

A frame is `[header, piece, …]`; the pieces together are its body. Each has 64 KiB at most: a
connection that has not shown the key can make us hold one piece, and few such connections may wait
(`PeerGuard`). The header has its kind, its task and epoch, and the length of the body. Bodies
of rows are Arrow record batches, other bodies UTF-8 text. Nothing that arrives is ever unpickled,
and nothing longer than announced is read.

| kind | from → to | body |
| --- | --- | --- |
| HELLO | reader → feeder | the endpoint on which it listens for rows; see `Hello` |
| STARTED | feeder → reader | the id of the query, which it keeps over runs |
| DATA | sender → reader | rows |
| ACK | reader → sender | none; the header it acknowledges comes back |
| COMMIT | feeder → reader | a manifest: which attempts of the epoch's tasks count |
| COMMITTED | reader → feeder | none; the epoch's rows are visible and there is room for more |
| END | feeder → reader | none; no more epochs |
| FAILED | feeder → reader, reader → sender | the reason, for a person |
| GONE | feeder → reader | the reason, for a person; no later reader gets rows either |
| BYE | reader → feeder | none; it reads no more |
| PING | feeder → reader | none; tests whether the reader is still there |
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import pyarrow as pa
import zmq
from zmq.auth.thread import ThreadAuthenticator
from zmq.utils.monitor import recv_monitor_message

from slackwater.actors.connections.monitor import ConnectionEvents
from slackwater.runtime.errors import FrameError, IngestError

MAX_BODY_BYTES = 64 * 2**20
"""A longer body is refused unread; the sender cuts its batches to fit."""
PIECE_BYTES = 2**16
"""Longest piece of a body. libzmq buffers no more of a connection without the key."""
_CURVE_BYTES = 64  # what encryption may add to a part, rounded up
HANDSHAKE_MS = 10_000
"""Time for a connection to show the key."""
HEARTBEAT_MS = 5_000
"""How often a silent peer is asked for a sign of life..."""
HEARTBEAT_LIMIT_MS = 30_000
"""...and how long it may owe one before the connection counts as lost."""
LINGER_MS = 2_000
"""How long a closing socket may go on sending its accepted frames."""

CONNECT_LIMIT_MS = 30_000
"""Time for a connection to be made."""
REFUSALS = 5
"""Refused attempts, some 0.7 s, after which an endpoint that we were given is lost."""
_LOST = zmq.EVENT_DISCONNECTED
_REFUSALS = (
    zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
)

_HEADER = struct.Struct("!4sBxxxiqqqqq")
_MAGIC = b"SWP1"

MANIFEST = pa.schema(
    [
        ("partition", pa.int32()),
        ("attempt", pa.int64()),
        ("frames", pa.int64()),
        ("rows", pa.int64()),
    ]
)
"""Manifest row of a finished task; an epoch's manifest has one row per partition."""
MANIFEST_DDL = "partition int, attempt bigint, frames bigint, rows bigint"


class Kind(IntEnum):
    """Kinds of frames."""

    HELLO = 1
    DATA = 2
    ACK = 3
    COMMIT = 4
    COMMITTED = 5
    END = 6
    FAILED = 7
    BYE = 8
    PING = 9
    STARTED = 10
    GONE = 11


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame. Zeros where a kind has no use for a number.

    Attributes:
        attempt: Spark's id of the task attempt, unique within a session.
        sequence: 0, 1, 2… within the attempt.
        rows: number of rows in the body.
    """

    kind: Kind
    epoch: int = 0
    partition: int = 0
    attempt: int = 0
    sequence: int = 0
    rows: int = 0
    body: bytes = b""

    def parts(self) -> list[bytes]:
        """Return the frame as it travels."""
        numbers = (self.partition, self.epoch, self.attempt, self.sequence, self.rows)
        body = self.body
        pieces = [body[at : at + PIECE_BYTES] for at in range(0, len(body), PIECE_BYTES)] or [body]
        return [_HEADER.pack(_MAGIC, self.kind, *numbers, len(body)), *pieces]

    @property
    def text(self) -> str:
        """The body of a kind whose body is text."""
        return self.body.decode("utf-8", errors="replace")


class Hello(NamedTuple):
    """Contents of HELLO.

    Attributes:
        endpoint: endpoint on which the reader listens for rows.
        after: position of the last epoch that was spooled, empty before the first; None if rows
            are not spooled.
    """

    endpoint: str
    after: str | None = None

    def frame(self) -> Frame:
        """Return it as a frame."""
        lines = [self.endpoint, *([] if self.after is None else [self.after])]
        return Frame(Kind.HELLO, body="\n".join(lines).encode())

    @classmethod
    def of(cls, frame: Frame) -> Hello:
        """Return what a frame says."""
        endpoint, *after = frame.text.split("\n")
        return cls(endpoint, after[0] if after else None)

    @property
    def query(self) -> str:
        """Id of the query whose epochs were spooled; empty if none were."""
        return (self.after or "").partition(" ")[0]


def epoch_position(query: str, epoch: int) -> bytes:
    """Return the position of an epoch in a spool."""
    return f"{query} {epoch}".encode()


def epoch_at(position: bytes) -> int:
    """Return the epoch of a position; -1 of an empty one."""
    return int(position.split()[1]) if position else -1


def frame_of(parts: Sequence[bytes]) -> Frame:
    """Return the frame that arrived.

    Raises:
        FrameError: the bytes are not a frame of ours, cut short, or too long.
    """
    if len(parts) < 2 or len(parts[0]) != _HEADER.size:
        raise FrameError(f"a frame of {[len(part) for part in parts]} bytes is not one of ours")
    magic, kind, partition, epoch, attempt, sequence, rows, length = _HEADER.unpack(parts[0])
    if magic != _MAGIC or kind not in Kind.__members__.values():
        raise FrameError(f"a frame starts with {magic!r} and kind {kind}, which we do not know")
    size = sum(map(len, parts[1:]))
    if length != size or length > MAX_BODY_BYTES or min(epoch, sequence, rows) < 0:
        raise FrameError(
            f"a frame announces {length} bytes and {rows} rows, and has {size} bytes; "
            f"at most {MAX_BODY_BYTES} may come"
        )
    return Frame(Kind(kind), epoch, partition, attempt, sequence, rows, b"".join(parts[1:]))


def rows_of(frame: Frame, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows in a frame's body, with every offset and text checked.

    Raises:
        FrameError: the body is not such a record batch, or not sound.
    """
    try:
        batch = pa.ipc.read_record_batch(pa.py_buffer(frame.body), schema)
        batch.validate(full=True)  # without `full`, offsets may lead outside the body
    except (pa.ArrowException, OSError, ValueError, EOFError, MemoryError) as problem:
        raise FrameError(
            f"the rows of {frame.kind.name} do not fit {schema}: {problem}"
        ) from problem
    if batch.num_rows != frame.rows:
        raise FrameError(f"a frame announces {frame.rows} rows and has {batch.num_rows}")
    return batch


@dataclass(frozen=True)
class Keys:
    """A CURVE key pair, as text."""

    public: bytes
    secret: bytes

    @staticmethod
    def new() -> Keys:
        """Return a new key pair."""
        return Keys(*zmq.curve_keypair())

    def __repr__(self) -> str:
        return f"Keys({self.public.decode()}, secret)"


def listening(
    context: zmq.Context[zmq.Socket[bytes]], host: str, *, keys: Keys, peer: bytes
) -> tuple[zmq.Socket[bytes], str, PeerGuard]:
    """Return a ROUTER on a free port, its endpoint, and its guard.

    Stop the guard after the socket.

    Args:
        context: context for the socket; may have a single guard, so a single such socket.
        host: address to listen on.
        keys: keys of this socket.
        peer: the only public key that may connect.
    """
    socket = context.socket(zmq.ROUTER)
    socket.curve_server = True
    socket.router_mandatory = True
    _settle(socket, keys)
    guard = PeerGuard(socket, peer=peer)
    port = socket.bind_to_random_port(f"tcp://{host}")
    return socket, f"tcp://{host}:{port}", guard


def connected(
    context: zmq.Context[zmq.Socket[bytes]], endpoint: str, *, keys: Keys, peer: bytes
) -> tuple[zmq.Socket[bytes], zmq.Socket[bytes]]:
    """Return a DEALER connected to an endpoint, and its monitor for `lost`.

    Raises:
        IngestError: no listener (any more), no answer within `CONNECT_LIMIT_MS`, or
                our key is refused.
    """
    socket = context.socket(zmq.DEALER)
    socket.curve_serverkey = peer
    _settle(socket, keys)
    tried = zmq.EVENT_CONNECTED | zmq.EVENT_CONNECT_RETRIED | zmq.EVENT_HANDSHAKE_SUCCEEDED
    monitor = socket.get_monitor_socket(tried | _REFUSALS | _LOST)
    socket.connect(endpoint)
    deadline_s = time.monotonic() + CONNECT_LIMIT_MS / 1e3
    refusals = 0
    while refusals < REFUSALS and (left_s := deadline_s - time.monotonic()) > 0:
        if not monitor.poll(int(1e3 * left_s) + 1):
            break
        event = recv_monitor_message(monitor)["event"]
        if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
            return socket, monitor
        if event & _REFUSALS:
            break
        if event == zmq.EVENT_CONNECT_RETRIED:  # ZeroMQ would go on for ever
            refusals += 1
        elif event == zmq.EVENT_CONNECTED:  # a listener is there, which may hang up: not refused
            refusals = 0
    close(socket, monitor)
    if refusals == REFUSALS:
        raise IngestError(
            f"no listener at {endpoint} any more: it has ended, or its host is gone; see "
            "whether the job still runs, and start it again"
        )
    raise IngestError(
        f"{endpoint} does not answer within {CONNECT_LIMIT_MS // 1000} s, or does not know our "
        "key; check that this node can reach that address (host=…) and that the job still runs"
    )


def lost(monitor: zmq.Socket[bytes]) -> bool:
    """Return whether the monitored connection has broken since the last call."""
    is_lost = False
    while monitor.poll(0):
        is_lost |= bool(recv_monitor_message(monitor)["event"] & _LOST)
    return is_lost


def close(socket: zmq.Socket[bytes], monitor: zmq.Socket[bytes]) -> None:
    """Close a socket and its monitor; a context waits for both."""
    socket.disable_monitor()
    monitor.close(0)
    socket.close(LINGER_MS)


def _settle(socket: zmq.Socket[bytes], keys: Keys) -> None:
    socket.curve_publickey = keys.public
    socket.curve_secretkey = keys.secret
    socket.maxmsgsize = PIECE_BYTES + _CURVE_BYTES
    socket.handshake_ivl = HANDSHAKE_MS
    socket.heartbeat_ivl = HEARTBEAT_MS
    socket.heartbeat_timeout = HEARTBEAT_LIMIT_MS
    socket.linger = LINGER_MS


class PeerGuard:
    """Watches the connections to a socket, in separate threads.

    Args:
        socket: a TCP socket guarded by our keys, not bound yet; its messages have bounded length.
            Each context may have one guard.
        peer: the only public key that may connect.
    """

    def __init__(self, socket: zmq.Socket[bytes], *, peer: bytes) -> None:
        self._guard = ThreadAuthenticator(socket.context)
        self._guard.start()
        self._guard.configure_curve_callback(credentials_provider=_OnePeer(peer))
        self._has_lost = threading.Event()
        connections = ConnectionEvents(socket)
        threading.Thread(
            target=self._watch, args=(connections,), name="push-peer-guard", daemon=True
        ).start()

    def has_lost(self) -> bool:
        """Return whether any connection has broken since the last call."""
        was_set = self._has_lost.is_set()
        if was_set:
            self._has_lost.clear()
        return was_set

    def stop(self) -> None:
        """Stop the guard, after the socket is closed and before its context is terminated."""
        self._guard.stop()

    def _watch(self, connections: ConnectionEvents) -> None:
        for event, _, _ in connections:
            if event == zmq.EVENT_DISCONNECTED:
                self._has_lost.set()


class _OnePeer:
    """Admits one public key."""

    def __init__(self, public: bytes) -> None:
        self._public = public

    def callback(self, domain: str, key: bytes) -> bool:
        """Answer ZeroMQ whether a key is admitted."""
        del domain
        return key == self._public
