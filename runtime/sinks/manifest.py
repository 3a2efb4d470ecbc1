"""Manifest of a folder of results: its whole parts in order, and their run.

A part belongs to the output once a reader can see it, whole. The manifest says before that it is
pending, so that a writer that dies between two of these steps leaves no unknown file.

```
.part-00000003.parquet.4f1c….incomplete   written, synced, of the right size
.slackwater.json                          part 3 is pending: the next writer may rename it
part-00000003.parquet                     renamed, of the right size: readers of *.parquet see it
.slackwater.json                          part 3 is one of the parts
```
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from slackwater.runtime.json_form import JsonObject
from slackwater.runtime.shown import shown
from slackwater.runtime.sinks.fingerprint import Fingerprint

__all__ = ["FORMAT", "NO_FILE", "Manifest", "Part", "RunRecord", "is_part_name", "part_name"]

FORMAT = 1
NO_FILE = -1
"""Size of what is not a file, such as a folder under the name of a part."""
_STATES = frozenset({"writing", "done", "stopped", "failed"})
_PART_NAME = re.compile(r"part-\d{8,}\.(parquet|jsonl|csv)")


def part_name(number: int, kind: str) -> str:
    """Return the name of a part in a folder, numbered from 1."""
    return f"part-{number:08d}.{kind}"


def is_part_name(name: str) -> bool:
    """Return whether a part of ours may have this name."""
    return _PART_NAME.fullmatch(name) is not None


class Part(NamedTuple):
    """Part of an output: a whole file.

    Attributes:
        name: name for readers, without its folder.
        rows, bytes: size of the file.
        last_event_time_ns: event time of its last row; None if it has no rows, or the sink does not
            know.
    """

    name: str
    rows: int
    bytes: int
    last_event_time_ns: int | None = None

    def is_at(self, sizes: Mapping[str, int]) -> bool:
        """Return whether a file of its name and size is among {name: bytes}."""
        return sizes.get(self.name) == self.bytes

    def changed(self, size: int | None) -> str:
        """Return what is there in its place, in words; `size` is None if nothing is."""
        if size is None:
            return "is gone"
        if size == NO_FILE:
            return "is not a file any more"
        return f"has {size:,} bytes and had {self.bytes:,}"


@dataclass(frozen=True)
class RunRecord(JsonObject):
    """Record of a run that wrote to the folder. Times are wall clock, ns.

    Attributes:
        job: its id.
        token: part of the hidden names of its files, so that two runs never share one.
        state: writing, done, stopped (by its user: all parts are whole) or failed.
        error: error that ended it.
    """

    job: str
    flow: str
    sink: str
    token: str
    state: str = "writing"
    began_ns: int = 0
    ended_ns: int | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Manifest(JsonObject):
    """Manifest of an output.

    Attributes:
        kind: "parquet", "jsonl" or "csv".
        schema: (column, type) of all rows.
        run: the run that wrote the parts; the last one, if runs continued each other.
        parts: parts in the order of the output, whose rows are those of part 1, then part 2, …
        pending: parts that are being renamed; see `settled`.
        removing: older parts that these replace; removed once this manifest is written.
        fingerprint: fingerprint that a run must share to continue this one; None if no run can.
        why_not: reason why no run can.
        failed: a run that was to replace this one, and failed or was stopped before it did.
        is_whole: whether parts and pending parts are all rows of the output: its stream had ended.
        epoch, offsets: last snapshot of these parts, and {source: position to continue from}; not
            written yet.
    """

    kind: str
    schema: tuple[tuple[str, str], ...]
    run: RunRecord
    parts: tuple[Part, ...] = ()
    pending: tuple[Part, ...] = ()
    removing: tuple[str, ...] = ()
    fingerprint: Fingerprint | None = None
    why_not: str = ""
    failed: RunRecord | None = None
    is_whole: bool = False
    epoch: int = 0
    offsets: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows of all parts: the first rows of the output."""
        return sum(part.rows for part in self.parts)

    def ended(self, state: str, *, at_ns: int, error: str | None = None) -> Manifest:
        """Return the manifest with the end of its run."""
        run = replace(self.run, state=state, ended_ns=at_ns, error=error)
        return replace(self, run=run, is_whole=self.is_whole or state == "done")

    def settled(self, *, shown: Mapping[str, int], hidden: Mapping[str, int]) -> Manifest:
        """Return the manifest with pending parts among the parts, as far as they are whole.

        Args:
            shown: {name: bytes} of files that readers see.
            hidden: {name of the part: bytes} of files that are not renamed yet.
        """
        sizes = {**shown, **hidden}
        is_whole = [part.is_at(sizes) for part in self.pending]
        # A later part that is there keeps an earlier one named, as gone: they are one sequence.
        last = max((place for place, whole in enumerate(is_whole, 1) if whole), default=0)
        return replace(
            self,
            parts=(*self.parts, *self.pending[:last]),
            pending=(),
            is_whole=self.is_whole and last == len(self.pending),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the manifest as plain JSON values; parts as lists, as there may be many."""
        plain = super().to_json()
        first = {key: plain.pop(key) for key in ("kind", "schema", "run")}
        return {"slackwater_manifest": FORMAT, **first, "rows": self.rows, **plain}

    @classmethod
    def from_json(cls, plain: Any) -> Manifest:
        """Return the manifest that `to_json` described.

        Raises:
            ValueError, KeyError, TypeError: `plain` is not a manifest, or has another format.
        """
        if not isinstance(plain, dict) or plain["slackwater_manifest"] != FORMAT:
            raise ValueError(f"it is not a manifest of format {FORMAT}")
        made = super().from_json({"is_whole": plain["run"]["state"] == "done", **plain})
        every = (*made.parts, *made.pending)
        for name in (*(part.name for part in every), *made.removing):
            _check_name(name)
        if min(made.epoch, *(min(part.rows, part.bytes) for part in every), 0) < 0:
            raise ValueError("its epoch, or a part, has a size below zero")
        for run in filter(None, (made.run, made.failed)):
            if run.state not in _STATES or not run.token.isalnum():
                raise ValueError(f"state {run.state!r}, token {run.token!r}: not a run of ours")
        if made.rows != plain["rows"]:
            raise ValueError(f"its parts have {made.rows} rows, and it says {plain['rows']}")
        return made


def _check_name(name: str) -> None:
    # Such a file may be removed, so it must lie in this folder.
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError(f"{shown(name)} is not a name of a file in this folder")
