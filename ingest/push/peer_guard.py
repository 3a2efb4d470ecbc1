"""Who gets in to a socket of this wire: one public key; and of those without it, few may wait.

Both its sockets listen as long as they live. To the reader senders come and go, one for each
task of each micro-batch; and a second reader is to hear from the feeder that there is one already.
"""

from __future__ import annotations

import threading

import zmq
from zmq.auth.thread import ThreadAuthenticator

from slackwater.actors.connections.monitor import ConnectionEvents


class PeerGuard:
    """Looks after the connections to a socket, in threads of its own.

    Args:
        socket: guarded by our keys, of TCP, not bound yet; its messages are of bounded length.
            Its context may have one guard.
        peer: the one public key that may connect.
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
        """Return whether a connection, anybody's, has broken since this was last asked."""
        was_set = self._has_lost.is_set()
        if was_set:
            self._has_lost.clear()
        return was_set

    def stop(self) -> None:
        """Let go of it, once the socket is closed and before its context is terminated."""
        self._guard.stop()

    def _watch(self, connections: ConnectionEvents) -> None:
        for event, _, _ in connections:
            if event == zmq.EVENT_DISCONNECTED:
                self._has_lost.set()


class _OnePeer:
    """Lets one public key in."""

    def __init__(self, public: bytes) -> None:
        self._public = public

    def callback(self, domain: str, key: bytes) -> bool:
        """Answer ZeroMQ's question."""
        del domain
        return key == self._public
