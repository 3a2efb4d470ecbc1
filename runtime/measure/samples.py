"""What a stage did in one interval, a second unless told: the statistics that slack is tuned by.

The monitor thread of [ssg] §4.2 (MThread), without the thread: the stage's own slot counts, and
whoever tunes takes the samples of the seconds that are over. Eq. 1, 4 and 6 say what is counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

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

KEPT = 120
"""Seconds that wait to be taken; when nobody takes them, the oldest go."""

PARTS = 10
"""An interval's arrivals are counted by tenths of it: what comes at once makes rows wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSample:
    """One second of one stage.

    Attributes:
        stage: its name.
        second: which interval, from the start of the sources on.
        interval_ns: how long it is; a second here is one of these.
        latency_ns: latency_op of [ssg] Eq. 1: the longest time from the arrival of a row at the
            stage to the end of the work on it, of the rows worked off in this second; of a
            source how late it handed over. 0 where none were.
        comm_ns: comm of Eq. 2: the longest time that a message travelled to the stage.
        rows: rows worked off.
        slack_ready: slrTuples of Eq. 4, of all readers: rows that left before they were ready, in
            order or late (Algorithm 3, 10).
        late: rows that came behind what had been released.
        rule: of its gate at the end of the second; ready-only too if it has none.
        readers: |PThreads| of Eq. 6, those that share the gate.
        window_ns: SW of Eq. 6, of event time; 0 for stages without state.
        last_event_ns: the newest event time worked off so far; START_NS before the first.
        newest_ns: max_ts of Def. 3.1; of a stage without a gate as `last_event_ns`.
        frontier_ns: merge_ts of Def. 2.1, but not before the first event.
        held: rows in queue and gate at the end of the second.
        held_ns: how long the one that has waited longest has waited then.
        peak_ns: the largest newest − frontier after a read in the second: of a feed that is polled
            event time jumps and is level again before the second ends.
        tried: what the trials of the gate would have done; see `slackwater.runtime.measure.trials`.
        busy_ns: how long it worked.
        came: rows that came to it.
        handed: rows that it handed on.
        arrived: of a source, ((number, rows), …) of the rows handed over, by their stimulus time,
            in tenths (`PARTS`) of intervals: number n is of interval n // PARTS, which begins at
            (n // PARTS) · interval_ns.
        slices: how often it worked.
        promised_ns: of a source: nothing older follows what it has handed over so far; START_NS
            before it has promised anything.
        stimulus_ns: of a source: the newest stimulus time of what it has handed over so far.
        ended: of a source: whether it has said that nothing follows any more.
    """

    stage: str
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
    def took_ns(self) -> int:
        """latency_op and comm to the stage: its summand in [ssg] Eq. 2."""
        return self.latency_ns + self.comm_ns

    @property
    def skew_ns(self) -> int:
        """max_ts − merge_ts, how far the slowest writer is behind; ≥ 0, 0 at the end."""
        return max(self.newest_ns - self.frontier_ns, 0)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> StageSample:
        """Return the sample that `to_json` described; fields that it does not know are left out.

        Raises:
            KeyError, TypeError, ValueError: stage or second is missing, or a trial or the rule is
                none.
        """
        known = {one.name: plain[one.name] for one in fields(cls) if one.name in plain}
        # Of an earlier release its slack and hold are among the fields.
        known["rule"] = ReleaseRule.from_plain(plain.get("rule", plain))
        known["tried"] = tuple(Tried(*one) for one in plain.get("tried", ()))
        known["arrived"] = tuple((n, rows) for n, rows in plain.get("arrived", ()))
        return cls(**{"stage": plain["stage"], "second": plain["second"], **known})


@dataclass(slots=True)
class GateState:
    """What a sample says of the stage as it stands at the end of its second."""

    slack_ready: int = 0
    """Counters since the start, as the next four: samples are their differences."""
    late: int = 0
    busy_ns: int = 0
    came: int = 0
    handed: int = 0
    rule: ReleaseRule = READY_ONLY
    newest_ns: int = START_NS
    frontier_ns: int = START_NS
    held: int = 0
    held_since_ns: int | None = None
    """When the row that has waited longest came; None: nothing is held."""
    tried: tuple[Tried, ...] = ()
    """Of the seconds that are over: of the first of them."""


class StageMeter:
    """Counts one stage interval by interval.

    Args:
        stage: its name.
        start_ns: of the first second.
        readers, window_ns: as in a sample.
        interval_ns: how long what is called a second here is, > 0.
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
        stage: str,
        *,
        start_ns: int,
        readers: int = 1,
        window_ns: int = 0,
        interval_ns: int = NS_PER_SECOND,
    ) -> None:
        self._stage, self._interval_ns = stage, interval_ns
        self._readers, self._window_ns = readers, window_ns
        self._second = 0
        self._ends_ns = start_ns + interval_ns
        self._latency_ns = self._comm_ns = self._rows = self._peak_ns = self._slices = 0
        self._counters = (0, 0, 0, 0, 0)  # at the end of the last second
        self._arrived: dict[int, int] = {}
        self._first_event_ns: int | None = None
        self._last_event_ns = self._promised_ns = self._stimulus_ns = START_NS
        self._ended = False
        self._over: deque[StageSample] = deque(maxlen=KEPT)

    def is_over(self, now_ns: int) -> bool:
        """Whether the second that is counted has ended: then `close` it before counting on."""
        return now_ns >= self._ends_ns

    def end_of_seconds_ns(self, now_ns: int) -> int:
        """Return when the last second ended that is over by now."""
        interval_ns = self._interval_ns
        return self._ends_ns + (now_ns - self._ends_ns) // interval_ns * interval_ns

    def travelled(self, link_ns: int) -> None:
        """Count a message that came so long after it had been sent."""
        self._comm_ns = max(self._comm_ns, link_ns)

    def came(self, event_time_ns: int) -> None:
        """Count the oldest event of a message, while there is no frontier yet."""
        if self._first_event_ns is None or event_time_ns < self._first_event_ns:
            self._first_event_ns = event_time_ns

    def worked(self, latency_ns: int, *, rows: int, last_event_ns: int = START_NS) -> None:
        """Count rows that were worked off, and the longest that one of them took."""
        self._latency_ns = max(self._latency_ns, latency_ns)
        self._rows += rows
        self._last_event_ns = max(self._last_event_ns, last_event_ns)

    def sliced(self) -> None:
        """Count a slice."""
        self._slices += 1

    def promised(self, promise_ns: int) -> None:
        """Take note of what a source promises; that it has ended is no time."""
        if promise_ns == END_NS:
            self._ended = True
        else:
            self._promised_ns = max(self._promised_ns, promise_ns)

    def ahead(self, skew_ns: int) -> None:
        """Count how far the newest is ahead of the frontier after a read."""
        self._peak_ns = max(self._peak_ns, skew_ns)

    def arrived(self, stimulus_ns: Int64Array) -> None:
        """Count rows that a source hands over, by their stimulus times, ascending or not."""
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
        """End every second that is over by now; one in which nothing happened has a sample too."""
        frontier_ns = state.frontier_ns
        if frontier_ns == START_NS and self._first_event_ns is not None:
            frontier_ns = self._first_event_ns
        newest_ns = max(state.newest_ns, self._last_event_ns)
        missed = (now_ns - self._ends_ns) // self._interval_ns + 1 - KEPT
        if missed > 0:  # nobody could take so many
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
                    stage=self._stage,
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
        """Count on from these counters: what they count was done before."""
        self._counters = (
            state.slack_ready,
            state.late,
            state.busy_ns,
            state.came,
            state.handed,
        )

    @property
    def _samples(self) -> list[dict[str, Any]]:
        """Samples that nobody has taken, as plain values."""
        return [sample.to_json() for sample in self._over]

    @_samples.setter
    def _samples(self, plain: list[dict[str, Any]]) -> None:
        self._over.extend(map(StageSample.from_json, plain))

    def take(self) -> list[StageSample]:
        """Return the samples of the seconds that are over, once."""
        taken = list(self._over)
        self._over.clear()
        return taken
