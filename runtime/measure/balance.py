"""Sum of a job's ledger: the events that entered, and every outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from slackwater.runtime.json_form import JsonObject, spread
from slackwater.runtime.measure.outcomes import (
    FILTERED,
    IN_FLIGHT,
    LATE,
    LATE_DROPPED,
    OF_JOB,
    OUT,
    SHED,
    SLACK_READY,
    Counted,
    Counts,
    LedgerPlace,
    of_jobs,
)


@dataclass(frozen=True)
class Ledger(JsonObject):
    """Ledger of a job: in = out + late + filtered + in flight.

    `entered` counts rows at the sources; `out` counts rows that reached an operator with state or a
    sink; a stream that feeds two stages is followed into each (`copies` more rows). `counts` has
    every outcome (runtime/measure/outcomes.py). `results`, beside the sum, are the rows that sinks
    took: joins, windows and patterns make new rows of events.
    """

    entered: int
    copies: int
    counts: Counts = field(metadata=spread(Counts.of_job, Counts.from_job))
    """{outcome: rows}. Rows that went on late or slack-ready are counted at each gate: twice at two
    gates ([ssg] Eq. 5). All other outcomes stand in the balance."""
    is_final: bool = False
    """Whether the job is done: then no row may be in flight."""
    results: int | None = None
    """Rows that sinks took; None if unknown, as in a report of an older version."""
    untold: int = 0
    """Rows that stages took and their senders had not reported, since they died or hang. Then
    `entered` is a lower bound."""
    unreported: tuple[str, ...] = ()
    """Slots that ended before they could report. Their counts are older than their end, so
    `entered` is a lower bound."""

    DERIVED: ClassVar = {"balanced": "is_balanced"}

    out = Counted(OUT)
    late = Counted(LATE_DROPPED)
    filtered = Counted(FILTERED)
    in_flight = Counted(IN_FLIGHT)
    shed = Counted(SHED)
    late_used = Counted(LATE)
    slack_ready = Counted(SLACK_READY)

    @property
    def missing(self) -> int:
        """Events that entered without an outcome; below zero: more outcomes than events."""
        return self.entered + self.copies - self.counts.at(*OF_JOB)

    @property
    def here(self) -> int:
        """Events that are still in the flow."""
        return self.counts.at(LedgerPlace.HERE)

    @property
    def is_lower_bound(self) -> bool:
        """Whether more rows may have entered than are known."""
        return bool(self.untold or self.unreported)

    @property
    def is_balanced(self) -> bool:
        """Whether every event has an outcome; once done, none in flight.

        False while the number of rows that entered is not known.
        """
        return self.missing == 0 and not self.is_lower_bound and not (self.is_final and self.here)

    @property
    def balance(self) -> str:
        """Text of the sum, and of the rows that sinks took."""
        copies = f" + {self.copies:,} copied" if self.copies else ""
        terms = (
            f"{self.counts[outcome]:,} {outcome.term}"
            for outcome in of_jobs(*OF_JOB)
            if outcome.is_usual or self.counts[outcome]
        )
        results = "" if self.results is None else f"; {self.results:,} results"
        least = "at least " if self.is_lower_bound else ""
        return f"{least}{self.entered:,} in{copies} = {' + '.join(terms)}{results}"

    def __str__(self) -> str:
        beside = (LedgerPlace.WENT_ON, LedgerPlace.BESIDE, LedgerPlace.STATE)
        notes = [
            f"{self.counts[outcome]:,} {outcome.note}"
            for outcome in of_jobs(*beside)
            if outcome.note and self.counts[outcome]
        ]
        return "; ".join([self.balance, *notes])
