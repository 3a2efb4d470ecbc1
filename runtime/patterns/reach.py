"""The matches of one key wherever they begin: no windows, only how far apart their events are."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from runtime.patterns.chain import Chain
from runtime.patterns.choose import Match
from runtime.patterns.matcher import NONE, KeyMatcher
from runtime.patterns.scopes import Within
from runtime.patterns.settings import Found, HoldsOfTurns, Settings


class ReachMatcher(KeyMatcher):
    """See `KeyMatcher`; its scope is `Within`."""

    def __init__(self, settings: Settings, holds: HoldsOfTurns) -> None:
        super().__init__(settings, holds)
        assert isinstance(settings.scope, Within)
        self._scope = settings.scope
        self._used[0] = set()
        self._is_plain = all(one.is_plain for one in settings.rules)

    def take(
        self,
        number: int,
        time_ns: int,
        turn: int,
        fits: tuple[int, ...],
        values: dict[str, Any] | None = None,
    ) -> list[Found]:
        """Take the next event; see `KeyMatcher`."""
        found = self.waiting.decided(time_ns) if self._waits else []
        if not fits:
            return found
        self.log.add(number, time_ns, turn, fits, values)
        roles = self._settings.roles(fits)
        if self._waits:
            self.waiting.bar(turn, [one.ends for one in roles])
        ended = self._add(number, roles, values)
        if ended:
            found += self._in_reach(number, time_ns, turn, ended)
        low = self._scope.low(number, time_ns, self.log)
        if self.log.forget(low):
            for chain in self._chains:
                chain.forget(low)
            self._used[0] = {one for one in self._used[0] if one >= low}
        return found

    def _in_reach(
        self, number: int, time_ns: int, turn: int, ended: list[tuple[int, int]]
    ) -> list[Found]:
        low = self._scope.low(number, time_ns, self.log)
        found = []
        for which, _ in ended:
            chain = self._chains[which]
            ends = chain.ends[-1]
            if not ends.at or ends.at[-1] != number or ends.start[-1] < low:
                continue  # out of reach, or used up by an alternative before
            for match in self._chosen(chain, number, low, self._used[0]):
                made = self._made(match, which, turn, time_ns, None)
                found += self._left(made, self._due_ns(match))
                self._consume(match)
        return found

    def _consume(self, match: Match) -> None:
        settings = self._settings
        if not settings.consumes:
            return
        gone = {number for number, _, _ in match}
        if settings.selection == "last":
            self._used[0].update(gone)
            return
        used = self._used[0]
        used |= gone
        if self._is_plain:
            for chain in self._chains:
                chain.remove(gone)
            return
        self._chains = [Chain(one) for one in settings.rules]
        self._replay(self._chains, 0, used)

    def _due_ns(self, match: Match) -> int:
        """Return up to when nothing may follow a match: as long as it may have lasted."""
        if self._scope.span_ns is None:
            return 0  # then nothing waits
        log = self.log
        return log.times_ns[bisect_left(log.numbers, match[0][0])] + self._scope.span_ns

    def snapshot(self) -> dict[str, Any]:
        """Return all state; see `KeyMatcher`."""
        return {
            "log": self.log.snapshot(),
            "used": sorted(self._used[0]),
            "waiting": self.waiting.snapshot(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        self.log.restore(state["log"])
        self.waiting.restore(state["waiting"])
        used = set(state["used"])
        self._used = {0: used}
        if self._keeps_used:
            self._replay(self._chains, 0, NONE)
        elif self._is_plain:  # what is used up is out of the lists, and bars nothing
            self._replay(self._chains, 0, NONE, used)
        else:
            self._replay(self._chains, 0, used)
