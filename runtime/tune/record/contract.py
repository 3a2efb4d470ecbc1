"""What sets slacks looks like: samples of a second in, slacks for the next ones out.

```
slots ── StageSample, one a stage and second ──▶ SlackPolicy.decide ── SetSlack ──▶ slots
```

A host (the simulator, the SLTuner actor) carries both, once a second; the policy is pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from runtime.measure.samples import StageSample
from runtime.measure.trials import Trial


@dataclass(frozen=True, slots=True)
class SetSlack:
    """Change the slack of a gate: setSLT of [ssg] §4.1, §4.2 SLTsetter.

    Attributes:
        stage: whose gate.
        slack_ns: of event time; None: ready-only.
        waits_in_full: rows wait for the whole slack, ready or not, as in a K-slack buffer.
        hold_ns: the longest that a row may wait there by the clock, ≥ 0; None: as long as it takes.
        by: who decided: the name of a policy, or which of its rules.
        trials: other settings, of which only account is kept: what they would have let go.
    """

    stage: str
    slack_ns: int | None
    hold_ns: int | None = None
    by: str = ""
    waits_in_full: bool = False
    trials: tuple[Trial, ...] = ()


class SlackPolicy(Protocol):
    """One way to set slacks. A machine: no clock, no I/O; seeded where it draws."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def begin(self) -> Sequence[SetSlack]:
        """Return the slacks to start with."""
        ...

    def decide(self, second: int, samples: Mapping[str, StageSample]) -> Sequence[SetSlack]:
        """Return what to change now that a second is over.

        Args:
            second: the one that has ended; each call has a later one, some may be missing.
            samples: {stage: what it did in it}; a stage that has not reported is not there.
        """
        ...
