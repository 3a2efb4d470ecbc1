"""Order by sequence number: settings of `out_of_order="sequence"`.

The numbers of one writer are read in `sequence_writer.py`; all writers of a source are together in
`sequence_order.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from slackwater.runtime.calls import checked_options
from slackwater.runtime.errors import SettingError
from slackwater.runtime.model import Duration, duration_ns, format_ns
from slackwater.runtime.order.reorder import AsTheyCome, Reordering
from slackwater.runtime.order.settings import is_number, is_whole
from slackwater.runtime.shown import shown

FARTHEST = 1_000_000
"""Default of `farthest`: a number further ahead starts a new numbering."""


@dataclass(frozen=True, kw_only=True)
class BySequence:
    """Policy by which each writer's rows leave in order of their numbers.

    Attributes:
        timeout_ns: t_latency-th: the longest wait for a missing number, and for a silent writer.
        alpha: the weight of the old value in the average time between events, Eq. 3.2.
        beta: the weight of the old value in the average wait of held events, Eq. 3.7.
        late: fate of a row whose number was given up, or that is older than the promise: "drop", or
            "pass": it leaves at once. It is counted either way.
        restart: when the wait for a missing number starts. "added": again with each row held after
            the gap, for the timeout at that moment; `timeout_ns` in all. "first": when the first
            row after the gap comes. Where events come densely the timeout is then as short as the
            time between them, and nearly every gap is given up.
        wraps: the bits of the number, if it starts again at 0: 32 for 2**32 − 1, 0. None if it
            does not.
        first: the number that each writer starts with, and starts again with; any if None.
        merge: whether the source itself puts its writers' rows in one order of event time.
        silent_ns: the longest wait for a silent writer; as for missing numbers if None, Eq. 3.11.
        learns_from_late: whether the wait that a late row needed counts as a wait, so that the next
            timeout is longer. The thesis learns only from waits that were long enough.
        farthest: a number further ahead starts a new numbering. With `wraps` a number that seems
            to be ahead by half of all numbers, or more, has been passed.
        least_ns: the shortest wait for a missing number, whatever Eq. 3.11 says. The thesis has
            none; without it a pause in the arrivals, longer than recent ones, ends the wait
            (docs/benchmarks/order.md).

    Raises:
        SettingError: a weight, a word, `wraps`, `first` or `farthest` is out of its range.

    Source: [thesis] §3.2.1, §3.2.2.
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
                    f"by_sequence: {name}={shown(weight)} must be at least 0 and below 1, the "
                    "weight of the old value in the average; the thesis has 0.6"
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
                f"timeout={format_ns(self.timeout_ns)}, the longest wait for a number; raise "
                "timeout or lower least"
            )

    def _check_numbers(self) -> None:
        if self.wraps is not None and not (is_whole(self.wraps) and 2 <= self.wraps <= 62):
            raise SettingError(
                f"by_sequence: wraps={shown(self.wraps)} must be the bits of the number, 2 to 62; "
                "write 32, say, or None if it never starts again"
            )
        first, most = self.first, self.numbers
        if first is not None and not (is_whole(first) and 0 <= first < most):
            raise SettingError(
                f"by_sequence: first={first!r} is not a number that a writer can have: a whole "
                f"one, from 0 to below {most:,}; write None for whatever comes first"
            )
        if not (is_whole(self.farthest) and self.farthest >= 1):
            raise SettingError(
                f"by_sequence: farthest={shown(self.farthest)} must be a whole number, 1 or more, "
                f"how far ahead a number may be; omit it for {FARTHEST:,}"
            )

    @property
    def numbers(self) -> int:
        """Count of distinct numbers."""
        return 1 << (63 if self.wraps is None else self.wraps)

    @property
    def reach(self) -> int:
        """Most that a number may be ahead: `farthest`, or below half of all."""
        return min(self.farthest, self.numbers // 2 - 1)

    def unwrapped(self, number: int, highest: int) -> int:
        """Return a number of the column, continued past its wraps: the nearest to `highest`.

        Source: serial number arithmetic, RFC 1982; at half of all either way, the passed one.
        """
        half = self.numbers // 2
        return highest + (number - highest + half) % self.numbers - half

    def in_column(self, number: int) -> int:
        """Return a continued number as its column has it."""
        return number if self.wraps is None else number % self.numbers

    @property
    def sorts(self) -> bool:  # noqa: D102 - see Reorder
        return self.merge and not self.passes_late

    @property
    def may_mix(self) -> bool:  # noqa: D102 - see Reorder
        return self.passes_late

    @property
    def passes_late(self) -> bool:  # noqa: D102 - see Reorder
        return self.late == "pass"

    @property
    def longest_ns(self) -> int:  # noqa: D102 - see Reorder
        return self.timeout_ns

    @property
    def text(self) -> str:  # noqa: D102 - see Reorder
        words = f"by sequence number, gaps given up after {format_ns(self.timeout_ns)} at most"
        late = "passed on" if self.passes_late else "dropped"
        return f"{words}, late ones {late}" + (", writers merged" if self.merge else "")

    def begin(self) -> Reordering:  # noqa: D102 - see Reorder
        return AsTheyCome().begin()  # the numbers have put the rows in order (`sequence_order.py`)


@checked_options
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
        timeout: the longest wait for a missing number. By default 500 ms, as in the thesis'
            experiments (Query 5.3).
        alpha: weight of the old value in the average time between events.
        beta: weight of the old value in the average wait of held events.
        late: rule for late rows: "drop" them, or "pass" them on.
        restart: start of the timeout of a gap, as in `BySequence`.
        wraps: bits of the number, if it starts again at 0.
        first: first number of each writer; any if None.
        merge: whether rows of all writers are in one order.
        silent: longest wait for a silent writer; as for missing numbers if None.
        learns_from_late: whether waits for late rows count as waits.
        farthest: distance of a number that starts a new numbering.
        least: the shortest timeout of all.

    Raises:
        SettingError: a setting is out of its range.

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
