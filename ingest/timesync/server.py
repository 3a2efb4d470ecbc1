"""Serve our clock's time over UDP to each client with the key.

One thread; it keeps nothing of its clients, so they cannot fill its memory, and it waits for none.
It drops and counts messages that it does not understand.
"""

from __future__ import annotations

import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType

from slackwater.ingest.timesync.address import endpoint_of, udp_socket
from slackwater.ingest.timesync.key import read_key
from slackwater.ingest.timesync.wire import DATAGRAM_BYTES, Answer, Refusal, answer, read_question

LOOPBACK = "127.0.0.1"


class TimeServer:
    """Answers until it is closed; a context manager.

    Args:
        key: path of the file with the key (`new_key`).
        host: address to listen on; only this host can reach the default.
        port: 0: a free port.
        clock_ns: the clock that it serves.

    Attributes:
        endpoint: its address, `host:port`.
        answered: questions answered so far.

    Raises:
        SettingError: no key in the file, or others can read it.
        IngestError: the server cannot listen there.

    Source: [thesis] §3.2.2, the time sync server.
    """

    def __init__(
        self,
        key: str,
        *,
        host: str = LOOPBACK,
        port: int = 0,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._key = read_key(key)
        self._clock_ns = clock_ns
        self.answered = 0
        self._refused: Counter[Refusal] = Counter()
        self._unsent = 0
        self._socket = udp_socket(host, port, binds=True)
        self._socket.setblocking(False)
        self.endpoint = endpoint_of(self._socket.getsockname())
        self._awake, self._wake = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="time-server", daemon=True)
        self._thread.start()

    @property
    def refused(self) -> dict[str, int]:
        """Return {reason: messages that were not answered}, without zeros.

        Besides the reasons of `Refusal`: "unsent", an answer for which the network had no room.
        """
        counts = {why.value: count for why, count in self._refused.copy().items()}
        return counts | ({"unsent": self._unsent} if self._unsent else {})

    def close(self) -> None:
        """Stop answering. Idempotent."""
        if self._thread.is_alive():
            self._wake.send(b"!")
            self._thread.join()
        for end in (self._socket, self._awake, self._wake):
            end.close()

    def __enter__(self) -> TimeServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:  # select() ends at 1,023 open files
            for end in (self._socket, self._awake):
                selector.register(end, selectors.EVENT_READ)
            while self._awake not in [key.fileobj for key, _ in selector.select()]:
                self._answer_one()

    def _answer_one(self) -> None:
        try:
            # One byte more than ours have: the kernel cuts longer messages off.
            datagram, asker = self._socket.recvfrom(DATAGRAM_BYTES + 1)
        except OSError:  # withdrawn by the kernel, such as for a wrong checksum
            return
        got_ns = self._clock_ns()
        nonce = read_question(self._key, datagram)
        if isinstance(nonce, Refusal):
            self._refused[nonce] += 1
            return
        try:
            self.answered += 1  # before a client can see the answer
            reply = Answer(nonce, got_ns, self._clock_ns())
            self._socket.sendto(answer(self._key, reply), asker)
        except OSError:
            self.answered -= 1
            self._unsent += 1
