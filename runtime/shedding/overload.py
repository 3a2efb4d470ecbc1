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

import numpy as np

from slackwater.runtime.model import NS_PER_SECOND, Int64Array, format_ns
from slackwater.runtime.model.state import Fields
from slackwater.runtime.shedding.draws import FloatArray
from slackwater.runtime.shedding.settings import PLAIN_F, Drops, Overload
from slackwater.runtime.shedding.shedder import Amount
from slackwater.runtime.shedding.thresholds import LEVELS, Utilities, cdt, cdt_of_partitions

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
CLASSES = 3
SHARES = tuple(n / 20 for n in range(19, 0, -1))
"""The values of f that are tried, 0.95 to 0.05."""
_RIDGE = 1e-3
"""How firmly the fixed part keeps its value while only one share of pairs is seen. It begins with
0: all of the time is saved, as [espice] takes it."""
_SOONER = 8
"""The number of an event's windows is forgotten so many times sooner than its cost."""


@dataclass(frozen=True)
class Load:
    """The load of an operator since the last look.

    Attributes:
        now_ns: the time, by the clock of all ages.
        arrived: events that came.
        came_ns: the time in which they came; None if it is the time since the last look.
        processed: events that were done, dropped ones included.
        busy_ns: the time that this took.
        dropped_share: the dropped share of the pairs of events and windows that were looked at.
        queued: events that wait; None if not known, then `age_ns` is.
        age_ns: now − stimulus time of the oldest that waits; None if not known, or none waits.
        youngest_ns: now − stimulus time of the youngest; None if not known.
        idle_ns: how long the slot had no work; None if not known.
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
        amount: amount to be dropped; None if nothing is.
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
        whole_s, saved_s = (
            cost_ns / NS_PER_SECOND for cost_ns in (self.cost_ns, self._costs.saved_ns)
        )
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


class PassingOver:
    """PassingOver decides when rows are passed over, and counts them.

    With stretches no row is looked at for a while, and then all are again. What lies in a stretch
    is lost, and so are the windows that it cuts. All other windows have all of their events, so
    matches that are found are true. Stretches are as long as the bound allows, so that they cut few
    windows.

    ```
    level above f·bound               no row is looked at, until one comes that has hardly waited
    from the next read on             all are, until the level is above f·bound again
    ```

    Args:
        drops: the units that are dropped under load.

    Attributes:
        is_on: whether rows that come now are passed over.
        rows: rows so far that were passed over.
    """

    STATE = Fields("is_on", "_is_drained", "rows")

    def __init__(self, drops: Drops) -> None:
        self._drops = drops
        self.is_on = False
        self.rows = 0
        self._is_drained = False  # nothing waits after the rows that came last

    def decide(self, verdict: Verdict) -> None:
        """Decide whether rows are passed over from now on."""
        if self._drops == "stretches":
            self._decide(verdict)
        elif self._drops == "events":
            # If all events that cost something have to go, no match is left to look for.
            is_all = verdict.amount is not None and verdict.amount.share >= 1
            self.is_on = verdict.is_overloaded and (self.is_on or is_all)

    def _decide(self, verdict: Verdict) -> None:
        """Begin a stretch when too much waits; end it when nothing waits any more.

        It ends after the read that nothing follows: that read may have all that waited, and to look
        at it would take as long again.
        """
        if self.is_on and self._is_drained:
            # Whatever the assumed cost of events: only an event that is looked at shows it.
            self.is_on = self._is_drained = False
            return
        self.is_on = self.is_on or verdict.is_above
        self._is_drained = self.is_on and verdict.is_drained


class Costs:
    """Costs tells an event's cost and a drop's saving apart, by intervals' times.

    While events are dropped the operator looks faster than it is. So time has two parts: every
    event takes some, dropped or not, and a kept event takes more. They are a line through the
    intervals, of the time over the share of pairs kept: by least squares, older intervals
    forgotten, no part negative.

    Events that are in more windows may cost more, whatever is dropped. So each interval's time is
    divided by the time that its events would have taken, had nothing been dropped. That is so much
    for an event, and so much for each of its pairs with a window, as in intervals without drops.
    """

    STATE = Fields("_fixed", "_saved", "_lately", "_sums", "_plain")

    def __init__(self) -> None:
        self._fixed = self._saved = 0.0
        self._sums = [0.0] * 5  # sums of weights: time; times kept, kept², ratio, ratio · kept
        self._plain = _Plain()
        self._lately = [0.0, 0.0]  # events, and what they would have taken

    @property
    def whole_ns(self) -> float:
        """The time of an event now, kept in all of its windows; 0: not known."""
        return self.fixed_ns + self.saved_ns

    @property
    def fixed_ns(self) -> float:
        """The time that any event takes."""
        return self._fixed * self._each_ns

    @property
    def saved_ns(self) -> float:
        """The further time of an event that is kept in all of its windows."""
        return self._saved * self._each_ns

    @property
    def _each_ns(self) -> float:
        events, ns = self._lately
        return ns / events if events > 0 else 0.0

    @property
    def pairs_each(self) -> float:
        """The mean number of windows of an event, at least 1."""
        events, pairs = self._plain.sums[:2]
        return max(pairs / events, 1.0) if events else 1.0

    def at(self, dropped_share: float) -> float:
        """Return the time that an event takes at a share of pairs dropped."""
        return self.fixed_ns + self.saved_ns * (1.0 - dropped_share)

    def add(
        self, events: int, busy_ns: int, dropped_share: float, *, keep: float, pairs: int = 0
    ) -> None:
        """Count an interval; `keep` is the share that older ones still count."""
        if events <= 0:
            return
        if not dropped_share or not self._plain.is_known:
            self._plain.add(events, pairs, busy_ns, keep=keep)
        taken_ns = self._plain.time_ns(events, pairs)
        if taken_ns <= 0:
            return
        rest, ratio = 1.0 - dropped_share, busy_ns / taken_ns
        added = (1.0, rest, rest * rest, ratio, ratio * rest)
        each = zip(self._sums, added, strict=True)
        self._sums = [keep * old + taken_ns * new for old, new in each]
        self._fit()
        sooner = keep**_SOONER
        self._lately = [
            sooner * old + new
            for old, new in zip(self._lately, (float(events), taken_ns), strict=True)
        ]

    def _fit(self) -> None:
        n, k, kk, t, tk = self._sums
        # The normal equations; the ridge holds the fixed part where nothing tells them apart.
        held = _RIDGE * n
        det = (n + held) * kk - k * k
        fixed = ((t + held * self._fixed) * kk - k * tk) / det if det > 0 else self._fixed
        fixed = min(max(fixed, 0.0), t / n)
        self._fixed = fixed
        self._saved = max((tk - fixed * k) / kk, 0.0) if kk > 0 else self._saved


class _Plain:
    """In intervals without drops: the time of an event, and of each of its pairs."""

    STATE = Fields("sums")

    def __init__(self) -> None:
        self.sums = [0.0] * 5  # sums of events, pairs, ns; of pairs² and pairs · ns for an event

    @property
    def is_known(self) -> bool:
        return self.sums[0] > 0

    def add(self, events: int, pairs: int, ns: int, *, keep: float) -> None:
        added = (events, pairs, ns, pairs * pairs / events, pairs * ns / events)
        self.sums = [keep * old + new for old, new in zip(self.sums, added, strict=True)]

    def time_ns(self, events: int, pairs: int) -> float:
        """Return the time that events would have taken; neither part is negative."""
        n, p, t, pp, pt = self.sums
        det = n * pp - p * p
        if det <= 1e-9 * n * pp or pp <= 0:
            return t / n * events  # nothing tells them apart
        event_ns, pair_ns = (t * pp - p * pt) / det, (n * pt - p * t) / det
        if event_ns < 0:
            return pt / pp * pairs
        return t / n * events if pair_ns < 0 else event_ns * events + pair_ns * pairs


def natural_breaks(weights: FloatArray, classes: int = CLASSES) -> Int64Array:
    """Return the highest value of each class but the last, for natural classes.

    Args:
        weights: shape (values,), how often each value 0, 1, … comes.
        classes: number of classes; fewer if there are fewer different values.

    Returns:
        ascending; the sum of squared distances to the mean of each class is least.

    Source: [espice] §3.4, *cluster the utilities*: it says not how. Fisher 1958, exact.
    """
    values = np.flatnonzero(weights > 0)
    classes = min(classes, len(values))
    if classes < 2:
        return np.empty(0, np.int64)
    w = weights[values]
    sums = [np.concatenate([[0.0], np.cumsum(w * values**power)]) for power in range(3)]
    end = len(values)
    begin_, end_ = np.meshgrid(np.arange(end), np.arange(1, end + 1), indexing="ij")
    n, s, q = (sums_of[end_] - sums_of[begin_] for sums_of in sums)
    cost = np.where(end_ > begin_, q - s * s / np.where(end_ > begin_, n, 1.0), np.inf)
    best, froms = cost[0], []  # costs of the first values up to each, in one class
    for _ in range(classes - 1):
        shifted = np.concatenate([[np.inf], best[:-1]])[:, np.newaxis] + cost
        froms.append(shifted.argmin(axis=0))
        best = shifted.min(axis=0)
    breaks, at = [], end - 1
    for from_ in reversed(froms):
        at = int(from_[at]) - 1
        breaks.append(int(values[at]))
    return np.array(breaks[::-1])


def partitions_of(size: float, q_max: float, f: float) -> int:
    """Return ρ = ceil(ws / (q_max − f·q_max)): the number of partitions of a window.

    Source: [espice] §3.4, *dropping interval*.
    """
    room = max(q_max * (1.0 - f), 1.0)  # a part has at least one event
    return max(int(np.ceil(size / room - 1e-9)), 1)


def choose_f(utilities: Utilities, expected: FloatArray, *, q_max: float, share: float) -> float:
    """Return the greatest f at which each partition has x events of low importance.

    Low are all classes but the highest.

    Args:
        utilities: shape (types, cells), of the model.
        expected: shape (types, cells), events of a window.
        q_max: events that may wait.
        share: the share of the events that is to be dropped: x / p_size.

    Returns:
        if no f has such partitions: the one at which the partition that lacks most lacks least.

    Source: [espice] §3.4, *appropriate f value*. It asks for the minimum f with such
    partitions: that were 0, for a low f makes them large. A high one sheds seldom.
    """
    size = float(expected.sum())
    whole = cdt(utilities, expected)
    breaks = natural_breaks(np.diff(whole, prepend=0.0))
    low = int(breaks[-1]) if len(breaks) else LEVELS - 1
    best_f, best = PLAIN_F, -np.inf
    tried: dict[int, float] = {}  # {partitions: the share of the events to drop that is low}
    for f in SHARES:
        partitions = partitions_of(size, q_max, f)
        if partitions not in tried:
            cumulated = cdt_of_partitions(utilities, expected, partitions)
            wanted = max(share * size / partitions, 1e-12)
            tried[partitions] = float(cumulated[:, low].min()) / wanted
        if tried[partitions] >= 1.0:
            return f
        if tried[partitions] > best + 1e-12:
            best_f, best = f, tried[partitions]
    return best_f
