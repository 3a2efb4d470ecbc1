"""Count the connections that a socket refused, and log each address once.

A peer without the job's key gets no message in (`actors/wire/keys.py`). This file watches, and
hangs up on surplus callers, and on callers once all peers are there
(`actors/connections/pending.py`). libzmq reports when a connection to a socket begins and ends, and
when a handshake succeeds, but not whose. A connection that ends and was not a peer's was refused:
garbage, another protocol, a wrong key, a second sender, or a caller that hung up. libzmq reports a
failure in some of these cases only.
"""

from __future__ import annotations

import sys
import threading

import zmq

from slackwater.actors.connections.monitor import ConnectionEvents
from slackwater.actors.connections.pending import GONE

MOST_NAMED = 100
"""Addresses logged for one socket, at most, so that frequent calls cannot fill a disk."""


class RefusedPeers:
    """Watches the connections to one socket, in its own thread that ends with the socket.

    Args:
        watched: a TCP socket guarded by the job's keys, not bound yet; its messages have bounded
            length.
        peers: most peers of the socket; None if any number is allowed.

    Attributes:
        refused: connections refused so far.
    """

    def __init__(self, watched: zmq.Socket[bytes], *, peers: int | None = None) -> None:
        self.refused = 0
        self._watched = watched
        self._named: set[str] = set()
        connections = ConnectionEvents(watched, peers=peers)
        threading.Thread(
            target=self._watch, args=(connections,), name="refused-peers", daemon=True
        ).start()

    def close(self) -> None:
        """End the watch, before the socket is closed; terminating the context ends it too."""
        self._watched.disable_monitor()

    def _watch(self, connections: ConnectionEvents) -> None:
        addresses: dict[int, str] = {}  # {descriptor: address} of the open connections
        hopefuls: set[int] = set()  # connections that were open at a successful handshake
        peers = 0  # how many of the hopefuls are peers
        for event, descriptor, address in connections:
            if event == zmq.EVENT_ACCEPTED:
                addresses[descriptor] = address
            elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                hopefuls |= set(addresses)
                peers += 1
            elif descriptor in hopefuls and len(hopefuls) == peers:
                hopefuls.remove(descriptor)
                peers -= 1
                del addresses[descriptor]
            else:
                # With more hopefuls than peers, any of them may end: some have no key. So the count
                # is right in the end, and the log names the addresses that it may have been.
                among = hopefuls if descriptor in hopefuls else {descriptor}
                self._refuse(" or ".join(sorted({addresses.get(n, GONE) for n in among})))
                hopefuls.discard(descriptor)
                addresses.pop(descriptor, None)

    def _refuse(self, address: str) -> None:
        self.refused += 1
        if address not in self._named and len(self._named) < MOST_NAMED:
            self._named.add(address)
            sys.stderr.write(
                f"slackwater: refused a connection from {address} to a socket of this slot: it "
                "did not show the job's key, or came second; all that it sent was dropped\n"
            )
