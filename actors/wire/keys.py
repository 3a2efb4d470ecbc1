"""Admit only holders of a job's CURVE keys to its channels, through a ZAP handler.

The keys of a job are made once and handed out through Ray's authenticated control plane. libzmq
asks the handler (ZeroMQ RFC 27) in every handshake; one thread for each context answers, and is
idle otherwise. A receiver's ZAP domain names the key that it waits for, so the handler needs no
list of jobs: it admits that key once. So a receiver has one peer in its life, and no process can
replace a lost peer unnoticed. On a Unix socket, which needs no key
(`actors/wire/local_sockets.py`), the domain names none, and "once" still holds. The reference of
the clocks (`actors/slot/clock_sync.py`) has a peer for each slot: its domain says so.
`actors/wire/refused_peers.py` counts refused peers.
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field

import zmq
from zmq.utils import z85

_ZAP_ENDPOINT = "inproc://zeromq.zap.01"
_KEY_SIZE = 40  # a public key as Z85 text
_NO_KEY = b"-" * _KEY_SIZE  # in its place on a Unix socket
_MANY = b"+"  # after the key in a domain: admit the key any number of times


@dataclass(frozen=True)
class ChannelKeys:
    """Key pairs of a job, as Z85 text: of its receivers, of its senders."""

    receiver_public: bytes = field(repr=False)
    receiver_secret: bytes = field(repr=False)
    sender_public: bytes = field(repr=False)
    sender_secret: bytes = field(repr=False)

    @classmethod
    def generate(cls) -> ChannelKeys:
        """Return fresh keys, from the operating system's randomness."""
        return cls(*zmq.curve_keypair(), *zmq.curve_keypair())

    def guard_receiver(self, socket: zmq.Socket[bytes]) -> None:
        """Make this unbound socket admit one sender of this job and no other peer."""
        self._serve(socket)
        _admit(socket, self.sender_public)

    def guard_reference(self, socket: zmq.Socket[bytes]) -> None:
        """Make this unbound socket admit every sender of this job and no other peer."""
        self._serve(socket)
        _admit(socket, self.sender_public + _MANY)

    def guard_sender(self, socket: zmq.Socket[bytes]) -> None:
        """Make this socket, not connected yet, speak to a receiver of this job only."""
        socket.curve_serverkey = self.receiver_public
        socket.curve_publickey = self.sender_public
        socket.curve_secretkey = self.sender_secret

    def _serve(self, socket: zmq.Socket[bytes]) -> None:
        socket.curve_server = True
        socket.curve_publickey = self.receiver_public
        socket.curve_secretkey = self.receiver_secret


def guard_local_receiver(socket: zmq.Socket[bytes]) -> None:
    """Make this unbound socket admit one sender. Bind it to a private path only."""
    _admit(socket, _NO_KEY)


def _admit(socket: zmq.Socket[bytes], whom: bytes) -> None:
    _start_zap_handler(socket.context)
    socket.zap_domain = whom + secrets.token_hex(8).encode()
    socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)  # without a handler, refuse all peers


def _start_zap_handler(context: zmq.Context[zmq.Socket[bytes]]) -> None:
    """Start the context's handler unless it runs; terminating the context ends it."""
    socket = context.socket(zmq.REP)
    socket.linger = 0
    try:
        socket.bind(_ZAP_ENDPOINT)
    except zmq.ZMQError as problem:
        socket.close()
        if problem.errno != zmq.EADDRINUSE:
            raise
        return
    threading.Thread(target=_answer, args=(socket,), name="channel-keys", daemon=True).start()


def _answer(socket: zmq.Socket[bytes]) -> None:
    admitted: set[bytes] = set()  # domains (one per receiver) whose sender is there
    try:
        while True:
            request = socket.recv_multipart()
            number = request[1] if len(request) > 1 else b""
            domain = request[2] if len(request) > 2 else b""
            is_admitted = _is_named(request) and domain not in admitted
            if is_admitted and not domain.startswith(_MANY, _KEY_SIZE):
                admitted.add(domain)
            status, text = (b"200", b"OK") if is_admitted else (b"400", b"not of this job")
            socket.send_multipart([b"1.0", number, status, text, b"", b""])
    except zmq.ContextTerminated:
        pass  # the way a context tells its sockets to close
    finally:
        socket.close()


def _is_named(request: list[bytes]) -> bool:
    """Return whether a ZAP request shows the key (or none) that its domain names."""
    if len(request) < 6:
        return False
    _, _, domain, _, _, mechanism, *credentials = request
    expected = domain[:_KEY_SIZE]
    if mechanism == b"NULL":
        return expected == _NO_KEY
    if mechanism != b"CURVE" or len(credentials) != 1 or len(credentials[0]) != 32:
        return False
    return secrets.compare_digest(z85.encode(credentials[0]), expected)
