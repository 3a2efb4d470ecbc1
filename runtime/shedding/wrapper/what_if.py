"""Trials find the cost of shedding: the matches of windows with and without it.

A trial notes which events that fit something its window has, and which of them it loses. Once
the window is over its matches are looked for among all of these, and among what is left: a match
that is not found any more is lost, a new one is false. Windows to try are drawn, whatever is
shed: `runtime/shedding/probes.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from slackwater.runtime.model import Int64Array
from slackwater.runtime.patterns.scopes import OpenedWindows
from slackwater.runtime.patterns.settings import Found, HoldsOfTurns, Settings
from slackwater.runtime.patterns.windowed import WindowMatcher
from slackwater.runtime.shedding.losses import Judged

_ASKED = -1  # no event of a pattern has this number: the trial opens its window once
_ALL_NS = 1 << 61
_AFTER_NS = 1 << 62
Parts = tuple[tuple[int, int], ...]
"""The place in the stream of each event of a match, and its number in the pattern."""


class Seen(NamedTuple):
    """An event that fits something; see `KeyMatcher.take`."""

    number: int
    time_ns: int
    turn: int
    fits: tuple[int, ...]
    values: dict[str, Any] | None
    is_lost: bool
    known: tuple[int, ...] = (0,)
    """See `EventKinds`."""


@dataclass
class Trial:
    """A window that is tried.

    Attributes:
        events: its events that fit something, in order.
        block: the block of events that tried windows begin in, see `Probes`.
        stands_for: the number of windows that it represents.
        is_in_gap: whether it began while rows were passed over.
    """

    block: int
    stands_for: float
    is_in_gap: bool
    events: list[Seen] = field(default_factory=list)

    def hits(self, matches: list[Parts], first: int) -> list[tuple[Int64Array, Int64Array]]:
        """Return what is known of the events of matches, and their positions after `first`."""
        of_turn = {event.turn: event for event in self.events}
        own = [[of_turn[turn] for turn, _ in parts] for parts in matches]
        return [
            (
                np.array([event.known for event in events], dtype=np.int64).T,
                np.array([event.number - first for event in events], dtype=np.int64),
            )
            for events in own
        ]


def trial_of(block: int, stands_for: float, is_in_gap: bool, events: list[Any]) -> Trial:
    """Return a trial from its saved values."""
    return Trial(block, stands_for, is_in_gap, [Seen(*event) for event in events])


def judged(trial: Trial, settings: Settings, holds: HoldsOfTurns) -> tuple[Judged, list[Parts]]:
    """Return the losses of a window that is over, and the matches without them.

    Args:
        trial: trial with its events.
        settings: the settings of the pattern.
        holds: evaluates predicates that read earlier events.
    """
    every = _matches(trial.events, settings, holds)
    intact = [event for event in trial.events if not event.is_lost]
    with_shedding = every if len(intact) == len(trial.events) else _matches(intact, settings, holds)
    return Judged(len(every), len(every - with_shedding), len(with_shedding - every)), sorted(every)


def _matches(events: list[Seen], settings: Settings, holds: HoldsOfTurns) -> set[Parts]:
    """Return the matches of one window that has these events."""
    if not events:
        return set()
    matcher = WindowMatcher(replace(settings, scope=OpenedWindows(_ASKED, span_ns=_ALL_NS)), holds)
    matcher.open(0, events[0].time_ns, (_ASKED,))
    matches: list[Found] = []
    for event in events:
        matches += matcher.take(event.number, event.time_ns, event.turn, event.fits, event.values)
    matches += matcher.decided(_AFTER_NS)
    return {event.parts for event in matches}
