"""Record of each rule: its cost in rows, and whether it kept the deadline.

```
samples ── tried ──▶ rows and latency of every rule, second by second ──▶ which one rules next
```

All rules are judged by the gates' trials (`runtime/measure/trials.py`), the ruling one too; the
rest of the path counts with its measured time. Two rules are compared over the seconds in which
both ran along. A second that the safe rule would have broken as well counts only against the rule
that ruled: its releases are the load that the rest of the path then had.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.trials import Tried
from slackwater.runtime.model.subject import Subject
from slackwater.runtime.tune.record.paths import Paths, measured_ns

TRIAL_S = 30
"""Seconds that a rule must have run along before it may rule."""
RECORD_S = 600
"""Last seconds in which breaks of the deadline count."""
FADES = 0.99
"""Weight of rows a second ago against those of the last second: half after a minute."""
WINS = 0.95
"""A rule replaces another one if it has at most this share of its rows."""
BENEFIT_S = 100
"""Seconds that the models are credited with: they keep a margin for their own uncertainty."""


@dataclass
class _Faded:
    rows: float = 0.0
    seconds: float = 0.0

    def add(self, rows: int) -> None:
        self.rows = FADES * self.rows + rows
        self.seconds = FADES * self.seconds + 1

    @property
    def rate(self) -> float:
        """Recent slack-ready rows a second."""
        return self.rows / self.seconds if self.seconds else 0.0


@dataclass
class _Record:
    over: deque[bool] = field(default_factory=lambda: deque(maxlen=RECORD_S))
    all: _Faded = field(default_factory=_Faded)
    beside: dict[str, _Faded] = field(default_factory=dict)
    """{another rule: own rows in the seconds in which that rule ran along, too}."""

    def add(self, rows: int, *, is_over: bool, along: Collection[str]) -> None:
        self.over.append(is_over)
        self.all.add(rows)
        for name in along:
            self.beside.setdefault(name, _Faded()).add(rows)


class RuleAccounts:
    """Chooses the ruling rule by the records of all.

    Args:
        paths: paths of the flow.
        names: names of the rules, the safe one first, then by complexity; among equals the first
            rules.
        benefit: rules credited with the deadline kept for `BENEFIT_S`.
        deadline_ns: deadline of the flow.
        probability: least probability of keeping the deadline in a second.

    Attributes:
        ruling: name of the ruling rule.
        why: reason of the choice, in words.
    """

    def __init__(
        self,
        paths: Paths,
        names: Sequence[str],
        *,
        benefit: Collection[str],
        deadline_ns: int,
        probability: float,
    ) -> None:
        self._paths, self._deadline_ns = paths, deadline_ns
        self._benefit = frozenset(benefit)
        self._may_be_over = 1 - probability
        self._safe = names[0]
        # A row that leaves a gate too soon is late at the gates downstream, and counts there again.
        # Trials of those gates see the rows that the ruling rule sent, equal for all rules.
        self._counts = {gate: 1 + paths.gates_downstream(gate) for gate in paths.tuned}
        self._records = {name: _Record() for name in names}
        self._own_over: deque[bool] = deque(maxlen=RECORD_S)  # measured, of the ruling rule
        self.ruling = self._safe
        self.why = "nothing is known yet"

    def add(self, samples: Mapping[Subject, StageSample], *, is_own: bool = True) -> None:
        """Count a second.

        Args:
            samples: {step: its sample}; if a gate is missing the second is not counted.
            is_own: whether the second is of this run; then the gates' own work is their time
                beyond the wait of the ruling rule.
        """
        gates = [samples[gate] for gate in self._paths.tuned if gate in samples]
        if len(gates) < len(self._paths.tuned):
            return
        took_ns = measured_ns(samples)
        tried = {gate.subject: {trial.name: trial for trial in gate.tried} for gate in gates}
        work_ns = {
            gate.subject: self._work_ns(gate, tried[gate.subject]) if is_own else 0.0
            for gate in gates
        }
        along = [name for name in self._records if all(name in of for of in tried.values())]
        is_hopeless = False  # the safe rule, which is first, would have been over, too
        for name in along:
            own = {step: of[name] for step, of in tried.items()}
            waits_ns = {step: trial.wait_ns + work_ns[step] for step, trial in own.items()}
            rows = sum(self._counts[step] * trial.slack_ready for step, trial in own.items())
            is_over = self._is_over({**took_ns, **waits_ns})
            ruled = is_own and name == self.ruling
            is_held = is_over and (ruled or not is_hopeless)
            self._records[name].add(rows, is_over=is_held, along=along)
            is_hopeless |= is_over and name == self._safe
        if is_own:
            is_over = self._is_over(took_ns)
            is_excused = is_hopeless and self.ruling == self._safe
            self._own_over.append(is_over and not is_excused)

    def _work_ns(self, gate: StageSample, tried: Mapping[str, Tried]) -> float:
        ruled = tried.get(self.ruling)
        return 0.0 if ruled is None else float(max(gate.took_ns - ruled.wait_ns, 0))

    def _is_over(self, took_ns: Mapping[Subject, float]) -> bool:
        return self._paths.latency_ns(took_ns) > self._deadline_ns

    def choose(self, able: Collection[str]) -> str:
        """Return the rule for the next second.

        Args:
            able: rules that have a setting for it; the safe one always has.
        """
        fit = [name for name in self._records if name in able and self._is_fit(name)]
        best = self.ruling if self.ruling in fit else self._safe
        if best != self._safe and self._rate(self._safe, best) <= self._rate(best, self._safe):
            best = self._safe
        for name in fit:
            if name != best and self._rate(name, best) < WINS * self._rate(best, name):
                best = name
        self.ruling = best
        self.why = self._reason(best)
        return best

    def _rate(self, name: str, beside: str) -> float:
        """Return a rule's rows a second, over the seconds shared with another rule.

        The models begin later than the other rules. Rows lost earlier are not a merit of the
        models.
        """
        rows = self._records[name].beside.get(beside)
        return rows.rate if rows else 0.0

    def _is_fit(self, name: str) -> bool:
        """Whether a rule has run along long enough, and was over rarely enough."""
        record = self._records[name]
        seconds, over = len(record.over), sum(record.over)
        if name == self._safe:
            return True
        if seconds < TRIAL_S:
            return False
        if name in self._benefit:
            return over <= self._may_be_over * (seconds + BENEFIT_S)
        # With gates in a row a trial sees rows that other gates released, and a rest of the path
        # without the load that their holds kept away: a rule that was never over on trial may be
        # over when it rules. So with more gates fewer breaks exclude the simple rules.
        own = self._own_over
        has_left = sum(own) <= self._may_be_over / max(self._counts.values()) * len(own)
        return has_left and over <= self._may_be_over * seconds

    def _reason(self, best: str) -> str:
        record = self._records[best]
        if best == self._safe:
            return "no other rule has lost fewer rows and kept the deadline as well"
        return (
            f"{self._rate(best, self._safe):,.0f} rows a second leave as slack-ready of late, "
            f"where {self._safe} has {self._rate(self._safe, best):,.0f} over the same seconds; "
            f"over in {sum(record.over)} of {len(record.over)} s"
        )

    def status(self) -> dict[str, str]:
        """Return each rule's record as text."""
        return {
            name: f"{record.all.rate:,.0f} rows/s, "
            f"over in {sum(record.over)} of {len(record.over)} s"
            for name, record in self._records.items()
            if record.over
        }
