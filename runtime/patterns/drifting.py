"""The matches of one key whose events have clocks that may be off.

```
event ──▶ its lanes ──▶ choices with it that may be in order ──▶ of which scopes?
                                                                      │
          leaves, certain or not ◀── in no world? in all? ◀── waits till nothing that
                                                              forbids it can come
```
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from slackwater.runtime.patterns.assign import assignable, assigned
from slackwater.runtime.patterns.case import Choice, Edges, Opened, Scope, Stretch
from slackwater.runtime.patterns.drift_case import Forbidding, Made
from slackwater.runtime.patterns.drift_layout import DriftLayout, Line
from slackwater.runtime.patterns.possible import Listing
from slackwater.runtime.patterns.scopes import OpenedWindows, TimeWindows, Within
from slackwater.runtime.patterns.settings import Found, HoldsOfTurns, Limit
from slackwater.runtime.patterns.stamped import Lane, Stamped, stamped
from slackwater.runtime.patterns.undecided import Undecided, Waits
from slackwater.runtime.patterns.worlds import answer


class DriftMatcher:
    """The matcher of one key, as a `KeyMatcher`; each possible match leaves.

    It packs itself: lanes and choices share their events, which are saved once.

    Args:
        layout: the layout of all keys.
        holds: evaluates predicates that read earlier events.
        limit: the most events in the matches of one read.

    Attributes:
        log: the events that may be in a match to come, or forbid one.
        waiting: matches that an event which has yet to come may forbid.
    """

    def __init__(
        self, layout: DriftLayout, holds: HoldsOfTurns, limit: Limit | None = None
    ) -> None:
        self._layout = layout
        self._limit = limit
        self._holds = holds
        self._lanes = [Lane() for _ in layout.lanes]
        self._forbidding = Forbidding(layout, self._lanes, holds)
        self._listings = [(one, self._listing(one)) for one in layout.lines]
        self.log = self._lanes[0]
        self.waiting = Undecided(self._left)

    def take(
        self,
        number: int,
        time_ns: int,
        turn: int,
        fits: tuple[int, ...],
        values: dict[str, Any] | None = None,
    ) -> list[Found]:
        """Take the next event; return the matches that are decided.

        Args:
            number: unused: scopes are by time.
            time_ns: time by its clock; no less than that of any before.
            turn: its place in the whole stream.
            fits: numbers of what it fits.
            values: the columns that must differ; and `OFF`: how far its clock may be off.
        """
        del number
        assert values is not None
        matches = self.waiting.decided(time_ns)
        event = stamped(time_ns, turn, fits, values)
        self._add(event)
        made = [
            self._counted(made)
            for line, listing in self._listings
            for made in self._made(line, listing, event)
        ]
        made.sort(key=_events_back, reverse=True)
        made.sort(key=lambda one: (one.line.which, one.window))
        for order, one in enumerate(made):
            due_ns = self._forbidding.due_ns(one)
            key = (one.line.which, one.window, order)
            if due_ns is not None and due_ns >= time_ns:
                self.waiting.add(Waits(due_ns, turn, key, one))
            else:
                matches += self._left(Waits(time_ns, turn, key, one), has_waited=False)
        self._forget(time_ns)
        return matches

    def _counted(self, made: Made) -> Made:
        # Too many choices are refused before they are listed.
        if self._limit is not None:
            self._limit.take(sum(map(len, made.choice)))
        return made

    @property
    def events_held(self) -> int:  # noqa: D102
        return len(self.log.events)

    @property
    def ends_waiting(self) -> int:  # noqa: D102
        return len(self.waiting)

    def turns_held(self) -> list[int]:  # noqa: D102
        return [one.turn for one in self.log.events]

    # -- choices --------------------------------------------------------------------------

    def _listing(self, line: Line) -> Listing:
        bars: list[Lane | None] = [None] * len(line.needs)
        for place, asked, lane in line.bars:
            if asked is None:
                bars[place + line.shift] = self._lanes[lane]
        return Listing(
            line.needs,
            [self._lanes[one] for one in line.lanes],
            bars,
            self._layout.span_ns,
            self._layout.most_ns,
            partial(self._are_right, line),
        )

    def _made(self, line: Line, listing: Listing, event: Stamped) -> Iterator[Made]:
        """Yield the choices with an event, each in each scope that it may lie in."""
        for place, lane in enumerate(line.lanes):
            if lane not in self._layout.lanes_of(event.fits):
                continue
            for choice in listing.having(place, event, self._layout.since_ns(event)):
                for scope, window, start_ns in self._scopes(line, choice):
                    yield Made(line, choice[line.shift :], scope, window, start_ns)

    def _scopes(self, line: Line, choice: Choice) -> Iterator[tuple[Scope, int, int | None]]:
        """Yield the scopes of a choice, with key and beginning of the window."""
        rule = self._layout.scope
        if isinstance(rule, TimeWindows):
            last_ns = min(one.end[0] for some in choice for one in some)
            first_ns = max(one.begin[0] for some in choice for one in some)
            begin = (first_ns - rule.size_ns) // rule.slide_ns + 1
            for key in range(begin, last_ns // rule.slide_ns + 1):
                start_ns = key * rule.slide_ns
                yield Edges(start_ns, start_ns + rule.size_ns), key, start_ns
            return
        assert isinstance(rule, Within | OpenedWindows), "checked: it goes by time"
        assert rule.span_ns is not None
        if isinstance(rule, Within):
            yield Stretch(rule.span_ns), 0, None
            return
        for one in choice[0]:  # the window begins with the match, or in front of it
            if line.shift or rule.asked in one.fits:
                yield Opened(one, rule.span_ns), one.turn, one.time_ns

    def _are_right(self, line: Line, place: int, chosen: dict[int, tuple[Stamped, ...]]) -> bool:
        """Return whether the predicates are true that a chosen place makes known."""
        rules = line.rules
        for k, conditions in rules.of_place.items():
            asks = {at + line.shift for one in conditions.values() for at in (k, *one.reads)}
            if place not in asks or k + line.shift not in chosen:
                continue
            choices = self._choices(line, k, chosen)
            if not (assignable(choices) if rules.is_assigned(k) else all(choices)):
                return False
        return True

    def _choices(
        self, line: Line, k: int, chosen: dict[int, tuple[Stamped, ...]]
    ) -> tuple[tuple[int, ...], ...]:
        """Return the numbers that each event of a place may have, as far as known."""
        conditions = line.rules.of_place.get(k, {})
        choices = []
        for event in chosen[k + line.shift]:
            fits = line.rules.roles(event.fits).fits[k]
            for asked, one in conditions.items():
                if asked not in fits or any(at + line.shift not in chosen for at in one.reads):
                    continue
                names = line.rules.names.items()
                read = {
                    name: chosen[at + line.shift][0].turn for name, at in names if at in one.reads
                }
                if not self._holds(asked, event.turn, read):
                    fits = tuple(other for other in fits if other != asked)
            choices.append(fits)
        return tuple(choices)

    def _parts(self, made: Made) -> tuple[tuple[int, int], ...]:
        """Return the place in the stream and the number of each event of a choice."""
        line = made.line
        chosen = {k + line.shift: some for k, some in enumerate(made.choice)}
        parts: list[tuple[int, int]] = []
        for k, some in enumerate(made.choice):
            choices = self._choices(line, k, chosen)
            names = assigned(choices) if line.rules.is_assigned(k) else [one[0] for one in choices]
            assert names is not None, "what was listed may be together"
            parts += [(event.turn, asked) for event, asked in zip(some, names, strict=True)]
        return tuple(parts)

    def _left(self, one: Waits, *, has_waited: bool = True) -> list[Found]:
        """Return a choice, if it is a match in some world."""
        made = one.made
        is_certain = answer(self._forbidding.case(made))
        if is_certain is None:
            return []
        return [
            Found(
                one.due_ns,
                has_waited,
                one.turn,
                one.order,
                made.start_ns,
                self._parts(made),
                made.line.which,
                is_certain,
            )
        ]

    # -- state ----------------------------------------------------------------------------

    def _add(self, event: Stamped) -> None:
        for lane in self._layout.lanes_of(event.fits):
            self._lanes[lane].add(event)

    def _forget(self, time_ns: int) -> None:
        for lane in self._lanes:
            lane.forget_before(time_ns - self._layout.held_ns)

    def snapshot(self) -> dict[str, Any]:
        """Return all state, as plain values."""
        return {
            "events": [
                [one.time_ns, one.turn, list(one.fits), one.values] for one in self.log.events
            ],
            "waiting": self.waiting.snapshot(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        for time_ns, turn, fits, values in state["events"]:
            self._add(stamped(time_ns, turn, tuple(fits), values))
        events = {one.turn: one for one in self.log.events}
        self.waiting.restore(state["waiting"], self._layout.lines, events)


def _events_back(made: Made) -> list[tuple[int, int]]:
    return [(one.turn, k) for k, some in enumerate(made.choice) for one in some][::-1]
