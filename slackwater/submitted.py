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
        limits: bounds of memory and slices.
        tuning: how to keep the flow's deadline; the defaults if None. With a history, and
            without rates, the flow is also placed by the statistics of its last job.
        rates: rates as for `predict`, or its result; the flow is then placed by the prediction, and
            its report shows the prediction beside the measurement.
        sample: sample as for `predict`.
        admission: "reject" refuses a flow that, by the prediction, would break its deadline, or
            that of a running flow; "warn", or None with rates, only says so.
    """

    placement: Mapping[str, str] | None
    limits: Limits | None
    tuning: Tuning | None
    rates: Mapping[str, Rate] | Rate | Prediction | None
    sample: int | FlowSample
    admission: Admission | None
