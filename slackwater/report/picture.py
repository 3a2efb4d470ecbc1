"""Pictures of latency over stimulus time: a PNG, and blocks on a terminal."""

from __future__ import annotations

import io
import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from slackwater.report.prediction_table import prediction_lines
from slackwater.report.report_file import replace_file
from slackwater.runtime.measure.prediction import PredictionReport
from slackwater.runtime.measure.report import JobReport, SinkReport
from slackwater.runtime.measure.series import LatencySeries, SeriesBin
from slackwater.runtime.model import NS_PER_SECOND, format_ns
from slackwater.runtime.plurals import count_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLOCKS = "▁▂▃▄▅▆▇█"
_LEAST_NS = 1_000  # a log axis has no zero; lower values are drawn here
INK = "#2b2b2b"
LIMIT, PREDICTED = "#c92a2a", "#5f3dc4"
_P50, _P99, _MOST = "#0b7285", "#e8590c", "#495057"
_MOST_DOTS = 120
"""Most dots of a panel 9 inches wide that do not run together."""


def draw_latency(report: JobReport, path: Path) -> None:
    """Write a PNG: p50, p99 and maximum latency over stimulus time, a panel per sink.

    Raises:
        SinkError: the file cannot be written.
    """
    write_png(latency_figure(report), path)


def latency_figure(report: JobReport) -> Figure:
    """Return the panels, with the deadline and the prediction where there are results."""
    panels = max(len(report.sinks), 1)
    figure = new_figure(
        f"{plain_text(report.flow)}: latency over stimulus time ({report.host}, "
        f"{count_of(len(report.nodes), 'node')}, {report.state})",
        height_in=1.1 + 3.1 * panels,
    )
    axes = figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0]
    starts = [other.start_ns for sink in report.sinks for other in sink.series.bins()[:1]]
    origin_ns = min(starts, default=0)
    for panel, sink in zip(axes, report.sinks, strict=False):
        _draw_sink(panel, sink, report.prediction, origin_ns=origin_ns)
    if starts:
        ends = [
            other.start_ns + other.width_ns for s in report.sinks for other in s.series.bins()[-1:]
        ]
        axes[0].set_xlim(0, (max(ends) - min(starts)) / NS_PER_SECOND)
    if not report.sinks:
        axes[0].set_axis_off()
    axes[-1].set_xlabel("stimulus time since the first result's, seconds", color=INK)
    return figure


def sparkline(series: LatencySeries, *, width: int = 60) -> str:
    """Return the p99 over stimulus time as a line: '1.2 ms ▁▂█▃ 45 ms …'.

    Heights are logarithmic between the least and the greatest p99; a gap is a blank.
    """
    bins = series.bins()
    if not bins:
        return "no results yet"
    first_ns, width_ns = bins[0].start_ns, bins[0].width_ns
    spans = (bins[-1].start_ns - first_ns) // width_ns + 1
    cells = min(width, spans)
    worst = [0] * cells  # the highest p99 of the bins that share a cell
    for bucket in bins:
        cell = (bucket.start_ns - first_ns) // width_ns * cells // spans
        worst[cell] = max(worst[cell], bucket.p99_ns, 1)
    low, high = min(filter(None, worst)), max(worst)
    line = "".join(_block(p99, low, high) for p99 in worst)
    covered = format_ns(spans * width_ns)
    return f"{format_ns(low)} {line} {format_ns(high)}  p99 over {covered} of stimulus time"


def _block(p99_ns: int, low_ns: int, high_ns: int) -> str:
    if p99_ns == 0:
        return " "
    if high_ns == low_ns:
        return _BLOCKS[0]
    height = math.log(p99_ns / low_ns) / math.log(high_ns / low_ns)
    return _BLOCKS[min(int(height * len(_BLOCKS)), len(_BLOCKS) - 1)]


def _draw_sink(
    panel: Axes, sink: SinkReport, prediction: PredictionReport | None, *, origin_ns: int
) -> None:
    whole = sink.latency
    summary = "no results"
    if whole.count:
        p50, p99, most = (format_ns(whole.quantile(q)) for q in (0.5, 0.99, 1))
        summary = f"{whole.count:,} rows, p50 {p50}, p99 {p99}, max {most}"
    panel.set_title(f"sink {plain_text(sink.name)}: {summary}", fontsize=10, loc="left", color=INK)
    panel.set_ylabel("latency (log scale)", color=INK)
    bins = sink.series.bins()
    if not bins:
        panel.text(0.5, 0.5, "no results yet", ha="center", va="center", transform=panel.transAxes)
        panel.set_yticks([])
        panel.spines[:].set_visible(False)
        return
    _draw_bins(panel, bins, origin_ns)
    if prediction is not None:
        _draw_prediction(panel, prediction, bins, origin_ns=origin_ns)
    if sink.deadline_ns is not None:
        panel.axhline(max(sink.deadline_ns, _LEAST_NS), color=LIMIT, ls="--", lw=1.2, zorder=4)
        panel.lines[-1].set_label("deadline")
    _set_scale(panel, bins)
    style_panel(panel)


def _draw_prediction(
    panel: Axes, made: PredictionReport, bins: Sequence[SeriesBin], *, origin_ns: int
) -> None:
    """Draw the lines of a prediction, with a gap where no result left."""
    at_s, planned, estimated = prediction_lines(made, origin_ns=origin_ns)
    starts_s = np.array([span.start_ns - origin_ns for span in bins]) / NS_PER_SECOND
    width_s = max([bins[0].width_ns, *(span.width_ns for span in made.spans)]) / NS_PER_SECOND
    before = starts_s[np.maximum(np.searchsorted(starts_s, at_s, side="right") - 1, 0)]
    has_results = (at_s >= starts_s[0]) & (at_s < before + width_s)
    for values, style, label in ((planned, ":", "predicted"), (estimated, "--", "from arrivals")):
        shown_ns = np.where(has_results, values, np.nan)
        if not np.isnan(shown_ns).all():
            panel.plot(at_s, shown_ns, ls=style, lw=1.4, color=PREDICTED, label=label)


def _draw_bins(panel: Axes, bins: Sequence[SeriesBin], origin_ns: int) -> None:
    at_s = (
        np.array([span.start_ns + span.width_ns / 2 - origin_ns for span in bins]) / NS_PER_SECOND
    )
    width_s = bins[0].width_ns / NS_PER_SECOND
    p50, p99, most = (
        np.maximum([getattr(span, name) for span in bins], _LEAST_NS)
        for name in ("p50_ns", "p99_ns", "max_ns")
    )
    gaps = np.flatnonzero(np.diff(at_s) > 1.5 * width_s) + 1  # no line where no row left
    broken_s = np.insert(at_s, gaps, np.nan)
    for values, colour, label in ((p50, _P50, "p50"), (p99, _P99, "p99")):
        broken = np.insert(values.astype(np.float64), gaps, np.nan)
        style = "-" if len(bins) > 1 else "none"
        marker = "o" if len(bins) <= 40 else None
        panel.plot(
            broken_s, broken, color=colour, label=label, lw=1.8, ls=style, marker=marker, ms=5
        )
    panel.fill_between(
        broken_s,
        np.insert(p50.astype(np.float64), gaps, np.nan),
        np.insert(p99.astype(np.float64), gaps, np.nan),
        color=_P99,
        alpha=0.10,
        lw=0,
    )
    if len(bins) <= _MOST_DOTS:
        panel.plot(at_s, most, ls="none", marker="^", ms=5, color=_MOST, label="max", zorder=3)
    else:
        panel.plot(
            broken_s, np.insert(most.astype(float), gaps, np.nan), lw=0.8, color=_MOST, label="max"
        )


def _set_scale(panel: Axes, bins: Sequence[SeriesBin]) -> None:
    """Set a log axis that shows all lines, and the legend."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415

    panel.set_yscale("log")
    drawn = np.concatenate([np.asarray(line.get_ydata(), np.float64) for line in panel.lines])
    low, high = float(np.nanmin(drawn)), float(np.nanmax(drawn))
    if high / low < 10:  # less than a decade: widen, or the axis has no label
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(10), middle * math.sqrt(10)
    panel.set_ylim(low / 1.4, high * 1.4)
    decades = math.log10(high / low)
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 3 else (1,), numticks=12))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    panel.yaxis.set_minor_formatter(NullFormatter())
    width_ns = bins[0].width_ns
    width = "1 s" if width_ns == NS_PER_SECOND else format_ns(width_ns)
    panel.legend(
        title=f"per {width}",
        title_fontsize=8,
        fontsize=8,
        frameon=False,
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
    )


def _tick(value_ns: float) -> str:
    for unit, scale in (("h", 3.6e12), ("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if value_ns >= scale * 0.999:
            return f"{value_ns / scale:g} {unit}"
    return f"{value_ns:g} ns"


def new_figure(title: str, *, height_in: float) -> Figure:
    """Return an empty figure with its title."""
    # Matplotlib reports once per machine that it builds its font cache: no news for users.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 (slow to import)
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(9, height_in), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=12, color=INK)
    return figure


def write_png(figure: Figure, path: Path) -> None:
    """Write a figure, completely or not at all.

    Raises:
        SinkError: the file cannot be written.
    """
    made = io.BytesIO()
    figure.savefig(made, format="png")
    replace_file(path, made.getvalue())


def style_panel(panel: Axes) -> None:
    """Set the grid and the frame that all panels have."""
    panel.grid(visible=True, which="major", color="#dee2e6", linewidth=0.7)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def plain_text(name: str) -> str:
    """Return a name escaped so that Matplotlib reads no formula in it."""
    return name.replace("$", r"\$")
