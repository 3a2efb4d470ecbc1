"""Yield the connection events of one socket; few connections without a key may wait.

For each connection without a key libzmq buffers up to one message, and it takes any number of
connections. So messages are short, and `PendingConnections` hangs up on surplus connections.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import zmq
from zmq.utils.monitor import recv_monitor_message

from slackwater.actors.connections.pending import PendingConnection, PendingConnections

__all__ = ["ConnectionEvent", "ConnectionEvents"]

_EVENTS = (
    zmq.EVENT_ACCEPTED
    | zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_MONITOR_STOPPED
)
_LOOK_MS = 50
"""How often pending connections are checked."""


class ConnectionEvent(NamedTuple):
    """Connection event of libzmq. A successful handshake does not say whose it was.

    Attributes:
        event: `zmq.EVENT_ACCEPTED`, `EVENT_HANDSHAKE_SUCCEEDED` or `EVENT_DISCONNECTED`.
        descriptor: descriptor of the connection; a later connection may have it again.
        address: address of the calling host; empty unless `event` is `EVENT_ACCEPTED`.
    """

    event: int
    descriptor: int
    address: str


class ConnectionEvents:
    """Iterates over one socket's connection events; ends with the socket, or its context.

    Iterate in a separate thread: the iterator blocks until the next event.

    Args:
        watched: a TCP socket, not bound yet; its messages have bounded length (`MAXMSGSIZE`).
        peers: most peers of this socket; once they are there, no other connection may wait. None:
            any number.
    """

    def __init__(self, watched: zmq.Socket[bytes], *, peers: int | None = None) -> None:
        self._pending = PendingConnections(peers, longest=int(watched.getsockopt(zmq.MAXMSGSIZE)))
        self._events = watched.get_monitor_socket(_EVENTS)

    def __iter__(self) -> Iterator[ConnectionEvent]:
        """Yield each event, and hang up on surplus connections meanwhile."""
        try:
            while (notice := self._next())["event"] != zmq.EVENT_MONITOR_STOPPED:
                event, descriptor, address = int(notice["event"]), int(notice["value"]), ""
                if event == zmq.EVENT_DISCONNECTED:
                    self._pending.went(descriptor)
                elif event == zmq.EVENT_ACCEPTED:
                    port = notice["endpoint"].decode().rpartition(":")[2]
                    caller = PendingConnection.at(descriptor, port)
                    address = caller.address
                    self._pending.came(caller)
                yield ConnectionEvent(event, descriptor, address)
        except zmq.ContextTerminated:
            pass  # the way a context tells its sockets to close
        finally:
            self._events.close(linger=0)

    def _next(self) -> dict[str, Any]:
        while not self._events.poll(_LOOK_MS if self._pending.are_waiting else None):
            self._pending.look()
        return dict(recv_monitor_message(self._events))
