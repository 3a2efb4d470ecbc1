"""The connections to one socket as they come and go; those without a key are few.

libzmq takes in as much of a connection that has shown no key as one message may be long, and any
number of connections. So the messages are short, and `PendingConnections` hangs up on who is one
too many.
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
"""How often those who wait are looked at."""


class ConnectionEvent(NamedTuple):
    """What libzmq tells of a connection. When a handshake succeeds it does not say whose.

    Attributes:
        event: `zmq.EVENT_ACCEPTED`, `EVENT_HANDSHAKE_SUCCEEDED` or `EVENT_DISCONNECTED`.
        descriptor: of the connection; another one may have it later.
        address: of the host that calls; empty, if it is no `EVENT_ACCEPTED`.
    """

    event: int
    descriptor: int
    address: str


class ConnectionEvents:
    """Iterate over this in a thread of its own; that ends with the socket, or its context.

    Args:
        watched: of TCP, not bound yet; its messages are of bounded length (`MAXMSGSIZE`).
        peers: as many as it will have, and when they are there nobody else may wait; None: any
            number.
    """

    def __init__(self, watched: zmq.Socket[bytes], *, peers: int | None = None) -> None:
        self._pending = PendingConnections(peers, longest=int(watched.getsockopt(zmq.MAXMSGSIZE)))
        self._events = watched.get_monitor_socket(_EVENTS)

    def __iter__(self) -> Iterator[ConnectionEvent]:
        """Yield what is heard, and hang up meanwhile."""
        try:
            while (told := self._next())["event"] != zmq.EVENT_MONITOR_STOPPED:
                event, descriptor, address = int(told["event"]), int(told["value"]), ""
                if event == zmq.EVENT_DISCONNECTED:
                    self._pending.went(descriptor)
                elif event == zmq.EVENT_ACCEPTED:
                    port = told["endpoint"].decode().rpartition(":")[2]
                    caller = PendingConnection.at(descriptor, port)
                    address = caller.address
                    self._pending.came(caller)
                yield ConnectionEvent(event, descriptor, address)
        except zmq.ContextTerminated:
            pass  # the way a context tells its sockets to close
        finally:
            self._events.close(linger=0)

    def _next(self) -> dict[str, Any]:
        """Return what libzmq tells next; while it is silent, look at who waits."""
        while not self._events.poll(_LOOK_MS if self._pending.are_waiting else None):
            self._pending.look()
        return dict(recv_monitor_message(self._events))
