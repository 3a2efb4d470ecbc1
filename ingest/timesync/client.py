"""The client: ten exchanges with a time server, of which the one with the least error counts.

What the four times mean is decided in `runtime/measure/clock.py`, as between nodes. They are
compared with a clock of this host that nobody can set; so a jump of the one that can, by which
events get their times, shows in the very next offset.
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
"""In a round, as in [thesis] §5: one of them is usually undisturbed."""
ANSWER_S = 0.5
"""How long to wait for an answer: one that took longer would say little."""


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How far this host's clock is off at some moment, ns."""

    offset_ns: int
    """What to add to its time to have the server's. [thesis] Eq. 3.13."""
    bound_ns: int
    """How far off that can be: half of the round trip, and 100 ppm of its age. Eq. 3.14."""


class TimeSync:
    """Compares this host's clock with a time server's.

    Args:
        server: `host:port`.
        key: the file with the server's key.
        exchanges: in a round.
        answer_s: how long to wait for each answer.
        wall_ns: the clock by which events get their times; it may be set.
        steady_ns: one that nobody can set.

    Attributes:
        exchanges_done: exchanges that counted.
        unanswered: questions to which no answer came in time.
        contradictions: exchanges that cannot be true together with what was known before; the
            estimate then began anew.

    Raises:
        SettingError: no address, no key there, or others can read it.
        IngestError: there is no such host.

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
    def exchanges_done(self) -> int:
        """Exchanges that counted."""
        return self._estimate.exchanges

    @property
    def round_trip_ns(self) -> int:
        """Of the exchange that the offset is from. [thesis] Eq. 3.12."""
        return self._estimate.round_trip_ns

    @property
    def refused(self) -> dict[str, int]:
        """Return {why: answers that did not count}, where there were any; see `Refusal`."""
        return {why.value: count for why, count in self._refused.items()}

    def ask(self) -> int:
        """Do a round of exchanges; return how many counted.

        Once something is known, the first question without an answer ends the round: what is
        known then only ages.

        Raises:
            IngestError: nothing is known yet, and no answer counted.
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
        """Return how far this host's clock is off now.

        Raises:
            IngestError: no round has been done.
        """
        if self._estimate.best is None:
            raise IngestError(f"time server {self._server}: not asked yet; call ask() first")
        before_ns, wall_ns, after_ns = self._steady_ns(), self._wall_ns(), self._steady_ns()
        reference_ns = (before_ns + after_ns) // 2 + self._estimate.offset_ns
        read_ns = after_ns - before_ns  # how far apart the two clocks may have been read
        return ClockOffset(reference_ns - wall_ns, self._estimate.error_ns(after_ns) + read_ns)

    def close(self) -> None:
        """Let go of the socket. Safe to call twice."""
        self._socket.close()

    def _exchange(self) -> Exchange | None:
        """Return an exchange that counts; None: there was none in time."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        asked = question(self._key, nonce)
        until_s = time.monotonic() + self._answer_s
        sent_ns = self._steady_ns()
        try:
            self._socket.settimeout(self._answer_s)
            self._socket.send(asked)
            while (left_s := until_s - time.monotonic()) > 0:
                self._socket.settimeout(left_s)
                datagram = self._socket.recv(DATAGRAM_BYTES + 1)
                found = self._judged(datagram, nonce, sent_ns, self._steady_ns())
                if isinstance(found, Exchange):
                    return found
                self._refused[found] += 1
        except OSError:  # the time is over, or nobody listens there
            pass
        self.unanswered += 1
        return None

    def _judged(
        self, datagram: bytes, nonce: bytes, sent_ns: int, came_ns: int
    ) -> Exchange | Refusal:
        found: Answer | Refusal = read_answer(self._key, datagram)
        if isinstance(found, Refusal):
            return found
        if found.nonce != nonce:
            return Refusal.OTHER_QUESTION
        exchange = Exchange(sent_ns, found.got_ns, found.left_ns, came_ns)
        is_near = found.got_ns >= EARLIEST_NS and found.left_ns <= LATEST_NS
        return exchange if is_near and exchange.is_sound else Refusal.IMPOSSIBLE

    def _silence(self) -> str:
        refused = ", ".join(f"{count} {why}" for why, count in self.refused.items())
        came = f" what came did not count ({refused});" if refused else " nothing came;"
        return (
            f"time server {self._server} does not answer {self.unanswered} questions within "
            f"{self._answer_s:g} s each:{came} check that it runs (slackwater timesync serve), "
            "that UDP gets there and back, and that both hosts have the same key"
        )
