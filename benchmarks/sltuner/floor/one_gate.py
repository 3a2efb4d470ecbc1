"""One gate and the sink behind it, worked out in milliseconds, not simulated in half a minute.

```
buses ─┐                                   each row of the gate leaves at the first of
       congestion ── jams (slow)             ready   the other side has promised as much
loops ─┘                                     due     its message has waited as long as the hold
```

For a join of two sources in event-time order whose gate sets holds and no slack. Each second's
hold is given; when each row leaves follows from the arrivals in closed form, so do the pairs that
each read gives, and the sink behind works them off one after the other. What this says of
slack-ready rows and of [ssg] Eq. 2 is what the simulator says (tests/benchmarks).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.offline import pairs_within
from benchmarks.sltuner.deadline import Experiment, Floats, Ints
from benchmarks.sltuner.floor.arrivals import Arrivals, NotAloneError, arrivals
from benchmarks.sltuner.floor.sink_queue import RecentWork, SinkQueue
from benchmarks.sltuner.seconds import by_second
from slackwater.runtime.control import FlowGraph
from slackwater.runtime.model import END_NS, NS_PER_SECOND, Batch, concat_batches
from slackwater.runtime.model.nullable import is_true
from slackwater.runtime.operators.join.step import JoinStep
from slackwater.runtime.plan.plan import Plan
from slackwater.runtime.tune import Paths

MOST_HOLD_S = 10
"""No hold is longer; a row has left after so many seconds, or as it is ready."""
LEFT, RIGHT = 0, 1


@dataclass(frozen=True)
class Seconds:
    """What holds make of a stretch of seconds; arrays of that many.

    Attributes:
        slack_ready: rows of the gate that left before they were ready, [ssg] Eq. 4.
        latency_s: Eq. 2.
        sink_s: latency_op of the stage behind the gate, with comm.
    """

    slack_ready: Ints
    latency_s: Floats
    sink_s: Floats


class OneGate:
    """The arrivals of a run, ready to be asked what holds make of it.

    Args:
        experiment: whose flow is two sources, a join, a sink; each in a slot of its own.
        seed: of its streams.

    Attributes:
        gate: the join.
        deadline_ns: of the flow.
        seconds: of the run.
        times_ns, came_ns, ready_ns: ({side: shape (rows,)}), each row's event time, when it comes,
            and when it is ready.
        newest: (when a row came, the newest event time by then), shape (rows,) both.
        pairs: (left rows, right rows), the pairs that the join would find in order.
        rest_s: what sources and travel take, shape (seconds,).
    """

    def __init__(self, experiment: Experiment, *, seed: int) -> None:
        plan = experiment.plan(seed)
        self.gate, self._step = _join_of(plan)
        assert plan.deadline_ns is not None, "an experiment has a deadline"
        self.deadline_ns, self.seconds = plan.deadline_ns, experiment.seconds
        cost, link = experiment.cost, experiment.link
        come = arrivals(plan, self.gate, cost=cost, link=link, seconds=experiment.seconds)
        self.passing_ns = int(cost.per_slice_ns) + link.delay_ns
        self.sink = SinkQueue(next(one.name for one in plan.stages if one.kind == "sink"), cost)
        self._take_in(come)
        self.rest_s = _rest_s(plan, come, experiment.seconds)
        self.rest_s += (2 * link.delay_ns + cost.per_slice_ns) / NS_PER_SECOND

    def _take_in(self, come: Arrivals) -> None:
        batches: list[list[Batch]] = [[], []]
        came: list[list[int]] = [[], []]
        promised: list[list[tuple[int, int]]] = [[], []]  # (promise, when it came)
        for one in come.messages:
            promised[one.writer].append((one.message.progress.promise_ns, one.came_ns))
            if one.message.batch is not None and len(one.message.batch):
                batches[one.writer].append(one.message.batch)
                came[one.writer] += [one.came_ns] * len(one.message.batch)
        rows = [concat_batches(own) for own in batches]
        self.times_ns = [own.event_time_ns for own in rows]
        self.came_ns = [np.array(own, dtype=np.int64) for own in came]
        self.ready_ns = [
            _ready_ns(self.times_ns[side], self.came_ns[side], promised[1 - side], side)
            for side in (LEFT, RIGHT)
        ]
        self.frontier = _frontier(promised)
        order = np.argsort(np.concatenate(self.came_ns), kind="stable")
        newest_ns = np.maximum.accumulate(np.concatenate(self.times_ns)[order])
        self.newest = np.concatenate(self.came_ns)[order], newest_ns
        self.within_ns = self._step.within_ns
        self.pairs = _pairs(self._step, rows)
        self.loses_pairs = self._step.keep == "slack"
        at_ns, newest_ns = self.newest
        self._speed = float(np.ptp(newest_ns) / max(np.ptp(at_ns), 1))
        self._begins_ns = float((newest_ns - at_ns * self._speed).max())

    def newest_at(self, at_ns: Ints) -> Ints:
        """Return at most how far event time may have come by these times, by one straight line."""
        return (self._begins_ns + at_ns * self._speed).astype(np.int64)

    @property
    def still_waits_s(self) -> Floats:
        """How long a row that is there as a second begins still has to wait; shape (seconds,)."""
        begins_ns = np.arange(self.seconds) * NS_PER_SECOND
        waits_ns = np.zeros(self.seconds, dtype=np.int64)
        for came_ns, ready_ns in zip(self.came_ns, self.ready_ns, strict=True):
            latest_ns = np.append(0, np.maximum.accumulate(ready_ns))
            waits_ns = np.maximum(
                waits_ns, latest_ns[np.searchsorted(came_ns, begins_ns)] - begins_ns
            )
        return waits_ns / NS_PER_SECOND

    def part(self, first: int, last: int) -> Part:
        """Return the seconds from `first` to before `last`, to be asked for alone."""
        return Part(self, first, last)


class Part:
    """A stretch of seconds of a run, at whose borders the gate holds next to nothing."""

    def __init__(self, whole: OneGate, first: int, last: int) -> None:
        self.first, self.last, self._whole = first, last, whole
        first_ns, last_ns = first * NS_PER_SECOND, last * NS_PER_SECOND
        self.rows = [
            slice(*np.searchsorted(whole.came_ns[side], (first_ns, last_ns)).tolist())
            for side in (LEFT, RIGHT)
        ]
        self.came_ns = [whole.came_ns[side][self.rows[side]] for side in (LEFT, RIGHT)]
        self.ready_ns = [whole.ready_ns[side][self.rows[side]] for side in (LEFT, RIGHT)]
        self.times_ns = [whole.times_ns[side][self.rows[side]] for side in (LEFT, RIGHT)]
        left, right = whole.pairs
        later_ns = np.maximum(whole.came_ns[LEFT][left], whole.came_ns[RIGHT][right])
        own = (later_ns >= first_ns) & (later_ns < last_ns)
        self.pairs = left[own], right[own]
        self._earlier_ns = np.minimum(
            whole.times_ns[LEFT][left[own]], whole.times_ns[RIGHT][right[own]]
        )
        self.fixed_s = whole.rest_s[first:last]
        self._waiting = [
            _Waiting(came_ns, ready_ns)
            for came_ns, ready_ns in zip(self.came_ns, self.ready_ns, strict=True)
        ]
        self._sink = RecentWork(whole.sink)
        at, frontier_ns = whole.frontier
        kept = slice(max(int(np.searchsorted(at, first_ns)) - 1, 0), None)
        self._frontier = at[kept], frontier_ns[kept]

    def evaluate(self, holds_ns: Ints) -> Seconds:
        """Return what holds, shape (last − first,), make of these seconds."""
        return self._seconds([own.due_ns(holds_ns, self.first) for own in self._waiting])

    def under_slack(self, slack_ns: int) -> Seconds:
        """Return what a slack of event time, and no hold, makes of these seconds.

        But for a few rows at its edges, that are ready by one message and due by another that
        comes within the same slice.
        """
        came_ns, newest_ns = self._whole.newest
        due_ns = []
        for times_ns, waiting in zip(self.times_ns, self._waiting, strict=True):
            beyond = np.searchsorted(newest_ns, times_ns[waiting.rows] + slack_ns, side="right")
            due_ns.append(np.append(came_ns, END_NS)[beyond])
        return self._seconds(due_ns)

    def _seconds(self, dues_ns: Sequence[Ints]) -> Seconds:
        """Return what comes of it if the rows that wait at all must go by then."""
        size = self.last - self.first
        slack_ready, gate_ns = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
        leaves = []
        for side in (LEFT, RIGHT):
            waiting = self._waiting[side]
            ready_ns = self.ready_ns[side]
            due_ns = dues_ns[side]
            leave_ns = ready_ns.copy()
            own_ns = np.minimum(ready_ns[waiting.rows], due_ns)
            leave_ns[waiting.rows] = own_ns
            leaves.append(leave_ns)
            second = own_ns // NS_PER_SECOND - self.first
            inside = second < size  # what leaves after the run is not judged
            waits_ns = own_ns - self.came_ns[side][waiting.rows]
            np.maximum.at(gate_ns, second[inside], waits_ns[inside])
            is_early = inside & (due_ns < ready_ns[waiting.rows])
            slack_ready += np.bincount(second[is_early], minlength=size)
        sink_ns = self._sink_ns(leaves)
        latency_s = self.fixed_s + (gate_ns + sink_ns) / NS_PER_SECOND
        return Seconds(slack_ready, latency_s, sink_ns / NS_PER_SECOND)

    def _sink_ns(self, leaves: Sequence[Ints]) -> Ints:
        whole = self._whole
        out_ns = np.maximum(self._leaves_of(leaves, LEFT), self._leaves_of(leaves, RIGHT))
        if whole.loses_pairs:
            most_ns = whole.newest_at(out_ns) - self._earlier_ns
            asked = np.flatnonzero(most_ns > whole.within_ns)  # others find each other in any case
            late_ns = self._watermark_ns(leaves, out_ns[asked]) - self._earlier_ns[asked]
            out_ns = np.delete(out_ns, asked[late_ns > whole.within_ns])
        at_ns, counts = np.unique(out_ns, return_counts=True)
        came_ns = at_ns + whole.passing_ns
        begins, ends = self._sink.work(came_ns, counts)
        size = self.last - self.first
        longest = np.zeros(size, dtype=np.int64)
        second = begins // NS_PER_SECOND - self.first
        inside = second < size
        np.maximum.at(longest, second[inside], (ends - came_ns)[inside])
        return longest

    def _leaves_of(self, leaves: Sequence[Ints], side: int) -> Ints:
        """Return when the row of each pair on one side leaves; before this stretch: as it came."""
        rows = self.pairs[side] - self.rows[side].start
        inside = rows >= 0
        found = self._whole.came_ns[side][self.pairs[side]]
        found[inside] = leaves[side][rows[inside]]
        return found

    def _watermark_ns(self, leaves: Sequence[Ints], at_ns: Ints) -> Ints:
        """Return how far the join had come before a read at each time."""
        times, frontier_ns = self._frontier
        place = np.searchsorted(times, at_ns, side="left") - 1
        reached = np.where(place >= 0, frontier_ns[np.maximum(place, 0)], 0)
        for side in (LEFT, RIGHT):
            if not len(leaves[side]):
                continue
            own = np.maximum.accumulate(leaves[side])
            before = np.searchsorted(own, at_ns, side="left") - 1
            newest = self.times_ns[side][np.maximum(before, 0)]
            reached = np.maximum(reached, np.where(before >= 0, newest, 0))
        return reached


class _Waiting:
    """The rows that wait at all, and when their messages have waited long enough.

    Args:
        came_ns, ready_ns: of each row, ascending.
    """

    def __init__(self, came_ns: Ints, ready_ns: Ints) -> None:
        self.rows = np.flatnonzero(ready_ns > came_ns)
        waits_s = (ready_ns - came_ns).max(initial=0) // NS_PER_SECOND
        self._most = int(min(waits_s, MOST_HOLD_S)) + 2
        self._came_ns, self._of_row = np.unique(came_ns[self.rows], return_inverse=True)
        self._second = self._came_ns // NS_PER_SECOND

    def due_ns(self, holds_ns: Ints, first: int) -> Ints:
        """Return when each of `rows` has waited for the hold of the second that it then is.

        Args:
            holds_ns: from second `first` on; the last one stays.
            first: see there.
        """
        came_ns = self._came_ns
        due_ns = np.full(len(came_ns), END_NS, dtype=np.int64)
        for later in range(self._most, -1, -1):
            now = self._second + later
            hold_ns = holds_ns[np.minimum(now - first, len(holds_ns) - 1)]
            at_ns = np.maximum(came_ns + hold_ns, now * NS_PER_SECOND)
            np.copyto(due_ns, at_ns, where=at_ns < (now + 1) * NS_PER_SECOND)
        return due_ns[self._of_row]


def _ready_ns(
    times_ns: Ints, came_ns: Ints, promised: Sequence[tuple[int, int]], side: int
) -> Ints:
    """Return when each row is ready: the other side has promised that nothing older follows."""
    promises = np.array([promise for promise, _ in promised], dtype=np.int64)
    at_ns = np.array([at for _, at in promised], dtype=np.int64)
    # Of rows at one time the left ones come first: they may go as the right side reaches it.
    place = np.searchsorted(promises, times_ns, side="left" if side == LEFT else "right")
    return np.maximum(at_ns[np.minimum(place, len(at_ns) - 1)], came_ns)


def _frontier(promised: Sequence[Sequence[tuple[int, int]]]) -> tuple[Ints, Ints]:
    """Return the times at which the frontier moves, and where it then is."""
    at_ns = np.unique([at for side in promised for _, at in side])
    sides = []
    for own in promised:
        times = np.array([at for _, at in own], dtype=np.int64)
        promises = np.array([promise for promise, _ in own], dtype=np.int64)
        place = np.searchsorted(times, at_ns, side="right") - 1
        sides.append(np.where(place >= 0, promises[np.maximum(place, 0)], 0))
    return at_ns, np.minimum(*sides)


def _pairs(step: JoinStep, rows: Sequence[Batch]) -> tuple[Ints, Ints]:
    (left_key,), (right_key,) = step.left_on, step.right_on
    left, right = pairs_within(
        rows[LEFT].event_time_ns,
        np.asarray(rows[LEFT].columns[left_key], np.int64),
        rows[RIGHT].event_time_ns,
        np.asarray(rows[RIGHT].columns[right_key], np.int64),
        step.within_ns,
    )
    if step.where is None:
        return left, right
    columns = {name: values.take(left) for name, values in rows[LEFT].columns.items()}
    for name, leaves_as in step.right_names.items():
        if name in rows[RIGHT].columns:
            columns[leaves_as] = rows[RIGHT].columns[name].take(right)
    times_ns = rows[LEFT].event_time_ns.take(left)
    kept = is_true(
        step.where.evaluate(
            Batch(event_time_ns=times_ns, stimulus_time_ns=times_ns, columns=columns)
        )
    ).nonzero()[0]
    return left[kept], right[kept]


def _rest_s(plan: Plan, come: Arrivals, seconds: int) -> Floats:
    paths, rest_s = Paths.of(FlowGraph.of(plan)), np.zeros(seconds)
    for second, samples in by_second(come.samples).items():
        own = {step: float(one.took_ns) for step, one in samples.items()}
        rest_s[second] = paths.latency_ns(own) / NS_PER_SECOND
    return rest_s


def _join_of(plan: Plan) -> tuple[str, JoinStep]:
    """Return the only gate of a plan, and its join.

    Raises:
        NotAloneError: there are others, or stages between it and its sink, or it shares its slot.
    """
    stages = {stage.name: stage for stage in plan.stages}
    step = stages[plan.tuned[0]].step
    kinds = sorted(stage.kind for stage in plan.stages)
    inputs = stages[plan.tuned[0]].inputs
    is_plain = not any(c.is_mixed or c.idle_ns is not None for c in inputs)
    slots = {plan.slots[name] for name in stages}
    if not isinstance(step, JoinStep) or len(kinds) != 4 or len(slots) != 4 or not is_plain:
        raise NotAloneError(
            f"flow {plan.flow!r}: {', '.join(stages)} is not a join of two sources in order with "
            "a sink behind it, each in a slot of its own: simulate"
        )
    return plan.tuned[0], step
