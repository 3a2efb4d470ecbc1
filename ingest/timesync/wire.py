"""The two messages of a time exchange, one UDP datagram each, both of the same length.

```
question   magic version 1 0   nonce, 16 bytes   0 … 0      0 … 0       MAC, 16 bytes
answer     magic version 2 0   the same          got, ns    left, ns    MAC
```

The question is as long as the answer, so nobody can have us send a third party more than they
sent themselves; and it is sealed, so we answer nobody without the key. The nonce is random: an
answer is to one question, and cannot be known before it is asked.

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
"""The length of a question, and of an answer."""


class Refusal(Enum):
    """Why a message does not count."""

    MALFORMED = "malformed"
    """Longer or shorter than ours, or of another kind or version."""
    WRONG_KEY = "wrong_key"
    """Not sealed with our key, or changed on the way."""
    OTHER_QUESTION = "other_question"
    """An answer to an earlier question that came too late, or is sent once more."""
    IMPOSSIBLE = "impossible"
    """Times that cannot be: a clock ran backwards, or an answer took longer than it was away."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server says to the question of this nonce: got and left by its clock, ns."""

    nonce: bytes
    got_ns: int
    left_ns: int


def question(key: TimeKey, nonce: bytes) -> bytes:
    """Return a question, to be sent."""
    return key.seal(_BODY.pack(_MAGIC, _VERSION, _ASKS, 0, nonce, 0, 0))


def answer(key: TimeKey, said: Answer) -> bytes:
    """Return an answer, to be sent."""
    return key.seal(
        _BODY.pack(_MAGIC, _VERSION, _ANSWERS, 0, said.nonce, said.got_ns, said.left_ns)
    )


def read_question(key: TimeKey, datagram: bytes) -> bytes | Refusal:
    """Return the nonce of a question."""
    found = _read(key, datagram, _ASKS)
    if isinstance(found, Refusal):
        return found
    return Refusal.MALFORMED if found.got_ns or found.left_ns else found.nonce


def read_answer(key: TimeKey, datagram: bytes) -> Answer | Refusal:
    """Return what an answer says."""
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
