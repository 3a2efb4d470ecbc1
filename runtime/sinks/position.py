"""Position of an output of files in a checkpoint, and how it goes on there.

```
at the checkpoint   part 1 │ part 2 │ part 3, hidden: 4,096 bytes, 17 rows
after the failure   part 1 │ part 2 │ part 3, hidden: 9,000 bytes    it is cut to 4,096 bytes
               or   part 1 │ part 2 │ part 3 │ part 4, hidden        parts 1 to 3 stay: more rows
```

Parts that were published since stay: the sink says that it has their rows, and skips them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from slackwater.runtime.errors import SinkError
from slackwater.runtime.json_form import JsonObject, json_bytes
from slackwater.runtime.plurals import count_of
from slackwater.runtime.shown import in_words
from slackwater.runtime.sinks.fingerprint import SinkRun
from slackwater.runtime.sinks.manifest import Manifest, Part
from slackwater.runtime.sinks.open_decision import ExistingOutput, changed_part, file_in_the_way

__all__ = ["FilePosition", "GoOn", "go_on", "position_at_start"]


@dataclass(frozen=True, kw_only=True)
class FilePosition(JsonObject):
    """Position of an output of files.

    Attributes:
        token: token of the hidden files of the job.
        has_begun: whether the job had written anything.
        published: number of its parts, those of earlier runs included.
        earlier: number of parts of earlier runs.
        staged: parts that are whole, and hidden.
        part: the part in the making: its rows and the bytes that it is cut to; None if no part is.
        rows: rows of all of these.
        infinite: values so far that have no number in the format.
        is_over: whether the stream had ended, and the sink was closed.
    """

    token: str
    has_begun: bool
    published: int
    earlier: int
    staged: tuple[Part, ...] = ()
    part: Part | None = None
    rows: int = 0
    infinite: int = 0
    is_over: bool = False

    def is_in(self, manifest: Manifest | None) -> bool:
        """Whether the manifest there is the job's own; else it had published nothing."""
        return manifest is not None and manifest.run.token == self.token

    def is_of(self, existing: ExistingOutput) -> bool:
        """Whether the job had written there: it goes on, else it begins."""
        return self.has_begun or self.is_in(existing.manifest)

    def to_bytes(self) -> bytes:
        """Return the position as it stands in a checkpoint."""
        return json_bytes(self.to_json())

    @classmethod
    def from_bytes(cls, at: bytes, *, sink: str) -> FilePosition:
        """Return the position that `to_bytes` wrote.

        Raises:
            SinkError: it is not one.
        """
        try:
            return cls.from_json(json.loads(at))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as problem:
            raise SinkError(
                f"sink {sink!r}: the checkpoint has a position that is not one of files "
                f"({in_words(problem)}); the sink was another then: start the job from its "
                "beginning"
            ) from problem


@dataclass(frozen=True, kw_only=True)
class GoOn:
    """Decision how an output goes on at a position.

    Attributes:
        is_ours: whether the manifest there is the job's own; else nothing was published yet.
        parts: published parts.
        staged: parts that are whole, and hidden.
        part: the part in the making, as it was at the checkpoint; None if a new one begins.
    """

    is_ours: bool
    parts: tuple[Part, ...] = ()
    staged: tuple[Part, ...] = ()
    part: Part | None = None

    @property
    def rows(self) -> int:
        """Rows that the output has."""
        making = () if self.part is None else (self.part,)
        return sum(part.rows for part in (*self.parts, *self.staged, *making))


def position_at_start(existing: ExistingOutput, run: SinkRun) -> FilePosition | None:
    """Return the position of a job that begins again; None if it has written nothing."""
    manifest = existing.manifest
    if manifest is None or manifest.run.job != run.job:
        return None
    return FilePosition(token=manifest.run.token, has_begun=True, published=0, earlier=0)


def go_on(
    existing: ExistingOutput,
    position: FilePosition,
    *,
    making: Mapping[str, int],
    replaces: bool,
) -> GoOn:
    """Return how an output goes on.

    Args:
        existing: files at the path.
        position: position of the sink in the checkpoint.
        making: {part: bytes} of the hidden files that the position names, as far as they exist.
        replaces: whether the job replaces an earlier output, which is there until its own is whole.

    Raises:
        SinkError: another program changed the output, or the position is of another one.
    """
    manifest = existing.manifest
    is_ours = position.is_in(manifest)
    if not is_ours and (not replaces or position.published > 0):
        there = "its manifest is gone"
        if manifest is not None:
            there = f"it has {manifest.rows:,} rows of job {manifest.run.job!r}"
        raise _refusal(existing, f"{there}, and the checkpoint is of another run")
    parts = manifest.parts if manifest is not None and is_ours else ()
    if manifest is not None and is_ours:
        changed = changed_part(manifest, existing, must_be_there=True) or file_in_the_way(existing)
        if changed:
            raise _refusal(existing, changed)
    since = len(parts) - position.published
    if since < 0:
        raise _refusal(
            existing,
            f"it has {count_of(len(parts), 'part')}, and the checkpoint {position.published:,}",
        )
    staged = position.staged[since:]
    part = position.part if since <= len(position.staged) else None
    if reason := _changed(staged, part, making):
        raise _refusal(existing, reason)
    decided = GoOn(is_ours=is_ours, parts=parts, staged=staged, part=part)
    if decided.rows < position.rows:
        raise _refusal(
            existing, f"it has {decided.rows:,} rows, and the checkpoint {position.rows:,}"
        )
    return decided


def _changed(staged: tuple[Part, ...], part: Part | None, making: Mapping[str, int]) -> str:
    """Return which hidden file is not as it was; "" if all are."""
    for whole in staged:
        if not whole.is_at(making):
            return f"its hidden part {whole.name} {whole.changed(making.get(whole.name))}"
    if part is None or making.get(part.name, 0) >= part.bytes:
        return ""
    return f"its part in the making, {part.name}, {part.changed(making.get(part.name))}"


def _refusal(existing: ExistingOutput, reason: str) -> SinkError:
    return SinkError(
        f"sink {existing.sink!r}: {existing.path} cannot go on at the checkpoint: {reason}; "
        "another program changed it, or another job wrote there: put it back, or submit the flow "
        "as a new job, to another path"
    )
