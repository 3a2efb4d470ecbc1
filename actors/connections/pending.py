"""Tell connections without a key from peers; hang up on surplus ones.

libzmq says when a connection begins and ends, but not whether it is a peer's. The kernel knows how
many bytes the other end has acknowledged. Before the key is shown these are libzmq's greeting and
CURVE's welcome, or a refusal; a peer has also got the word "ready". We hang up from outside, on a
copy of the descriptor, which no other connection can have taken over meanwhile.
"""

from __future__ import annotations

import os
import socket
import struct
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

__all__ = ["GONE", "PendingConnection", "PendingConnections"]

MOST_BYTES = 2**24
"""Bytes that all connections without a key may make one socket hold: one message each."""
MOST_WAITING = 512
"""Connections without a key, at most, however short a message is."""
GONE = "an address that hung up before it could be asked"
_MOST_UNPROVEN = 256
"""Bytes: a greeting has 64, a welcome 170, a refusal 12; the shortest "ready" 52."""
_BYTES_ACKED = struct.Struct("=120xQ")  # of Linux's struct tcp_info, since 4.1


@dataclass(frozen=True)
class PendingConnection:
    """A connection: libzmq's descriptor, and both ends as the kernel names them."""

    descriptor: int
    ours: tuple[object, ...]
    theirs: tuple[object, ...]

    @property
    def address(self) -> str:
        """Address of the calling host."""
        return str(self.theirs[0]) if self.theirs else GONE

    @classmethod
    def at(cls, descriptor: int, port: str) -> PendingConnection:
        """Return the connection at a descriptor of libzmq's, if it still leads to our port."""
        with suppress(OSError, IndexError, TypeError), _copy(descriptor) as copy:
            ours, theirs = copy.getsockname(), copy.getpeername()
            if str(ours[1]) == port:
                return cls(descriptor, ours, theirs)
        return cls(descriptor, (), ())

    def has_proved(self) -> bool:
        """Whether the caller has shown the key; True where the kernel cannot say (no Linux)."""
        with suppress(OSError), _copy(self.descriptor) as copy:
            if not self._is_at(copy):
                return False
            try:
                tcp_info = copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _BYTES_ACKED.size)
                return bool(_BYTES_ACKED.unpack(tcp_info)[0] > _MOST_UNPROVEN)
            except (AttributeError, OSError, struct.error):
                return True
        return False

    def hang_up(self) -> None:
        """End the connection; libzmq notices that, and frees its buffers."""
        with suppress(OSError), _copy(self.descriptor) as copy:
            if self._is_at(copy):
                copy.shutdown(socket.SHUT_RDWR)

    def _is_at(self, copy: socket.socket) -> bool:
        return (copy.getsockname(), copy.getpeername()) == (self.ours, self.theirs)


class PendingConnections:
    """The connections to one socket that have not shown a key yet, oldest first.

    Args:
        peers: most peers of this socket; once they are there, no other connection may wait.
            None if any number is allowed.
        longest: bytes of the longest message.
    """

    def __init__(self, peers: int | None, *, longest: int) -> None:
        self._peers = peers
        self._most = max(1, min(MOST_BYTES // longest, MOST_WAITING))
        self._proved = 0
        self._waiting: dict[int, PendingConnection] = {}

    @property
    def are_waiting(self) -> bool:
        """Whether any connection has not shown a key yet."""
        return bool(self._waiting)

    def came(self, caller: PendingConnection) -> None:
        """Add a connection; hang up on surplus ones."""
        if caller.theirs:
            self._waiting[caller.descriptor] = caller
        self._make_room()

    def went(self, descriptor: int) -> None:
        """Drop a connection that has ended."""
        self._waiting.pop(descriptor, None)

    def look(self) -> None:
        """Count the connections that have shown the key by now as peers."""
        for caller in list(self._waiting.values()):
            if caller.has_proved():
                del self._waiting[caller.descriptor]
                self._proved += 1
        self._make_room()

    def _make_room(self) -> None:
        while len(self._waiting) > (0 if self._is_full else self._most):
            calls = Counter(caller.address for caller in self._waiting.values())
            # The address with most calls makes room, so one address cannot keep another out.
            most = max(calls.values())
            surplus = next(c for c in self._waiting.values() if calls[c.address] == most)
            del self._waiting[surplus.descriptor]
            if surplus.has_proved():
                self._proved += 1
            else:
                surplus.hang_up()

    @property
    def _is_full(self) -> bool:
        # A lost peer is never replaced: the job fails by name.
        return self._peers is not None and self._proved >= self._peers


def _copy(descriptor: int) -> socket.socket:
    copy = os.dup(descriptor)
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        raise
