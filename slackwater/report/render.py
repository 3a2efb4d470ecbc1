"""Report of a run as text: tables, the ledger with its verdict, and notes.

A terminal gets colour and rules; other outputs plain text of at most 100 columns.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from slackwater.report.kept import kept, policy_words, results_kept, slack_words
from slackwater.report.ledger_text import ledger_line
from slackwater.report.operator_tables import closing_columns, feature_text, shedding_columns
from slackwater.report.prediction_table import prediction_columns, prediction_title
from slackwater.report.sanitize import sanitized, sanitized_line
from slackwater.report.tables import Column, format_count, percent, turned
from slackwater.runtime.measure.ledger import imbalances
from slackwater.runtime.measure.outcomes import LedgerPlace, at_stages
from slackwater.runtime.measure.report import (
    ChannelReport,
    ClockReport,
    JobReport,
    SinkReport,
    StageReport,
)
from slackwater.runtime.measure.standstill import standing
from slackwater.runtime.measure.tuning import TuningReport
from slackwater.runtime.model import NS_PER_SECOND, format_ns
from slackwater.runtime.model.row_marks import row_marks
from slackwater.runtime.plurals import count_of

PLAIN_COLUMNS = 100

_NAMES = frozenset(
    {"stage", "kind", "gate", "set by", "node", "slot", "channel", "sink", "to"}
    | {"source", "link", "from", "job", "flow", "state", "submitted by", "nodes"}
)
_WHOLE = frozenset({"job", "state", "at"})  # columns that never break: for copying, or short


def render_report(report: JobReport, console: Console) -> None:
    """Print a run's report."""
    say(console, _header(report))
    if report.error:
        say(console, Text(report.error, style="bold red"))
    for one in report.standstills:
        say(console, Text(standing(one), style="yellow"))
    where, times = _stage_columns(report.stages)
    if console.width < PLAIN_COLUMNS:  # too narrow for one table
        tabulate(console, "Stages", where)
        tabulate(console, "Work and waiting, per event", [where[0], *times])
    else:
        tabulate(console, "Stages (times per event)", [*where, *times])
    tabulate(console, "Where rows took another way", _gate_columns(report.stages))
    tabulate(console, "Windows that close in time", closing_columns(report.stages))
    tabulate(console, "Shed under load", turned(shedding_columns(report.stages)))
    for stage in report.stages:
        if stage.shedding is not None and stage.shedding.reason:
            say(console, Text(f"{stage.name}: shedding did not suffice: {stage.shedding.reason}"))
        if stage.shedding is not None and (feature := feature_text(stage.shedding)) is not None:
            say(console, Text(f"{stage.name}: {feature}"))
    tabulate(console, _channels_title(report), _channel_columns(report.channels))
    tabulate(console, "Sinks (latency: egress − stimulus)", _sink_columns(report.sinks))
    tabulate(console, "Clocks", _clock_columns(report.clocks))
    tabulate(console, "Clocks of sources", _source_clock_columns(report.stages))
    if report.tuning is not None:
        _render_tuning(report, report.tuning, console)
    elif kept_words := results_kept(report):
        say(console, Text())
        say(console, Text(f"Deadline: {kept_words}", style="bold"))
    if (made := report.prediction) is not None:
        tabulate(console, prediction_title(made), prediction_columns(made))
    say(console, Text())
    say(console, ledger_line(report))
    for problem in imbalances(report):
        say(console, Text(f"  {problem}", style="red"))
    heard = [f"heard at {line}" for line in [*report.job_events, *report.slot_events]]
    lines = [
        *([] if report.checkpoint is None else [report.checkpoint.text]),
        *(recovery.text for recovery in report.recoveries),
        *(one.text for one in report.replaced),
        *(f"note: {one}" for one in _notes(report)),
    ]
    for line in [*lines, *heard]:
        say(console, Text(line, style="dim"))


def report_text(report: JobReport) -> str:
    """Return a run's report as plain text of at most 100 columns."""
    written = io.StringIO()
    render_report(report, plain_console(written))
    lines = written.getvalue().splitlines()
    return "".join(line.rstrip() + "\n" for line in lines)


def plain_console(file: io.TextIOBase) -> Console:
    """Return a console that writes plain lines, whatever the environment."""
    return Console(
        file=file,  # type: ignore[arg-type]
        width=PLAIN_COLUMNS,
        color_system=None,
        force_terminal=False,
        markup=False,
        emoji=False,
        highlight=False,
    )


def _header(report: JobReport) -> Text:
    nodes = count_of(len(report.nodes), "node")
    style = {"done": "bold green", "failed": "bold red", "stopped": "bold yellow"}
    style["lost"] = style["failed"]
    line = Text(report.flow, style="bold")
    line.append(f"  {report.state}", style=style.get(report.state, "bold"))
    entered, left = report.ledger.entered, sum(sink.rows for sink in report.sinks)
    least = "at least " if report.ledger.is_lower_bound else ""
    rate = f" ({format_count(entered / report.elapsed_s)} a second)" if report.elapsed_s else ""
    line.append(
        f"  {report.elapsed_s:.1f} s on {nodes} ({report.host}): "
        f"{least}{entered:,} events in{rate}, {left:,} rows out",
        style="not bold",
    )
    return line


def _stage_columns(stages: Sequence[StageReport]) -> tuple[list[Column], list[Column]]:
    """Return the columns of stages' places and rows, and those of their times."""
    where: list[Column] = [
        ("stage", [stage.name for stage in stages]),
        ("kind", [stage.kind for stage in stages]),
        ("node", [stage.node for stage in stages]),
        ("slot", [stage.slot for stage in stages]),
        ("in", [format_count(stage.rows_in) for stage in stages]),
        ("out", [format_count(stage.rows_out) for stage in stages]),
        (
            "selec-\ntivity",
            [f"{stage.selectivity:.3g}" if stage.rows_in else "–" for stage in stages],
        ),
    ]
    times: list[Column] = [
        ("service", [_each(stage.service_ns, stage.rows_in) for stage in stages]),
        ("queue\nwait", [_each(stage.queue_wait_ns, stage.rows_in) for stage in stages]),
        ("gate\nwait", [_each(stage.gate_wait_ns, stage.rows_in) for stage in stages]),
        ("held", [format_count(stage.held) for stage in stages]),
        ("max gate\nrows", [format_count(stage.max_gate_rows) for stage in stages]),
    ]
    return where, times


def _gate_columns(stages: Sequence[StageReport]) -> list[Column]:
    """Return the outcomes of rows at stages that did not release all in order."""
    shown = [
        stage
        for stage in stages
        if stage.ready != stage.rows_in
        or stage.counts.at(LedgerPlace.LEFT_LATER, LedgerPlace.STATE)
        or stage.results_filtered
        or stage.idle_marks
        or stage.early
        or stage.dropped_early
    ]
    columns: list[Column] = [
        ("stage", [stage.name for stage in shown]),
        *_outcome_columns(shown, LedgerPlace.WENT_ON, LedgerPlace.LEFT_OUT, LedgerPlace.LEFT_LATER),
        ("results\nfiltered", [format_count(stage.results_filtered) for stage in shown]),
        *_outcome_columns(shown, LedgerPlace.HERE, LedgerPlace.STATE),
    ]
    if any(stage.early for stage in shown):
        columns.append(("held as\nearly", [format_count(stage.early) for stage in shown]))
    if any(stage.dropped_early for stage in shown):
        columns.append(
            ("dropped\ntoo soon", [format_count(stage.dropped_early) for stage in shown])
        )
    if any(stage.idle_marks for stage in shown):
        marks = [stage.idle_marks.items() for stage in shown]
        named = [", ".join(f"{name} ×{format_count(n)}" for name, n in own) for own in marks]
        columns.append(("went on without", named))
    return columns


def _channels_title(report: JobReport) -> str:
    """Return the title of the channels, with the rate of promises between slots."""
    sent, withheld = report.promises_between_slots
    if not (sent or withheld) or not report.elapsed_s:
        return "Channels"
    rates = [format_count(count / report.elapsed_s) for count in (sent, withheld)]
    return f"Channels (promises between slots: {rates[0]} a second alone, {rates[1]} withheld)"


def _outcome_columns(stages: Sequence[StageReport], *places: LedgerPlace) -> list[Column]:
    return [
        (outcome.heading, [format_count(stage.counts[outcome]) for stage in stages])
        for outcome in at_stages(*places)
        if outcome.is_usual or any(stage.counts[outcome] for stage in stages)
    ]


def _channel_columns(channels: Sequence[ChannelReport]) -> list[Column]:
    return [
        ("channel", [channel.name for channel in channels]),
        ("rows sent", [format_count(channel.rows_sent) for channel in channels]),
        ("received", [format_count(channel.rows_received) for channel in channels]),
        ("messages", [format_count(channel.messages) for channel in channels]),
        ("rows/message", [_ratio(channel.rows_sent, channel.messages) for channel in channels]),
        ("bytes/row", [_ratio(channel.bytes_sent, channel.rows_sent) for channel in channels]),
        ("on the wire", [_each(channel.link_ns, channel.messages) for channel in channels]),
        *_error_columns([channel.error_ns for channel in channels]),
    ]


def _sink_columns(sinks: Sequence[SinkReport]) -> list[Column]:
    def latency(q: float) -> list[str]:
        return [format_ns(s.latency.quantile(q)) if s.latency.count else "–" for s in sinks]

    columns: list[Column] = [
        ("sink", [sink.name for sink in sinks]),
        ("node", [sink.node for sink in sinks]),
        ("rows", [f"{sink.rows:,}" for sink in sinks]),
        ("p50", latency(0.5)),
        ("p99", latency(0.99)),
        ("p99.9", latency(0.999)),
        ("max", latency(1)),
        *_error_columns([sink.error_ns for sink in sinks]),
        *old_columns(sinks),
    ]
    if any(sink.deadline_ns is not None for sink in sinks):
        in_time = ["–" if s.deadline_ns is None else f"{s.in_time:,}" for s in sinks]
        columns.append(("in time", in_time))
    columns += [
        (mark.heading, [f"{sink.marked.get(mark.name, 0):,}" for sink in sinks])
        for mark in row_marks()
        if any(sink.marked.get(mark.name) for sink in sinks)
    ]
    if any(sink.published is not None for sink in sinks):
        of_files = [sink.published is not None for sink in sinks]
        shown = [f"{s.published:,}" if s.published is not None else "–" for s in sinks]
        hidden = [f"{s.waiting:,}" if own else "–" for s, own in zip(sinks, of_files, strict=True)]
        columns += [("published", shown), ("not\nyet", hidden)]
    if any(sink.target for sink in sinks):
        columns.append(("to", [sink.target for sink in sinks]))
    return columns


def old_columns(sinks: Sequence[SinkReport]) -> list[Column]:
    """Return the age of latencies at sinks that stand still; empty if none does."""
    cells = ["" if sink.old_s is None else f"{format_ns(sink.old_s * 1e9)} old" for sink in sinks]
    return [("still", cells)] if any(cells) else []


def _clock_columns(clocks: Sequence[ClockReport]) -> list[Column]:
    """Return the nodes' clocks; empty if all nodes share one."""
    shown = clocks if any(not clock.is_reference for clock in clocks) else []
    return [
        ("node", [clock.node for clock in shown]),
        ("ahead by", ["reference" if c.is_reference else format_ns(-c.offset_ns) for c in shown]),
        *_error_columns([clock.error_ns for clock in shown]),
        ("± at most", ["–" if c.is_reference else format_ns(c.largest_error_ns) for c in shown]),
        ("round trip", ["–" if c.is_reference else format_ns(c.round_trip_ns) for c in shown]),
        ("exchanges", [format_count(clock.exchanges) for clock in shown]),
        ("refused", [format_count(clock.refused) for clock in shown]),
    ]


def _source_clock_columns(stages: Sequence[StageReport]) -> list[Column]:
    """Return the offsets of corrected clocks of sources."""
    shown = [(stage.name, stage.source_clock) for stage in stages if stage.source_clock]
    clocks = [clock for _, clock in shown]

    def told_as(name: str, text: Callable[[int], str] = format_ns) -> list[str]:
        return [text(clock[name]) if name in clock else "–" for clock in clocks]

    return [
        ("source", [name for name, _ in shown]),
        ("writers", told_as("writers", format_count)),
        ("offset\nfrom", told_as("smallest_offset_ns")),
        ("offset\nto", told_as("largest_offset_ns")),
        ("± at most", told_as("largest_bound_ns")),
        ("jumps", told_as("jumps", format_count)),
        *(
            (name.replace("_", "\n"), told_as(name, format_count))
            for name in ("unanswered_rounds", "refused", "contradictions")
            if any(name in clock for clock in clocks)
        ),
    ]


def _render_tuning(report: JobReport, tuning: TuningReport, console: Console) -> None:
    """Print how the deadline was kept, and its cost in order."""
    gates = tuning.gates
    columns: list[Column] = [
        ("gate", [gate.step for gate in gates]),
        ("slack now", [slack_words(gate.rule) for gate in gates]),
        ("set by", [gate.by or "not set yet" for gate in gates]),
        ("slack-ready", [format_count(gate.slack_ready) for gate in gates]),
        ("of all", [_share(gate.slack_ready, gate.rows_in) for gate in gates]),
        ("late, used", [format_count(gate.late) for gate in gates]),
        ("late, dropped", [format_count(gate.late_dropped) for gate in gates]),
    ]
    words = [one for one in (results_kept(report), kept(tuning)) if one]
    tabulate(console, f"Deadline {format_ns(tuning.deadline_ns)}: {'; '.join(words)}", columns)
    if tuning.seconds:
        p50, p99, most = (format_ns(tuning.latency.quantile(q)) for q in (0.5, 0.99, 1))
        one = "a second" if tuning.interval_ns == NS_PER_SECOND else "an interval"
        what = f"{one} counts by the sum of its stages' worst"
        say(console, Text(f"{what}: p50 {p50}, p99 {p99}, max {most}"))
    if tuning.status:
        say(console, Text(f"{tuning.policy}: {policy_words(tuning.status)}", style="dim"))


def _error_columns(errors_ns: Sequence[int]) -> list[Column]:
    cells = [format_ns(error_ns) if error_ns else "–" for error_ns in errors_ns]
    return [("±", cells)] if any(errors_ns) else []


def _notes(report: JobReport) -> list[str]:
    notes = list(report.notes)
    if report.refused_peers:
        notes.append(
            f"{report.refused_peers:,} connections to this job's sockets were refused: they did "
            "not show its keys; the logs of its workers name the addresses"
        )
    for stage in report.stages:
        notes += [f"stage {stage.name!r} could not use a row: {one}" for one in stage.first_bad[:3]]
        if len(stage.first_bad) > 3:
            notes.append(f"stage {stage.name!r}: more such rows are in stages[…].first_bad")
    return notes + [
        f"sink {sink.name!r}: {sink.latency.below_zero:,} latencies were below zero and count "
        "as 0: the clocks of two nodes differ by more than these events took"
        for sink in report.sinks
        if sink.latency.below_zero
    ]


def _each(total_ns: int, rows: int) -> str:
    return format_ns(total_ns / rows) if rows else "–"


def _ratio(total: int, parts: int) -> str:
    return format_count(total / parts) if parts else "–"


def _share(part: int, whole: int) -> str:
    return percent(part / whole, digits=2) if whole else "–"


def tabulate(console: Console, title: str, columns: Sequence[Column]) -> None:
    """Print a table with its title, if it has rows."""
    if not columns[0][1]:
        return
    plain = not console.is_terminal
    table = Table(
        box=None if plain else box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="" if plain else "bold cyan",
    )
    for heading, _ in columns:
        named = heading in _NAMES
        # Names may break over lines; a number must never be cut.
        table.add_column(
            heading,
            justify="left" if named else "right",
            overflow="fold",
            no_wrap=not named or heading in _WHOLE,
            vertical="top",
        )
    for row in zip(*(cells for _, cells in columns), strict=True):
        table.add_row(*(Text(sanitized(cell)) for cell in row))
    say(console, Text())
    say(console, Text(title, style="bold"))
    console.print(table)


def say(console: Console, line: Text) -> None:
    """Print a line, broken where necessary."""
    console.print(sanitized_line(line), soft_wrap=False, overflow="fold")
