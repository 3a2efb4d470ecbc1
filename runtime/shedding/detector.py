"""Overload: when to shed and how much, so that a latency bound is kept.

```
        0          low·f·LB            f·LB                  LB
        |---------------|-----------------|------------------|
        nothing is shed, | shed, if it was |  shed            bound broken
```
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Any

from slackwater.runtime.model import NS_PER_SECOND, format_ns
from slackwater.runtime.model.state import Fields
from slackwater.runtime.shedding.breaks import partitions_of
from slackwater.runtime.shedding.costs import Costs
from slackwater.runtime.shedding.settings import Overload
from slackwater.runtime.shedding.shedder import Amount

MOST_PARTITIONS = 1024
_DRAINED = 0.1
"""Drained: the newest event has waited no more than this share of the start of shedding."""
_IDLE = 0.01
"""With this share of idle time since the last look, nothing waited at some moment."""
_MOST_MORE = 1.5
"""At most so many times the excess is asked for, where less than that is dropped."""
BUSY = 0.9
"""From this share of busy time on events are taken to wait for the work on others."""
_QUICK = 4
"""The growth of ages is a mean over so many times less time than rates."""


@dataclass(frozen=True)
class Load:
    """The load of an operator since the last look.

    Attributes:
        now_ns: the time, by the clock of all ages.
        arrived: events that came.
        came_ns: the time in which they came; None: the time since the last look.
        processed: events that were done, dropped ones included.
        busy_ns: the time that this took.
        dropped_share: the dropped share of the pairs of events and windows that were looked at.
        queued: events that wait; None: not known, then `age_ns` is.
        age_ns: now − stimulus time of the oldest that waits; None: not known, or none waits.
        youngest_ns: now − stimulus time of the youngest; None: not known.
        idle_ns: how long the slot had no work; None: not known.
        rest_ns: the time that an event takes downstream of this operator, up to egress.
        between_ns: the time to the next look.
        read_ns: the time that the rows of this read take.
        pairs: pairs of processed events and their windows, dropped ones included; 0: unknown.
        is_passing: whether events were passed over: there was time to spare, yet they had waited.
    """

    now_ns: int
    arrived: int
    processed: int
    busy_ns: int
    dropped_share: float = 0.0
    queued: int | None = None
    age_ns: int | None = None
    youngest_ns: int | None = None
    idle_ns: int | None = None
    rest_ns: int = 0
    between_ns: int = 0
    read_ns: int = 0
    came_ns: int | None = None
    pairs: int = 0
    is_passing: bool = False


@dataclass(frozen=True)
class Verdict:
    """A verdict of the detector.

    Attributes:
        amount: amount to be dropped; None: nothing.
        is_overloaded: whether shedding is on, perhaps with nothing to drop, while the queue falls.
        is_curable: whether dropping can keep the bound: if not, all is dropped that helps.
        rate: R, events that arrive in a second.
        throughput: th, events that can be processed in a second, none dropped; 0: not known.
        q_max: events that may wait; 0: not known.
        level_ns: l(e), the latency of what comes now.
        x: events to be dropped of each partition.
        reason: reason why the bound cannot be kept; "" if it can.
        is_above: whether the level is above the one at which shedding starts.
        is_drained: whether what comes now has hardly waited here.
    """

    amount: Amount | None
    is_overloaded: bool
    is_curable: bool
    rate: float
    throughput: float
    q_max: float
    level_ns: float
    x: float
    reason: str = ""
    is_above: bool = False
    is_drained: bool = True


def verdict_of(amount: tuple[float, int] | None, *rest: Any) -> Verdict:
    """Return a verdict from its saved values."""
    return Verdict(None if amount is None else Amount(*amount), *rest)


class OverloadDetector:
    """A detector follows an operator's load.

    Args:
        settings: the bound, and how it is kept.

    Attributes:
        f: the share of the bound at which shedding starts.

    Source: [espice] §3.4. Differs: the queue is worked off (`drain`), shedding stops at a lower
    level than it starts at, latency is also taken from ages, and more is dropped as long as these
    grow.
    """

    STATE = Fields(
        "f",
        "_costs",
        "_came",
        "_before_ns",
        "_last_ns",
        "_is_on",
        "_age_ns",
        "_bearable",
        "_ahead",
        "_empty_ns",
        "_asked",
        "_lately",
    )

    def __init__(self, settings: Overload) -> None:
        self.f = settings.first_f
        self._settings = settings
        self._horizon_ns = settings.horizon_ns or max(settings.latency_ns // 2, 1)
        self._costs = Costs()
        # The number of events that came, and in what time, older ones forgotten.
        self._came = [0.0, 0.0]
        self._before_ns: int | None = None  # the time of the look before the last
        self._last_ns: int | None = None
        self._is_on = False
        self._age_ns: int | None = None  # the age at the last look that knew one
        self._bearable = 1.0  # the share of pairs at which ages would not have grown, lately
        self._ahead = Ahead(self._horizon_ns)
        self._empty_ns: int | None = None  # nothing that waits now was here before this
        self._asked = 0.0  # the share that was to be dropped since the last look
        self._lately = [0.0, 0.0]  # both, asked and dropped, older ones forgotten

    @property
    def cost_ns(self) -> float:
        """l(p): the time that an event takes, nothing dropped; 0: not known."""
        return self._costs.whole_ns

    def fits_whole(self, size: float) -> bool:
        """Return whether one window's work fits between the start of shedding and the bound."""
        window_ns = size * self._costs.whole_ns / self._costs.pairs_each
        return window_ns <= (1 - self.f) * self._settings.latency_ns

    @property
    def _rate(self) -> float:
        events, ns = self._came
        return events * NS_PER_SECOND / ns if ns > 0 else 0.0

    def observe(self, load: Load, *, size: float) -> Verdict:
        """Return what to drop from now on.

        Args:
            load: the load since the last call.
            size: events of a window.
        """
        self._take_in(load)
        cost_ns, bound_ns = self.cost_ns, self._settings.latency_ns
        if not cost_ns:
            return Verdict(None, False, True, self._rate, 0.0, 0.0, float(load.rest_ns), 0.0)
        waiting_ns, elsewhere_ns = self._levels(load)
        is_elsewhere = elsewhere_ns > bound_ns
        # Time that is lost elsewhere is lost; then this queue alone is kept within the bound.
        counted_ns = 0.0 if is_elsewhere else elsewhere_ns
        # Time elsewhere is needed at any load: at least half of the rest may be waited here.
        start_ns = max(self.f * bound_ns, (bound_ns + counted_ns) / 2)
        hardly_ns = _DRAINED * (start_ns - counted_ns)
        is_drained = self._waited(load) <= hardly_ns
        has_none_waited = waiting_ns <= hardly_ns  # not even the oldest
        # This read comes before the next look, and one more if rows wait for it.
        waiting_ns += load.between_ns + load.read_ns * (1 if is_drained else 2)
        level_ns = waiting_ns + counted_ns
        stop_ns = counted_ns + self._settings.low * (start_ns - counted_ns)
        if self._is_on:
            # Once nothing waits events are worked on, whatever their assumed cost: that shows it.
            self._is_on = level_ns > stop_ns and not has_none_waited
        else:
            self._is_on = level_ns > start_ns
        q_max = bound_ns / cost_ns
        share, reason = 0.0, ""
        if self._is_on:
            # Dropping shortens this queue, nothing else.
            over_ns = min(max(level_ns - start_ns, 0.0), waiting_ns)
            share, reason = self._share(over_ns if self._settings.drain else 0.0)
            if level_ns > start_ns:
                share = max(share, 1.0 - self._bearable)
        if is_elsewhere:
            reason = (
                "the latency elsewhere is above the bound: events are "
                f"{format_ns(round(elsewhere_ns) - load.rest_ns)} old when they come here, and "
                f"are expected to take {format_ns(load.rest_ns)} after it; dropping here does not "
                "shorten that"
            )
        self._asked = min(share * self._too_little, 1.0)
        partitions = min(partitions_of(size, q_max, self.f), MOST_PARTITIONS)
        return Verdict(
            amount=Amount(self._asked, partitions) if share > 0 else None,
            is_overloaded=self._is_on,
            is_curable=not reason,
            rate=self._rate,
            throughput=NS_PER_SECOND / cost_ns,
            q_max=q_max,
            level_ns=waiting_ns + elsewhere_ns,
            x=share * size / partitions,
            reason=reason,
            is_above=level_ns > start_ns,
            is_drained=is_drained,
        )

    def _take_in(self, load: Load) -> None:
        before_ns, last_ns = self._before_ns, self._last_ns
        self._before_ns, self._last_ns = last_ns, load.now_ns
        if load.youngest_ns is not None and load.idle_ns is not None and not load.is_passing:
            # The first time: of earlier events nothing is known but how long they took.
            first_ns = load.busy_ns + load.idle_ns
            taken_ns = first_ns if last_ns is None else load.now_ns - last_ns
            self._ahead.see(load.youngest_ns, load.idle_ns, taken_ns)
        if last_ns is None or load.now_ns <= last_ns:
            # Without an interval there is no rate, but a cost.
            self._count(load, keep=1.0)
            return
        taken_ns = load.now_ns - last_ns
        keep = exp(-taken_ns * _QUICK / self._horizon_ns)
        now = (self._asked * taken_ns, load.dropped_share * taken_ns)
        self._lately = [keep * old + new for old, new in zip(self._lately, now, strict=True)]
        if load.idle_ns is not None and load.idle_ns > _IDLE * taken_ns and before_ns is not None:
            # The slice after a look reports its time, so it may lie before the last look.
            self._empty_ns = before_ns
        self._follow(load, taken_ns)
        # A mean of rates would count short intervals too much: so events and times are summed.
        came_ns = taken_ns if load.came_ns is None else max(load.came_ns, 0)
        keep = exp(-came_ns / self._horizon_ns)
        came = (float(load.arrived), float(came_ns))
        self._came = [keep * old + new for old, new in zip(self._came, came, strict=True)]
        self._count(load, keep=exp(-taken_ns / self._memory_ns))

    def _count(self, load: Load, *, keep: float) -> None:
        self._costs.add(
            load.processed, load.busy_ns, load.dropped_share, keep=keep, pairs=load.pairs
        )

    @property
    def _too_little(self) -> float:
        # Less was dropped lately than was asked for, so more is asked for.
        wanted, dropped = self._lately
        return min(wanted / dropped, _MOST_MORE) if 0 < dropped < wanted else 1.0

    @property
    def _memory_ns(self) -> int:
        return 8 * self._horizon_ns  # costs vary less than rates, and need various shares

    def _follow(self, load: Load, taken_ns: int) -> None:
        """Follow the share of pairs at which ages would not grow.

        Costs are means of some time; when events become dearer, ages tell it sooner: as much as
        these grew, so much of what came in that time is still to be done.
        """
        before_ns, self._age_ns = self._age_ns, load.age_ns
        if before_ns is None or load.age_ns is None:
            return
        done = max(1 - (load.age_ns - before_ns) / taken_ns, 0.0)
        bearable = min((1 - load.dropped_share) * done, 1.0) if self._ahead.is_busy else 1.0
        keep = exp(-taken_ns * _QUICK / self._horizon_ns)
        self._bearable += (1 - keep) * (bearable - self._bearable)

    def _levels(self, load: Load) -> tuple[float, float]:
        """Return the time of what waits here, and the time of events elsewhere, in ns."""
        age_ns = float(max(load.age_ns or 0, 0))
        ahead_ns = min(self._ahead.age_ns, age_ns)
        # Events that wait now are shed too: they take the time of events at the present share.
        now_ns = self._costs.at(load.dropped_share)
        waiting_ns = age_ns - ahead_ns if load.queued is None else load.queued * now_ns
        if load.queued is None and self._empty_ns is not None:
            # A gate may release old and young rows together: the old ones have not waited here.
            waiting_ns = min(waiting_ns, float(load.now_ns - self._empty_ns))
        # Ages include the wait upstream; with a known queue the rest of the age is elsewhere.
        elsewhere_ns = max(age_ns - waiting_ns, ahead_ns) + load.rest_ns
        return waiting_ns, elsewhere_ns

    def _waited(self, load: Load) -> float:
        if load.youngest_ns is None:
            return self._levels(load)[0]
        return load.youngest_ns - self._ahead.age_ns

    def _share(self, over_ns: float) -> tuple[float, str]:
        """Return the share to be dropped, and why that is not enough.

        What arrives in a second has to be done in one, with a part of the queue.
        """
        whole_s, saved_s = (one / NS_PER_SECOND for one in (self.cost_ns, self._costs.saved_ns))
        room = 1.0 - min(over_ns / self._settings.latency_ns, 1.0)
        needed = self._rate * whole_s - room
        if needed <= 0:
            return 0.0, ""
        most = self._rate * saved_s
        if needed <= most:
            return needed / most, ""
        kept_up = self._rate * whole_s - most <= 1.0
        return 1.0, "" if kept_up else (
            f"{self._rate:.0f} events a second take {self._rate * whole_s:.2f} s, of which "
            f"dropping all saves {most:.2f} s: a replica more, or a faster step in front, is needed"
        )


class Ahead:
    """Ahead separates the time that events waited upstream from their time in this operator.

    Gates that put events in order make them old, and so do steps upstream: nothing that is dropped
    here makes them younger. A slot has time to spare now and then unless there is too much work;
    the youngest event that comes then has waited for nothing here. While there is no time to spare,
    the youngest tells the most that this age can be.

    Args:
        horizon_ns: the age is a mean over this time; it falls at once.

    Attributes:
        is_busy: whether there has been no time to spare lately.
    """

    STATE = Fields("_busy", "_found_ns")

    def __init__(self, horizon_ns: int) -> None:
        self._horizon_ns = horizon_ns
        self._busy = 1.0  # share of the time with work to do, lately
        self._found_ns: float | None = None
        self.is_busy = True

    @property
    def age_ns(self) -> float:
        """The age of events that have not waited here; 0 if it is not known."""
        return self._found_ns or 0.0

    def see(self, youngest_ns: int, idle_ns: int, taken_ns: int) -> None:
        """Note an interval.

        Args:
            youngest_ns: the age of the youngest event that came.
            idle_ns: how long there was no work in the interval.
            taken_ns: the length of the interval; 0 if it is not known.
        """
        if taken_ns <= 0:
            return
        keep = 0.0 if self._found_ns is None else exp(-4 * taken_ns / self._horizon_ns)
        self._busy = keep * self._busy + (1 - keep) * (1 - min(idle_ns / taken_ns, 1.0))
        self.is_busy = self._busy >= BUSY
        now_ns = float(max(youngest_ns, 0))
        if self._found_ns is None:
            self._found_ns = None if self.is_busy else now_ns
        elif now_ns < self._found_ns:
            self._found_ns = now_ns
        elif not self.is_busy:
            keep = exp(-taken_ns / self._horizon_ns)
            self._found_ns += (1 - keep) * (now_ns - self._found_ns)

    def derive(self) -> None:
        """Find out from the share of busy time whether there was some to spare."""
        self.is_busy = self._busy >= BUSY
