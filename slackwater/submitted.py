"""Options of a submitted flow, on a cluster and in the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from slackwater.runtime.config import Limits, Tuning
    from slackwater.runtime.foresight.chosen.admission import Admission
    from slackwater.runtime.foresight.observed.flow_sample import FlowSample
    from slackwater.runtime.foresight.predicted.prediction import Prediction
    from slackwater.runtime.foresight.rates import Rate

__all__ = ["Planned"]


class Planned(TypedDict, total=False):
    """Options of `submit` and `plan` beside a flow; all may be omitted.

    Attributes:
        placement: {stage: slot or node} for some stages, or {"*": slot or node} for all.
        limits: what bounds memory and slices.
        tuning: how the deadline of the flow is kept; None: as well as we can. With a history, and
            without rates, the flow is also placed by what its last job has shown.
        rates: as of `predict`, or what that returned; the flow is then placed by what is
            predicted, and its report has that beside what is measured.
        sample: as of `predict`.
        admission: "reject" refuses a flow that would break its deadline, or that of a flow already
            running, by what is predicted for these rates; "warn", or None with rates, says so.
    """

    placement: Mapping[str, str] | None
    limits: Limits | None
    tuning: Tuning | None
    rates: Mapping[str, Rate] | Rate | Prediction | None
    sample: int | FlowSample
    admission: Admission | None
