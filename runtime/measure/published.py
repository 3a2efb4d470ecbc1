"""Notes on output that readers cannot see, or not yet."""

from __future__ import annotations

from collections.abc import Iterable

from slackwater.runtime.measure.report import SinkReport

__all__ = ["published_notes"]


def published_notes(state: str, sinks: Iterable[SinkReport]) -> list[str]:
    """Return the sinks' notes, and notes on rows that readers cannot see.

    Of a sink whose worker died, its last report counts.
    """
    notes = []
    for sink in sinks:
        notes += [f"sink {sink.name!r}: {note}" for note in sink.notes]
        if sink.already_committed:
            notes.append(
                f"sink {sink.name!r}: {sink.already_committed:,} rows were already committed by an "
                "earlier run and left out"
            )
        if sink.came_again:
            notes.append(
                f"sink {sink.name!r}: {sink.came_again:,} rows that it had came again after a "
                "recovery and were not written twice; their latency is not known any more"
            )
        if sink.held and state in ("failed", "lost", "stopped"):
            notes.append(
                f"sink {sink.name!r}: {sink.held:,} rows were not written, as no complete "
                "checkpoint contains them"
            )
        # A stop publishes everything, except rows that were to replace an older output as a whole,
        # and except where a slot did not answer and was killed.
        is_cut_off = state in ("failed", "lost") or (state == "stopped" and sink.waiting > 0)
        if is_cut_off and sink.published is not None:
            notes.append(
                f"sink {sink.name!r}: when last heard of, {sink.published:,} rows of this job were "
                f"published, and {sink.waiting:,} after them were written and not visible"
            )
    return notes
