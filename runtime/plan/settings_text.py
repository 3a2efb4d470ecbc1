"""Settings of sources, as `explain` prints them."""

from __future__ import annotations

from slackwater.runtime.model import format_ns
from slackwater.runtime.sources.spec import SourceSpec


def times_text(spec: SourceSpec) -> str:
    """Return the text of a source's times: columns, promise, order."""
    words = [
        spec.event_time
        if spec.time_unit in (None, "ns")
        else f"{spec.event_time} in {spec.time_unit}"
    ]
    if spec.arrival is not None:
        words.append(f"arrives by {spec.arrival}")
    if spec.clock is not None:
        words.append(spec.clock.text)
    if spec.speed is not None:
        words.append(f"replayed at {spec.speed:g}×")
    if spec.writer is not None:
        words.append(f"a writer for each {spec.writer}")
    if spec.sequence is not None:
        words.append(f"numbered by {spec.sequence}")
    if spec.promise is not None:
        words.append(f"promises {spec.promise}")
    if spec.promises_nothing:
        words.append("promises nothing before its end, so that a gate keeps all its rows")
    if spec.idle_ns is not None:
        words.append(f"idle after {format_ns(spec.idle_ns)}")
    if spec.ahead_ns is not None:
        words.append(f"held if ahead by more than {format_ns(spec.ahead_ns)}")
    if spec.bad_times == "skip":
        words.append("rows with bad times left out")
    words.append(spec.reorder.text)
    if spec.goes_by_clock:
        words.append("by the clock, so that results depend on it: arrival= would mend that")
    return ", ".join(words)
