"""Patterns of events: parts, and windows that events open (docs/patterns.md)."""

from slackwater.runtime.patterns.language import (
    all_of,
    any_of,
    count_window,
    either,
    event,
    no,
    opened_by,
    repeat,
    seq,
)

__all__ = [
    "all_of",
    "any_of",
    "count_window",
    "either",
    "event",
    "no",
    "opened_by",
    "repeat",
    "seq",
]
