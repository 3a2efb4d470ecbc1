"""Ledger of a run: every event that entered, and its outcome.

Joins and aggregates make new events, so the ledger follows the channels from the sources only as
far as the first stage with state, or a sink. There an event has come out.

```
buses ──▶ clean ──┬──▶ jams (join) ──▶ alerts (sink)     entered  rows into buses and loops
loops ────────────┼──────▲   │                           copies   clean's rows, sent twice
                  └──▶ raw   └─ new events               out      at jams and at raw
```
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from slackwater.runtime.errors import LedgerError
from slackwater.runtime.measure.balance import Ledger
from slackwater.runtime.measure.outcomes import (
    AT_STAGE,
    BEYOND_LIMIT,
    COMBINED,
    FAILED,
    FILTERED,
    FORGOTTEN,
    IN_FLIGHT,
    LATE,
    OF_JOB,
    OUT,
    READY,
    SHED,
    Counts,
    LedgerPlace,
    at_stages,
    of_jobs,
)
from slackwater.runtime.measure.report import ChannelReport, JobReport, StageReport


def ledger_of(stages: list[StageReport], channels: list[ChannelReport]) -> Ledger:
    """Return the ledger over the events that entered at the sources.

    An event is in flight while it is queued, held by a gate, on the wire, or has left its
    stage but waits for a channel's credit; so are rows of a slice that broke off. Rows that a
    merge passes on are still source events. A stage with state counts a row as out once its
    gate has released it, whatever filters then do to its results.

    A stage that takes source events beside rows made by a stage with state ends the source
    side too, a merge included. It cannot tell which of them were late, so its late rows and
    then its rows in flight count as source events, as far as there were any: the ledger may
    blame too much, never too little.

    A gate and the replicas that it feeds count as one stage (`as_single_stage`), so an
    event counts once, however many replicas get it.

    Rows that a stage took were sent, though the sender may have died before it reported them. Such
    rows are `untold`: they enter the sum, at the sources if nothing upstream accounts for them.
    """
    received = channels
    stages, channels = as_single_stage(*_sent_as_received(stages, received))
    by_name = {stage.name: stage for stage in stages}
    side = _source_side(stages, channels)
    followed = {channel.name for channel in side.channels}
    sent, arrived = Counter[str](), Counter[str]()
    mixed: set[str] = set()  # stages at which others arrive, too
    for channel in channels:
        sent[channel.source] += channel.rows_sent
        if channel.name in followed:
            arrived[channel.target] += channel.rows_received
        else:
            mixed.add(channel.target)
    tally = _Tally(entered=sum(stage.rows_in for stage in stages if stage.kind == "source"))
    for name in side.passing:
        tally.pass_on(by_name[name], sent=sent[name])
    for channel in side.channels:
        tally.counts[IN_FLIGHT] += channel.in_flight
    for name in side.ends:
        tally.come_out(by_name[name], arrived=arrived[name], is_mixed=name in mixed)
    parts = [c for c in received if c.name in followed or c.source in side.ends]
    of_sources = {stage.name for stage in stages if stage.kind == "source"}
    # Of all stages: a state may be of rows that other states have made.
    tally.counts[FORGOTTEN] = sum(stage.counts[FORGOTTEN] for stage in stages)
    for name, rows in untold_rows(parts).items():
        tally.untold += rows
        tally.untold_upstream += 0 if name in of_sources else rows
    return tally.ledger()


def untold_rows(channels: Iterable[ChannelReport]) -> dict[str, int]:
    """Return the rows that receivers took and senders had not reported, {sender: rows}.

    The sender's report is older than the receiver's: it died, hangs, or reported a moment earlier.
    """
    rows: dict[str, int] = {}
    for channel in channels:
        if channel.in_flight < 0:
            rows[channel.source] = rows.get(channel.source, 0) - channel.in_flight
    return rows


def _sent_as_received(
    stages: Sequence[StageReport], channels: Sequence[ChannelReport]
) -> tuple[list[StageReport], list[ChannelReport]]:
    """Return the reports, with all rows that a receiver took as sent by its sender."""
    if not untold_rows(channels):
        return list(stages), list(channels)
    channels = [replace(c, rows_sent=max(c.rows_sent, c.rows_received)) for c in channels]
    most: dict[str, int] = {}
    for channel in channels:
        most[channel.source] = max(most.get(channel.source, 0), channel.rows_sent)
    raised = [
        replace(stage, rows_out=max(stage.rows_out, most.get(stage.name, 0))) for stage in stages
    ]
    return raised, channels


def imbalances(report: JobReport) -> list[str]:
    """Return each imbalance of a run in a sentence; empty if it balances.

    While a job runs, its stages report at slightly different moments; only each stage's own
    balance is judged then. Of a job that is done, no row may be in flight, and every channel must
    have delivered all its rows.
    """
    problems = [
        f"stage {stage.name!r} took {stage.rows_in:,} rows and accounts for "
        f"{stage.rows_in - stage.missing:,}{_named(stage)}"
        for stage in report.stages
        if not stage.is_balanced
    ]
    if report.state != "done":
        return problems
    problems += [
        f"channel {channel.name!r} was sent {channel.rows_sent:,} rows and delivered "
        f"{channel.rows_received:,}"
        for channel in report.channels
        if channel.in_flight
    ]
    problems += [
        f"{rows:,} events are {outcome.term} after the end"
        for outcome in of_jobs(LedgerPlace.HERE)
        if (rows := report.ledger.counts[outcome])
    ]
    if report.ledger.missing:
        problems.append(f"{report.ledger.missing:,} events entered and are not accounted for")
    return problems


def _named(stage: StageReport) -> str:
    # Such as ' (7 in order, 2 late, dropped)'.
    counts = [
        f"{rows:,} {outcome.heading}"
        for outcome in at_stages(*AT_STAGE)
        if (rows := stage.counts[outcome])
    ]
    return f" ({'; '.join(counts)})" if counts else ""


def refuse_imbalance(report: JobReport) -> JobReport:
    """Return the report of a job, unless it is done and does not balance.

    Raises:
        LedgerError: rows are in flight or missing at the end.
    """
    problems = imbalances(report) if report.state == "done" else []
    if problems:
        raise LedgerError(
            f"flow {report.flow!r} is done, and its ledger does not balance: "
            f"{'; '.join(problems)}. Do not trust these results; this is a bug of ours, please "
            "send the report, report()"
        )
    return report


@dataclass
class _SourceSide:
    """Part of the graph in which rows are still the events that entered."""

    passing: list[str] = field(default_factory=list)  # stages that pass on only such events
    ends: list[str] = field(default_factory=list)  # stages with state, new events, or a sink
    channels: list[ChannelReport] = field(default_factory=list)


def _source_side(stages: Sequence[StageReport], channels: Sequence[ChannelReport]) -> _SourceSide:
    known = {stage.name for stage in stages}  # without stages that died before a report
    stateful = [stage.name for stage in stages if not stage.passes_on]
    made_of_new = set(_and_downstream(stateful, channels))
    sources = [stage.name for stage in stages if stage.kind == "source"]
    side = _SourceSide()
    for name in _and_downstream(sources, channels):
        if name in known - made_of_new:
            side.passing.append(name)
    passing, ending = set(side.passing), known & made_of_new
    side.channels = [channel for channel in channels if channel.source in passing]
    side.ends = list(dict.fromkeys(c.target for c in side.channels if c.target in ending))
    return side


def _and_downstream(names: Iterable[str], channels: Sequence[ChannelReport]) -> list[str]:
    """Return these stages and all stages downstream, breadth first."""
    targets: dict[str, dict[str, None]] = {}
    for channel in channels:
        targets.setdefault(channel.source, {})[channel.target] = None
    reached = list(names)
    known = set(reached)
    for name in reached:  # the list grows in the loop: breadth first
        further = [target for target in targets.get(name, ()) if target not in known]
        reached += further
        known.update(further)
    return reached


@dataclass
class _Tally:
    entered: int
    copies: int = 0
    counts: Counts = field(default_factory=Counts)
    untold: int = 0
    untold_upstream: int = 0  # untold rows that a stage upstream counts as in flight

    def pass_on(self, stage: StageReport, *, sent: int) -> None:
        for outcome in of_jobs():
            self.counts[outcome] += stage.counts[outcome]
        self.copies += max(sent - stage.rows_out, 0)
        self.counts[IN_FLIGHT] += max(stage.rows_out - sent, 0)
        counts = stage.counts
        went_on = stage.used + stage.exploded
        went_on -= sum(counts[each] for each in (FILTERED, FAILED, COMBINED, BEYOND_LIMIT))
        self.counts[IN_FLIGHT] += max(went_on - stage.rows_out, 0)
        self.copies += stage.exploded

    def come_out(self, stage: StageReport, *, arrived: int, is_mixed: bool) -> None:
        out = arrived if is_mixed else stage.counts.at(*AT_STAGE)
        for outcome in (*at_stages(LedgerPlace.LEFT_OUT, LedgerPlace.HERE), SHED, FAILED):
            rows = stage.counts[outcome]
            rows = min(rows, out) if is_mixed else rows
            self.counts[outcome] += rows
            out -= rows
        self.counts[OUT] += out
        for outcome in at_stages(LedgerPlace.BESIDE):
            self.counts[outcome] += stage.counts[outcome]
        for outcome in reversed(at_stages(LedgerPlace.WENT_ON)):
            rows = min(stage.counts[outcome], out)
            if outcome.note:
                self.counts[outcome] += rows
            out -= rows

    def ledger(self) -> Ledger:
        if self.untold:
            more = max(self.counts.at(*OF_JOB) - self.entered - self.copies, 0)
            twice = min(more, self.untold_upstream, self.counts[IN_FLIGHT])
            self.counts[IN_FLIGHT] -= twice
            self.entered += more - twice
        return Ledger(self.entered, self.copies, self.counts, untold=self.untold)


def as_single_stage(
    stages: Sequence[StageReport], channels: Sequence[ChannelReport]
) -> tuple[list[StageReport], list[ChannelReport]]:
    """Return the reports, each gate and its replicas as one under the gate's name.

    ```
    buses ─▶ join.gate ─▶ join.1 ─▶ out             buses ─▶ join.gate ─▶ out
                  └─────▶ join.2 ─────┘        ⇒
    ```

    Of replicas that get all rows the first one's counts stand for all, since all decide equally
    which rows are late. Of replicas that share by keys the counts add up.
    """
    gates = {stage.name: stage for stage in stages if stage.kind == "gate"}
    if not gates:
        return list(stages), list(channels)
    gate_of = {c.target: c.source for c in channels if c.source in gates}  # {replica: its gate}
    by_name = {stage.name: stage for stage in stages}
    whole: list[StageReport] = []
    for stage in stages:
        if stage.name in gates:
            whole.append(_whole(stage, by_name, [c for c in channels if c.source == stage.name]))
        elif stage.name not in gate_of:
            whole.append(stage)
    carried = [
        replace(channel, source=gate_of.get(channel.source, channel.source))
        for channel in channels
        if channel.source not in gates
    ]
    return whole, carried


def _whole(
    gate: StageReport, by_name: Mapping[str, StageReport], parts: Sequence[ChannelReport]
) -> StageReport:
    names = list(dict.fromkeys(channel.target for channel in parts))
    counted = names[:1] if gate.share == "all" else names
    replicas = [by_name[name] for name in counted if name in by_name]  # without a report if it died
    on_the_wire = sum(channel.in_flight for channel in parts if channel.target in counted)
    counts = gate.counts.added(
        (outcome, replica.counts[outcome])
        for outcome in at_stages(LedgerPlace.LEFT_OUT, LedgerPlace.HERE)
        for replica in replicas
    )
    counts[IN_FLIGHT] += on_the_wire
    for outcome in (FILTERED, SHED, FAILED, *at_stages(LedgerPlace.BESIDE, LedgerPlace.STATE)):
        counts[outcome] = sum(replica.counts[outcome] for replica in replicas)
    # The gate knows how rows went on. Rows that replicas then left out as late were late at the
    # gate; if more rows went on at the gate than here, those furthest from "in order" count first.
    counts[LATE] = max(counts[LATE] - sum(replica.late_dropped for replica in replicas), 0)
    used = sum(replica.used for replica in replicas)
    for outcome in reversed(at_stages(LedgerPlace.WENT_ON)):
        counts[outcome] = min(counts[outcome], used)
        used -= counts[outcome]
    counts[READY] += used
    return replace(
        gate,
        counts=counts,
        rows_out=sum(by_name[name].rows_out for name in names if name in by_name),
    )
