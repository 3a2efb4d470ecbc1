"""Order by sequence number: the settings of `out_of_order="sequence"`.

What one writer's numbers mean is in `sequence_writer.py`, all writers of a source together are in
`sequence_order.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import Duration, duration_ns, format_ns
from slackwater.runtime.order.reorder import AsTheyCome, Reordering
from slackwater.runtime.order.settings import is_number, is_whole

FARTHEST = 1_000_000
"""A number further ahead than this is not waited for: it begins a new numbering."""


@dataclass(frozen=True, kw_only=True)
class BySequence:
    """Rows of each writer leave in the order of their numbers. Source: [thesis] §3.2.1, §3.2.2.

    Attributes:
        timeout_ns: t_latency-th: the longest that a missing number is waited for, and that a
            silent writer is.
        alpha: how much the old value weighs in the average time between events, Eq. 3.2.
        beta: how much it does in the average wait of events held, Eq. 3.7.
        late: what to do with a row whose number was given up, or that is older than what was
            promised: "drop" or "pass", which lets it go at once. Either way it is counted.
        restart: when the wait for a missing number starts. "added": again with each row that is
            put behind it, for the timeout as it is then; `timeout_ns` in all. "first": when the
            first row comes that is behind it. Where events come densely the timeout is then as
            short as the time between them, and nearly every gap is given up.
        wraps: bits of the number, where it begins again at 0: 32 for 2**32 − 1, 0. None: it
            does not.
        first: the number that each writer begins with, and begins again with. None: whatever
            comes first.
        merge: whether the source itself puts its writers' rows in one order of event time.
        silent_ns: how long a writer is waited for that says nothing. None: as long as its missing
            numbers, Eq. 3.11.
        learns_from_late: whether a row that came too late counts as one that was waited for as
            long, so that the next is. The thesis learns only from waits that were long enough.
        farthest: a number that is further ahead begins a new numbering. With `wraps` a number
            that seems to be ahead by half of all, or more, is one that has been passed.
        least_ns: the shortest that a missing number is waited for, whatever Eq. 3.11 says. The
            thesis has none; without it a pause in the arrivals, longer than those of late, ends
            the wait (docs/benchmarks/order.md).

    Raises:
        SettingError: a weight, a word, `wraps`, `first` or `farthest` is out of its range.
    """

    timeout_ns: int
    alpha: float = 0.6
    beta: float = 0.6
    late: Literal["drop", "pass"] = "drop"
    restart: Literal["first", "added"] = "added"
    wraps: int | None = None
    first: int | None = None
    merge: bool = False
    silent_ns: int | None = None
    learns_from_late: bool = False
    farthest: int = FARTHEST
    least_ns: int = 0
    refuses = False

    def __post_init__(self) -> None:
        for name, weight in (("alpha", self.alpha), ("beta", self.beta)):
            if not (is_number(weight) and 0 <= weight < 1):
                raise SettingError(
                    f"by_sequence: {name}={weight!r} must be at least 0 and below 1: so much the "
                    "old value weighs in the average; the thesis has 0.6"
                )
        for name, word, words in (
            ("late", self.late, ("drop", "pass")),
            ("restart", self.restart, ("first", "added")),
        ):
            if word not in words:
                raise SettingError(
                    f"by_sequence: {name}={word!r} must be {words[0]!r} or {words[1]!r}"
                )
        for name, flag in (("merge", self.merge), ("learns_from_late", self.learns_from_late)):
            if not isinstance(flag, bool):
                raise SettingError(f"by_sequence: {name}={flag!r} must be True or False")
        self._check_numbers()
        if self.least_ns > self.timeout_ns:
            raise SettingError(
                f"by_sequence: least={format_ns(self.least_ns)} must be at most "
                f"timeout={format_ns(self.timeout_ns)}, the longest that a number is waited for"
            )

    def _check_numbers(self) -> None:
        if self.wraps is not None and not (is_whole(self.wraps) and 2 <= self.wraps <= 62):
            raise SettingError(
                f"by_sequence: wraps={self.wraps!r} must be the bits of the number, 2 to 62 (32, "
                "say), or None if it never begins again"
            )
        first, most = self.first, self.numbers
        if first is not None and not (is_whole(first) and 0 <= first < most):
            raise SettingError(
                f"by_sequence: first={first!r} is no number that a writer can have: a whole one, "
                f"from 0 to below {most:,}; or None for whatever comes first"
            )
        if not (is_whole(self.farthest) and self.farthest >= 1):
            raise SettingError(
                f"by_sequence: farthest={self.farthest!r} must be a whole number, 1 or more: so "
                "far ahead a number may be and still be waited for"
            )

    @property
    def numbers(self) -> int:
        """How many numbers there are."""
        return 1 << (63 if self.wraps is None else self.wraps)

    @property
    def reach(self) -> int:
        """How far ahead a number may be: `farthest`, or as far as ahead is told from passed."""
        return min(self.farthest, self.numbers // 2 - 1)

    def unwrapped(self, number: int, highest: int) -> int:
        """Return a number of the column as it goes on: the nearest to the highest so far.

        Source: serial number arithmetic, RFC 1982; of half of all either way, the passed one.
        """
        half = self.numbers // 2
        return highest + (number - highest + half) % self.numbers - half

    def told(self, number: int) -> int:
        """Return a number as its column has it; inside it goes on where that begins again."""
        return number if self.wraps is None else number % self.numbers

    @property
    def sorts(self) -> bool:
        """Whether rows leave in the order of their event times."""
        return self.merge and not self.passes_late

    @property
    def may_mix(self) -> bool:
        """Whether rows of one writer may leave behind newer ones of it."""
        return self.passes_late

    @property
    def passes_late(self) -> bool:
        """Whether late rows go on."""
        return self.late == "pass"

    @property
    def longest_ns(self) -> int:
        """As long as a row may wait."""
        return self.timeout_ns

    @property
    def text(self) -> str:
        """How `explain` says it."""
        words = f"by sequence number, gaps given up after {format_ns(self.timeout_ns)} at most"
        late = "passed on" if self.passes_late else "dropped"
        return f"{words}, late ones {late}" + (", writers merged" if self.merge else "")

    def begin(self) -> Reordering:
        """Hold nothing: the rows have been put in order by their numbers (`sequence_order.py`)."""
        return AsTheyCome().begin()


def by_sequence(  # noqa: PLR0913 - a word for each setting
    *,
    timeout: Duration = "500ms",
    alpha: float = 0.6,
    beta: float = 0.6,
    late: Literal["drop", "pass"] = "drop",
    restart: Literal["first", "added"] = "added",
    wraps: int | None = None,
    first: int | None = None,
    merge: bool = False,
    silent: Duration | None = None,
    learns_from_late: bool = False,
    farthest: int = FARTHEST,
    least: Duration = 0,
) -> BySequence:
    """Return `out_of_order=` of a source whose rows are numbered by `sequence=`.

    Args:
        timeout: the longest that a missing number is waited for. 500 ms unless told, as in the
            thesis' experiments (Query 5.3).
        alpha: as in `BySequence`; so are all others.
        beta: the same.
        late: the same.
        restart: the same.
        wraps: the same.
        first: the same.
        merge: the same.
        silent: its `silent_ns`, as a length of time.
        learns_from_late: the same.
        farthest: the same.
        least: its `least_ns`, as a length of time.

    Raises:
        SettingError: one is out of its range.

    Source: [thesis] §3.2.1, §3.2.2; α, β, the timeout and what to do with late rows are parameters
    4 to 7 of its §4. The others are ours.
    """
    silent_ns = None
    if silent is not None:
        silent_ns = duration_ns(silent, what="by_sequence: silent", positive=True)
    return BySequence(
        timeout_ns=duration_ns(timeout, what="by_sequence: timeout", positive=True),
        alpha=alpha,
        beta=beta,
        late=late,
        restart=restart,
        wraps=wraps,
        first=first,
        merge=merge,
        silent_ns=silent_ns,
        learns_from_late=learns_from_late,
        farthest=farthest,
        least_ns=duration_ns(least, what="by_sequence: least"),
    )
