"""What a report says of output that readers cannot see (yet)."""

from __future__ import annotations

from collections.abc import Iterable

from slackwater.runtime.measure.report import SinkReport

__all__ = ["published_notes"]


def published_notes(state: str, sinks: Iterable[SinkReport]) -> list[str]:
    """Return what the sinks have to say, and which rows a job that has ended kept from readers.

    Of a sink whose worker died, it is what was heard of it last.
    """
    notes = []
    for sink in sinks:
        notes += [f"sink {sink.name!r}: {note}" for note in sink.notes]
        if sink.already_committed:
            notes.append(
                f"sink {sink.name!r}: {sink.already_committed:,} rows were already committed by an "
                "earlier run and left out"
            )
        # A stop publishes everything, but for what was to replace an older output as a whole, and
        # unless a slot that did not answer had to be killed for it.
        is_cut_off = state in ("failed", "lost") or (state == "stopped" and sink.waiting > 0)
        if is_cut_off and sink.published is not None:
            notes.append(
                f"sink {sink.name!r}: when last heard of, {sink.published:,} rows of this job were "
                f"published, and {sink.waiting:,} behind them were written and not visible"
            )
    return notes
