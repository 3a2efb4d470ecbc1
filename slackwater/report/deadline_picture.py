"""Picture of a run under a deadline: latency, slack, slack-ready, late rows, results.

Source: [ssg] Fig. 12 and 13, their four panels, and one more for late rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from slackwater.report.kept import kept
from slackwater.report.picture import INK, LIMIT, new_figure, plain_text, style_panel, write_png
from slackwater.runtime.measure.tuning import TuningReport
from slackwater.runtime.measure.tuning_series import TuningSpan
from slackwater.runtime.model import NS_PER_SECOND, format_ns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINE = "#0b7285"
_GATES = ("#0b7285", "#e8590c", "#5f3dc4", "#2b8a3e", "#868e96")
_Values = npt.NDArray[np.float64]


_HEADROOM = 1.08
"""Height of a panel over its largest value: a steady line must not lie on its edge."""


def draw_deadline(tuning: TuningReport, path: Path, *, flow: str) -> None:
    """Write a PNG with five panels over the seconds of a run.

    Raises:
        SinkError: the file cannot be written.
    """
    write_png(deadline_figure(tuning, flow=flow), path)


def deadline_figure(tuning: TuningReport, *, flow: str) -> Figure:
    """Return the five panels: latency, slack or hold, slack-ready, late rows, results."""
    figure = new_figure(
        f"{plain_text(flow)}: deadline {format_ns(tuning.deadline_ns)}, {plain_text(kept(tuning))}",
        height_in=11,
    )
    latency, slack, ran_out, late, results = panels = figure.subplots(5, 1, sharex=True)
    spans = tuning.series.spans
    interval_s = tuning.interval_ns / NS_PER_SECOND
    at_s = np.array([span.second for span in spans], dtype=np.float64) * interval_s
    width_s = tuning.series.width_s * interval_s
    each = "second" if interval_s == 1 else f"{format_ns(tuning.interval_ns)}"
    _panel(latency, "latency, s", f"latency of each {each}, along the worst path")
    _steps(latency, at_s, _seconds([span.latency_ns for span in spans]), _LINE, "latency")
    latency.axhline(tuning.deadline_ns / NS_PER_SECOND, color=LIMIT, ls="--", lw=1.2)
    latency.lines[-1].set_label("deadline")
    latency.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    _panel(slack, "slack or hold, s", "slack or hold of each gate (a gap: the gate is ready-only)")
    _panel(ran_out, "rows a second", "slack-ready rows: released before they were ready")
    _panel(late, "rows a second", "late rows: older than the watermark of their gate")
    for number, gate in enumerate(tuning.gates):
        colour = _GATES[number % len(_GATES)]
        name = plain_text(gate.step)
        _steps(slack, at_s, _slacks(spans, gate.step), colour, name)
        gates = [span.gates[gate.step] for span in spans]
        _steps(
            ran_out,
            at_s,
            np.array([sample.slack_ready for sample in gates]) / width_s,
            colour,
            name,
        )
        _steps(late, at_s, np.array([sample.late for sample in gates]) / width_s, colour, name)
    if tuning.gates:
        slack.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    _panel(results, "rows a second", "results at the sinks")
    _steps(results, at_s, np.array([span.results for span in spans]) / width_s, _LINE, "results")
    for panel in panels:
        drawn = np.concatenate([np.zeros(1), *(line.get_ydata() for line in panel.lines)])
        panel.set_ylim(0, _HEADROOM * np.nanmax(drawn) or 1.0)
    results.set_xlabel("seconds since the start of the sources", color=INK)
    return figure


def _panel(panel: Axes, unit: str, title: str) -> None:
    panel.set_title(title, fontsize=10, loc="left", color=INK)
    panel.set_ylabel(unit, color=INK)
    style_panel(panel)


def _steps(panel: Axes, at_s: _Values, values: _Values, colour: str, label: str) -> None:
    marker = "o" if len(at_s) <= 40 else None
    panel.step(at_s, values, where="post", color=colour, label=label, lw=1.5, marker=marker, ms=3)


def _slacks(spans: Sequence[TuningSpan], stage: str) -> _Values:
    slacks = [span.gates[stage].slack_ns for span in spans]
    return np.array([np.nan if each is None else max(each, 0) / NS_PER_SECOND for each in slacks])


def _seconds(values_ns: Sequence[int]) -> _Values:
    return np.array(values_ns, dtype=np.float64) / NS_PER_SECOND
