"""Samples of a stage for the tuner: waits, and the work of each second."""

from __future__ import annotations

from collections.abc import Sequence

from slackwater.runtime.measure.report import StageReport
from slackwater.runtime.measure.samples import GateState, StageMeter, StageSample
from slackwater.runtime.measure.trials import GateTrials, Trial
from slackwater.runtime.merge import ReplicaReads, SlackGate
from slackwater.runtime.model import (
    END_NS,
    NS_PER_SECOND,
    START_NS,
    Batch,
    GateRead,
    Message,
    Progress,
)
from slackwater.runtime.model.state import Fields
from slackwater.runtime.plan.plan import Stage
from slackwater.runtime.schedule.queues import PathQueues


class StageSampler:
    """Samples of one stage.

    Args:
        stage: stage of the samples.
        gate: gate of the stage, if it has one.
        start_ns: start of the first second.
        report: counters of the stage.
        reads: reads of a replica's gate, which is another stage.
        interval_ns: length of the samples.
    """

    STATE = Fields(
        "_trials",
        "_read_log",
        "_meter",
        "_since_ns",
        "_rows",
        "_waited_ns",
        "_last_event_ns",
        elements={"_trials": GateTrials},
    )

    def __init__(
        self,
        stage: Stage,
        gate: SlackGate | None,
        report: StageReport,
        reads: ReplicaReads | None = None,
        *,
        start_ns: int,
        interval_ns: int = NS_PER_SECOND,
    ) -> None:
        self._meter = StageMeter(
            stage.subject,
            start_ns=start_ns,
            readers=stage.readers,
            window_ns=stage.window_ns,
            interval_ns=interval_ns,
        )
        self._gate, self._report = gate, report
        self._is_source = not stage.inputs
        self._reads = reads
        self._read_log = ReadLog()
        self._is_mixed = [channel.is_mixed for channel in stage.inputs]
        self._since_ns = self._rows = self._waited_ns = 0  # of the last slice
        self._last_event_ns = START_NS
        self._trials: GateTrials | None = None

    def try_out(self, trials: Sequence[Trial]) -> None:
        """Keep account from now on of what these settings of the gate would release."""
        if trials and self._trials is None:
            self._trials = GateTrials()
        if self._trials is not None:
            self._trials.set(trials)

    def travelled(self, link_ns: int) -> None:
        """Count a message that came, so long after it had been sent."""
        self._meter.travelled(link_ns)

    def begin(self) -> None:
        """Begin a slice."""
        self._rows = self._waited_ns = 0

    def came(self, writer: int, batch: Batch | None, came_ns: int) -> None:
        """Count rows that went into the gate, and came at that time."""
        if self._gate is None or batch is None or not len(batch):
            return
        if self._trials is not None:
            times_ns = batch.event_time_ns
            newest_ns = int(times_ns.max()) if self._is_mixed[writer] else times_ns.item(-1)
            self._trials.came(self._gate.place_of(writer), times_ns, newest_ns, came_ns)
        if self._gate.frontier_ns == START_NS:
            self._meter.came(int(batch.event_time_ns.min()))

    def left(self, released: GateRead | None, now_ns: int) -> None:
        """Count a read of the gate, and what it released."""
        assert self._gate is not None, "only gates are read"
        gate = self._gate
        since_ns = gate.left_since_ns
        newest_ns, frontier_ns = gate.newest_ns, gate.frontier_ns
        if newest_ns > frontier_ns > START_NS:
            self._meter.ahead(newest_ns - frontier_ns)
        if self._trials is not None:
            self._trials.read(now_ns, newest_ns, gate.ready, writers=len(self._is_mixed))
        if released is None:
            return
        rows = released.rows
        in_order = [batch for batch in released.ports if batch is not None]
        last_ns = max([batch.event_time_ns.item(-1) for batch in in_order], default=START_NS)
        self._worked(now_ns if since_ns is None else since_ns, rows, last_ns)

    def came_split(self, message: Message, came_ns: int) -> None:
        """Count a message of a replica's gate, and when it came."""
        if message.tag is not None and message.rows:
            self._read_log.add(message.tag.number, came_ns)

    def read(self, released: GateRead | None, now_ns: int) -> None:
        """Count what a replica goes on with of its gate's reads."""
        assert self._reads is not None, "only replicas get parts of reads"
        if released is None:
            return
        since_ns = self._read_log.left(self._reads.unread, self._reads.held)
        rows = released.rows
        if rows:
            last_ns = max([int(batch.event_time_ns.max()) for batch in released.batches])
            self._worked(now_ns if since_ns is None else since_ns, rows, last_ns)

    def handed_over(self, rows: Batch | None, progress: Progress) -> None:
        """Count the rows that a source hands over, and its promise."""
        self.passed(rows)
        self._meter.promised(progress.promise_ns)

    def passed(self, batch: Batch | None, came_ns: int | None = None) -> None:
        """Count rows that pass without a gate, by when they came or were due."""
        if batch is not None and len(batch):
            since_ns = batch.stimulus_time_ns.item(0) if came_ns is None else came_ns
            if self._is_source:
                self._meter.arrived(batch.stimulus_time_ns)
            times = batch.event_time_ns
            last_ns = times.item(0) if len(times) == 1 else int(times.max())
            self._worked(since_ns, len(times), last_ns)

    def _worked(self, since_ns: int, rows: int, last_event_ns: int) -> None:
        if self._rows:  # a sink takes several messages in a slice
            since_ns = min(since_ns, self._since_ns)
            last_event_ns = max(last_event_ns, self._last_event_ns)
        self._since_ns, self._last_event_ns = since_ns, last_event_ns
        self._rows += rows

    def waited(self, wait_ns: int) -> None:
        """Count how long windows have waited, by the clock, that close in this slice."""
        self._waited_ns = max(self._waited_ns, wait_ns)

    def end(self, began_ns: int, took_ns: int, *, counts: bool = True) -> None:
        """End the slice; one that only read or polled does not count."""
        if counts:
            self._meter.sliced()
        if self._waited_ns:
            self._meter.worked(self._waited_ns + took_ns, rows=0 if self._rows else 1)
        if self._rows:
            latency_ns = max(began_ns - self._since_ns, 0) + took_ns
            self._meter.worked(latency_ns, rows=self._rows, last_event_ns=self._last_event_ns)

    def count(self, now_ns: int, queues: PathQueues) -> None:
        """End the seconds that are over by now; call before anything is counted."""
        if not self._meter.is_over(now_ns):
            return
        state = self._counted()
        state.held = queues.rows
        since = [queues.oldest_ns()]
        if (gate := self._gate) is not None:
            state.rule = gate.rule
            state.newest_ns, state.frontier_ns = gate.newest_ns, gate.frontier_ns
            state.held += gate.rows_held
            if self._trials is not None:
                state.tried = self._trials.close(self._meter.end_of_seconds_ns(now_ns))
            since.append(gate.waiting_since_ns)
        else:
            state.frontier_ns = END_NS  # no writer is left
            if self._reads is not None:
                state.held += self._reads.rows_held
                since.append(self._read_log.oldest_ns())
        state.held_since_ns = min([at for at in since if at is not None], default=None)
        self._meter.close(now_ns, state)

    def _counted(self) -> GateState:
        report = self._report
        state = GateState(busy_ns=report.service_ns, came=report.rows_in, handed=report.rows_out)
        if self._gate is not None:
            counts = self._gate.counts()
            state.slack_ready, state.late = counts.unready, counts.late
        return state

    def samples(self) -> list[StageSample]:
        """Return the samples of the seconds that are over, once."""
        return self._meter.take()

    def restart(self) -> None:
        """Count from here: what the stage did before, without samples, is in no second."""
        self._meter.restart(self._counted())


class ReadLog:
    """Times at which reads that are not done reached a replica."""

    STATE = Fields("_came_ns")

    def __init__(self) -> None:
        self._came_ns: dict[int, int] = {}  # {number of the read: when the first rows of it came}

    def add(self, number: int, came_ns: int) -> None:
        """Take note that rows of a read have come."""
        self._came_ns.setdefault(number, came_ns)

    def left(self, unread: int, held: int) -> int | None:
        """Note that reads before `unread` go on, and those before `held` are done.

        Returns:
            When rows came that had waited longest of those that go on; None if there are none.
        """
        since_ns = min([at for n, at in self._came_ns.items() if n < unread], default=None)
        for number in [n for n in self._came_ns if n < held]:
            del self._came_ns[number]
        return since_ns

    def oldest_ns(self) -> int | None:
        """Return when the row came that has waited longest; None if nothing is held."""
        return min(self._came_ns.values(), default=None)
