"""Report of a run: stages, channels, sinks and the ledger. Plain data, JSON-ready."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from slackwater.runtime.closing.policy import ClosingCounts
from slackwater.runtime.json_form import JsonObject, spread
from slackwater.runtime.measure.balance import Ledger
from slackwater.runtime.measure.checkpoints import CheckpointReport
from slackwater.runtime.measure.histogram import LatencyHistogram
from slackwater.runtime.measure.outcomes import (
    AT_STAGE,
    FILTERED,
    IN_FLIGHT,
    LATE,
    LATE_DROPPED,
    READY,
    SLACK_READY,
    Counted,
    Counts,
    LedgerPlace,
)
from slackwater.runtime.measure.prediction import PredictionReport
from slackwater.runtime.measure.recovered import Recovery
from slackwater.runtime.measure.replaced import Replaced
from slackwater.runtime.measure.series import LatencySeries
from slackwater.runtime.measure.skew import Skew
from slackwater.runtime.measure.step_report import StepReport
from slackwater.runtime.measure.tuning import TuningReport
from slackwater.runtime.model import format_ns
from slackwater.runtime.notebook import fixed_width
from slackwater.runtime.shedding.counts import SheddingCounts


@dataclass
class StageReport(JsonObject):
    """Report of one stage so far.

    The stage's ledger: `rows_in` is the sum of `counts` over the outcomes that stand in a stage's
    balance (runtime/measure/outcomes.py). Rows that went on were then left out by a later step, as
    `filtered`, or consumed by the operator or the next stage. `is_balanced` checks the sum.
    """

    name: str
    kind: str
    """source, stateless, gate, sink; or an operator's kind, such as join."""
    node: str
    slot: str
    has_gate: bool = False
    """Whether the stage has a gate, or is a replica whose gate is another stage."""
    passes_on: bool = False
    """Whether rows leave as the events that came in; else they are new events."""
    rows_in: int = 0
    rows_out: int = 0
    early: int = 0
    """Rows held since their event time was too far ahead of their arrival."""
    to_pass_over: int = 0
    """Rows that the input is still to give again after a restart or an error, before new ones."""
    first_bad: list[str] = field(default_factory=list)
    """First rows that could not be used, each with its place and the reason."""
    source_clock: dict[str, int] = field(default_factory=dict)
    """Figures of a source with `clock=`, {name: number, or ns}: writers; smallest_offset_ns and
    largest_offset_ns; with a bound largest_bound_ns, half of [thesis] Eq. 3.16's T_a, and jumps;
    of an input that compares clocks unanswered_rounds, answers refused, and contradictions."""
    exploded: int = 0
    """Rows that steps of its chain made beyond those that came."""
    late_ready: int = 0
    """Late rows that were ready by the time they left: [ssg] Algorithm 3, 7."""
    results_filtered: int = 0
    """Results dropped by filters after the operator: new events, outside the balance of rows in."""
    held: int = 0
    """Rows in the operator's state: windows, join sides."""
    dropped_early: int = 0
    """Rows that the join dropped before all their partners were promised, since it held more than
    `most_kept_rows`."""
    comparisons: int = 0
    """Pairs of rows with equal keys and close times that the join compared."""
    counted: dict[str, int] = field(default_factory=dict)
    """Further counts of the operator, {name: count}."""
    closing: ClosingCounts | None = None
    """Counts of closing, where windows close by arrivals."""
    shedding: SheddingCounts | None = None
    """Counts of shedding, where the stage sheds."""
    steps: list[StepReport] = field(default_factory=list)
    """Its own step, then the steps of its chain."""
    share: str = ""
    """Share of each replica of a gate, "keys" or "all"."""
    hot_key: str = ""
    """Of a replica that owns keys: the key of many of its last rows; empty if no key is hot."""
    hot_key_share: float = 0.0
    """Share of that key, in a sample of the replica's last rows."""
    batches: int = 0
    service_ns: int = 0
    """Busy time, summed."""
    queue_wait_ns: int = 0
    """Time for which messages waited for the stage's turn, summed over rows."""
    gate_wait_ns: int = 0
    """Time for which the gate held rows, summed over rows."""
    max_gate_rows: int = 0
    """Most rows that queue and gate held at once."""
    waiting_for: list[str] = field(default_factory=list)
    """Inputs that hold the frontier back now; of a source with `idle=`, the writer."""
    idle_marks: dict[str, int] = field(default_factory=dict)
    """{source: how often the gate went on without it, as it was silent for its `idle`}."""
    older_than_promised: dict[str, int] = field(default_factory=dict)
    """{source: its rows older than the frontier of all sources that are not idle}: such rows may
    have missed partners."""
    held_back: dict[str, int] = field(default_factory=dict)
    """{source: number of reads after which a join kept rows beyond its window, as this source had
    not promised more}."""
    frontier_ns: int | None = None
    """Frontier: all older events have been seen; None before the first promise."""
    newest_ns: int | None = None
    """Newest event time seen."""
    still_ns: int | None = None
    """Time since the last row or promise left; None if the stage has ended, or it is unknown."""
    due_in_ns: int | None = None
    """Time until the next row of a paced source, if no row is due now; None if unknown."""
    is_stuck: bool = False
    """Whether one slice has lasted since then: a user's function or a sink does not return."""
    counts: Counts = field(
        default_factory=Counts.of_stage, metadata=spread(Counts.by_name, Counts.from_names)
    )
    """{outcome: rows}, of the rows that came in."""

    DERIVED: ClassVar = {
        "selectivity": "selectivity",
        "service_per_row_ns": "service_per_row_ns",
        "balanced": "is_balanced",
    }

    ready = Counted(READY)
    slack_ready = Counted(SLACK_READY)
    late = Counted(LATE)
    late_dropped = Counted(LATE_DROPPED)
    filtered = Counted(FILTERED)
    in_flight = Counted(IN_FLIGHT)

    @property
    def selectivity(self) -> float:
        """Rows out for each row in."""
        return self.rows_out / self.rows_in if self.rows_in else 0.0

    @property
    def service_per_row_ns(self) -> float:
        """Busy time for each row in."""
        return self.service_ns / self.rows_in if self.rows_in else 0.0

    @property
    def used(self) -> int:
        """Rows that went on, in order or late."""
        return self.counts.at(LedgerPlace.WENT_ON)

    @property
    def unready(self) -> int:
        """Rows that left before they were ready, in order or late: slrTuples, [ssg] Eq. 4."""
        return self.slack_ready + max(self.late + self.late_dropped - self.late_ready, 0)

    @property
    def missing(self) -> int:
        """Rows that came in without an outcome; below zero: more outcomes than rows."""
        return self.rows_in - self.counts.at(*AT_STAGE)

    @property
    def is_balanced(self) -> bool:
        """Whether every row that came in has an outcome."""
        return self.missing == 0

    def copy(self) -> StageReport:
        """Return a copy of the report: the stage goes on counting in the original."""
        made = replace(self)
        for name, value in vars(self).items():
            if isinstance(value, dict | list):
                setattr(made, name, value.copy())
        made.steps = [step.copy() for step in self.steps]
        return made


@dataclass
class ChannelReport(JsonObject):
    """Report of one channel: rows sent at one end, rows received at the other."""

    name: str
    source: str
    target: str
    rows_sent: int = 0
    rows_received: int = 0
    bytes_sent: int = 0
    messages: int = 0
    link_ns: int = 0
    """Time on the wire, summed over messages; by two clocks between two hosts."""
    least_link_ns: int | None = None
    """Time of the quickest message: the link's own delay. Other messages waited for the rest of
    their time, for a busy link or a busy core."""
    error_ns: int = 0
    """Largest error of each message's time on the wire: that of the sender's clock plus that of
    the receiver's. 0 within one clock."""
    promises: int = 0
    """Of the messages, those without rows: a promise alone."""
    withheld: int = 0
    """Promises that were not sent, since a later one, or one with rows, was sent soon after."""

    @property
    def in_flight(self) -> int:
        """Rows on the wire."""
        return self.rows_sent - self.rows_received


@dataclass
class SinkReport(JsonObject):
    """Report of one sink: rows that left the flow there, and their latency."""

    name: str
    node: str
    rows: int = 0
    target: str = ""
    latency: LatencyHistogram = field(default_factory=LatencyHistogram)
    series: LatencySeries = field(default_factory=LatencySeries)
    old_s: float | None = None
    """Seconds for which the sink has stood still: the least age of its latencies; None if it
    does not."""
    error_ns: int = 0
    """Largest error of a latency: that of this slot's clock plus that of a source's, the largest
    over the sources upstream. 0 within one clock."""
    published: int | None = None
    """Of `rows`, those in files that readers see; None if the sink publishes no files."""
    waiting: int = 0
    """Of `rows`, those written to a file that no reader sees yet."""
    parts: int = 0
    """Files that readers see, also those of earlier runs of the same output."""
    already_committed: int = 0
    """Rows that reached the sink and were left out, as an earlier run had committed them. They are
    neither in `rows` nor in `latency`."""
    came_again: int = 0
    """Of `rows`, those that the sink had before a recovery. They came again, and were not written
    twice. Their latency died with the slot, so it is in no figure."""
    held: int = 0
    """Rows that wait for the checkpoint that contains them. They are not in `rows` yet."""
    notes: list[str] = field(default_factory=list)
    deadline_ns: int | None = None
    """Deadline of the flow; None if it has none."""
    in_time: int = 0
    """Rows that left within the deadline of their stimulus, counted one by one."""
    marked: dict[str, int] = field(default_factory=dict)
    """{mark: rows that have it}, of `rows`, such as revisions of an earlier result."""

    @property
    def measured(self) -> int:
        """Rows whose latency is known."""
        return self.rows - self.came_again


@dataclass
class ClockReport(JsonObject):
    """Clock of a node, and its offset from the reference's.

    Source: [thesis] §3.2.2.
    """

    node: str
    offset_ns: int = 0
    """Reference's time less its own."""
    error_ns: int = 0
    """Largest error of the offset now."""
    largest_error_ns: int = 0
    """Largest error since the start: no measured time is off by more."""
    round_trip_ns: int = 0
    """Round trip of the exchange that gave the offset."""
    exchanges: int = 0
    is_reference: bool = True
    """Whether it is the reference's own clock: then all other fields are 0."""
    refused: int = 0
    """Messages of the exchange that were malformed or out of turn."""
    steps: int = 0
    """How often the host's wall clock was set since the start. No slot uses it."""
    stepped_ns: int = 0
    """Sum of those steps: forward, less back."""


@dataclass
class Standstill(JsonObject):
    """Standstill: sinks without a row for a while, and the stages they wait for."""

    sinks: list[str]
    still_s: float
    """Seconds for which they have stood still so far."""
    since_s: float
    """Seconds from the start of the job to the start of the standstill."""
    waits_for: list[str]
    """Sources, or stages that are stuck."""
    why: str
    do: str


@dataclass
class JobReport(JsonObject):
    """Report of a run, running or ended."""

    flow: str
    state: str
    """starting, running, done, stopped or failed; or lost: its process is gone."""
    host: str
    """"ray" or "simulator"."""
    nodes: list[str]
    elapsed_s: float
    stages: list[StageReport]
    channels: list[ChannelReport]
    sinks: list[SinkReport]
    ledger: Ledger
    error: str | None = None
    notes: list[str] = field(default_factory=list)
    """Sentences such as: three nodes simulated on one machine share its clock and its 2 cores."""
    clocks: list[ClockReport] = field(default_factory=list)
    """Clock of each node; empty in virtual time."""
    refused_peers: int = 0
    """Connections that the job's sockets refused: they did not show its keys."""
    tuning: TuningReport | None = None
    """How the deadline was kept; None if the flow has no deadline, or no gate to tune."""
    prediction: PredictionReport | None = None
    """Predicted and measured latency; None if nothing was predicted."""
    standstills: list[Standstill] = field(default_factory=list)
    """Standstills now, or at the time when the job was stopped."""
    replaced: list[Replaced] = field(default_factory=list)
    """Re-placements during the run."""
    recoveries: list[Recovery] = field(default_factory=list)
    """Recoveries from failures, in order."""
    checkpoint: CheckpointReport | None = None
    """Newest checkpoint; None if the job takes none."""
    skews: list[Skew] = field(default_factory=list)
    """Steps of which one replica got far more rows than the others."""
    job_events: list[str] = field(default_factory=list)
    """Last stimuli of a job that failed, each with its second, the latest last."""
    slot_events: list[str] = field(default_factory=list)
    """Last stimuli of the slot that made the job fail, as far as the slot reported them."""

    @property
    def promises_between_slots(self) -> tuple[int, int]:
        """Numbers of promises without rows from slot to slot: sent, and withheld."""
        slots = {stage.name: stage.slot for stage in self.stages}
        between = [c for c in self.channels if slots.get(c.source) != slots.get(c.target)]
        return sum(c.promises for c in between), sum(c.withheld for c in between)

    def __str__(self) -> str:
        """Return a few lines: state, ledger, sinks, checkpoints, recoveries, first bad rows."""
        lines = [
            f"flow {self.flow!r} on {self.host}: {self.state} after {self.elapsed_s:.2f} s",
            f"ledger: {self.ledger}",
        ]
        for sink in self.sinks:
            median, most = (format_ns(sink.latency.quantile(q)) for q in (0.5, 0.99))
            latency = f", latency p50 {median}, p99 {most}" if sink.measured else ""
            lines.append(f"sink {sink.name!r}: {sink.rows:,} rows{latency}")
        if self.checkpoint is not None:
            lines.append(self.checkpoint.text)
        lines += [recovery.text for recovery in self.recoveries]
        lines += [f"note: {note}" for note in self.notes]
        lines += [
            f"note: stage {stage.name!r} could not use a row: {stage.first_bad[0]}"
            for stage in self.stages
            if stage.first_bad
        ]
        return "\n".join(lines if self.error is None else [*lines, f"error: {self.error}"])

    def _repr_html_(self) -> str:
        return fixed_width(str(self))

    @property
    def results_in_time(self) -> tuple[int, int] | None:
        """Results of all sinks, (within the deadline, all); None if there is no deadline.

        Each result counts from its own stimulus to its own egress, unlike the seconds of `tuning`.
        """
        counted = [sink for sink in self.sinks if sink.deadline_ns is not None]
        if not counted:
            return None
        return sum(sink.in_time for sink in counted), sum(sink.measured for sink in counted)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON values; histograms as quantiles and buckets."""
        plain = super().to_json()
        if (in_time := self.results_in_time) is not None:
            plain["results_in_time"] = dict(zip(("in_time", "rows"), in_time, strict=True))
        return plain
