"""Samples of whole steps, from the samples of their parts.

```
join.gate   waits 400 ms ─┐
join.1      works  20 ms ─┼─▶  join   400 + 30 ms, as of one operator with two threads
join.2      works  30 ms ─┘
```

The latency of a step is that of its gate and then of its slowest replica, with the way there: so
[ssg] Eq. 2 has the same sum over steps as over stages. Where each replica has a gate, it is that of
the slowest replica alone. A step that is one stage keeps its sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.measure.trials import Tried
from slackwater.runtime.model.subject import GATE, Subject

__all__ = ["by_step", "history_by_step"]


def by_step(samples: Iterable[StageSample]) -> dict[Subject, StageSample]:
    """Return {step: its sample}, from the samples of one interval.

    Args:
        samples: samples of parts, in any order; a step without its gate's sample is omitted.
    """
    parts: dict[Subject, list[StageSample]] = {}
    for sample in samples:
        parts.setdefault(sample.subject.whole, []).append(sample)
    return {step: whole for step, own in parts.items() if (whole := _whole(step, own))}


def history_by_step(samples: Iterable[StageSample]) -> list[StageSample]:
    """Return the samples of steps, from those of several intervals, one after the other."""
    seconds = groupby(samples, key=attrgetter("second"))
    return [whole for _, same in seconds for whole in by_step(same).values()]


def _whole(step: Subject, parts: Sequence[StageSample]) -> StageSample | None:
    if parts[-1].subject == step:
        return parts[-1]
    gate = next((part for part in parts if part.subject.part == GATE), None)
    replicas = [part for part in parts if part is not gate]
    if gate is None:
        return _of_owners(step, replicas)
    return replace(
        gate,
        subject=step,
        latency_ns=gate.latency_ns + max((replica.took_ns for replica in replicas), default=0),
        rows=max(part.rows for part in parts),
        window_ns=max(part.window_ns for part in parts),
        held=sum(part.held for part in parts),
        held_ns=max(part.held_ns for part in parts),
        busy_ns=sum(part.busy_ns for part in parts),
        handed=sum(replica.handed for replica in replicas),
        slices=sum(part.slices for part in parts),
    )


def _of_owners(step: Subject, replicas: Sequence[StageSample]) -> StageSample | None:
    """Return a step's sample from replicas with gates; None if they share one."""
    if not all(replica.readers for replica in replicas):
        return None
    return replace(
        max(replicas, key=attrgetter("took_ns")),
        subject=step,
        rows=sum(replica.rows for replica in replicas),
        slack_ready=sum(replica.slack_ready for replica in replicas),
        late=sum(replica.late for replica in replicas),
        last_event_ns=max(replica.last_event_ns for replica in replicas),
        newest_ns=max(replica.newest_ns for replica in replicas),
        frontier_ns=min(replica.frontier_ns for replica in replicas),
        held=sum(replica.held for replica in replicas),
        held_ns=max(replica.held_ns for replica in replicas),
        peak_ns=max(replica.peak_ns for replica in replicas),
        busy_ns=sum(replica.busy_ns for replica in replicas),
        came=sum(replica.came for replica in replicas),
        handed=sum(replica.handed for replica in replicas),
        slices=sum(replica.slices for replica in replicas),
        tried=_tried(replicas),
        arrived=_arrived(replicas),
        promised_ns=min(replica.promised_ns for replica in replicas),
        stimulus_ns=max(replica.stimulus_ns for replica in replicas),
        ended=all(replica.ended for replica in replicas),
    )


def _arrived(parts: Sequence[StageSample]) -> tuple[tuple[int, int], ...]:
    """Return the rows handed over by the stages of a source, by their stimulus time."""
    rows: dict[int, int] = {}
    for number, count in (pair for part in parts for pair in part.arrived):
        rows[number] = rows.get(number, 0) + count
    return tuple(sorted(rows.items()))


def _tried(replicas: Sequence[StageSample]) -> tuple[Tried, ...]:
    """Return the results of each trial over all gates of a step."""
    by_name: dict[str, Tried] = {}
    for tried in (tried for replica in replicas for tried in replica.tried):
        known = by_name.get(tried.name, Tried(tried.name, 0, 0))
        ready, wait_ns = known.slack_ready + tried.slack_ready, max(known.wait_ns, tried.wait_ns)
        by_name[tried.name] = Tried(tried.name, ready, wait_ns)
    return tuple(by_name.values())
