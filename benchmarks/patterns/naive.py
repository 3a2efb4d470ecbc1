"""The plain way to match a sequence: keep every partial match, show each event to all of them.

So do engines that run an automaton for each partial match. What it keeps grows with the window,
and, where events may be skipped, as its square for three steps; our lists are there to avoid that.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Run: TypeAlias = tuple[int, ...]
"""Numbers of the events of a partial match, from the first on."""


class Naive:
    """Matches of a sequence of kinds, no two of them the same, within so many events.

    Args:
        steps: the kinds.
        within: a match lies in so many events.
        rule: "first": others may be skipped; of the matches that end with an event the first
            leaves, and uses its events up. "next": each event of a match is the next one of its
            kind; all matches leave.

    Attributes:
        runs: the partial matches.
    """

    def __init__(self, steps: tuple[int, ...], within: int, rule: Literal["first", "next"]) -> None:
        assert len(set(steps)) == len(steps)
        self._steps = steps
        self._within = within
        self._stays = rule == "first"
        self.runs: list[Run] = []

    def take(self, number: int, kind: int) -> list[Run]:
        """Take the next event; return the matches that leave."""
        steps, stays, low = self._steps, self._stays, number - self._within
        kept: list[Run] = []
        longer: list[Run] = []
        for run in self.runs:
            if run[0] <= low:
                continue
            if steps[len(run)] == kind:
                longer.append((*run, number))
                if not stays:
                    continue
            kept.append(run)
        self.runs = kept
        if kind == steps[0]:
            kept.append((number,))
        if kind != steps[-1]:
            kept += longer
            return []
        if not stays or not longer:
            return longer
        used = set(least := min(longer))
        self.runs = [run for run in kept if used.isdisjoint(run)]
        return [least]
