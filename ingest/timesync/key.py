"""Read and write the key that time server and clients share: its owner's file.

A holder of the key can answer for the server. It is in no plan, no report and no error: a flow
carries the path of the file, and each host reads its own.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import shlex
import stat
from dataclasses import dataclass, field
from pathlib import Path

from slackwater.runtime.errors import SettingError

MAC_BYTES = 16
"""Of HMAC-SHA256's 32 bytes; RFC 2104 §5 asks for at least half."""
_KEY_BYTES = 32
_MOST_BYTES = 1_024  # of a file; no key is longer


@dataclass(frozen=True)
class TimeKey:
    """A key in memory, which no text shows."""

    secret: bytes = field(repr=False)

    def seal(self, body: bytes) -> bytes:
        """Return a message followed by its MAC: HMAC-SHA256, cut short."""
        return body + self._mac(body)

    def opened(self, message: bytes) -> bytes | None:
        """Return the sealed body; None if sealed by another key, or changed since."""
        body, mac = message[:-MAC_BYTES], message[-MAC_BYTES:]
        return body if hmac.compare_digest(self._mac(body), mac) else None

    def _mac(self, body: bytes) -> bytes:
        return hmac.digest(self.secret, body, hashlib.sha256)[:MAC_BYTES]


def new_key(path: str) -> None:
    """Write a fresh key to a new file that only its owner can read.

    Raises:
        SettingError: the file exists, or cannot be written.
    """
    try:
        file = os.open(Path(path).expanduser(), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "w", encoding="ascii") as opened:
            opened.write(f"{secrets.token_hex(_KEY_BYTES)}\n")
    except FileExistsError:
        raise SettingError(
            f"key file {path} exists already; a key in use is not overwritten; give a new path, "
            "or remove it first"
        ) from None
    except OSError as problem:
        raise SettingError(
            f"the key cannot be written to {path}: {problem}; choose another path"
        ) from problem


def read_key(path: str) -> TimeKey:
    """Return the key of a file.

    Raises:
        SettingError: no such file, others than its owner can read or write it, or it holds no
            key.
    """
    try:
        file = os.open(Path(path).expanduser(), os.O_RDONLY | os.O_NONBLOCK)  # it may be a pipe
        try:
            mode = os.fstat(file).st_mode
            text = os.read(file, _MOST_BYTES) if stat.S_ISREG(mode) else b""
        finally:
            os.close(file)
    except OSError as problem:
        raise SettingError(
            f"the time key {path} cannot be read: {problem.strerror}; copy it from the host of the "
            "time server, or make one there: slackwater timesync key FILE"
        ) from problem
    if not stat.S_ISREG(mode):
        raise SettingError(
            f"the time key {path} is not a regular file (a folder, say); give the path "
            "that slackwater timesync key FILE wrote to"
        )
    if stat.S_IMODE(mode) & (stat.S_IRWXG | stat.S_IRWXO):
        raise SettingError(
            f"the time key {path} has mode {stat.S_IMODE(mode):04o}: others than its owner can "
            f"read or write it; run: chmod 600 {shlex.quote(str(path))}; if others were on "
            "this host meanwhile, make a new one for all hosts"
        )
    try:
        secret = bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        secret = b""
    if len(secret) != _KEY_BYTES:
        raise SettingError(
            f"the time key {path} holds no key of {2 * _KEY_BYTES} hexadecimal digits; make one: "
            "slackwater timesync key FILE"
        )
    return TimeKey(secret)
