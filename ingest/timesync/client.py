"""Exchange questions with a time server ten times; keep the one with the least error.

`runtime/measure/clock.py` decides what the four times mean, as between nodes. They are compared
with this host's steady clock. So a jump of its wall clock, which stamps events, shows in the very
next offset.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from slackwater.ingest.timesync.address import address_of, udp_socket
from slackwater.ingest.timesync.key import read_key
from slackwater.ingest.timesync.wire import (
    DATAGRAM_BYTES,
    NONCE_BYTES,
    Answer,
    Refusal,
    question,
    read_answer,
)
from slackwater.runtime.errors import IngestError
from slackwater.runtime.measure.clock import Exchange, OffsetEstimate
from slackwater.runtime.model import EARLIEST_NS, LATEST_NS

EXCHANGES = 10
"""Exchanges in a round, as in [thesis] §5: one of them is usually undisturbed."""
ANSWER_S = 0.5
"""How long to wait for an answer: a longer exchange would say little."""


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """Offset of this host's clock at some moment, ns."""

    offset_ns: int
    """Add it to this host's time to get the server's. [thesis] Eq. 3.13."""
    bound_ns: int
    """Largest error of the offset: half the round trip, and 100 ppm of its age. Eq. 3.14."""


class TimeSync:
    """Compares this host's clock with a time server's.

    Args:
        server: address of the server, `host:port`.
        key: path of the file with the server's key.
        exchanges: number of exchanges in a round.
        answer_s: how long to wait for each answer.
        wall_ns: wall clock, which stamps events; it may be set.
        steady_ns: steady clock, which cannot be set.

    Attributes:
        exchanges_done: exchanges that counted.
        unanswered: questions without an answer in time.
        contradictions: exchanges that contradicted the estimate, which then started again.

    Raises:
        SettingError: a wrong address, no key in the file, or others can read it.
        IngestError: unknown host.

    Source: [thesis] §3.2.2, Eq. 3.12 to 3.14, minimum filter.
    """

    def __init__(
        self,
        server: str,
        key: str,
        *,
        exchanges: int = EXCHANGES,
        answer_s: float = ANSWER_S,
        wall_ns: Callable[[], int] = time.time_ns,
        steady_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._server, self._key = server, read_key(key)
        self._exchanges, self._answer_s = exchanges, answer_s
        self._wall_ns, self._steady_ns = wall_ns, steady_ns
        self._estimate = OffsetEstimate()
        self._refused: Counter[Refusal] = Counter()
        self.unanswered = self.contradictions = 0
        self._socket = udp_socket(*address_of(server), binds=False)

    @property
    def exchanges_done(self) -> int:  # noqa: D102
        return self._estimate.exchanges

    @property
    def round_trip_ns(self) -> int:
        """Round trip of the exchange of the present offset. [thesis] Eq. 3.12."""
        return self._estimate.round_trip_ns

    @property
    def refused(self) -> dict[str, int]:
        """Return {reason: answers that did not count}, without zeros; see `Refusal`."""
        return {why.value: count for why, count in self._refused.items()}

    def ask(self) -> int:
        """Do a round of exchanges; return how many counted.

        Once an offset is known, the first question without an answer ends the round: the offset
        only ages.

        Raises:
            IngestError: no offset is known, and no answer counted.
        """
        counted = 0
        for _ in range(self._exchanges):
            exchange = self._exchange()
            if exchange is not None:
                counted += 1
                self.contradictions += not self._estimate.add(exchange)
            elif self._estimate.best is not None:
                break
        if self._estimate.best is None:
            raise IngestError(self._silence())
        return counted

    def now(self) -> ClockOffset:
        """Return the present offset of this host's clock.

        Raises:
            IngestError: no round has been done.
        """
        if self._estimate.best is None:
            raise IngestError(f"time server {self._server}: not asked yet; call ask() first")
        before_ns, wall_ns, after_ns = self._steady_ns(), self._wall_ns(), self._steady_ns()
        reference_ns = (before_ns + after_ns) // 2 + self._estimate.offset_ns
        read_ns = after_ns - before_ns  # largest time between the readings of both clocks
        return ClockOffset(reference_ns - wall_ns, self._estimate.error_ns(after_ns) + read_ns)

    def close(self) -> None:
        """Close the socket. Idempotent."""
        self._socket.close()

    def _exchange(self) -> Exchange | None:
        """Return an exchange that counts; None if none came in time."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        message = question(self._key, nonce)
        until_s = time.monotonic() + self._answer_s
        sent_ns = self._steady_ns()
        try:
            self._socket.settimeout(self._answer_s)
            self._socket.send(message)
            while (left_s := until_s - time.monotonic()) > 0:
                self._socket.settimeout(left_s)
                datagram = self._socket.recv(DATAGRAM_BYTES + 1)
                verdict = self._judged(datagram, nonce, sent_ns, self._steady_ns())
                if isinstance(verdict, Exchange):
                    return verdict
                self._refused[verdict] += 1
        except OSError:  # time is over, or no server listens there
            pass
        self.unanswered += 1
        return None

    def _judged(
        self, datagram: bytes, nonce: bytes, sent_ns: int, came_ns: int
    ) -> Exchange | Refusal:
        answer: Answer | Refusal = read_answer(self._key, datagram)
        if isinstance(answer, Refusal):
            return answer
        if answer.nonce != nonce:
            return Refusal.OTHER_QUESTION
        exchange = Exchange(sent_ns, answer.got_ns, answer.left_ns, came_ns)
        is_near = answer.got_ns >= EARLIEST_NS and answer.left_ns <= LATEST_NS
        return exchange if is_near and exchange.is_sound else Refusal.IMPOSSIBLE

    def _silence(self) -> str:
        refused = ", ".join(f"{count} {why}" for why, count in self.refused.items())
        outcome = f" no answer counted ({refused});" if refused else " no answer came;"
        return (
            f"time server {self._server} does not answer {self.unanswered} questions within "
            f"{self._answer_s:g} s each:{outcome} check that it runs (slackwater timesync serve), "
            "that UDP passes both ways, and that both hosts have the same key"
        )
