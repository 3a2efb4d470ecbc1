"""Type of a column of event times that a step makes, such as `window_start`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from slackwater.runtime.plan.arrivals import sources_upstream
from slackwater.runtime.plan.step import Step


def event_time_type(steps: Mapping[str, Step], inputs: Iterable[str]) -> pa.DataType:
    """Return timestamp[ns] in the time zone of the event times of all sources upstream.

    Sources with different zones, or some with a zone and some without, meet in UTC: times without
    a zone are read as UTC. Whole numbers have no zone.

    Args:
        steps: {name: step} of a flow.
        inputs: names of the steps that feed it.
    """
    zones = {
        getattr(step.source.time_type(step.schema), "tz", None)
        for step in sources_upstream(steps, inputs)
    }
    zone = zones.pop() if len(zones) == 1 else "UTC"
    return pa.timestamp("ns", tz=zone)
