"""The matches of one key without windows: only the distance of their events counts.

The lists of a key are made when an event comes that may end a match. Until then its log is enough,
and lists are four fifths of what a key costs. A long log gets lists earlier: else the event that
ends a match would wait until all of it is in them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Set
from typing import Any

from slackwater.runtime.model.state import Fields
from slackwater.runtime.patterns.chain import Chain
from slackwater.runtime.patterns.matcher import NONE, KeyMatcher
from slackwater.runtime.patterns.naming import Match
from slackwater.runtime.patterns.scopes import Within
from slackwater.runtime.patterns.settings import Found, HoldsOfTurns, Settings
from slackwater.runtime.patterns.waiting import What

MANY_EVENTS = 16
"""Events of a key for which lists are made, whatever comes."""


class ReachMatcher(KeyMatcher):
    """The matcher of one key whose scope is `Within`; see `KeyMatcher`."""

    STATE = KeyMatcher.STATE + Fields("_queues", elements={"_queues": deque})

    def __init__(self, settings: Settings, holds: HoldsOfTurns) -> None:
        super().__init__(settings, holds)
        assert isinstance(settings.scope, Within)
        self._scope = settings.scope
        self._made_chains: list[Chain] | None = None  # of all events here, when first asked for
        # For each alternative, the events that end matches and wait, where they wait in turn; the
        # first one is asked for.
        self._queues: tuple[deque[What], ...] = tuple(
            deque() for _ in settings.rules if self._waits
        )

    @property
    def _used_up(self) -> Set[int]:
        return self._used.get(0, NONE)

    @property
    def _chains(self) -> list[Chain]:
        if self._made_chains is None:
            self._made_chains = [Chain(one) for one in self._settings.rules]
            used = NONE if self._keeps_used else self._used_up
            self._replay(self._made_chains, 0, used)
        return self._made_chains

    def take(
        self,
        number: int,
        time_ns: int,
        turn: int,
        fits: tuple[int, ...],
        values: dict[str, Any] | None = None,
    ) -> list[Found]:
        """Take the next event; see `KeyMatcher`."""
        matches = self.decided(time_ns) if self._waits else []
        if not fits:
            return matches
        roles, before = self._settings.roles(fits), len(self.log.numbers)
        has_lists = (
            self._made_chains is not None
            or before >= MANY_EVENTS
            or before >= self._settings.ends_after(fits)
        )
        chains = self._chains if has_lists else []  # of the events before this one
        self.log.add(number, time_ns, turn, fits, values)
        ended = self._add(number, roles, values) if has_lists else []
        if ended:
            matches += self._in_reach(number, time_ns, turn, ended)
        low = self.low = self._scope.low(number, time_ns, self.log)
        if self.log.forget(low):
            for chain in chains:
                chain.forget(low)
            if 0 in self._used:
                self._used[0] = {one for one in self._used[0] if one >= low}
        return matches

    def _in_reach(
        self, number: int, time_ns: int, turn: int, ended: list[tuple[int, int]]
    ) -> list[Found]:
        low = self._scope.low(number, time_ns, self.log)
        matches = []
        for which, _ in ended:
            chain = self._chains[which]
            ends = chain.ends[-1]
            if not ends.at or ends.at[-1] != number or ends.start[-1] < low:
                continue  # out of reach, or used up by an earlier alternative
            if chain.rules.barred_after:
                self._wait_for((number, which, low))
                continue
            for match in self._chosen(chain, number, low, self._used_up):
                matches.append(self._made(match, which, turn, time_ns, None))
                self._consume(match)
        return matches

    @property
    def has_only_events(self) -> bool:  # noqa: D102 - see KeyMatcher
        return not (self._used or self.log.values or self.waiting or any(self._queues))

    # -- what waits -------------------------------------------------------------------------

    def _wait_for(self, what: What) -> None:
        _, which, _ = what
        queue = self._queues[which]
        if self._is_in_turn(which):
            queue.append(what)
            if len(queue) > 1:
                return
        due_ns = self._due_ns(*what)
        if due_ns is not None:
            self.waiting.add(due_ns, what)

    def _is_in_turn(self, which: int) -> bool:
        """Return whether the matches of events are decided in the order of the events.

        So where each takes the match that begins first: the first events of matches ascend with the
        last ones. Then only the first one is asked for, not each whenever an event is used up.
        """
        settings, rules = self._settings, self._settings.rules[which]
        is_first = settings.consumes and settings.selection != "last"
        return is_first and not rules.conditions and not rules.depends

    def _decide(self, due_ns: int, what: What) -> tuple[list[Found], tuple[int, What] | None]:
        _, which, _ = what
        matches, again = self._decided(due_ns, what)
        queue = self._queues[which]
        if again is None and queue:
            queue.popleft()
            while queue and again is None:
                next_ns = self._due_ns(*queue[0])
                if next_ns is None:
                    queue.popleft()
                else:
                    again = (next_ns, queue[0])
        return matches, again

    @property
    def ends_waiting(self) -> int:  # noqa: D102
        return sum(map(len, self._queues)) or len(self.waiting)

    def _due_ns(self, number: int, which: int, low: int) -> int | None:
        if not self._chains[which].is_end(number, low):
            return None
        match = self._next(which, number, low)
        return None if match is None else self._until_ns(match)

    def _next(self, which: int, number: int, low: int) -> Match | None:
        """Return the match with an event that is decided next, as far as known.

        The one that begins first, as its scope is over first; but with "last" it is chosen when its
        last event comes, whatever becomes of it.
        """
        chain = self._chains[which]
        accepts = self._accepts(chain)
        if self._settings.selection == "last":
            return next(self._listing(chain, number, low).back(), None)
        if self._settings.selection == "cumulative":
            return self._listing(chain, number, low).union()
        return self._listing(chain, number, low, accepts).least()

    def _decided(self, due_ns: int, what: What) -> tuple[list[Found], tuple[int, What] | None]:
        number, which, low = what
        chain = self._chains[which]
        # Earlier matches were decided before: their rows may be gone, so no predicate reads them.
        low = max(low, self._scope.low(number, due_ns, self.log))
        what = (number, which, low)
        if not chain.is_end(number, low):
            return [], None  # used up, or its earlier events are
        match = self._next(which, number, low)
        if match is None:
            return [], None
        until_ns = self._until_ns(match)
        if until_ns > due_ns:
            return [], (until_ns, what)  # the match that was due now is used up, or forbidden
        after = bisect_right(chain.after, number)
        if after < len(chain.after) and self.log.time_of(chain.after[after]) <= until_ns:
            return [], None  # all others end later
        return self._leave(what, match, until_ns)

    def _leave(
        self, what: What, match: Match, until_ns: int
    ) -> tuple[list[Found], tuple[int, What] | None]:
        number, which, low = what
        settings, chain = self._settings, self._chains[which]
        # Events are used up by the match that begins first; else all leave that begin at this time.
        begins_at_ns = until_ns - self._span_ns
        latest = match[0][0] if settings.consumes else self.log.last_at(begins_at_ns)
        matches = [match]
        if settings.selection == "each":
            every = self._listing(chain, number, low, self._accepts(chain), latest).back()
            matches = [next(every)] if settings.consumes else list(every)
        elif settings.selection != "first" and not self._may_leave(chain, match):
            return [], None
        turn = self.log.turns[number]
        left = [self._made(one, which, turn, until_ns, None, has_waited=True) for one in matches]
        for one in matches:
            self._consume(one)
        if settings.consumes or settings.selection != "each":
            return left, None
        again_ns = self._due_ns(number, which, latest + 1)
        return left, None if again_ns is None else (again_ns, (number, which, latest + 1))

    def _may_leave(self, chain: Chain, match: Match) -> bool:
        is_used = self._settings.consumes and any(one in self._used_up for one, _, _ in match)
        return not is_used and self._is_free(chain, match)

    @property
    def _span_ns(self) -> int:
        assert self._scope.span_ns is not None  # else nothing waits
        return self._scope.span_ns

    def _until_ns(self, match: Match) -> int:
        return self.log.time_of(match[0][0]) + self._span_ns

    def _consume(self, match: Match) -> None:
        if not self._settings.consumes:
            return
        gone = {number for number, _, _ in match}
        self._used.setdefault(0, set()).update(gone)
        if not self._keeps_used:
            for chain in self._chains:
                chain.remove(gone)

    def derive(self) -> None:
        """Make lists of the events that are left, when they are asked for."""
        self._made_chains = None
