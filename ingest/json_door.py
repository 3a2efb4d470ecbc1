"""Read lines of JSON by Arrow, one object each; no other text reaches its reader.

That reader ends the process at a first line `null`, and at lists that nest some thousand deep. So
each line must begin with `{`, end with `}`, and nest at most `MOST_DEEP` deep:

```
lines ─▶ first and last bytes, brackets of a line (arrays: no step per line) ─▶ Arrow's reader
             └─ a line in doubt: alone, without its strings
```
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.json as arrow_json

__all__ = ["NO_OBJECT", "TOO_DEEP", "is_blank", "is_too_deep", "read_objects"]

MOST_DEEP = 100
"""Objects and lists in each other; Python's reader ends at about 1,000."""
TOO_DEEP = f"lists or objects stand in each other more than {MOST_DEEP} deep"
NO_OBJECT = "no JSON object"
FOLLOWED = "something follows its object"
_BLANKS = b" \t\r\n"
_LF, _CR = b"\n\r"
_OPEN, _CLOSE = b"{}"
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1

_CASE = ord("{") ^ ord("[")
"""The bit by which the two opening brackets differ."""

_Bytes = npt.NDArray[np.uint8]
_Places = npt.NDArray[np.int64]


def read_objects(data: bytes, known: pa.Schema, behavior: str) -> pa.Table:
    """Return one row for each line that is not blank.

    Args:
        data: bytes of lines of JSON.
        known: types of the known columns.
        behavior: value of Arrow's `unexpected_field_behavior`.

    Raises:
        ArrowInvalid: a line is not one object, nests too deep, or has a value of another type.
    """
    count = _count_checked(data)
    table = arrow_json.read_json(
        pa.BufferReader(data),
        read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(data) + 1),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=known, unexpected_field_behavior=behavior
        ),
    )
    if len(table) != count:  # each line begins and ends an object, so one has several
        raise pa.ArrowInvalid(FOLLOWED)
    return table


def is_blank(line: bytes) -> bool:
    """Return whether a line has no text for JSON."""
    return not line.strip(_BLANKS)


def is_too_deep(line: bytes) -> bool:
    """Return whether lists and objects of a line nest deeper than `MOST_DEEP`."""
    if line.count(b"[") + line.count(b"{") <= MOST_DEEP:
        return False
    steps = _STEPS.take(np.frombuffer(_STRING.sub(b"", line), np.uint8))
    return bool(np.cumsum(steps, dtype=np.int64).max(initial=0) > MOST_DEEP)


def _count_checked(data: bytes) -> int:
    """Return the number of lines that are not blank.

    Raises:
        ArrowInvalid: Arrow's reader may not have one of them.
    """
    if is_blank(data):
        return 0
    of_bytes, starts, ends = _lines_of(data)
    is_plain = of_bytes.take(starts, mode="clip") == _OPEN
    is_plain &= of_bytes.take(ends - 1, mode="clip") == _CLOSE
    count = len(starts)
    for at in np.flatnonzero(~is_plain).tolist():
        line = data[starts[at] : ends[at]].strip(_BLANKS)
        if line and not (line.startswith(b"{") and line.endswith(b"}")):
            raise pa.ArrowInvalid(NO_OBJECT)
        count -= not line
    if any(map(is_too_deep, _with_brackets(data, of_bytes, starts, ends))):
        raise pa.ArrowInvalid(TOO_DEEP)
    return count


def _lines_of(data: bytes) -> tuple[_Bytes, _Places, _Places]:
    """Return bytes, and where lines start and end, as `splitlines` cuts them."""
    returns = data.count(b"\r") if b"\r" in data else 0
    is_mixed = returns and returns != data.count(b"\r\n")
    of_bytes = np.frombuffer(data.replace(b"\r", b"\n") if is_mixed else data, np.uint8)
    ends = np.flatnonzero(of_bytes == _LF)
    if not data.endswith((b"\n", b"\r")):
        ends = np.append(ends, len(data))
    starts = np.empty_like(ends)
    starts[:1], starts[1:] = 0, ends[:-1] + 1
    if returns and not is_mixed:
        ends = ends - (of_bytes.take(ends - 1, mode="clip") == _CR)
    return of_bytes, starts, ends


def _with_brackets(
    data: bytes, of_bytes: _Bytes, starts: _Places, ends: _Places
) -> Iterator[bytes]:
    """Yield the lines that have more than `MOST_DEEP` opening brackets, in strings too."""
    longest = (ends - starts).max(initial=0)
    if longest <= MOST_DEEP:
        return
    places = np.flatnonzero((of_bytes | _CASE) == _OPEN)
    if (places[MOST_DEEP:] - places[:-MOST_DEEP]).min(initial=longest) >= longest:
        return  # so many are never in one line
    counts = np.searchsorted(places, ends) - np.searchsorted(places, starts)
    for at in np.flatnonzero(counts > MOST_DEEP).tolist():
        yield data[starts[at] : ends[at]]
