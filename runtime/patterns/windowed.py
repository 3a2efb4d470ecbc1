"""The matches of one key in its windows, each by itself."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from typing import Any

from slackwater.runtime.model.state import Fields
from slackwater.runtime.patterns.chain import Chain
from slackwater.runtime.patterns.matcher import NONE, KeyMatcher
from slackwater.runtime.patterns.naming import Match
from slackwater.runtime.patterns.rules import Roles, Rules
from slackwater.runtime.patterns.scopes import Window, Windows, Within
from slackwater.runtime.patterns.settings import Found, HoldsOfTurns, Settings
from slackwater.runtime.patterns.waiting import What

_FEW = 64


class WindowMatcher(KeyMatcher):
    """The matcher of one key with windows; see `KeyMatcher`.

    Attributes:
        windows: the open windows.
    """

    STATE = KeyMatcher.STATE + Fields(
        "windows",
        "_full",
        "_counts",
        "_own",
        "_lost",
        "_gone",
        "_given_up",
        "_now",
        "_closing",
        elements={"_own": "_new_own", "_lost": set, "_closing": Window},
    )

    def __init__(self, settings: Settings, holds: HoldsOfTurns) -> None:
        super().__init__(settings, holds)
        assert not isinstance(settings.scope, Within)
        self._own_chains = [Chain(one) for one in settings.rules]
        self.windows: Windows = settings.scope.begin()
        # Windows up to this key have all their matches; counts are of later ones.
        self._full: int | None = None
        self._counts: dict[int, int] = {}
        self._own: dict[int, OwnLists] = {}  # {key of the window: its lists}
        self._lost: dict[int, set[int]] = {}  # {key of the window: numbers of what it lost}
        self._gone: set[int] = set()  # numbers of events that all windows with shared lists lost
        # {key of a window: the number of the event from which on it is given up}
        self._given_up: dict[int, int] = {}
        self._now = 0  # the number of the last event
        self._closing: dict[int, Window] = {}  # {key: a window that waits for its end}

    @property
    def _chains(self) -> list[Chain]:
        return self._own_chains

    def open(self, number: int, time_ns: int, fits: tuple[int, ...]) -> None:
        """Open and end windows by an event, and do nothing else."""
        self.windows.pass_to(number, time_ns)
        self.windows.take(number, time_ns, fits)

    def take(
        self,
        number: int,
        time_ns: int,
        turn: int,
        fits: tuple[int, ...],
        values: dict[str, Any] | None = None,
    ) -> list[Found]:
        """Take the next event; see `KeyMatcher`."""
        self.open(number, time_ns, fits)
        return self.take_opened(number, time_ns, turn, fits, values)

    def take_opened(
        self,
        number: int,
        time_ns: int,
        turn: int,
        fits: tuple[int, ...],
        values: dict[str, Any] | None = None,
        lost: frozenset[int] = NONE,
    ) -> list[Found]:
        """Take an event after `open`; windows of the keys `lost` have lost it."""
        self._now = number
        matches = self.decided(time_ns) if self._waits else []
        if not fits or self.windows.low(self.log) is None or self._has_all():
            return matches  # it is in no window, or in none that waits for a match
        roles = self._settings.roles(fits)
        if (worked := self._settings.worked) is not None:
            for one in roles:
                if one.places:
                    worked.events += 1
                    break
        is_gone = bool(lost) and self._is_gone(number, lost)
        self.log.add(number, time_ns, turn, fits, values)
        if lost and not is_gone:
            self._lose(number, roles, lost)
        self._orders = 0
        ended = [] if is_gone else self._add(number, roles, values)
        if self._own:
            matches += self._in_own(number, time_ns, turn, roles, values)
        if ended:
            matches += self._in_windows(number, turn, time_ns, ended)
        self._forget(number)
        return matches

    def _in_windows(
        self, number: int, turn: int, time_ns: int, ended: list[tuple[int, int]]
    ) -> list[Found]:
        """Return the matches of windows that share their lists."""
        settings = self._settings
        matches = []
        for which, start in ended:
            for window in list(self.windows.around(self._full, start, self.log)):
                if self._settings.rules[which].barred_after:
                    self._wait_for(window)
                    continue
                if window.key in self._own or self._is_full(window.key):
                    continue
                if window.key in self._lost:
                    # A lost event may be in a match that ends here: only its own lists tell.
                    own = self._make_own(window)
                    matches += self._ends_in_own(own, own.ended(number), number, time_ns, turn)
                    continue
                used = self._used.setdefault(window.key, set()) if self._keeps_used else set()
                for match in self._chosen(self._chains[which], number, window.low, used):
                    matches.append(self._made(match, which, turn, time_ns, window))
                    self._count(window)
                    if settings.consumes and settings.selection == "last":
                        used.update(one for one, _, _ in match)
                    elif settings.consumes and (settings.most != 1 or self._waits):
                        self._used[window.key] = {one for one, _, _ in match} | {number}
                        self._make_own(window)
                        break
                    if self._is_full(window.key):
                        break
        return matches

    # -- windows that wait for their end ----------------------------------------------------

    def _wait_for(self, window: Window) -> None:
        if window.key not in self._closing:
            assert window.end_ns is not None
            self._closing[window.key] = window
            self.waiting.add(window.end_ns - 1, (window.key,))

    def _decide(self, due_ns: int, what: What) -> tuple[list[Found], tuple[int, What] | None]:
        """Return the matches of a window that is over and that events could have forbidden.

        Its events are all in the log yet, and no later one is.
        """
        (key,) = what
        window = self._closing.pop(key)
        settings, used = self._settings, self._used.setdefault(key, set())
        if key in self._lost and key not in self._own:
            self._make_own(window)
        matches: list[Found] = []
        for number, which in self._ends_of(window):
            if self._is_full(key):
                break
            own = self._own.get(key)
            chain = (self._chains if own is None else own.chains)[which]
            if not chain.is_end(number, window.low):
                continue  # used up, or its earlier events are
            turn = self.log.turns[number]
            for match in self._chosen(chain, number, window.low, used, self._accepts(chain)):
                matches.append(self._made(match, which, turn, due_ns, window, has_waited=True))
                self._count(window)
                if settings.consumes:
                    used.update(one for one, _, _ in match)
                    self._use(window, match)
                    break
                if self._is_full(key):
                    break
        self._own.pop(key, None)
        self._used.pop(key, None)
        self._lost.pop(key, None)
        return matches, None

    def _ends_of(self, window: Window) -> list[tuple[int, int]]:
        """Return (event, alternative) of the ends of a window's matches that nothing forbids."""
        own = self._own.get(window.key)
        ends_of_window = []
        for which, chain in enumerate(self._chains if own is None else own.chains):
            if chain.rules.barred_after:
                ends = chain.ends[-1]
                first = bisect_left(ends.start, window.low)
                if chain.after:
                    first = max(first, bisect_left(ends.at, chain.after[-1]))
                ends_of_window += [(number, which) for number in ends.at[first:]]
        return sorted(ends_of_window)

    def _use(self, window: Window, match: Match) -> None:
        """Remove the events of a match from the lists of its window."""
        if self._keeps_used:
            return
        own = self._own.get(window.key)
        if own is None:
            self._make_own(window)  # its lists are made without used events
        else:
            own.remove({one for one, _, _ in match})

    @property
    def is_waiting(self) -> bool:
        """Whether an open window waits for a match, or for a forbidding event."""
        return self.windows.low(self.log) is not None and not self._has_all()

    def is_full(self, key: int) -> bool:
        """Return whether a window has all its matches, whatever comes, or was given up."""
        return not self._waits and self._is_full(key)

    def continue_with(self, windows: Windows, time_ns: int) -> None:
        """Continue with windows; those that have begun by a time are given up."""
        self.windows = windows
        windows.pass_to(0, time_ns)
        self._full = windows.newest()

    def give_up(self, key: int, number: int) -> None:
        """Give up a window's matches from the event of this number on."""
        self._given_up[key] = number

    def _has_all(self) -> bool:
        """Return whether no open window waits for a match, or for a forbidding event."""
        if self._waits:
            return False
        full, newest = self._full, self.windows.newest()
        if full is not None and newest <= full:
            return True
        if not (self._given_up or self._is_varied):
            return False
        first = self.windows.oldest() if full is None else max(self.windows.oldest(), full + 1)
        # The newest first: if any window waits it is one of these.
        return all(self._is_full(key) for key in range(newest, first - 1, -1))

    def _is_given_up(self, key: int) -> bool:
        since = self._given_up.get(key)
        return since is not None and since <= self._now

    @property
    def _is_varied(self) -> bool:
        # An earlier window may lack events that a later one has.
        return bool(self._own or self._lost or self._gone or self._waits)

    def _count(self, window: Window) -> None:
        most = self._settings.most
        if most is None:
            return
        self._counts[window.key] = self._counts.get(window.key, 0) + 1
        # An earlier window has had all that a later one has: the full ones come first.
        if self._counts[window.key] >= most and not self._is_varied:
            self._full = window.key if self._full is None else max(self._full, window.key)
            for key in [one for one in self._counts if one <= self._full]:
                del self._counts[key]

    def _is_full(self, key: int) -> bool:
        most = self._settings.most
        if self._given_up and self._is_given_up(key):
            return True
        if most is None:
            return False
        return (self._full is not None and key <= self._full) or self._counts.get(key, 0) >= most

    # -- windows with lists of their own --------------------------------------------------

    def _is_gone(self, number: int, lost: frozenset[int]) -> bool:
        """Return whether few windows keep an event: these have their own lists then.

        So what most windows lose costs no more than it would if no window kept it.
        """
        windows = list(self.windows.around(self._full, number, self.log))
        keepers = [one for one in windows if one.key not in lost]
        if 2 * len(keepers) > len(windows):
            return False
        for window in keepers:
            own = self._own.get(window.key) or self._make_own(window)
            own.kept.add(number)
        self._gone.add(number)
        for key in lost:
            if key in self._own:
                self._lost.setdefault(key, set()).add(number)
        return True

    def _lose(self, number: int, roles: list[Roles], lost: frozenset[int]) -> None:
        """Remember the losses of windows.

        Dropped events take matches away, so the shared lists still tell where one may end; but what
        they forbid is forbidden no longer: then a window has lists of its own at once.
        """
        bars = any(
            one.barred or (one.places and rules.goes_next)
            for one, rules in zip(roles, self._settings.rules, strict=True)
        )
        for window in self.windows.around(self._full, number, self.log):
            if window.key in lost and not (self._is_full(window.key) and not self._waits):
                self._lost.setdefault(window.key, set()).add(number)
                if bars and window.key not in self._own:
                    self._make_own(window)
        if len(self._lost) > _FEW and len(self._lost) > 4 * (
            self.windows.newest() - self.windows.oldest() + 1
        ):
            oldest = self.windows.oldest()
            self._lost = {key: gone for key, gone in self._lost.items() if key >= oldest}

    def _make_own(self, window: Window) -> OwnLists:
        own = self._own[window.key] = OwnLists(window, self._settings.rules)
        self._used.setdefault(window.key, set())
        self._fill(own)
        return own

    def _fill(self, own: OwnLists) -> None:
        key = own.window.key
        own.begin()
        used = NONE if self._keeps_used else self._used[key]
        lost = self._lost.get(key, NONE) | (self._gone - own.kept)
        self._replay(own.chains, own.window.low, used, lost)

    def _in_own(
        self,
        number: int,
        time_ns: int,
        turn: int,
        roles: list[Roles],
        values: dict[str, Any] | None,
    ) -> list[Found]:
        matches: list[Found] = []
        for key, own in list(self._own.items()):
            window = own.window
            if (window.end_ns is not None and time_ns >= window.end_ns) or (
                window.end is not None and number >= window.end
            ):
                del self._own[key]
                self._used.pop(key, None)
                self._lost.pop(key, None)
                continue
            if number in self._lost.get(key, NONE):
                continue
            ended = own.take(number, roles, values)
            matches += self._ends_in_own(own, ended, number, time_ns, turn)
        return matches

    def _ends_in_own(
        self, own: OwnLists, ended: list[int], number: int, time_ns: int, turn: int
    ) -> list[Found]:
        """Return the matches of a window that leave when an event ends some."""
        window, used = own.window, self._used[own.window.key]
        matches: list[Found] = []
        for which in ended:
            if self._settings.rules[which].barred_after:
                self._wait_for(window)
                continue
            if self._is_full(window.key) or number in used:
                continue
            barred = used if self._keeps_used else set()
            for match in self._chosen(own.chains[which], number, window.low, barred):
                matches.append(self._made(match, which, turn, time_ns, window))
                self._count(window)
                if self._settings.consumes:
                    used.update(one for one, _, _ in match)
                    self._use(window, match)
                    break
                if self._is_full(window.key):
                    break
        return matches

    def _forget(self, number: int) -> None:
        """Forget events that no window has, if there are many."""
        open_low = self.windows.low(self.log)
        low = self.low = number + 1 if open_low is None else open_low
        if not self.log.forget(low):
            return
        for chain in self._chains:
            chain.forget(low)
        for key, used in list(self._used.items()):
            kept = {one for one in used if one >= low}
            if kept or key in self._own:
                self._used[key] = kept
            else:
                del self._used[key]
        self._gone = {one for one in self._gone if one >= low}
        oldest = self.windows.oldest()
        self._counts = {key: n for key, n in self._counts.items() if key >= oldest}
        self._given_up = {key: at for key, at in self._given_up.items() if key >= oldest}
        self._closing = {key: one for key, one in self._closing.items() if key >= oldest}

    # -- state ----------------------------------------------------------------------------

    def derive(self) -> None:
        """Make lists of the events that are left, and those of windows that differ."""
        self._replay(self._chains, 0, NONE, self._gone)
        for own in self._own.values():
            self._fill(own)

    def _new_own(self, key: int) -> OwnLists:
        return OwnLists(Window(key, 0, 0, None, None), self._settings.rules)


class OwnLists:
    """A window with its own lists: it lost events, or used them up.

    `kept` are numbers of events that it has, and the windows that share lists have not.
    """

    STATE = Fields("window", "kept")
    __slots__ = ("_rules", "chains", "kept", "window")

    def __init__(self, window: Window, rules: tuple[Rules, ...]) -> None:
        self.window = window
        self.kept: set[int] = set()
        self._rules = rules
        self.begin()

    def begin(self) -> None:
        """Begin with empty lists."""
        self.chains = [Chain(one) for one in self._rules]

    def remove(self, gone: Collection[int]) -> None:
        """Remove events that are used up."""
        for chain in self.chains:
            chain.remove(gone)

    def take(self, number: int, roles: list[Roles], values: dict[str, Any] | None) -> list[int]:
        """Take an event; return the alternatives of which it ends a match."""
        return [
            which
            for which, chain in enumerate(self.chains)
            if chain.take(number, roles[which], values) is not None
        ]

    def ended(self, number: int) -> list[int]:
        """Return the alternatives of which the event that was taken last ends a match."""
        return [
            which
            for which, chain in enumerate(self.chains)
            if chain.ends[-1].at and chain.ends[-1].at[-1] == number
        ]
