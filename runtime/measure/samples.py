"""Samples of a stage, one an interval, a second by default: statistics for tuning slacks.

The monitor thread of [ssg] §4.2 (MThread), without the thread: the stage's own slot counts, and the
tuner takes the samples of past seconds. Eq. 1, 4 and 6 define the figures.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from slackwater.runtime.json_form import JsonObject, spread
from slackwater.runtime.measure.trials import Tried
from slackwater.runtime.model import (
    END_NS,
    NS_PER_SECOND,
    READY_ONLY,
    START_NS,
    Int64Array,
    ReleaseRule,
)
from slackwater.runtime.model.state import Fields
from slackwater.runtime.model.subject import Subject

MOST_SAMPLES = 120
"""Samples that wait to be taken; when none is taken, the oldest is dropped."""

PARTS = 10
"""Parts of an interval in which arrivals are counted: rows that come at once make others wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSample(JsonObject):
    """Sample of one stage in one second, or of a step with all its parts.

    Attributes:
        subject: the step, or the part of it that the stage is.
        second: number of the interval, from the start of the sources on.
        interval_ns: length of the interval; a second here is one of these.
        latency_ns: latency_op of [ssg] Eq. 1: the longest time from the arrival of a row at the
            stage to the end of the work on it, over the rows processed in this second; of a
            source how late it handed over. 0 without rows.
        comm_ns: comm of Eq. 2: the longest time that a message travelled to the stage.
        rows: rows processed.
        slack_ready: slrTuples of Eq. 4, of all readers: rows that left before they were ready, in
            order or late (Algorithm 3, 10).
        late: rows that came after newer rows had been released.
        rule: rule of its gate at the end of the second; ready-only if it has no gate.
        readers: |PThreads| of Eq. 6, the stages that share the gate; 0 if it is another stage.
        window_ns: SW of Eq. 6, of event time; 0 for stages without state.
        last_event_ns: the newest event time processed so far; START_NS before the first.
        newest_ns: max_ts of Def. 3.1; of a stage without a gate as `last_event_ns`.
        frontier_ns: merge_ts of Def. 2.1, but not before the first event.
        held: rows in queue and gate at the end of the second.
        held_ns: longest wait among these rows.
        peak_ns: the largest newest − frontier after a read in the second: with a polled feed,
            event time jumps and is level again before the second ends.
        tried: results of the gate's trials; see `slackwater.runtime.measure.trials`.
        busy_ns: time at work.
        came: rows that came to the stage.
        handed: rows that it handed on.
        arrived: counts of a source, ((number, rows), …), of the rows handed over, by their stimulus
            time, in tenths (`PARTS`) of intervals: number n is of interval n // PARTS, which begins
            at (n // PARTS) · interval_ns.
        slices: number of its slices.
        promised_ns: promise of a source after the rows handed over so far; START_NS before its
            first promise.
        stimulus_ns: newest stimulus time of a source, over the rows handed over so far.
        ended: whether a source has promised the end of the stream.
    """

    subject: Subject = field(metadata=spread(Subject._asdict, Subject.of))
    second: int
    interval_ns: int = NS_PER_SECOND
    latency_ns: int = 0
    comm_ns: int = 0
    rows: int = 0
    slack_ready: int = 0
    late: int = 0
    rule: ReleaseRule = READY_ONLY
    readers: int = 1
    window_ns: int = 0
    last_event_ns: int = START_NS
    newest_ns: int = START_NS
    frontier_ns: int = START_NS
    held: int = 0
    held_ns: int = 0
    peak_ns: int = 0
    tried: tuple[Tried, ...] = ()
    busy_ns: int = 0
    came: int = 0
    handed: int = 0
    arrived: tuple[tuple[int, int], ...] = ()
    slices: int = 0
    promised_ns: int = START_NS
    stimulus_ns: int = START_NS
    ended: bool = False

    @property
    def stage(self) -> str:
        """Name of the stage, or of the step."""
        return self.subject.name

    @property
    def took_ns(self) -> int:
        """latency_op and comm to the stage: its summand in [ssg] Eq. 2."""
        return self.latency_ns + self.comm_ns

    @property
    def skew_ns(self) -> int:
        """Lag of the slowest writer, max_ts − merge_ts; ≥ 0, 0 at the end."""
        return max(self.newest_ns - self.frontier_ns, 0)

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> StageSample:
        """Return the sample that `to_json` described; unknown fields are ignored.

        Samples of an earlier release name a stage, and have slack and hold among the fields.

        Raises:
            KeyError, TypeError, ValueError, AttributeError: a field is missing, or not valid.
        """
        old = {"step": plain.get("stage"), "rule": plain}
        return super(StageSample, cls).from_json({**old, **plain})  # `slots` makes another class


@dataclass(slots=True)
class GateState:
    """State of a stage at the end of a second, for its sample."""

    slack_ready: int = 0
    """Counter since the start, as the next four: samples are their differences."""
    late: int = 0
    busy_ns: int = 0
    came: int = 0
    handed: int = 0
    rule: ReleaseRule = READY_ONLY
    newest_ns: int = START_NS
    frontier_ns: int = START_NS
    held: int = 0
    held_since_ns: int | None = None
    """Arrival of the row that has waited longest; None if no row is held."""
    tried: tuple[Tried, ...] = ()
    """Results of the trials; if several seconds are over, they belong to the first."""


class StageMeter:
    """Counts a stage's work, interval by interval.

    Args:
        subject: the part of a step that the stage is, or the step.
        start_ns: start of the first second.
        readers, window_ns: fields of the same names of a sample.
        interval_ns: length of a second here, > 0.
    """

    STATE = Fields(
        "_second",
        "_interval_ns",
        "_ends_ns",
        "_latency_ns",
        "_comm_ns",
        "_rows",
        "_peak_ns",
        "_slices",
        "_counters",
        "_arrived",
        "_first_event_ns",
        "_last_event_ns",
        "_promised_ns",
        "_stimulus_ns",
        "_ended",
        "_samples",
    )

    def __init__(
        self,
        subject: Subject,
        *,
        start_ns: int,
        readers: int = 1,
        window_ns: int = 0,
        interval_ns: int = NS_PER_SECOND,
    ) -> None:
        self._subject, self._interval_ns = subject, interval_ns
        self._readers, self._window_ns = readers, window_ns
        self._second = 0
        self._ends_ns = start_ns + interval_ns
        self._latency_ns = self._comm_ns = self._rows = self._peak_ns = self._slices = 0
        self._counters = (0, 0, 0, 0, 0)  # at the end of the last second
        self._arrived: dict[int, int] = {}
        self._first_event_ns: int | None = None
        self._last_event_ns = self._promised_ns = self._stimulus_ns = START_NS
        self._ended = False
        self._over: deque[StageSample] = deque(maxlen=MOST_SAMPLES)

    def is_over(self, now_ns: int) -> bool:
        """Whether the current second has ended: then `close` it before counting on."""
        return now_ns >= self._ends_ns

    def end_of_seconds_ns(self, now_ns: int) -> int:
        """Return the end of the last second that is over by now."""
        interval_ns = self._interval_ns
        return self._ends_ns + (now_ns - self._ends_ns) // interval_ns * interval_ns

    def travelled(self, link_ns: int) -> None:
        """Count a message that travelled for `link_ns`."""
        self._comm_ns = max(self._comm_ns, link_ns)

    def came(self, event_time_ns: int) -> None:
        """Count the oldest event of a message, before the first frontier."""
        if self._first_event_ns is None or event_time_ns < self._first_event_ns:
            self._first_event_ns = event_time_ns

    def worked(self, latency_ns: int, *, rows: int, last_event_ns: int = START_NS) -> None:
        """Count processed rows, and the longest latency among them."""
        self._latency_ns = max(self._latency_ns, latency_ns)
        self._rows += rows
        self._last_event_ns = max(self._last_event_ns, last_event_ns)

    def sliced(self) -> None:
        """Count one slice."""
        self._slices += 1

    def promised(self, promise_ns: int) -> None:
        """Note a source's promise; the end of the stream is not an event time."""
        if promise_ns == END_NS:
            self._ended = True
        else:
            self._promised_ns = max(self._promised_ns, promise_ns)

    def ahead(self, skew_ns: int) -> None:
        """Note the newest event time less the frontier after a read."""
        self._peak_ns = max(self._peak_ns, skew_ns)

    def arrived(self, stimulus_ns: Int64Array) -> None:
        """Count rows that a source hands over, by stimulus time, in any order."""
        interval_ns = self._interval_ns
        newest_ns = int(np.maximum.reduce(stimulus_ns))
        self._stimulus_ns = max(self._stimulus_ns, newest_ns)
        first = int(np.minimum.reduce(stimulus_ns)) * PARTS // interval_ns
        last = newest_ns * PARTS // interval_ns
        if first == last:  # nearly always; rows of one read are of one moment
            self._arrived[first] = self._arrived.get(first, 0) + len(stimulus_ns)
            return
        number, within_ns = np.divmod(stimulus_ns, interval_ns)  # so that 64 bits are enough
        parts = number * PARTS + within_ns * PARTS // interval_ns
        each, rows = np.unique(parts, return_counts=True)
        for part, count in zip(each.tolist(), rows.tolist(), strict=True):
            self._arrived[part] = self._arrived.get(part, 0) + count

    def close(self, now_ns: int, state: GateState) -> None:
        """End every second that is over by now, with a sample each, idle or not."""
        frontier_ns = state.frontier_ns
        if frontier_ns == START_NS and self._first_event_ns is not None:
            frontier_ns = self._first_event_ns
        newest_ns = max(state.newest_ns, self._last_event_ns)
        missed = (now_ns - self._ends_ns) // self._interval_ns + 1 - MOST_SAMPLES
        if missed > 0:  # more than are kept
            self._second += missed
            self._ends_ns += missed * self._interval_ns
        counters = (state.slack_ready, state.late, state.busy_ns, state.came, state.handed)
        while now_ns >= self._ends_ns:
            since_ns = state.held_since_ns
            slack_ready, late, busy_ns, came, handed = (
                now - before for now, before in zip(counters, self._counters, strict=True)
            )
            self._over.append(
                StageSample(
                    subject=self._subject,
                    second=self._second,
                    interval_ns=self._interval_ns,
                    latency_ns=self._latency_ns,
                    comm_ns=self._comm_ns,
                    rows=self._rows,
                    slack_ready=slack_ready,
                    late=late,
                    rule=state.rule,
                    readers=self._readers,
                    window_ns=self._window_ns,
                    last_event_ns=self._last_event_ns,
                    newest_ns=newest_ns,
                    frontier_ns=newest_ns if frontier_ns == END_NS else frontier_ns,
                    held=state.held,
                    held_ns=0 if since_ns is None else max(self._ends_ns - since_ns, 0),
                    peak_ns=self._peak_ns,
                    tried=state.tried,
                    busy_ns=busy_ns,
                    came=came,
                    handed=handed,
                    arrived=tuple(self._arrived.items()),
                    slices=self._slices,
                    promised_ns=self._promised_ns,
                    stimulus_ns=self._stimulus_ns,
                    ended=self._ended,
                )
            )
            state.tried = ()
            self._counters = counters
            self._arrived = {}
            self._latency_ns = self._comm_ns = self._rows = self._peak_ns = self._slices = 0
            self._second += 1
            self._ends_ns += self._interval_ns

    def restart(self, state: GateState) -> None:
        """Continue from these counters: their rows belong to earlier samples."""
        self._counters = (
            state.slack_ready,
            state.late,
            state.busy_ns,
            state.came,
            state.handed,
        )

    @property
    def _samples(self) -> list[dict[str, Any]]:
        """Samples that no decider has taken yet, as plain values."""
        return [sample.to_json() for sample in self._over]

    @_samples.setter
    def _samples(self, plain: list[dict[str, Any]]) -> None:
        samples = map(StageSample.from_json, plain)  # of the step's name at that time
        self._over.extend(replace(sample, subject=self._subject) for sample in samples)

    def take(self) -> list[StageSample]:
        """Return each sample of a past second once."""
        samples = list(self._over)
        self._over.clear()
        return samples
