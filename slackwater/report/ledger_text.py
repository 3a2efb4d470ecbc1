"""Ledger of a run in a line or two, with its verdict."""

from __future__ import annotations

from rich.text import Text

from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.measure.outcomes import LATE, Counts, LedgerPlace, of_jobs
from slackwater.runtime.measure.report import JobReport

__all__ = ["ledger_line"]


def ledger_line(report: JobReport) -> Text:
    """Return the outcomes of the events that entered, and whether they balance."""
    ledger = report.ledger
    line = Text("Ledger  ", style="bold")
    line.append(f"{ledger.balance}  ", style="not bold")
    if imbalances(report):
        line.append(f"NOT BALANCED by {_unaccounted(report):,}", style="bold red")
    elif ledger.is_lower_bound and report.state in ("failed", "stopped"):
        line.append(f"not known: {_not_known(report)}", "bold yellow")
    elif ledger.is_balanced:
        line.append("balanced", style="bold green")
    else:  # stages of a running job report at slightly different moments
        line.append(f"{abs(ledger.missing) or ledger.untold:,} on the move", style="yellow")
    # Rows that sources pass on late are late rows of the job, too, though no gate released them.
    passed = sum(stage.late for stage in report.stages if stage.kind == "source")
    at_gates = Counts(ledger.counts)
    at_gates[LATE] = max(at_gates[LATE] - passed, 0)
    at_sources = [_noted(ledger.counts, LedgerPlace.BESIDE)]
    if passed:
        at_sources.insert(0, f"{passed:,} passed on late")
    for where, special in (
        ("gates", _noted(at_gates, LedgerPlace.WENT_ON)),
        ("sources", ", ".join(filter(None, at_sources))),
        ("keyed steps", _noted(ledger.counts, LedgerPlace.STATE)),
    ):
        if special:
            line.append(f"\n        at the {where}, {special}", style="not bold")
    return line


def _not_known(report: JobReport) -> str:
    ledger = report.ledger
    if ledger.untold:
        return f"{ledger.untold:,} taken that no sender reported"
    slots = ", ".join(map(repr, ledger.unreported))
    return f"slot{'s' * (len(ledger.unreported) > 1)} {slots} ended before a last report"


def _noted(counts: Counts, place: LedgerPlace) -> str:
    noted = [entry for entry in of_jobs() if entry.place is place and entry.note and counts[entry]]
    return ", ".join(f"{counts[outcome]:,} {outcome.note}" for outcome in noted)


def _unaccounted(report: JobReport) -> int:
    ledger = report.ledger
    stages = sum(abs(stage.missing) for stage in report.stages)
    wires = sum(abs(channel.in_flight) for channel in report.channels)
    return abs(ledger.missing) or abs(ledger.here) or stages or wires
