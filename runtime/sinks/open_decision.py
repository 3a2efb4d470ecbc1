"""Decision how a run opens its output's path: begin, replace, continue or refuse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from slackwater.runtime.errors import SinkError
from slackwater.runtime.shown import shown
from slackwater.runtime.sinks.fingerprint import SinkRun, differing
from slackwater.runtime.sinks.manifest import Manifest, Part

__all__ = [
    "ExistingOutput",
    "OpenDecision",
    "changed_part",
    "file_in_the_way",
    "open_decision",
    "overwrite_refusal",
    "resume_refusal",
]


_Schema = tuple[tuple[str, str], ...]
_STOPPED = "that job was stopped, and a file that is published is never changed"


@dataclass(frozen=True, kw_only=True)
class ExistingOutput:
    """Existing files at a sink's path.

    Attributes:
        sink, path: name of the sink and its path, for errors.
        manifest: manifest of the folder, settled; None if it has no manifest.
        shown: {name: bytes} of the files that readers see; `NO_FILE` of what is not a file.
        hidden: {name of the part: bytes} of files of the manifest's run that are not renamed yet.
        around: manifest of a file's folder, if the folder is an output too; None if not.
    """

    sink: str
    path: str
    manifest: Manifest | None
    shown: Mapping[str, int]
    hidden: Mapping[str, int]
    around: Manifest | None = None


@dataclass(frozen=True)
class OpenDecision:
    """Decision for a run: the parts that it continues, or the names that it replaces."""

    parts: tuple[Part, ...] = ()
    replaces: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Rows of the output that are committed."""
        return sum(part.rows for part in self.parts)


def open_decision(
    existing: ExistingOutput,
    run: SinkRun,
    *,
    schema: _Schema,
    kind: str,
    is_file: bool,
    overwrite: bool,
    resume: bool,
) -> OpenDecision:
    """Return how a run may open its path.

    Raises:
        SinkError: the run may not write there; says why, and what to do.
    """
    manifest = existing.manifest
    who = f"sink {existing.sink!r}: {existing.path}"
    around = existing.around
    if around is not None and (around.kind == kind or existing.path.endswith(f".{around.kind}")):
        raise SinkError(
            f"{who} is in the folder of parts of job {around.run.job!r}, where readers would see "
            "the rows of both; choose another path"
        )
    if manifest is None or not (manifest.parts or manifest.removing):
        if existing.shown:
            raise SinkError(
                f"{who}: {min(existing.shown)} is there already, and no manifest of ours names "
                "it, so it may belong to others, and overwrite=True does not touch it either; "
                "choose another path, or move it away"
            )
        return OpenDecision()
    if overwrite:
        names = {part.name for part in manifest.parts} | set(manifest.removing)
        changed = overwrite_refusal(existing)
        if changed is not None:
            raise SinkError(
                f"{who}: {changed}, so another program wrote there, and overwrite=True touches "
                "only files that are as our manifest says; choose another path, or move it away"
            )
        return OpenDecision(replaces=tuple(sorted(names)))
    wrote = f"{manifest.rows:,} rows of job {manifest.run.job!r} ({manifest.run.state})"
    reason = resume_refusal(existing, run, schema=schema, kind=kind, is_file=is_file)
    if not resume:
        ways = ["choose another path", "remove it"]
        if overwrite_refusal(existing) is None:
            ways.append("pass overwrite=True to replace what its manifest names")
        if reason is None:
            ways.append("pass resume=True to continue it")
        raise SinkError(
            f"{who} is there already, with {wrote}, and two runs must not mix; "
            f"{', '.join(ways[:-1])}, or {ways[-1]}"
        )
    if reason is not None:
        is_changed = changed_part(manifest, existing, must_be_there=True) == reason
        put_back = "put it back as it was, or " if is_changed else ""
        way_out = "choose another path"
        if overwrite_refusal(existing) is None:
            way_out = f"{way_out}, or pass overwrite=True"
        raise SinkError(
            f"{who} has {wrote}, and resume=True cannot continue them: {reason}; {put_back}"
            f"{way_out}"
        )
    return OpenDecision(parts=manifest.parts)


def resume_refusal(
    existing: ExistingOutput,
    run: SinkRun,
    *,
    schema: _Schema,
    kind: str,
    is_file: bool,
) -> str | None:
    """Return why a run cannot continue the output of a manifest; None if it can."""
    manifest = existing.manifest
    assert manifest is not None, "an output without a manifest is begun, not continued"
    if manifest.fingerprint is None or run.fingerprint is None:
        reason = manifest.why_not if manifest.fingerprint is None else run.why_not
        return reason or "they have no fingerprint"
    return (
        _other_sink(manifest, existing.sink, schema=schema, kind=kind)
        or (_STOPPED if is_file and not manifest.is_whole else None)
        or differing(manifest.fingerprint, run.fingerprint)
        or changed_part(manifest, existing, must_be_there=True)
        or file_in_the_way(existing)
    )


def _other_sink(manifest: Manifest, sink: str, *, schema: _Schema, kind: str) -> str | None:
    """Return how the sink of a manifest differs; None if it does not."""
    if manifest.kind != kind:
        return f"they are {manifest.kind}, and this sink writes {kind}"
    if manifest.schema != schema:
        return _other_columns(manifest.schema, schema)
    if manifest.run.sink != sink:
        return f"their sink was named {shown(manifest.run.sink)}"
    return None


def _other_columns(then: _Schema, now: _Schema) -> str:
    had, has = dict(then), dict(now)
    for name in [*had, *has]:
        if name not in has:
            return f"they have a column {shown(name)}, and this sink has none"
        if name not in had:
            return f"they have no column {shown(name)}"
        if had[name] != has[name]:
            return f"their column {shown(name)} has type {had[name]}, and here {has[name]}"
    return "they have these columns in another order"


def overwrite_refusal(existing: ExistingOutput) -> str | None:
    """Return the file of another program that no overwrite touches; None if none exists."""
    assert existing.manifest is not None, "an overwrite replaces what a manifest names"
    changed = changed_part(existing.manifest, existing, must_be_there=False)
    return changed if changed is not None else file_in_the_way(existing)


def file_in_the_way(existing: ExistingOutput) -> str | None:
    """Return a foreign file that readers see; None if they see our parts alone."""
    assert existing.manifest is not None, "without a manifest no file is ours"
    named = {part.name for part in existing.manifest.parts} | set(existing.manifest.removing)
    unnamed = set(existing.shown) - named
    return f"{min(unnamed)} is there, which no manifest of ours names" if unnamed else None


def changed_part(
    manifest: Manifest, existing: ExistingOutput, *, must_be_there: bool
) -> str | None:
    """Return the first part that is not as the manifest says; None if all are."""
    sizes = {**existing.shown, **existing.hidden}
    for part in manifest.parts:
        if part.is_at(sizes):
            continue
        if must_be_there or part.name in sizes:
            return f"its part {part.name} {part.changed(sizes.get(part.name))}"
    return None
