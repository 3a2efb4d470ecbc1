"""Advice after a sink has failed: visible rows, and the way to go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slackwater.runtime.plurals import agreeing, count_of
from slackwater.runtime.sinks.fingerprint import SinkRun
from slackwater.runtime.sinks.manifest import Part
from slackwater.runtime.sinks.open_decision import (
    ExistingOutput,
    overwrite_refusal,
    resume_refusal,
)

__all__ = ["missing_parts", "way_on"]

_MOST_NAMED = 3


def way_on(
    existing: ExistingOutput | None,
    run: SinkRun,
    *,
    schema: tuple[tuple[str, str], ...],
    kind: str,
    is_file: bool,
    parts: tuple[Part, ...],
    waiting: int,
    remedy: str,
) -> str:
    """Return what is visible and what to do; advises `resume=True` only where it works.

    Args:
        existing: files at the path, after the sink has ended; None if they cannot be read.
        run: the run that failed.
        schema: schema of the sink.
        kind: kind of the sink, such as "csv".
        is_file: whether its path is one file.
        parts: parts of the run, as far as it had published.
        waiting: rows that no reader sees.
        remedy: hint that removes the cause.
    """
    hidden = f"{count_of(waiting, 'row')} after them {agreeing(waiting, 'is', 'are')} not visible"
    if existing is None:
        return (
            "the parts published there cannot be looked at now, "
            f"{hidden}; {remedy}, and look at them before you submit again"
        )
    manifest = existing.manifest
    if manifest is not None and manifest.failed is not None and not parts:
        return (
            f"the output of job {manifest.run.job!r} stays, {count_of(waiting, 'row')} of this one "
            f"{agreeing(waiting, 'is', 'are')} not visible; {remedy}, and submit again"
        )
    visible = [part for part in parts if part.is_at(existing.shown)]
    rows = sum(part.rows for part in visible)
    fact = (
        f"{count_of(len(visible), 'part')} with {count_of(rows, 'row')} "
        f"{agreeing(len(visible), 'is', 'are')} published and safe, {hidden}"
    )
    away = f"choose another path, or move {existing.path} away"
    if manifest is None or not (manifest.parts or manifest.removing):
        return f"{fact}; {away if existing.shown else remedy}, and submit again"
    reason = resume_refusal(existing, run, schema=schema, kind=kind, is_file=is_file)
    if reason is None:
        return f"{fact}; {remedy}, and submit again (resume=True goes on after the published rows)"
    if overwrite_refusal(existing) is None:
        return (
            f"{fact}; {remedy}, and submit again with overwrite=True, since resume=True cannot go "
            f"on: {reason}"
        )
    return f"{fact}; {away}, and submit again, since nothing can go on there: {reason}"


def missing_parts(parts: Sequence[Part], shown: Mapping[str, int]) -> tuple[str, frozenset[str]]:
    """Return a note on published parts that are gone or changed, and their names.

    Args:
        parts: parts that were published.
        shown: {name: bytes} of the files that readers see.
    """
    lost = [part for part in parts if not part.is_at(shown)]
    if not lost:
        return "", frozenset()
    texts = [_lost_text(part, shown.get(part.name)) for part in lost[:_MOST_NAMED]]
    more = f", and {len(lost) - _MOST_NAMED:,} more" if len(lost) > _MOST_NAMED else ""
    note = (
        f"not all that was published is there: {'; '.join(texts)}{more}; another program changed "
        "it, and readers miss these rows; write the output again to another path, or put it back"
    )
    return note, frozenset(part.name for part in lost)


def _lost_text(part: Part, size: int | None) -> str:
    return f"{part.name} with {count_of(part.rows, 'row')} {part.changed(size)}"
