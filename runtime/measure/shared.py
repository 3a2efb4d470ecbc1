"""Reports of a gate and its replicas, merged into one stage's for counting events.

```
buses ─▶ join.gate ─▶ join.1 ─▶ out             buses ─▶ join.gate ─▶ out
              └─────▶ join.2 ─────┘        ⇒
```

Of replicas that get all rows the first one's counts stand for all, since all decide equally which
rows are late. Of replicas that share by keys the counts add up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from slackwater.runtime.measure.outcomes import (
    FAILED,
    FILTERED,
    IN_FLIGHT,
    LATE,
    READY,
    SHED,
    LedgerPlace,
    at_stages,
)
from slackwater.runtime.measure.report import ChannelReport, StageReport


def as_one_stage(
    stages: Sequence[StageReport], channels: Sequence[ChannelReport]
) -> tuple[list[StageReport], list[ChannelReport]]:
    """Return the reports, each gate and its replicas as one under the gate's name."""
    gates = {stage.name: stage for stage in stages if stage.kind == "gate"}
    if not gates:
        return list(stages), list(channels)
    gate_of = {c.target: c.source for c in channels if c.source in gates}  # {replica: its gate}
    by_name = {stage.name: stage for stage in stages}
    whole: list[StageReport] = []
    for stage in stages:
        if stage.name in gates:
            whole.append(_whole(stage, by_name, [c for c in channels if c.source == stage.name]))
        elif stage.name not in gate_of:
            whole.append(stage)
    carried = [
        replace(channel, source=gate_of.get(channel.source, channel.source))
        for channel in channels
        if channel.source not in gates
    ]
    return whole, carried


def _whole(
    gate: StageReport, by_name: Mapping[str, StageReport], parts: Sequence[ChannelReport]
) -> StageReport:
    names = list(dict.fromkeys(channel.target for channel in parts))
    counted = names[:1] if gate.share == "all" else names
    replicas = [by_name[name] for name in counted if name in by_name]  # without a report if it died
    on_the_wire = sum(channel.in_flight for channel in parts if channel.target in counted)
    counts = gate.counts.added(
        (outcome, replica.counts[outcome])
        for outcome in at_stages(LedgerPlace.LEFT_OUT, LedgerPlace.HERE)
        for replica in replicas
    )
    counts[IN_FLIGHT] += on_the_wire
    for outcome in (FILTERED, SHED, FAILED, *at_stages(LedgerPlace.BESIDE, LedgerPlace.STATE)):
        counts[outcome] = sum(replica.counts[outcome] for replica in replicas)
    # The gate knows how rows went on. Rows that replicas then left out as late were late at the
    # gate; if more rows went on at the gate than here, those furthest from "in order" count first.
    counts[LATE] = max(counts[LATE] - sum(replica.late_dropped for replica in replicas), 0)
    used = sum(replica.used for replica in replicas)
    for outcome in reversed(at_stages(LedgerPlace.WENT_ON)):
        counts[outcome] = min(counts[outcome], used)
        used -= counts[outcome]
    counts[READY] += used
    return replace(
        gate,
        counts=counts,
        rows_out=sum(by_name[name].rows_out for name in names if name in by_name),
    )
