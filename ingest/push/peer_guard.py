"""Guard a socket of this wire: admit one public key, and let few others wait.

Both sockets listen as long as they live. At the reader senders come and go, one for each task of
each micro-batch; and the feeder must tell a second reader that there is one already.
"""

from __future__ import annotations

import threading

import zmq
from zmq.auth.thread import ThreadAuthenticator

from slackwater.actors.connections.monitor import ConnectionEvents


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
