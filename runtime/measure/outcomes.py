"""Outcomes of rows: each is a word, registered here with its place in the balance.

A stage and a job count `{outcome: rows}`, and one rule holds for both: the rows that came in are
the sum over all outcomes that stand in the balance.

```
place         in a stage's balance            in the job's
WENT_ON       yes                             no: how many at all gates, told beside it
CAME_OUT      –                               yes
LEFT_OUT      yes                             yes
LEFT_LATER    no: a part of WENT_ON           yes
BESIDE        no: never was a row             no: told beside it
STATE         no: a state, no row             no: told beside it
HERE          yes                             yes, and none once it is done
```

A new outcome is one line below, and `report.counts[WORD] += rows` where it happens. Balances, JSON
and printed reports take it from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Protocol, overload

from slackwater.runtime.json_form import typed
from slackwater.runtime.shown import shown

__all__ = [
    "AT_STAGE",
    "BAD_TIME",
    "BEYOND_LIMIT",
    "COMBINED",
    "DIVERTED",
    "DUPLICATE",
    "FAILED",
    "FILTERED",
    "FORGOTTEN",
    "GIVEN_UP",
    "IN_FLIGHT",
    "LATE",
    "LATE_DROPPED",
    "OF_JOB",
    "OUT",
    "READY",
    "SHED",
    "SLACK_READY",
    "UNREADABLE",
    "Counted",
    "Counts",
    "LedgerPlace",
    "Outcome",
    "at_stages",
    "of_jobs",
    "registered",
]


class LedgerPlace(Enum):
    """Place in the balance of an outcome's rows."""

    WENT_ON = "went on"
    """Rows went into the operator, or to the next stage."""
    CAME_OUT = "came out"
    """Events of a job reached an operator with state, or a sink."""
    LEFT_OUT = "left out"
    """Rows did not go on, and will not."""
    LEFT_LATER = "left later"
    """Rows went on, and a later step of the same stage left them out."""
    BESIDE = "beside"
    """Events were expected and never came: no rows."""
    STATE = "state"
    """States of keys, and no rows."""
    HERE = "here"
    """Rows have not gone on yet."""


AT_STAGE = (LedgerPlace.WENT_ON, LedgerPlace.LEFT_OUT, LedgerPlace.HERE)
"""Places whose sum is the rows that came into a stage."""
OF_JOB = (LedgerPlace.CAME_OUT, LedgerPlace.LEFT_OUT, LedgerPlace.LEFT_LATER, LedgerPlace.HERE)
"""Places whose sum is the events that entered a job, copies included."""


class Outcome:
    """Outcome of rows; each name is registered once.

    Attributes:
        name: its key in a stage's JSON.
        place: place of its rows in the balance.
        meaning: sentence for people about such a row.
        heading: its column in the table of stages.
        of_job: its key in the JSON of the job's ledger.
        term: its word in the job's sum, as in "3 late".
        note: text beside the job's sum, for places outside it; "": no text.
        is_usual: whether it is printed even with 0 rows.
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
        # A count from another process must use the outcome that is registered in this one.
        return _named, (self.name,)


_known: dict[str, Outcome] = {}  # in the order of printing


def registered(outcome: Outcome) -> Outcome:
    """Register an outcome, and return it.

    Raises:
        ValueError: its name, or its name in a job's ledger, is registered already.
    """
    is_known = outcome.name in _known or outcome.of_job in {other.of_job for other in of_jobs()}
    if is_known:
        raise ValueError(
            f"there is an outcome {outcome.name!r} already; give this one another name"
        )
    _known[outcome.name] = outcome
    return outcome


def _named(name: str) -> Outcome:
    return _known[name]


def at_stages(*places: LedgerPlace) -> list[Outcome]:
    """Return the outcomes that stages count, at these places or at all places, in order."""
    return _at(places or (*AT_STAGE, LedgerPlace.LEFT_LATER, LedgerPlace.BESIDE, LedgerPlace.STATE))


def of_jobs(*places: LedgerPlace) -> list[Outcome]:
    """Return the outcomes that a job's ledger counts, at these places or at all places.

    At all places: outcomes of its sum, then those printed beside it.
    """
    # The outcome furthest from "in order" is printed first.
    noted = [outcome for outcome in reversed(_at([LedgerPlace.WENT_ON])) if outcome.note]
    return (
        _at(places)
        if places
        else [
            *_at(OF_JOB),
            *noted,
            *_at([LedgerPlace.BESIDE, LedgerPlace.STATE]),
        ]
    )


def _at(places: Iterable[LedgerPlace]) -> list[Outcome]:
    return [outcome for place in places for outcome in _known.values() if outcome.place is place]


class Counts(dict[Outcome, int]):
    """Counts of rows by outcome, {outcome: rows}; 0 where none was counted."""

    def __missing__(self, key: Outcome) -> int:
        if not isinstance(key, Outcome):
            raise KeyError(
                f"{shown(key)} is not an outcome; read it by name: of_job()[{shown(key)}]"
            )
        return 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        return all(self[outcome] == other[outcome] for outcome in {*self, *other})

    __hash__ = None

    def copy(self) -> Counts:
        """Return a copy of the counts."""
        return Counts(self)

    def at(self, *places: LedgerPlace) -> int:
        """Return the number of rows with an outcome at these places."""
        return sum([rows for outcome, rows in self.items() if outcome.place in places])

    def added(self, more: Iterable[tuple[Outcome, int]]) -> Counts:
        """Return the counts with more rows."""
        counts = Counts(self)
        for outcome, rows in more:
            counts[outcome] += rows
        return counts

    def by_name(self) -> dict[str, int]:
        """Return {name: rows} of all outcomes that stages count."""
        return {outcome.name: self[outcome] for outcome in at_stages()}

    def of_job(self) -> dict[str, int]:
        """Return {name in a job's ledger: rows} of all outcomes that it counts."""
        return {outcome.of_job: self[outcome] for outcome in of_jobs()}

    @classmethod
    def of_stage(cls) -> Counts:
        """Return the counts of a stage that has taken no row yet."""
        return cls.from_names({})

    @classmethod
    def from_names(cls, plain: Mapping[str, Any]) -> Counts:
        """Return counts from the output of `by_name`; other keys are ignored."""
        return cls({outcome: _rows(plain, outcome.name) for outcome in at_stages()})

    @classmethod
    def from_job(cls, plain: Mapping[str, Any]) -> Counts:
        """Return counts from the output of `of_job`; other keys are ignored."""
        return cls({outcome: _rows(plain, outcome.of_job) for outcome in of_jobs()})


def _rows(plain: Mapping[str, Any], name: str) -> int:
    rows: int = typed(name, plain.get(name, 0), int)
    return rows


class _Counting(Protocol):
    @property
    def counts(self) -> Counts: ...


class Counted:
    """Rows of one outcome, as an attribute of the report that counts them."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self.__doc__ = outcome.meaning

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
        "Came after newer rows had been released, and was still used.",
        heading="late, used",
        of_job="late_used",
        note="came late and went on",
        is_usual=True,
    )
)
LATE_DROPPED = registered(
    Outcome(
        "late_dropped",
        LedgerPlace.LEFT_OUT,
        "Came too late to be used, or older than its source's promise.",
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
UNREADABLE = registered(
    Outcome(
        "unreadable",
        LedgerPlace.LEFT_OUT,
        "Could not be read from its file, such as a record with too few values.",
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
DIVERTED = registered(
    Outcome(
        "diverted",
        LedgerPlace.BESIDE,
        "Could not be used, and left by the stream of diverted rows.",
        note="left by streams of diverted rows",
    )
)
FORGOTTEN = registered(
    Outcome(
        "forgotten",
        LedgerPlace.STATE,
        "States of keys that `process` forgot, as no row of theirs came for `within=`: no rows.",
        heading="keys forgotten",
        note="keys were forgotten with their state (within=)",
    )
)
FILTERED = registered(
    Outcome(
        "filtered",
        LedgerPlace.LEFT_LATER,
        "Dropped by the user's filters in this stage, before an operator saw them.",
        is_usual=True,
    )
)
COMBINED = registered(
    Outcome(
        "combined",
        LedgerPlace.LEFT_LATER,
        "Counted in another row, a partial result that was made beside the source.",
    )
)
FAILED = registered(
    Outcome(
        "failed",
        LedgerPlace.LEFT_LATER,
        'Omitted, as a user\'s function raised an error for it (`on_error="skip"`).',
    )
)
BEYOND_LIMIT = registered(
    Outcome(
        "beyond_limit",
        LedgerPlace.LEFT_LATER,
        "Came after the first rows that a `limit` lets through.",
    )
)
SHED = registered(
    Outcome(
        "shed",
        LedgerPlace.LEFT_LATER,
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
