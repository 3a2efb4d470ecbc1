"""Bytes that somebody has tampered with, perhaps to no effect: frames, and bodies by themselves."""

from __future__ import annotations

import random
import struct

from slackwater.actors.wire.frames import HEADER

BORDERS = (0, 1, -1, 7, 64, 2**16, 2**31 - 1, 2**31, 2**62, 2**63 - 2, -(2**63))
LENGTH_AT = 56  # where a header says how long the body is


def tampered(sound: bytes, chance: random.Random) -> bytes:
    """Return bytes of which some are others, or missing."""
    raw = bytearray(sound)
    match chance.randrange(5):
        case 0:  # bits, anywhere
            for _ in range(chance.randint(1, 8)):
                raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
        case 1:  # bytes, anywhere
            for _ in range(chance.randint(1, 3)):
                raw[chance.randrange(len(raw))] = chance.randrange(256)
        case 2:  # cut off
            del raw[chance.randrange(len(raw)) :]
        case 3:  # a length, an offset or a time, anywhere
            _put_number(raw, chance, at=chance.randrange(len(raw) - 7), size=chance.choice((4, 8)))
        case 4:  # some in its own place, small or large, as offsets of text are
            _put_number(raw, chance, at=4 * chance.randrange(len(raw) // 4), size=4)
    return bytes(raw)


def tampered_frame(frame: bytes, other: bytes, chance: random.Random) -> bytes:
    """Return a frame of a channel, tampered with as bytes or as what the bytes mean.

    Args:
        frame: a sound one.
        other: another sound one, whose body may take the place of its own.
        chance: draws how.
    """
    raw = bytearray(frame)
    match chance.randrange(8):
        case 0:  # bits of the header
            raw[chance.randrange(HEADER.size)] ^= 1 << chance.randrange(8)
        case 1:  # longer, and saying so or not
            raw += chance.randbytes(chance.choice((1, 7, 8, 64, 1_000)))
            if chance.random() < 0.5:
                raw[LENGTH_AT : HEADER.size] = struct.pack("<Q", len(raw) - HEADER.size)
        case 2:  # a number of the header: rows, promise, number, fingerprint, length
            _put_number(raw, chance, at=chance.randrange(8, HEADER.size, 8), size=8)
        case 3:  # another kind, or version
            raw[4:8] = bytes(chance.randrange(5) for _ in range(4))
        case 4:  # one frame's header, another's body, or noise alone
            noise = chance.randbytes(chance.randrange(200))
            raw = raw[: HEADER.size] + chance.choice((other[HEADER.size :], noise))
            raw = raw if chance.random() < 0.7 else bytearray(noise)
        case 5 if len(raw) > HEADER.size + 8:  # the body alone
            raw[HEADER.size :] = tampered(bytes(raw[HEADER.size :]), chance)
        case _:
            return tampered(frame, chance)
    return bytes(raw)


def _put_number(raw: bytearray, chance: random.Random, *, at: int, size: int) -> None:
    number = chance.choice((*BORDERS, chance.randrange(64)))
    raw[at : at + size] = struct.pack("<q", number)[:size]
