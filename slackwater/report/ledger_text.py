"""The ledger of a run in a line or two, with its verdict."""

from __future__ import annotations

from rich.text import Text

from runtime.measure import JobReport, Ledger, imbalances
from runtime.measure.outcomes import LedgerPlace, of_jobs

__all__ = ["ledger_line"]


def ledger_line(report: JobReport) -> Text:
    """Return what became of the events that entered, and whether that is all of them."""
    ledger = report.ledger
    line = Text("Ledger  ", style="bold")
    line.append(f"{ledger}  ", style="not bold")
    if imbalances(report):
        line.append(f"NOT BALANCED by {_unaccounted(report):,}", style="bold red")
    elif ledger.is_balanced:
        line.append("balanced", style="bold green")
    else:  # stages of a running job report at slightly different moments
        line.append(f"{abs(ledger.missing):,} on the move", style="yellow")
    for where, is_beside in (("gates", False), ("sources", True)):
        special = _noted(ledger, is_beside=is_beside)
        if special:
            line.append(f"\n        at the {where}, {special}", style="not bold")
    return line


def _noted(ledger: Ledger, *, is_beside: bool) -> str:
    noted = [
        one
        for one in of_jobs()
        if one.note and ledger.counts[one] and (one.place is LedgerPlace.BESIDE) == is_beside
    ]
    return ", ".join(f"{ledger.counts[one]:,} {one.note}" for one in noted)


def _unaccounted(report: JobReport) -> int:
    """Return by how many rows a run does not balance; the ledger's word goes first."""
    ledger = report.ledger
    stages = sum(abs(stage.missing) for stage in report.stages)
    wires = sum(abs(channel.in_flight) for channel in report.channels)
    return abs(ledger.missing) or abs(ledger.here) or stages or wires
