"""Connections that a socket refused: counted, and each address told once in the worker's log.

Who has not proved to be of the job gets nothing in (`actors/wire/keys.py`). This file watches, and
has those hung up on who are too many, or come where nobody is waited for
(`actors/connections/pending.py`). libzmq tells of the connections to a socket as they come and go,
and when a handshake succeeds, but not whose. A connection that ends and was not a peer's was
refused, whether it was garbage, another protocol, a wrong key, a second sender, or somebody who
hung up: libzmq tells of a failure in some of these cases only.
"""

from __future__ import annotations

import sys
import threading

import zmq

from slackwater.actors.connections.monitor import ConnectionEvents
from slackwater.actors.connections.pending import GONE

MOST_TOLD = 100
"""Addresses told in the log for one socket, so that nobody fills a disk by calling often."""


class RefusedPeers:
    """Watches the connections to one socket, in a thread of its own that ends with the socket.

    Args:
        watched: guarded by the job's keys, of TCP, not bound yet; its messages are of bounded
            length.
        peers: as many as it will have; None: any number.

    Attributes:
        refused: connections refused so far.
    """

    def __init__(self, watched: zmq.Socket[bytes], *, peers: int | None = None) -> None:
        self.refused = 0
        self._watched = watched
        self._told: set[str] = set()
        connections = ConnectionEvents(watched, peers=peers)
        threading.Thread(
            target=self._watch, args=(connections,), name="refused-peers", daemon=True
        ).start()

    def close(self) -> None:
        """End the watch, before the socket is closed; a context that is terminated ends it too."""
        self._watched.disable_monitor()

    def _watch(self, connections: ConnectionEvents) -> None:
        addresses: dict[int, str] = {}  # {descriptor: address} of the connections that are open
        hopefuls: set[int] = set()  # those that were when a handshake succeeded
        peers = 0  # of the hopefuls, so many are peers
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
                # With more hopefuls than peers, whichever of them ends: some have no key, so
                # the count is right in the end, and the log says what is known.
                among = hopefuls if descriptor in hopefuls else {descriptor}
                self._refuse(" or ".join(sorted({addresses.get(n, GONE) for n in among})))
                hopefuls.discard(descriptor)
                addresses.pop(descriptor, None)

    def _refuse(self, address: str) -> None:
        self.refused += 1
        if address not in self._told and len(self._told) < MOST_TOLD:
            self._told.add(address)
            sys.stderr.write(
                f"slackwater: refused a connection from {address} to a socket of this slot: it "
                "did not show the job's key, or came second; nothing that it sent was taken in\n"
            )
