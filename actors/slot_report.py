"""What a slot says of itself to its job: who it is, how it goes, and its samples."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from runtime.measure.report import ChannelReport, ClockReport, SinkReport, StageReport
from runtime.measure.samples import StageSample
from runtime.schedule import Slot


class SlotIdentity(NamedTuple):
    """Who a slot is, and what it shares with others that have the same."""

    pid: int
    host: str | None
    """See `local_sockets.host_identity`."""
    clock: str | None
    """See `SlotClock.identity`."""
    ahead_ns: int = 0
    """See `SlotClock.ahead_ns`."""


@dataclass
class SlotReport:
    """What one slot says of itself: its share of the job's report."""

    slot: str
    state: str  # ready, running, done, stopped or failed
    stages: list[StageReport] = field(default_factory=list)
    channels: list[ChannelReport] = field(default_factory=list)
    sinks: list[SinkReport] = field(default_factory=list)
    error: str | None = None
    error_type: str | None = None
    at_ns: int | None = None
    """The reference's time when this was so."""
    ended_ns: int | None = None
    """The reference's time at the end, its sinks closed."""
    lost: list[str] = field(default_factory=list)
    """The channels whose other end was gone when this slot failed."""
    clock: ClockReport | None = None
    refused_peers: int = 0
    """Connections refused by its sockets of TCP; see `actors/strangers.py`."""


def stuck(report: SlotReport, slot: Slot | None, now_ns: int) -> SlotReport:
    """Return the last report of a slot whose loop does not answer, as it must be by now."""
    passed_ns = 0 if report.at_ns is None else now_ns - report.at_ns
    stages = [
        replace(
            stage,
            still_ns=None if stage.still_ns is None else stage.still_ns + passed_ns,
            is_stuck=slot is not None and stage.name == slot.at_work,
        )
        for stage in report.stages
    ]
    return replace(report, stages=stages)


class SlotSamples(NamedTuple):
    """What a slot's stages did in the seconds that are over."""

    samples: list[StageSample]
    left_ns: int
    """Until the second that is counted now is over."""
