"""What a run says of itself: stages, channels, sinks and the ledger. Plain data, JSON-ready."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeVar

from slackwater.runtime.closing.policy import ClosingCounts
from slackwater.runtime.measure.balance import Ledger
from slackwater.runtime.measure.checked import checked
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
from slackwater.runtime.measure.replaced import Replaced
from slackwater.runtime.measure.series import LatencySeries
from slackwater.runtime.measure.step_report import StepReport
from slackwater.runtime.measure.tuning import TuningReport
from slackwater.runtime.shedding.counts import SheddingCounts


@dataclass
class StageReport:
    """What one stage did so far.

    The stage's ledger: `rows_in` is the sum of `counts` over the outcomes that stand in a stage's
    balance (runtime/measure/outcomes.py). What went on was then left out behind, as `filtered`, or
    consumed: by the operator, or the next stage. `is_balanced` checks the first.
    """

    name: str
    kind: str
    """source, stateless, gate, sink; or that of an operator, such as join."""
    node: str
    slot: str
    has_gate: bool = False
    """Whether it has a gate, or is a replica whose gate is another stage."""
    passes_on: bool = False
    """Whether its rows leave as the events that they came in as; else they are new ones."""
    rows_in: int = 0
    rows_out: int = 0
    counts: Counts = field(default_factory=Counts.of_stage)
    """{outcome: rows}, of those that came in."""
    early: int = 0
    """Had an event time that its arrival could not have seen yet, and were held until then."""
    source_clock: dict[str, int] = field(default_factory=dict)
    """Of a source with `clock=`: {what: number, or ns}: writers; smallest_offset_ns and
    largest_offset_ns; with a bound largest_bound_ns, half of [thesis] Eq. 3.16's T_a, and jumps;
    of an input that compares clocks unanswered_rounds, answers refused, and contradictions."""
    late_ready: int = 0
    """Of those that came late, how many were ready by the time they left: [ssg] Algorithm 3, 7."""
    results_filtered: int = 0
    """Results that filters behind it dropped: new events, in no balance of those that came in."""
    held: int = 0
    """Rows in the operator's state (windows, join sides)."""
    let_go: int = 0
    """Rows that its join let go before it had been promised all their partners: there were more
    than `most_kept_rows`."""
    comparisons: int = 0
    """Pairs of rows with equal keys and close times that a join compared."""
    counted: dict[str, int] = field(default_factory=dict)
    """{what else its operator counts: how many}."""
    closing: ClosingCounts | None = None
    """Of one whose windows close in time: what that has come to."""
    shedding: SheddingCounts | None = None
    """Of one that sheds: what that has come to."""
    steps: list[StepReport] = field(default_factory=list)
    """Its own step, then those fused behind it."""
    share: str = ""
    """Of a gate: what each of the replicas behind it gets, "keys" or "all"."""
    batches: int = 0
    service_ns: int = 0
    """Busy time, summed."""
    queue_wait_ns: int = 0
    """Time messages waited for the stage's turn, summed over rows."""
    gate_wait_ns: int = 0
    """Time rows were held back by the gate, summed over rows."""
    max_gate_rows: int = 0
    """The most rows that queue and gate held at once."""
    waiting_for: list[str] = field(default_factory=list)
    """The inputs that hold the frontier back now; of a source with `idle=`, the writer."""
    idle_marks: dict[str, int] = field(default_factory=dict)
    """{source: how often the gate went on without it, since it had been silent for its `idle`}."""
    behind_promise: dict[str, int] = field(default_factory=dict)
    """{source: its rows that came behind what all had promised, the idle ones left out}: they may
    have missed partners."""
    held_back: dict[str, int] = field(default_factory=dict)
    """{source: after how many reads a join kept rows beyond its window, since this source had not
    promised more}."""
    frontier_ns: int | None = None
    """Everything older has been seen; None before the first promise."""
    newest_ns: int | None = None
    """The newest event time seen."""
    still_ns: int | None = None
    """How long ago it let anything go, a row or a promise; None: it has ended, or is not known."""
    due_in_ns: int | None = None
    """Of a paced source: how long until its next row is due, none being so now; None: not known."""
    is_stuck: bool = False
    """Whether it has been at one slice of work ever since: a user's function, or a sink."""

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
        """Rows that went on: released in order or late, and not left out."""
        return self.counts.at(LedgerPlace.WENT_ON)

    @property
    def unready(self) -> int:
        """Rows that left before they were ready, in order or late: slrTuples of [ssg] Eq. 4."""
        return self.slack_ready + max(self.late + self.late_dropped - self.late_ready, 0)

    @property
    def missing(self) -> int:
        """Rows that came in and are not accounted for; below zero: more than came in."""
        return self.rows_in - self.counts.at(*AT_STAGE)

    @property
    def is_balanced(self) -> bool:
        """Whether every row that came in is accounted for."""
        return self.missing == 0

    def copy(self) -> StageReport:
        """Return the report as it stands: its stage goes on counting in the other one."""
        made = replace(self)
        for name, one in vars(self).items():
            if isinstance(one, dict | list):
                setattr(made, name, one.copy())
        made.steps = [step.copy() for step in self.steps]
        return made

    def to_plain(self) -> dict[str, Any]:
        """Return everything as plain values, each outcome under its name."""
        plain = asdict(self)
        del plain["counts"]
        if (closing := self.closing) is not None:
            plain["closing"] |= closing.means
        return plain | self.counts.by_name()

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> StageReport:
        """Return the report that `to_plain` described; what it lacks is as in a new one.

        Raises:
            TypeError: it has no name, kind, node or slot.
        """
        steps = [_made(StepReport, step) for step in plain.get("steps", [])]
        parts: dict[str, Any] = {"counts": Counts.from_names(plain), "steps": steps}
        if (closing := plain.get("closing")) is not None:
            parts["closing"] = _made(ClosingCounts, closing)
        if (shedding := plain.get("shedding")) is not None:
            parts["shedding"] = _made(SheddingCounts, shedding)
        return _made(cls, {**plain, **parts})


@dataclass
class ChannelReport:
    """What one channel carried: rows sent by its stage, rows taken in by the other."""

    name: str
    source: str
    target: str
    rows_sent: int = 0
    rows_received: int = 0
    bytes_sent: int = 0
    messages: int = 0
    link_ns: int = 0
    """Time on the wire, summed over messages; two clocks on two hosts."""
    least_link_ns: int | None = None
    """That of the quickest message: the link's own delay. What others took beyond it, they waited
    for a busy link or a busy core."""
    error_ns: int = 0
    """How far off the time on the wire can be, of each message: the error of the sender's clock
    and that of the receiver's. 0 within one clock."""

    @property
    def in_flight(self) -> int:
        """Rows on the wire."""
        return self.rows_sent - self.rows_received


@dataclass
class SinkReport:
    """What left the flow at one sink, and how long after its stimulus."""

    name: str
    node: str
    rows: int = 0
    target: str = ""
    latency: LatencyHistogram = field(default_factory=LatencyHistogram)
    series: LatencySeries = field(default_factory=LatencySeries)
    old_s: float | None = None
    """Of a sink that stands still: for how long; its latencies are as old as that, at least."""
    error_ns: int = 0
    """How far off any latency can be: the error of this slot's clock and that of a source's, the
    largest over the sources upstream. 0 within one clock."""
    published: int | None = None
    """Of `rows`, those in files that readers see; None: it publishes none."""
    waiting: int = 0
    """Of `rows`, those written to a file that no reader sees yet."""
    parts: int = 0
    """Files that readers see, those of earlier runs of the same output too."""
    already_committed: int = 0
    """Rows that reached the sink and were left out: an earlier run had committed them. They are
    neither in `rows` nor in `latency`."""
    notes: list[str] = field(default_factory=list)
    deadline_ns: int | None = None
    """Of the flow; None: it has none."""
    in_time: int = 0
    """Rows that left within the deadline of their stimulus, counted one by one."""
    marked: dict[str, int] = field(default_factory=dict)
    """{mark: rows that have it}, of `rows`: how many were revisions of an earlier result."""


@dataclass
class ClockReport:
    """The clock of a node, and what is known of its distance to the reference's.

    Source: [thesis] §3.2.2.
    """

    node: str
    offset_ns: int = 0
    """What is added to its time to have the reference's."""
    error_ns: int = 0
    """How far off that can be now."""
    largest_error_ns: int = 0
    """The same, the largest since the start: no time that was measured is off by more."""
    round_trip_ns: int = 0
    """Of the exchange that the offset is from."""
    exchanges: int = 0
    is_reference: bool = True
    """Whether it is the reference's own clock: then all else is 0."""
    refused: int = 0
    """Messages of the exchange that were malformed or out of turn."""
    steps: int = 0
    """How often the host's own clock was set since the start. No slot goes by it."""
    stepped_ns: int = 0
    """By how much in all: forward, less back."""


@dataclass
class Standstill:
    """Sinks that have had nothing for a while, and for want of whom."""

    sinks: list[str]
    still_s: float
    """For how long, so far."""
    since_s: float
    """How long after the start of the job that was."""
    waits_for: list[str]
    """The sources, or the stages that are stuck."""
    why: str
    do: str


@dataclass
class JobReport:
    """One run, as it stands."""

    flow: str
    state: str
    """starting, running, done, stopped or failed."""
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
    """Such as: three nodes simulated on one machine share its clock and its 2 cores."""
    clocks: list[ClockReport] = field(default_factory=list)
    """One for each node; none in virtual time."""
    refused_peers: int = 0
    """Connections that the job's sockets refused: they did not show its keys."""
    tuning: TuningReport | None = None
    """How the deadline was kept; None: the flow has none, or no gate to be tuned."""
    prediction: PredictionReport | None = None
    """What was predicted, beside what was measured; None: nothing was."""
    standstills: list[Standstill] = field(default_factory=list)
    """What stands still now, or did when the job was stopped."""
    replaced: list[Replaced] = field(default_factory=list)
    """How stages were moved while it ran."""
    job_events: list[str] = field(default_factory=list)
    """Of a job that failed: what it heard last, the latest last; each with its second."""
    slot_events: list[str] = field(default_factory=list)
    """Of a job that a slot has failed: what that slot was given last, as far as it was heard."""

    @property
    def results_in_time(self) -> tuple[int, int] | None:
        """(results that left within the deadline, all), of all sinks; None: there is no deadline.

        Each counts from its own stimulus to its own egress, unlike the seconds of `tuning`.
        """
        counted = [sink for sink in self.sinks if sink.deadline_ns is not None]
        if not counted:
            return None
        return sum(sink.in_time for sink in counted), sum(sink.rows for sink in counted)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain JSON values; histograms as their quantiles and buckets."""
        plain = asdict(
            self,
            dict_factory=lambda pairs: {
                key: value.to_json() if hasattr(value, "to_json") else value for key, value in pairs
            },
        )
        plain["stages"] = [
            stage.to_plain()
            | {
                "selectivity": stage.selectivity,
                "service_per_row_ns": stage.service_per_row_ns,
                "balanced": stage.is_balanced,
                "steps": [step.to_plain() for step in stage.steps],
            }
            for stage in self.stages
        ]
        plain["ledger"] = self.ledger.to_plain() | {"balanced": self.ledger.is_balanced}
        if (kept := self.results_in_time) is not None:
            plain["results_in_time"] = dict(zip(("in_time", "rows"), kept, strict=True))
        plain["tuning"] = None if self.tuning is None else self.tuning.to_json()
        plain["prediction"] = None if self.prediction is None else self.prediction.to_json()
        return plain

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> JobReport:
        """Return the report that `to_json` described.

        Raises:
            KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError: it was not.
        """
        sinks = [
            {
                **sink,
                "latency": LatencyHistogram.from_json(sink["latency"]),
                "series": LatencySeries.from_json(sink["series"]),
            }
            for sink in plain["sinks"]
        ]
        tuning, prediction = plain.get("tuning"), plain.get("prediction")
        parts = {
            "tuning": None if tuning is None else TuningReport.from_json(tuning),
            "prediction": None if prediction is None else PredictionReport.from_json(prediction),
            "stages": [StageReport.from_plain(stage) for stage in plain["stages"]],
            "channels": [_made(ChannelReport, channel) for channel in plain["channels"]],
            "sinks": [_made(SinkReport, sink) for sink in sinks],
            "ledger": Ledger.from_plain(plain["ledger"]),
            "standstills": [_made(Standstill, one) for one in plain.get("standstills", [])],
            "replaced": [Replaced.from_plain(one) for one in plain.get("replaced", [])],
            "clocks": [_made(ClockReport, clock) for clock in plain.get("clocks", [])],
        }
        return checked(_made(cls, {**plain, **parts}))


_Part = TypeVar(
    "_Part",
    StageReport,
    StepReport,
    ClosingCounts,
    SheddingCounts,
    ChannelReport,
    SinkReport,
    ClockReport,
    Standstill,
    JobReport,
)


def _made(kind: type[_Part], plain: Mapping[str, Any]) -> _Part:
    """Return a dataclass from its fields in `plain`; what was derived from them is left out."""
    return kind(**{one.name: plain[one.name] for one in fields(kind) if one.name in plain})
