"""The policy that knows the run beforehand: what the clairvoyant search has found it plays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slackwater.runtime.control.commands import SetRelease
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import ReleaseRule


class PlannedSlack:
    """Holds that are known beforehand, second by second: the clairvoyant reference.

    It sets no slack but the time that a row may wait by the clock: no slack can do better, since a
    row then leaves out of order only when its deadline leaves no other way.

    Args:
        plan: {second: {stage: hold_ns}}, for its beginning; one that is missing changes nothing.
        name: what reports call it.
    """

    def __init__(self, plan: Mapping[int, Mapping[str, int]], *, name: str = "clairvoyant") -> None:
        self._plan, self.name = plan, name

    def begin(self) -> Sequence[SetRelease]:
        """Set the slacks of the first second."""
        return self._set(0)

    def decide(self, second: int, samples: Mapping[str, StageSample]) -> Sequence[SetRelease]:
        """Set those of the next."""
        del samples
        return self._set(second + 1)

    def _set(self, second: int) -> Sequence[SetRelease]:
        holds = self._plan.get(second, {}).items()
        return [SetRelease(stage, ReleaseRule.hold(ns), by=self.name) for stage, ns in holds]
