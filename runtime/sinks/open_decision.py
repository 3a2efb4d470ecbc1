"""What a run may do with the place that it is to write to: begin, replace, go on, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slackwater.runtime.errors import SinkError
from slackwater.runtime.sinks.fingerprint import SinkRun, differing
from slackwater.runtime.sinks.manifest import Manifest, Part

__all__ = ["ExistingOutput", "OpenDecision", "open_decision"]


@dataclass(frozen=True, kw_only=True)
class ExistingOutput:
    """What lies at a sink's path.

    Attributes:
        sink, path: for the errors.
        manifest: None: there is none.
        shown: {name: bytes} of the files that its readers see.
        hidden: {name of the part: bytes} of the manifest's run that have not their name yet.
    """

    sink: str
    path: str
    manifest: Manifest | None
    shown: Mapping[str, int]
    hidden: Mapping[str, int]


@dataclass(frozen=True)
class OpenDecision:
    """What a run has before it: parts that it goes on behind, or names that it will replace."""

    parts: tuple[Part, ...] = ()
    replaces: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows of the output are committed."""
        return sum(part.rows for part in self.parts)


def open_decision(
    found: ExistingOutput,
    run: SinkRun,
    *,
    schema: tuple[tuple[str, str], ...],
    kind: str,
    is_file: bool,
    overwrite: bool,
    resume: bool,
) -> OpenDecision:
    """Return what a run may do with what lies at its path.

    Raises:
        SinkError: nothing; says why, and what to do.
    """
    manifest = found.manifest
    who = f"sink {found.sink!r}: {found.path}"
    if manifest is None or not manifest.parts:
        if found.shown and (manifest is None or not overwrite):
            first = min(found.shown)
            raise SinkError(
                f"{who}: {first} is there already, and no manifest of ours names it, so that it "
                "may be anybody's, and nothing touches it, overwrite=True neither; choose another "
                "path, or move it away"
            )
        return OpenDecision()
    if overwrite:
        names = {part.name for part in manifest.parts} | set(manifest.removing)
        changed = _changed(manifest, found, must_be_there=False)
        if changed is not None:
            raise SinkError(
                f"{who}: {changed}, so somebody else wrote there, and overwrite=True touches only "
                "what is as our manifest says; choose another path, or move it away"
            )
        return OpenDecision(replaces=tuple(sorted(names)))
    wrote = f"{manifest.rows:,} rows of job {manifest.run.job!r} ({manifest.run.state})"
    if not resume:
        raise SinkError(
            f"{who} is there already, with {wrote}, and two runs must not mix; choose another "
            "path, remove it, pass overwrite=True to replace what its manifest names, or "
            "resume=True to go on behind it"
        )
    rule = f"{who} has {wrote}, and resume=True cannot go on behind them"
    way_out = "choose another path, or pass overwrite=True"
    if manifest.fingerprint is None or run.fingerprint is None:
        reason = manifest.why_not if manifest.fingerprint is None else run.why_not
        raise SinkError(f"{rule}: {reason or 'nobody said what they depend on'}; {way_out}")
    if manifest.kind != kind or manifest.schema != schema:
        raise SinkError(f"{rule}: they have other columns; {way_out}")
    if is_file and manifest.run.state != "done":
        raise SinkError(f"{rule}: a file that is published is never changed; {way_out}")
    other = differing(manifest.fingerprint, run.fingerprint)
    if other is not None:
        raise SinkError(f"{rule}: {other}; {way_out}")
    changed = _changed(manifest, found, must_be_there=True)
    if changed is not None:
        raise SinkError(f"{rule}: {changed}; put it back as it was, or {way_out}")
    return OpenDecision(parts=manifest.parts)


def _changed(manifest: Manifest, found: ExistingOutput, *, must_be_there: bool) -> str | None:
    """Return which part is not as the manifest says; None: all are."""
    for part in manifest.parts:
        size = found.hidden.get(part.name, found.shown.get(part.name))
        if size is None and not must_be_there:
            continue
        if size is None:
            return f"its part {part.name} is gone"
        if size != part.bytes:
            return f"its part {part.name} has {size:,} bytes and had {part.bytes:,}"
    return None
