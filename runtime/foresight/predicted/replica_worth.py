"""Worth of numbers of replicas: latency and highest rate with each; the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from slackwater.runtime.foresight.predicted.fits import ROOM
from slackwater.runtime.foresight.predicted.gate_waits import relieves
from slackwater.runtime.json_form import JsonView, View
from slackwater.runtime.model import format_s

__all__ = ["ReplicaTable", "ReplicaWorth"]


@dataclass(frozen=True, kw_only=True)
class ReplicaWorth(JsonView):
    """Worth of one number of replicas.

    Attributes:
        replicas: the number.
        worst_s: predicted worst latency; inf: it grows without bound, or a gate holds rows.
        keeps_deadline: whether the deadline is kept; None if it may be missed, or there is no
            deadline.
        limit: the slot, link or machine that is overloaded first as rates grow.
        load: its load at these rates.
        runs: the stages there.
        most: events a second of all sources at which its load is 1; inf: any number.
    """

    replicas: int
    worst_s: float
    keeps_deadline: bool | None
    limit: str
    load: float
    runs: tuple[str, ...]
    most: float

    JSON: ClassVar[View] = {
        "replicas": "replicas",
        "worst_s": "worst_s",
        "keeps_deadline": "keeps_deadline",
        "limit": "limit",
        "load": "load",
        "runs": "runs",
        "most_events_s": "most",
    }

    @property
    def keeps_up(self) -> bool:
        """Whether no slot has more than its work, with room for bursts."""
        return self.worst_s < float("inf") and self.load <= ROOM


@dataclass(frozen=True, kw_only=True)
class ReplicaTable(JsonView):
    """Worth of several numbers of replicas of the same steps.

    Attributes:
        steps: the steps, all with the same number.
        rows: numbers ascending, at least one.
        is_auto: whether `replicas="auto"` is the best of these.
    """

    steps: tuple[str, ...]
    rows: tuple[ReplicaWorth, ...]
    is_auto: bool

    JSON: ClassVar[View] = {
        "steps": "steps",
        "best": "best.replicas",
        "is_auto": "is_auto",
        "each": "rows",
    }

    @property
    def best(self) -> ReplicaWorth:
        """Fewest replicas with nearly the least latency; if none keeps up, with the highest rate.

        Those that keep up, with room for bursts, come before others, and of these the ones that
        keep the deadline.
        """
        bounded = [row for row in self.rows if row.worst_s < float("inf")]
        if not bounded:
            most = max(row.most for row in self.rows)
            return next(row for row in self.rows if not relieves(row.most, most))
        able = [row for row in bounded if row.keeps_up] or bounded
        able = [row for row in able if row.keeps_deadline is not False] or able
        least_s = min(row.worst_s for row in able)
        return next(row for row in able if not relieves(least_s, row.worst_s))

    def lines(self) -> list[str]:
        """Return the table as lines of text."""
        names = ", ".join(self.steps)
        why = 'replicas="auto" is the best of these' if self.is_auto else "all of these steps alike"
        lines = [f"replicas    of {names}: what more are worth ({why}; *: the best)"]
        heads = ("replicas", "worst latency", "most events/s", "limit")
        lines.append(f"    {heads[0]:>8}  {heads[1]:>14}  {heads[2]:>14}  {heads[3]}")
        best = self.best
        for row in self.rows:
            mark = "*" if row is best else " "
            latency = "without bound" if row.worst_s == float("inf") else format_s(row.worst_s)
            most = "any" if row.most == float("inf") else f"{row.most:,.0f}"
            where = f"{row.limit} at {row.load:.0%}: {_shortened(row.runs)}"
            lines.append(f"  {mark} {row.replicas:>8}  {latency:>14}  {most:>14}  {where}")
        return lines


def _shortened(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
