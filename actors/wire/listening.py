"""Let a socket of ours listen on TCP: guarded, on one network, watched."""

from __future__ import annotations

import zmq

from slackwater.actors.wire.refused_peers import RefusedPeers
from slackwater.runtime.errors import ClusterError

__all__ = ["EVERYWHERE", "listen"]

EVERYWHERE = ("", "*", "0.0.0.0", "::", "[::]")  # noqa: S104 the addresses that we refuse
HANDSHAKE_MS = 5_000
"""How long a connection may take to show its key. Until then any caller may make us hold one
message, if it is among the few connections that may wait (`actors/wire/refused_peers.py`)."""


def listen(
    socket: zmq.Socket[bytes], bind_host: str, *, what: str, peers: int | None = None
) -> RefusedPeers:
    """Let a socket guarded by the job's keys listen on a free port, watched.

    Args:
        socket: not bound yet. The caller closes it, also when this raises.
        bind_host: this node's address, as the other slots can reach it.
        what: purpose of the socket, for errors: "cannot … on <address>".
        peers: most peers of the socket; None if any number is allowed.

    Raises:
        ClusterError: the address is not one of this node, or means all of them.
    """
    if bind_host in EVERYWHERE:
        raise ClusterError(
            f"cannot {what} on {bind_host!r}, which is every network of this node; give the "
            "address by which the other nodes know it"
        )
    socket.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
    refused_peers = RefusedPeers(socket, peers=peers)
    try:
        socket.bind(f"tcp://{bind_host}:*")
    except zmq.ZMQError as problem:
        refused_peers.close()
        raise ClusterError(
            f"cannot {what} on {bind_host!r}: {problem}; give an address of this node"
        ) from problem
    return refused_peers
