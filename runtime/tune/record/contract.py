"""Contract of a slack policy: samples of a second in, rules out.

```
slots ── StageSample, one a step and second ──▶ SlackPolicy.decide ── SetRelease ──▶ slots
```

A host (the simulator, the SLTuner actor) delivers both, once a second; the policy is pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from slackwater.runtime.control.commands import SetRelease
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model.subject import Subject


class SlackPolicy(Protocol):
    """Policy that sets slacks. A machine: no clock, no I/O; seeded where it draws."""

    @property
    def name(self) -> str:
        """Name in reports."""
        ...

    def begin(self) -> Sequence[SetRelease]:
        """Return the slacks to start with."""
        ...

    def decide(self, second: int, samples: Mapping[Subject, StageSample]) -> Sequence[SetRelease]:
        """Return the rules to change at the end of a second.

        Args:
            second: the second that has ended; each call has a later one, some may be missing.
            samples: {step: its sample}; without steps that have not reported.
        """
        ...
