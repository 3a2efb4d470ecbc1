"""The time server: says what time it is by our clock to whoever has the key, over UDP.

One thread; it holds nothing of those who ask, so they cannot fill its memory, and waits for
nobody. What it does not understand it drops and counts.
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
        key: the file with the key (`new_key`).
        host: the address to listen on; this host alone can reach the default one.
        port: 0: a free one.
        clock_ns: the clock that is told.

    Attributes:
        endpoint: where it answers, `host:port`.
        answered: questions answered so far.

    Raises:
        SettingError: no key there, or others can read it.
        IngestError: it cannot listen there.

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
        """Return {why: messages that were not answered}, where there were any.

        Beside the reasons of `Refusal`: "unsent", an answer for which the network had no room.
        """
        told = {why.value: count for why, count in self._refused.copy().items()}
        return told | ({"unsent": self._unsent} if self._unsent else {})

    def close(self) -> None:
        """Stop answering. Safe to call twice."""
        if self._thread.is_alive():
            self._wake.send(b"!")
            self._thread.join()
        for one in (self._socket, self._awake, self._wake):
            one.close()

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
        with selectors.DefaultSelector() as comes:  # not select(), which ends at 1,023 open files
            for one in (self._socket, self._awake):
                comes.register(one, selectors.EVENT_READ)
            while self._awake not in [key.fileobj for key, _ in comes.select()]:
                self._answer_one()

    def _answer_one(self) -> None:
        try:
            # One byte more than ours have: the kernel cuts off the rest of longer ones.
            datagram, asker = self._socket.recvfrom(DATAGRAM_BYTES + 1)
        except OSError:  # taken back by the kernel, such as for a wrong checksum
            return
        got_ns = self._clock_ns()
        nonce = read_question(self._key, datagram)
        if isinstance(nonce, Refusal):
            self._refused[nonce] += 1
            return
        try:
            self.answered += 1  # before it can be seen that the answer came
            said = Answer(nonce, got_ns, self._clock_ns())
            self._socket.sendto(answer(self._key, said), asker)
        except OSError:
            self.answered -= 1
            self._unsent += 1
