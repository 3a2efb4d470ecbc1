"""What becomes of rows: each outcome is a word, registered here with its place in the balance.

A stage and a job count `{outcome: rows}`, and one rule holds for both: what came in is the sum over
all outcomes that stand in the balance.

```
place         in a stage's balance            in the job's
WENT_ON       yes                             no: how many at all gates, told beside it
CAME_OUT      –                               yes
LEFT_OUT      yes                             yes
LEFT_BEHIND   no: a part of what went on      yes
BESIDE        no: never was a row             no: told beside it
HERE          yes                             yes, and none once it is done
```

A new word is one line below, and `report.counts[WORD] += rows` where it happens. Balances, JSON and
printed reports take it from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Protocol, overload

__all__ = [
    "AT_STAGE",
    "BAD_TIME",
    "DUPLICATE",
    "FILTERED",
    "GIVEN_UP",
    "IN_FLIGHT",
    "LATE",
    "LATE_DROPPED",
    "OF_JOB",
    "OUT",
    "READY",
    "SHED",
    "SLACK_READY",
    "Counted",
    "Counts",
    "LedgerPlace",
    "Outcome",
    "at_stages",
    "of_jobs",
    "registered",
]


class LedgerPlace(Enum):
    """Where the rows of an outcome stand in the balance."""

    WENT_ON = "went on"
    """Into the operator, or to the next stage."""
    CAME_OUT = "came out"
    """Of a job: reached an operator with state, or a sink."""
    LEFT_OUT = "left out"
    """Did not go on, and will not."""
    LEFT_BEHIND = "left behind"
    """Went on, and was left out by what stands behind in the same stage."""
    BESIDE = "beside"
    """Was expected and never came: no row."""
    HERE = "here"
    """Has not gone on yet."""


AT_STAGE = (LedgerPlace.WENT_ON, LedgerPlace.LEFT_OUT, LedgerPlace.HERE)
"""The places whose sum is what came into a stage."""
OF_JOB = (LedgerPlace.CAME_OUT, LedgerPlace.LEFT_OUT, LedgerPlace.LEFT_BEHIND, LedgerPlace.HERE)
"""The places whose sum is what entered a job, copies included."""


class Outcome:
    """One word for what became of rows; of each name there is one, registered.

    Attributes:
        name: its key in a stage's JSON.
        place: where its rows stand in the balance.
        meaning: what it says of a row, a sentence for people.
        heading: of its column in the table of stages.
        of_job: its key in the JSON of the job's ledger.
        term: in the job's sum, as in "3 late".
        note: what is said of it beside the job's sum, of what went on or was no row; "": nothing.
        is_usual: told where there are none, too.
    """

    __slots__ = ("heading", "is_usual", "meaning", "name", "note", "of_job", "place", "term")

    def __init__(
        self,
        name: str,
        place: LedgerPlace,
        meaning: str,
        *,
        heading: str = "",
        of_job: str = "",
        term: str = "",
        note: str = "",
        is_usual: bool = False,
    ) -> None:
        self.name, self.place, self.meaning = name, place, meaning
        self.heading = heading or name.replace("_", " ")
        self.of_job = of_job or name
        self.term = term or self.of_job.replace("_", " ")
        self.note, self.is_usual = note, is_usual

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Callable[[str], Outcome], tuple[str]]:
        # A count that comes from another process is one of the word that is known here.
        return _named, (self.name,)


_known: dict[str, Outcome] = {}  # in the order in which they are told


def registered(one: Outcome) -> Outcome:
    """Register a word, and return it.

    Raises:
        ValueError: there is one of this name, or one that a job's ledger has under its name there.
    """
    is_taken = one.name in _known or one.of_job in {other.of_job for other in of_jobs()}
    if is_taken:
        raise ValueError(f"there is an outcome {one.name!r} already; give this one another name")
    _known[one.name] = one
    return one


def _named(name: str) -> Outcome:
    return _known[name]


def at_stages(*places: LedgerPlace) -> list[Outcome]:
    """Return the words that stages count, at these places or at all, in the order of telling."""
    return _at(places or (*AT_STAGE, LedgerPlace.LEFT_BEHIND, LedgerPlace.BESIDE))


def of_jobs(*places: LedgerPlace) -> list[Outcome]:
    """Return the words that a job's ledger counts, at these places or at all.

    At all places: those of its sum, then what is told beside it.
    """
    # What is furthest from in order is told first.
    noted = [one for one in reversed(_at([LedgerPlace.WENT_ON])) if one.note]
    return _at(places) if places else [*_at(OF_JOB), *noted, *_at([LedgerPlace.BESIDE])]


def _at(places: Iterable[LedgerPlace]) -> list[Outcome]:
    return [one for place in places for one in _known.values() if one.place is place]


class Counts(dict[Outcome, int]):
    """{outcome: rows}; 0 of what was never counted."""

    def __missing__(self, key: Outcome) -> int:
        if not isinstance(key, Outcome):
            raise KeyError(f"{key!r} is no outcome; read it by name: of_job()[{key!r}]")
        return 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        return all(self[one] == other[one] for one in {*self, *other})

    __hash__ = None

    def copy(self) -> Counts:
        """Return the same counts, apart from these."""
        return Counts(self)

    def at(self, *places: LedgerPlace) -> int:
        """Return how many rows have an outcome at these places."""
        return sum([rows for one, rows in self.items() if one.place in places])

    def added(self, more: Iterable[tuple[Outcome, int]]) -> Counts:
        """Return the counts with more rows."""
        made = Counts(self)
        for one, rows in more:
            made[one] += rows
        return made

    def by_name(self) -> dict[str, int]:
        """Return {name: rows} of all words that stages count."""
        return {one.name: self[one] for one in at_stages()}

    def of_job(self) -> dict[str, int]:
        """Return the same of all words that a job's ledger counts, under their names there."""
        return {one.of_job: self[one] for one in of_jobs()}

    @classmethod
    def of_stage(cls) -> Counts:
        """Return the counts of a stage that has taken nothing yet."""
        return cls.from_names({})

    @classmethod
    def from_names(cls, plain: Mapping[str, Any]) -> Counts:
        """Return what `by_name` gave; all else in `plain` is not looked at."""
        return cls({one: plain.get(one.name, 0) for one in at_stages()})

    @classmethod
    def from_job(cls, plain: Mapping[str, Any]) -> Counts:
        """Return what `of_job` gave; all else in `plain` is not looked at."""
        return cls({one: plain.get(one.of_job, 0) for one in of_jobs()})


class _Counting(Protocol):
    @property
    def counts(self) -> Counts: ...


class Counted:
    """Rows of one outcome, as an attribute of the report that counts them."""

    def __init__(self, one: Outcome) -> None:
        self._outcome = one
        self.__doc__ = one.meaning

    @overload
    def __get__(self, report: None, kind: type) -> Counted: ...
    @overload
    def __get__(self, report: _Counting, kind: type) -> int: ...
    def __get__(self, report: _Counting | None, kind: type) -> Counted | int:
        return self if report is None else report.counts[self._outcome]

    def __set__(self, report: _Counting, rows: int) -> None:
        report.counts[self._outcome] = rows


OUT = registered(
    Outcome(
        "out", LedgerPlace.CAME_OUT, "Reached an operator with state, or a sink.", is_usual=True
    )
)
READY = registered(
    Outcome(
        "ready",
        LedgerPlace.WENT_ON,
        "Released in order, known to be complete.",
        heading="in order",
        is_usual=True,
    )
)
SLACK_READY = registered(
    Outcome(
        "slack_ready",
        LedgerPlace.WENT_ON,
        "Released in order because the slack had run out: something older may still come.",
        heading="slack ran out",
        note="did not wait for what was older (slack)",
        is_usual=True,
    )
)
LATE = registered(
    Outcome(
        "late",
        LedgerPlace.WENT_ON,
        "Came behind what was already released, and was still used.",
        heading="late, used",
        of_job="late_used",
        note="came late and still counted",
        is_usual=True,
    )
)
LATE_DROPPED = registered(
    Outcome(
        "late_dropped",
        LedgerPlace.LEFT_OUT,
        "Came too late to be used, or behind its source's promise.",
        heading="late, dropped",
        of_job="late",
        is_usual=True,
    )
)
DUPLICATE = registered(
    Outcome(
        "duplicate",
        LedgerPlace.LEFT_OUT,
        "Had the sequence number of an event of its writer that had come already.",
    )
)
BAD_TIME = registered(
    Outcome(
        "bad_time",
        LedgerPlace.LEFT_OUT,
        "Had no event time or arrival, or one outside the years 1823 to 2116.",
        heading="bad time",
        term="with bad times",
    )
)
GIVEN_UP = registered(
    Outcome(
        "given_up",
        LedgerPlace.BESIDE,
        "Sequence numbers that did not come in time: no rows, unless they came late.",
        heading="numbers given up",
        note="sequence numbers were given up",
    )
)
FILTERED = registered(
    Outcome(
        "filtered",
        LedgerPlace.LEFT_BEHIND,
        "Dropped by the user's filters in this stage, before an operator saw them.",
        is_usual=True,
    )
)
SHED = registered(
    Outcome(
        "shed",
        LedgerPlace.LEFT_BEHIND,
        "Dropped under load, of all windows that it was in, so that a latency bound is kept.",
    )
)
IN_FLIGHT = registered(
    Outcome(
        "in_flight",
        LedgerPlace.HERE,
        "Queued, held by a gate, on the wire, or in a slice that broke off.",
        is_usual=True,
    )
)
