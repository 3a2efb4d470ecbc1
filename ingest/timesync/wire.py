"""Encode the two messages of a time exchange: UDP datagrams of the same length.

```
question   magic version 1 0   nonce, 16 bytes   0 … 0      0 … 0       MAC, 16 bytes
answer     magic version 2 0   the same          got, ns    left, ns    MAC
```

The question is as long as the answer, so no client can make us send a third party more than it sent
itself. It is sealed, so we answer no client without the key. The nonce is random: an answer belongs
to one question, and cannot be known before.

Source: [thesis] §3.2.2, Fig. 3.2. Differs: sealed, with a nonce, and as long as the answer.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum

from slackwater.ingest.timesync.key import MAC_BYTES, TimeKey

_BODY = struct.Struct("!4sBBH16sqq")
_MAGIC, _VERSION = b"SLWT", 1
_ASKS, _ANSWERS = 1, 2
NONCE_BYTES = 16
DATAGRAM_BYTES = _BODY.size + MAC_BYTES
"""Bytes of a question, and of an answer."""


class Refusal(Enum):
    """Reasons why a message does not count."""

    MALFORMED = "malformed"
    """Longer or shorter than ours, or of another kind or version."""
    WRONG_KEY = "wrong_key"
    """Not sealed with our key, or changed on the way."""
    OTHER_QUESTION = "other_question"
    """An answer to an earlier question that came too late, or a second time."""
    IMPOSSIBLE = "impossible"
    """Impossible times: a clock ran backwards, or the answer took longer than the exchange."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to the question of a nonce: got and left by the server's clock, ns."""

    nonce: bytes
    got_ns: int
    left_ns: int


def question(key: TimeKey, nonce: bytes) -> bytes:
    """Return a question to send."""
    return key.seal(_BODY.pack(_MAGIC, _VERSION, _ASKS, 0, nonce, 0, 0))


def answer(key: TimeKey, reply: Answer) -> bytes:
    """Return an answer to send."""
    return key.seal(
        _BODY.pack(_MAGIC, _VERSION, _ANSWERS, 0, reply.nonce, reply.got_ns, reply.left_ns)
    )


def read_question(key: TimeKey, datagram: bytes) -> bytes | Refusal:
    """Return the nonce of a question."""
    message = _read(key, datagram, _ASKS)
    if isinstance(message, Refusal):
        return message
    return Refusal.MALFORMED if message.got_ns or message.left_ns else message.nonce


def read_answer(key: TimeKey, datagram: bytes) -> Answer | Refusal:
    """Return the contents of an answer."""
    return _read(key, datagram, _ANSWERS)


def _read(key: TimeKey, datagram: bytes, kind: int) -> Answer | Refusal:
    if len(datagram) != DATAGRAM_BYTES:
        return Refusal.MALFORMED
    body = key.opened(datagram)
    if body is None:
        return Refusal.WRONG_KEY
    magic, version, is_of, zero, nonce, got_ns, left_ns = _BODY.unpack(body)
    if (magic, version, is_of, zero) != (_MAGIC, _VERSION, kind, 0):
        return Refusal.MALFORMED
    return Answer(nonce, got_ns, left_ns)
