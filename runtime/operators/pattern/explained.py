"""The lines of `explain` on a pattern."""

from __future__ import annotations

from slackwater.runtime.model import format_ns
from slackwater.runtime.patterns.normal import Normal, Place, Sequence
from slackwater.runtime.patterns.scopes import (
    CountWindows,
    OpenedWindows,
    TimeWindows,
    WindowRule,
    Within,
)


def sequence_text(pattern: Normal, sequence: Sequence) -> str:
    """Return the text of an alternative.

    For example: "A → no N → 2 of B, C → D, 2 to 3 times".
    """
    parts = []
    for place in sequence.places:
        parts += [f"no {pattern.asked[one].name}" for one in place.barred]
        parts.append(_place_text(pattern, place))
    parts += [f"no {pattern.asked[one].name} to the end" for one in sequence.barred_after]
    return " → ".join(parts)


def _place_text(pattern: Normal, place: Place) -> str:
    text = ", ".join(pattern.asked[one].name for one in place.asked)
    if place.distinct is not None:
        return f"{place.count} of {text}, each of another {place.distinct}"
    if place.count > 1:
        return f"{place.count} of {text}"
    if len(place.asked) > 1:
        text = " or ".join(pattern.asked[one].name for one in place.asked)
    if place.most is None:
        return f"{text}, {place.least} times or more"
    if place.most > 1:
        times = str(place.most) if place.least == place.most else f"{place.least} to {place.most}"
        return f"{text}, {times} times"
    return text


def scope_text(pattern: Normal, scope: Within | WindowRule) -> str:
    """Return the text on the scope of a match."""
    if isinstance(scope, TimeWindows):
        size, slide = format_ns(scope.size_ns), format_ns(scope.slide_ns)
        return f"windows of {size}" + ("" if size == slide else f", one every {slide}")
    if isinstance(scope, CountWindows):
        return f"windows of {scope.size:,} events, one every {scope.every:,}"
    length = f"{scope.events:,} events" if scope.span_ns is None else format_ns(scope.span_ns)
    if isinstance(scope, OpenedWindows):
        return f"windows of {length}, one from each {pattern.asked[scope.asked].name} on"
    return f"{length}, wherever it begins"


def selection_text(selection: str, consumes: bool, most: int | None, skip: str) -> str:
    """Return the text on which matches leave."""
    text = {
        "first": "of the matches that end with one event that of the first events",
        "last": "of the matches that end with one event that of the last events",
        "each": "each match",
        "cumulative": "of the matches that end with one event all events, as one",
    }[selection]
    if most is not None:
        text += f"; {most} a window"
    if skip == "next":
        text += "; each event the next that fits"
    return text + ("; events are used once" if consumes else "")
