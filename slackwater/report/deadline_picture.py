"""A run under a deadline as the paper draws it: latency, slack, slack-ready, results by second.

Source: [ssg] Fig. 12 and 13, their four panels.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from runtime.measure import TuningReport, TuningSpan
from runtime.model import NS_PER_SECOND, format_ns
from slackwater.report.kept import kept
from slackwater.report.picture import INK, new_figure, plain_text, style_panel, write_png

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE, _LIMIT = "#0b7285", "#c92a2a"
_GATES = ("#0b7285", "#e8590c", "#5f3dc4", "#2b8a3e", "#868e96")
_Values = npt.NDArray[np.float64]


def draw_deadline(tuning: TuningReport, path: Path, *, flow: str) -> None:
    """Write a PNG of four panels over the seconds of a run.

    Raises:
        SinkError: the file cannot be written.
    """
    figure = new_figure(
        f"{plain_text(flow)}: deadline {format_ns(tuning.deadline_ns)}, {plain_text(kept(tuning))}",
        height_in=9,
    )
    latency, slack, ran_out, results = figure.subplots(4, 1, sharex=True)
    spans = tuning.series.spans
    interval_s = tuning.interval_ns / NS_PER_SECOND
    at_s = np.array([span.second for span in spans], dtype=np.float64) * interval_s
    width_s = tuning.series.width_s * interval_s
    each = "second" if interval_s == 1 else f"{format_ns(tuning.interval_ns)}"
    _panel(latency, "latency, s", f"the worst path, the longest in each {each}: [ssg] Eq. 2")
    _steps(latency, at_s, _seconds([span.latency_ns for span in spans]), _LINE, "latency")
    latency.axhline(tuning.deadline_ns / NS_PER_SECOND, color=_LIMIT, ls="--", lw=1.2)
    _panel(slack, "slack, s", "how far the newest event may run ahead (gap: ready-only)")
    _panel(ran_out, "rows a second", "slack-ready: released before all that is older had come")
    for number, gate in enumerate(tuning.gates):
        colour = _GATES[number % len(_GATES)]
        name = plain_text(gate.stage)
        _steps(slack, at_s, _slacks(spans, gate.stage), colour, name)
        rows = [span.gates[gate.stage].slack_ready for span in spans]
        _steps(ran_out, at_s, np.array(rows) / width_s, colour, name)
    if tuning.gates:
        slack.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    _panel(results, "rows a second", "results at the sinks")
    _steps(results, at_s, np.array([span.results for span in spans]) / width_s, _LINE, "results")
    for panel in (latency, slack, ran_out, results):
        panel.set_ylim(bottom=0)
    results.set_xlabel("seconds since the start of the sources", color=INK)
    write_png(figure, path)


def _panel(panel: Axes, unit: str, title: str) -> None:
    panel.set_title(title, fontsize=10, loc="left", color=INK)
    panel.set_ylabel(unit, color=INK)
    style_panel(panel)


def _steps(panel: Axes, at_s: _Values, values: _Values, colour: str, label: str) -> None:
    marker = "o" if len(at_s) <= 40 else None
    panel.step(at_s, values, where="post", color=colour, label=label, lw=1.5, marker=marker, ms=3)


def _slacks(spans: Sequence[TuningSpan], stage: str) -> _Values:
    """Return the slacks in seconds, shape (spans,); NaN where there was none."""
    slacks = [span.gates[stage].slack_ns for span in spans]
    return np.array([np.nan if one is None else max(one, 0) / NS_PER_SECOND for one in slacks])


def _seconds(values_ns: Sequence[int]) -> _Values:
    return np.array(values_ns, dtype=np.float64) / NS_PER_SECOND
