"""Positions of our inputs, as bytes: what they are of, and where.

```
[2, "csv", "9f2c…", "/data/c.csv", 88041, "77ab…", 2000, …, 1830254127]
 │   │      │        └ facts of the kind                    └ checksum of the text before it
 │   │      └ the input's settings, or its rows
 │   └ kind of the input
 └ version of this text
```

A position that is not of this input, or is damaged, is refused by name: rows would be lost, or read
twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any
from zlib import crc32

from slackwater.runtime.errors import IngestError
from slackwater.runtime.shown import shown

__all__ = ["check_name", "digest_of", "facts_of", "position_of", "refused", "row_positions"]

VERSION = 2
_DIGITS = 16


def digest_of(*parts: str | bytes) -> str:
    """Return a short digest of text and bytes."""
    digest = sha256()
    for part in parts:
        content = part.encode(errors="surrogatepass") if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8) + content)
    return digest.hexdigest()[:_DIGITS]


def position_of(kind: str, of: str, facts: Sequence[str | int]) -> bytes:
    """Return a position.

    Args:
        kind: kind of the input, such as "csv".
        of: digest of what the input is.
        facts: facts that say where it is.
    """
    text = json.dumps([VERSION, kind, of, *facts])[:-1].encode()
    return b"%s, %d]" % (text, crc32(text))


def row_positions(kind: str, of: str) -> Callable[[int], bytes]:
    """Return a function that makes positions of rows, where a block may be a row."""
    head = json.dumps([VERSION, kind, of])[:-1].encode()
    begun = crc32(head)

    def position(row: int) -> bytes:
        fact = b", %d" % row
        return b"%s%s, %d]" % (head, fact, crc32(fact, begun))

    return position


def facts_of(at: bytes, *, who: str, kind: str, of: str, count: int) -> list[str | int]:
    """Return the facts of a position.

    Args:
        at: position.
        who: describes the input, for errors.
        kind: kind of the input.
        of: digest of what the input is.
        count: least number of facts.

    Raises:
        IngestError: the position is not of this input, of another version, or damaged.
    """
    try:
        written: list[Any] = json.loads(at)
        version, its_kind, its_of, *facts, _ = written
    except (ValueError, TypeError):
        raise refused(who, f"{shown(at)} is no position") from None
    if version != VERSION:
        raise refused(who, f"it is of version {shown(version)}, and this release reads {VERSION}")
    if at != position_of(its_kind, its_of, facts):
        raise refused(who, f"{shown(at)} is damaged: its checksum is another")
    if its_kind != kind:
        raise refused(who, f"it is of an input of kind {its_kind!r}")
    if its_of != of or len(facts) < count:
        raise refused(who, f"it is of another {kind} input: its settings, columns or rows differ")
    return facts


def refused(who: str, why: str) -> IngestError:
    """Return the error for a position that is not of an input."""
    return IngestError(
        f"{who}: cannot be opened at this position: {why}; put the input back as it was, or start "
        "from the beginning"
    )


def check_name(name: str, who: str) -> None:
    """Check the name of the only partition, "".

    Raises:
        IngestError: another one.
    """
    if name:
        raise IngestError(f"{who}: there is no partition {shown(name)}; it has one, named ''")
