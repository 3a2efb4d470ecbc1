"""What sets slacks looks like: samples of a second in, rules for the next ones out.

```
slots ── StageSample, one a stage and second ──▶ SlackPolicy.decide ── SetRelease ──▶ slots
```

A host (the simulator, the SLTuner actor) carries both, once a second; the policy is pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from slackwater.runtime.control.commands import SetRelease
from slackwater.runtime.measure.samples import StageSample


class SlackPolicy(Protocol):
    """One way to set slacks. A machine: no clock, no I/O; seeded where it draws."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    def begin(self) -> Sequence[SetRelease]:
        """Return the slacks to start with."""
        ...

    def decide(self, second: int, samples: Mapping[str, StageSample]) -> Sequence[SetRelease]:
        """Return what to change now that a second is over.

        Args:
            second: the one that has ended; each call has a later one, some may be missing.
            samples: {stage: what it did in it}; a stage that has not reported is not there.
        """
        ...
