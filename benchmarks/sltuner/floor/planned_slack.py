"""The policy that knows the run beforehand: what the clairvoyant search has found it plays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slackwater.runtime.control.commands import SetRelease
from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import ReleaseRule
from slackwater.runtime.model.subject import Subject


class PlannedSlack:
    """Holds that are known beforehand, second by second: the clairvoyant reference.

    It sets no slack but the time that a row may wait by the clock: no slack can do better, since a
    row then leaves out of order only when its deadline leaves no other way.

    Args:
        plan: {second: {step: hold_ns}}, for its beginning; one that is missing changes nothing.
        name: what reports call it.
    """

    def __init__(
        self, plan: Mapping[int, Mapping[Subject, int]], *, name: str = "clairvoyant"
    ) -> None:
        self._plan, self.name = plan, name

    def begin(self) -> Sequence[SetRelease]:
        """Set the slacks of the first second."""
        return self._set(0)

    def decide(self, second: int, samples: Mapping[Subject, StageSample]) -> Sequence[SetRelease]:
        """Set those of the next."""
        del samples
        return self._set(second + 1)

    def _set(self, second: int) -> Sequence[SetRelease]:
        holds = self._plan.get(second, {}).items()
        return [SetRelease(step, ReleaseRule.hold(ns), by=self.name) for step, ns in holds]
