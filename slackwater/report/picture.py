"""Draw latency over stimulus time: a PNG for a run, a line for a terminal."""

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
from slackwater.runtime.measure import JobReport, LatencySeries, SeriesBin, SinkReport
from slackwater.runtime.measure.prediction import PredictionReport
from slackwater.runtime.model import NS_PER_SECOND, format_ns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_BLOCKS = "▁▂▃▄▅▆▇█"
_LEAST_NS = 1_000  # a log axis has no zero; smaller values are drawn here
INK = "#2b2b2b"
_P50, _P99, _MOST, _PREDICTED = "#0b7285", "#e8590c", "#868e96", "#5f3dc4"


def draw_latency(report: JobReport, path: Path) -> None:
    """Write a PNG: p50, p99 and maximum latency over stimulus time, a panel per sink.

    Raises:
        SinkError: the file cannot be written.
    """
    panels = max(len(report.sinks), 1)
    figure = new_figure(
        f"{plain_text(report.flow)}: latency over stimulus time ({report.host}, "
        f"{len(report.nodes)} node{'s' if len(report.nodes) != 1 else ''}, {report.state})",
        height_in=1.1 + 3.1 * panels,
    )
    axes = figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0]
    starts = [b.start_ns for sink in report.sinks for b in sink.series.bins()[:1]]
    origin_ns = min(starts, default=0)
    for panel, sink in zip(axes, report.sinks, strict=False):
        if report.prediction is not None:
            _draw_prediction(panel, report.prediction, origin_ns=origin_ns)
        _draw_sink(panel, sink, origin_ns=origin_ns)
    if starts:
        ends = [b.start_ns + b.width_ns for s in report.sinks for b in s.series.bins()[-1:]]
        axes[0].set_xlim(0, (max(ends) - min(starts)) / NS_PER_SECOND)
    if not report.sinks:
        axes[0].set_axis_off()
    axes[-1].set_xlabel("stimulus time since the first result's, seconds", color=INK)
    write_png(figure, path)


def sparkline(series: LatencySeries, *, width: int = 60) -> str:
    """Return the p99 over stimulus time in a line: '1.2 ms ▁▂█▃ 45 ms'.

    Heights are logarithmic between the least and the greatest p99; a gap is a blank.
    """
    bins = series.bins()
    if not bins:
        return "no results yet"
    first_ns, width_ns = bins[0].start_ns, bins[0].width_ns
    spans = (bins[-1].start_ns - first_ns) // width_ns + 1
    cells = min(width, spans)
    worst = [0] * cells  # the highest p99 of the bins that share a cell
    for bin_ in bins:
        cell = (bin_.start_ns - first_ns) // width_ns * cells // spans
        worst[cell] = max(worst[cell], bin_.p99_ns, 1)
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


def _draw_sink(panel: Axes, sink: SinkReport, *, origin_ns: int) -> None:
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
    style_panel(panel)


def _draw_prediction(panel: Axes, made: PredictionReport, *, origin_ns: int) -> None:
    at_s, planned, estimated = prediction_lines(made, origin_ns=origin_ns)
    for values, style, label in ((planned, ":", "predicted"), (estimated, "--", "from arrivals")):
        if not np.isnan(values).all():
            panel.plot(at_s, values, ls=style, lw=1.4, color=_PREDICTED, label=label)


def _draw_bins(panel: Axes, bins: Sequence[SeriesBin], origin_ns: int) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415

    at_s = np.array([b.start_ns + b.width_ns / 2 - origin_ns for b in bins]) / NS_PER_SECOND
    width_s = bins[0].width_ns / NS_PER_SECOND
    p50, p99, most = (
        np.maximum([getattr(b, name) for b in bins], _LEAST_NS)
        for name in ("p50_ns", "p99_ns", "max_ns")
    )
    gaps = np.flatnonzero(np.diff(at_s) > 1.5 * width_s) + 1  # no line where no result left
    broken_s = np.insert(at_s, gaps, np.nan)
    for values, colour, label in ((p50, _P50, "p50"), (p99, _P99, "p99")):
        broken = np.insert(values.astype(np.float64), gaps, np.nan)
        style = "-" if len(bins) > 1 else "none"
        marker = "o" if len(bins) <= 40 else None
        panel.plot(
            broken_s, broken, color=colour, label=label, lw=1.8, ls=style, marker=marker, ms=3
        )
    panel.fill_between(
        broken_s,
        np.insert(p50.astype(np.float64), gaps, np.nan),
        np.insert(p99.astype(np.float64), gaps, np.nan),
        color=_P99,
        alpha=0.10,
        lw=0,
    )
    panel.plot(at_s, most, ls="none", marker=".", ms=4, color=_MOST, label="max", zorder=1)
    panel.set_yscale("log")
    low, high = float(p50.min()), float(most.max())
    if high / low < 10:  # less than a decade: widen, or the axis has no label
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(10), middle * math.sqrt(10)
    panel.set_ylim(low / 1.4, high * 1.4)
    decades = math.log10(high / low)
    panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 3 else (1,), numticks=12))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    panel.yaxis.set_minor_formatter(NullFormatter())
    width = "1 s" if width_s == 1 else format_ns(bins[0].width_ns)
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
    # The font cache, built once per machine, does not concern the user of a flow.
    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 (slow to import)
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(9, height_in), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=12, color=INK)
    return figure


def write_png(figure: Figure, path: Path) -> None:
    """Write a figure, whole or not at all.

    Raises:
        SinkError: the file cannot be written.
    """
    png = io.BytesIO()
    figure.savefig(png, format="png")
    replace_file(path, png.getvalue())


def style_panel(panel: Axes) -> None:
    """Give a panel of any picture the common grid and frame."""
    panel.grid(visible=True, which="major", color="#dee2e6", linewidth=0.7)
    panel.set_axisbelow(True)
    panel.spines[["top", "right"]].set_visible(False)


def plain_text(name: str) -> str:
    """Return a name that Matplotlib does not take for a formula."""
    return name.replace("$", r"\$")
