"""The record of each rule: what it cost, or would have, and whether it kept the deadline.

```
samples ── tried ──▶ rows and latency of every rule, second by second ──▶ which one rules next
```

All rules are judged alike, by the gates' trials (`runtime/measure/trials.py`), the one that rules
too; what the rest of the path took is what it really took. Two are compared over the seconds in
which both ran along. A second that the safe rule would have broken as well is held against nobody
but the rule that ruled: what it let go, and when, is what the rest then had to work off.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.trials import Tried
from slackwater.runtime.tune.record.paths import Paths, measured_ns

TRIAL_S = 30
"""Seconds that a rule must have run along before it may rule."""
KEPT_S = 600
"""Seconds of which those over the deadline count."""
FADES = 0.99
"""What rows of a second ago count beside those of the last one: a minute's count half."""
WINS = 0.95
"""A rule takes the place of another with at most this share of its rows."""
BENEFIT_S = 100
"""The models keep back what they are unsure of: they begin as if they had kept so many seconds."""


@dataclass
class _Faded:
    rows: float = 0.0
    seconds: float = 0.0

    def add(self, rows: int) -> None:
        self.rows = FADES * self.rows + rows
        self.seconds = FADES * self.seconds + 1

    @property
    def rate(self) -> float:
        """Slack-ready rows a second, of late."""
        return self.rows / self.seconds if self.seconds else 0.0


@dataclass
class _Record:
    over: deque[bool] = field(default_factory=lambda: deque(maxlen=KEPT_S))
    all: _Faded = field(default_factory=_Faded)
    beside: dict[str, _Faded] = field(default_factory=dict)
    """{another rule: its own rows, of the seconds in which that one ran along, too}."""

    def add(self, rows: int, *, is_over: bool, others: Collection[str]) -> None:
        self.over.append(is_over)
        self.all.add(rows)
        for other in others:
            self.beside.setdefault(other, _Faded()).add(rows)


class RuleAccounts:
    """Says who rules.

    Args:
        paths: of the flow.
        names: of the rules, the safe one first, then from simple to not; of equals the first rules.
        benefit: those that begin as if they had kept the deadline for `BENEFIT_S`.
        deadline_ns: of the flow.
        probability: how likely a second must be to keep it.

    Attributes:
        ruling: who does.
        why: in words.
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
        # What leaves a gate too soon comes late at those behind, and counts there again. A trial of
        # those sees what the rule that rules has sent them, which is the same for all.
        self._counts = {gate: 1 + paths.gates_behind(gate) for gate in paths.tuned}
        self._records = {name: _Record() for name in names}
        self._own_over: deque[bool] = deque(maxlen=KEPT_S)  # what really was
        self.ruling = self._safe
        self.why = "nothing is known yet"

    def add(self, samples: Mapping[str, StageSample], *, is_own: bool = True) -> None:
        """Count a second.

        Args:
            samples: {stage: its sample}; without all gates nothing is counted.
            is_own: of this run; what the gates' own work took is then what they took beyond the
                wait of the rule that rules.
        """
        gates = [samples[gate] for gate in self._paths.tuned if gate in samples]
        if len(gates) < len(self._paths.tuned):
            return
        took_ns = measured_ns(samples)
        tried = {gate.stage: {one.name: one for one in gate.tried} for gate in gates}
        work_ns = {
            gate.stage: self._work_ns(gate, tried[gate.stage]) if is_own else 0.0 for gate in gates
        }
        along = [name for name in self._records if all(name in of for of in tried.values())]
        is_hopeless = False  # the safe rule, the first, would have been over, too
        for name in along:
            own = {stage: of[name] for stage, of in tried.items()}
            waits_ns = {stage: one.wait_ns + work_ns[stage] for stage, one in own.items()}
            rows = sum(self._counts[stage] * one.slack_ready for stage, one in own.items())
            is_over = self._is_over({**took_ns, **waits_ns})
            ruled = is_own and name == self.ruling
            is_held = is_over and (ruled or not is_hopeless)
            self._records[name].add(rows, is_over=is_held, others=along)
            is_hopeless |= is_over and name == self._safe
        if is_own:
            is_over = self._is_over(took_ns)
            is_excused = is_hopeless and self.ruling == self._safe
            self._own_over.append(is_over and not is_excused)

    def _work_ns(self, gate: StageSample, tried: Mapping[str, Tried]) -> float:
        ruled = tried.get(self.ruling)
        return 0.0 if ruled is None else float(max(gate.took_ns - ruled.wait_ns, 0))

    def _is_over(self, took_ns: Mapping[str, float]) -> bool:
        return self._paths.latency_ns(took_ns) > self._deadline_ns

    def choose(self, able: Collection[str]) -> str:
        """Return who rules in the next second.

        Args:
            able: the rules that say what to do then; the safe one always does.
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
        """Return the rows a second of a rule, of the seconds in which another ran along, too.

        The models come later than the others. What those lost before is no merit of the models.
        """
        known = self._records[name].beside.get(beside)
        return known.rate if known else 0.0

    def _is_fit(self, name: str) -> bool:
        """Whether a rule has run along for long enough, and was over seldom enough."""
        record = self._records[name]
        seconds, over = len(record.over), sum(record.over)
        if name == self._safe:
            return True
        if seconds < TRIAL_S:
            return False
        if name in self._benefit:
            return over <= self._may_be_over * (seconds + BENEFIT_S)
        # Of gates in a row a trial sees what others let through, and a rest that their holds have
        # spared: who was never over on trial may be as it rules. So the more gates, the sooner none
        # of the simple rules does.
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
        """Return the record of each rule in words."""
        return {
            name: f"{one.all.rate:,.0f} rows/s, over in {sum(one.over)} of {len(one.over)} s"
            for name, one in self._records.items()
            if one.over
        }
