"""Live view of a run: live on a terminal and in a notebook, or lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from slackwater.report.kept import slack_words
from slackwater.report.sanitize import sanitized
from slackwater.report.tables import format_count
from slackwater.runtime.measure.histogram import LatencyHistogram
from slackwater.runtime.measure.report import JobReport, StageReport
from slackwater.runtime.measure.standstill import standing
from slackwater.runtime.model import END_NS, START_NS, format_ns
from slackwater.runtime.notebook import fixed_width

LIVE_EVERY_S = 0.25
LINE_EVERY_S = 2.0

_RATE_OVER_S = 1.0  # a rate over less would flicker
_NAMED = 2


@contextmanager
def progress_shown(
    *, also: Callable[[JobReport], None] | None = None
) -> Iterator[Callable[[JobReport], None]]:
    """Give a function that shows reports to whoever runs this process, and to `also`.

    A terminal shows a live view, a notebook one in the cell that runs, a log a line now and then.
    """
    progress = LiveView(Console(stderr=True, force_jupyter=False), cell=notebook_cell())

    def show(report: JobReport) -> None:
        progress.update(report)
        if also is not None:
            also(report)

    try:
        yield show
    finally:
        progress.close()


def notebook_cell() -> Any:
    """Return a display of the notebook's running cell; None if this is not a notebook."""
    ipython: Any = sys.modules.get("IPython")  # imported by a notebook's kernel, never by us
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return ipython.display.DisplayHandle()


class LiveView:
    """Shows successive reports of one job, but draws only some.

    Args:
        console: console to draw on.
        cell: cell of a notebook, drawn on in its place.
        now_s: clock for redrawing, in seconds.
    """

    def __init__(
        self, console: Console, *, cell: Any = None, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._console, self._cell = console, cell
        self._now_s = now_s
        self._live: Live | None = None
        self._drawn_s: float | None = None
        self._mark = _Mark(0.0, 0, LatencyHistogram())
        self._now = Rates(0.0, None)
        self._recoveries = 0  # that were printed

    def say(self, line: str) -> None:
        """Print a line that stays, such as what is being started."""
        self._console.print(Text(sanitized(line), style="dim"), soft_wrap=True)

    def update(self, report: JobReport) -> None:
        """Draw a report, unless the last one was drawn a moment ago; print new recoveries."""
        if self._cell is None:
            for recovery in report.recoveries[self._recoveries :]:
                self.say(recovery.text)
            self._recoveries = len(report.recoveries)
        now_s = self._now_s()
        is_live = self._cell is not None or self._console.is_terminal
        every_s = LIVE_EVERY_S if is_live else LINE_EVERY_S
        is_drawn = self._drawn_s is not None
        if is_drawn and now_s - (self._drawn_s or 0.0) < every_s:
            return
        self._drawn_s = now_s
        if report.elapsed_s - self._mark.elapsed_s >= _RATE_OVER_S:
            self._now, self._mark = _rates_since(self._mark, report)
        if self._cell is not None:
            html = _Html(_view(report, self._now))
            self._cell.update(html) if is_drawn else self._cell.display(html)
        elif not self._console.is_terminal:
            self._console.print(Text(sanitized(progress_line(report, self._now))), soft_wrap=True)
        else:
            if self._live is None:
                self._live = Live(console=self._console, auto_refresh=False, transient=True)
                self._live.start()
            self._live.update(_view(report, self._now), refresh=True)

    def close(self) -> None:
        """Remove the live view; safe to call twice."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        if self._cell is not None and self._drawn_s is not None:
            self._cell.update(_Html(""))


class _Html:
    """A view as a notebook shows it."""

    def __init__(self, view: RenderableType) -> None:
        console = Console(file=StringIO(), width=120, color_system=None, force_jupyter=False)
        with console.capture() as text:
            console.print(view)
        self._text = text.get().rstrip()

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return fixed_width(self._text)


@dataclass(frozen=True)
class Rates:
    """Current rates: events a second, and latencies of about the last second."""

    events_per_s: float
    latency: LatencyHistogram | None
    """Latency of rows that left the flow in that time; None if no row did."""


def progress_line(report: JobReport, now: Rates) -> str:
    """Return one line for a log."""
    rows_out = sum(sink.rows for sink in report.sinks)
    parts = [
        f"{report.elapsed_s:6.1f} s",
        f"{format_count(now.events_per_s)} events/s",
        f"in {report.ledger.entered:,} results {rows_out:,}",
        _latency(now),
        *_deadline(report),
        *(f"{lag.gate} {lag.text}" for lag in _lags(report)),
        *(standing(standstill) for standstill in report.standstills),
        *_waits(report),
    ]
    return "  ".join(parts)


@dataclass(frozen=True)
class _Mark:
    """State of the run when rates were last computed."""

    elapsed_s: float
    entered: int
    latency: LatencyHistogram


def _rates_since(mark: _Mark, report: JobReport) -> tuple[Rates, _Mark]:
    every = LatencyHistogram()  # a copy: the report's may go on counting
    for sink in report.sinks:
        every.merge(sink.latency)
    recent = every.since(mark.latency)
    entered = report.ledger.entered
    per_s = (entered - mark.entered) / (report.elapsed_s - mark.elapsed_s)
    return Rates(per_s, recent if recent.count else None), _Mark(report.elapsed_s, entered, every)


@dataclass(frozen=True)
class _Lag:
    gate: str
    text: str


def _lags(report: JobReport) -> Iterator[_Lag]:
    gates = {stage.name for stage in report.stages if stage.kind == "gate"}
    replicas = {channel.target for channel in report.channels if channel.source in gates}
    for stage in report.stages:
        if stage.has_gate and stage.frontier_ns != END_NS and stage.name not in replicas:
            yield _Lag(stage.name, _lag(stage))


def _lag(stage: StageReport) -> str:
    waiting = ", ".join(stage.waiting_for[:_NAMED])
    if len(stage.waiting_for) > _NAMED:
        waiting += f" and {len(stage.waiting_for) - _NAMED:,} more"
    reason = f", waits for {waiting}" if waiting else ""
    if stage.newest_ns is None or stage.newest_ns == START_NS:
        return "has seen nothing yet" + reason
    if stage.frontier_ns is None or stage.frontier_ns == START_NS:
        return "has no frontier yet" + reason
    behind_ns = max(stage.newest_ns - stage.frontier_ns, 0)
    return f"frontier {format_ns(behind_ns)} behind{reason}"


def _deadline(report: JobReport) -> list[str]:
    """Return the laxity of the last second and the slacks, if there is a deadline."""
    if (tuning := report.tuning) is None:
        return []
    left_ns = tuning.laxity_ns
    slacks = [f"{gate.step} {slack_words(gate.rule)}" for gate in tuning.gates]
    in_time = report.results_in_time
    late = [] if in_time is None else [f"over the deadline {in_time[1] - in_time[0]:,}"]
    return [
        *late,
        f"laxity {'–' if left_ns is None else format_ns(left_ns)}",
        f"slack {', '.join(slacks)}",
    ]


def _waits(report: JobReport) -> list[str]:
    """Return the room that a recovering job waits for."""
    return [recovery.waits for recovery in report.recoveries[-1:] if recovery.waits is not None]


def _latency(now: Rates) -> str:
    if now.latency is None:
        return "latency –"
    p50, p99 = (format_ns(now.latency.quantile(q)) for q in (0.5, 0.99))
    return f"latency p50 {p50} p99 {p99}"


def _view(report: JobReport, now: Rates) -> RenderableType:
    rows_out = sum(sink.rows for sink in report.sinks)
    facts = Table.grid(padding=(0, 2))
    facts.add_row(
        Text(sanitized(report.flow), style="bold"),
        Text(f"{sanitized(report.state)} {report.elapsed_s:.1f} s"),
        Text(f"{format_count(now.events_per_s)} events/s", style="bold cyan"),
        Text(f"in {report.ledger.entered:,}"),
        Text(f"results {rows_out:,}"),
        Text(_latency(now), style="bold cyan"),
    )
    gates = Table.grid(padding=(0, 2))
    if deadline := _deadline(report):
        gates.add_row(Text("  deadline"), Text(sanitized(", ".join(deadline)), style="dim"))
    for lag in _lags(report):
        gates.add_row(Text(sanitized(f"  {lag.gate}")), Text(sanitized(lag.text), style="dim"))
    still = [
        Text(sanitized(standing(standstill)), style="yellow") for standstill in report.standstills
    ]
    waits = [Text(sanitized(text), style="yellow") for text in _waits(report)]
    return Group(facts, gates, *still, *waits)
