"""Report of a run's deadline: how well it was kept, and the cost in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from slackwater.runtime.json_form import JsonObject
from slackwater.runtime.measure.histogram import LatencyHistogram
from slackwater.runtime.measure.tuning_series import TuningSeries
from slackwater.runtime.model import NS_PER_SECOND, READY_ONLY, ReleaseRule


@dataclass
class GateTuning(JsonObject):
    """Gate whose rule is tuned: its rule and counts."""

    step: str
    """Name of the step."""
    rule: ReleaseRule = READY_ONLY
    """Current rule."""
    by: str = ""
    """Name of the policy that set it, or of one of its rules; "" before the first setting."""
    slack_ready: int = 0
    """Rows that left before they were ready, in order or late ([ssg] Eq. 4). Since the start, as
    the next four; see StageReport."""
    late: int = 0
    late_ready: int = 0
    late_dropped: int = 0
    rows_in: int = 0

    DERIVED: ClassVar = {"slack_ns": "rule.lead_ns", "hold_ns": "rule.hold_ns"}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> GateTuning:
        """Return the gate that `to_json` described; earlier releases wrote a stage, and no rule."""
        return super().from_json({"step": plain.get("stage"), "rule": plain, **plain})


@dataclass
class TuningReport(JsonObject):
    """Report of how a flow kept its deadline in the sampled seconds.

    The latency of a second is that of [ssg] Eq. 2: along each path the longest times at each stage
    and to it are summed, and the largest sum counts. So it is an upper bound.
    """

    deadline_ns: int
    policy: str
    seconds: int = 0
    over: int = 0
    """Seconds whose latency was over the deadline."""
    latency: LatencyHistogram = field(default_factory=LatencyHistogram)
    """Latency of each second."""
    gates: list[GateTuning] = field(default_factory=list)
    restarts: int = 0
    """How often the tuner died and was replaced."""
    is_cut_short: bool = False
    """Whether the tuner was dead or silent as the job ended: then the last seconds are missing."""
    errors: int = 0
    """Errors of the policy: it raised, or its command could not be carried out."""
    last_error: str | None = None
    warnings: dict[str, int] = field(default_factory=dict)
    """Warnings, {"step: text": how often}."""
    interval_ns: int = NS_PER_SECOND
    """Length of a sample; what is called a second here is one of these."""
    status: dict[str, Any] = field(default_factory=dict)
    """Status that the policy reports of itself."""
    series: TuningSeries = field(default_factory=TuningSeries)

    DERIVED: ClassVar = {"laxity_ns": "laxity_ns"}

    @property
    def laxity_ns(self) -> int | None:
        """Deadline − latency of the last second; None if none is over. [ssg] §5.2.2."""
        spans = self.series.spans
        return self.deadline_ns - spans[-1].latency_ns if spans else None

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> TuningReport:
        """Return the report that `to_json` described.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: `plain` is not such a report.
        """
        made = super().from_json(plain)
        if made.interval_ns < 1:
            raise ValueError(f"interval_ns={made.interval_ns} is not a length of time")
        return made
