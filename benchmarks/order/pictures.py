"""Latency against accuracy, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.frame import save_picture
from benchmarks.order import rivals
from benchmarks.order.replay import Outcome

LEAST_MISSED = 0.001
COLOURS = {
    rivals.K_SLACK: "0.6",
    rivals.MP: "tab:red",
    rivals.AQ: "tab:orange",
    rivals.PLAIN: "tab:cyan",
    rivals.LEARNING: "tab:purple",
    rivals.RESTARTED: "tab:blue",
    rivals.MENDED: "tab:green",
}


def draw_single(curves: Mapping[str, Mapping[str, Sequence[Outcome]]], *, folder: Path) -> Path:
    """Draw a panel for each dataset; return the path of the picture."""
    figure = Figure(figsize=(13.0, 4.9), dpi=110, layout="constrained")
    panels = figure.subplots(1, len(curves), sharey=True)
    for panel, (dataset, each) in zip(panels, curves.items(), strict=True):
        for name, outcomes in each.items():
            _points(panel, name, outcomes)
        panel.axhline(100 - rivals.ENOUGH, color="black", linewidth=0.7, linestyle=":")
        panel.set_title(dataset, fontsize=10, loc="left")
        _axes(panel)
    panels[0].set_ylabel("rows out of order that stay so, %")
    figure.legend(
        *panels[0].get_legend_handles_labels(), fontsize=8, loc="outside lower center", ncols=6
    )
    figure.suptitle(
        "reorder-single: each point a setting; dotted: 99.97 % mended; ring: MP-K-slack as it is",
        fontsize=11,
    )
    return save_picture(figure, folder, "reorder-single")


def draw_many(found: Mapping[int, Sequence[Outcome]], *, folder: Path) -> Path:
    """Draw latency and what stays out of order by the number of sources.

    Args:
        found: {sources: outcomes, in the same order for each}.
        folder: where to.
    """
    figure = Figure(figsize=(10.0, 4.2), dpi=110, layout="constrained")
    panels = figure.subplots(1, 2)
    sources = list(found)
    for outcomes in zip(*found.values(), strict=True):
        name = outcomes[0].name.partition(",")[0] if "K-slack" in outcomes[0].name else ""
        label = name or outcomes[0].name
        panels[0].plot(sources, [one.mean_ms for one in outcomes], marker="o", label=label)
        missed = [max(100 - one.accuracy, LEAST_MISSED) for one in outcomes]
        panels[1].plot(sources, missed, marker="o", label=label)
    for panel, title in zip(panels, ("mean latency, ms", "stay out of order, %"), strict=True):
        panel.set_yscale("log")
        panel.set_xlabel("sources")
        panel.set_title(title, fontsize=10, loc="left")
        panel.grid(alpha=0.25)
        panel.set_xticks(sources)
    panels[1].axhline(100 - rivals.ENOUGH, color="black", linewidth=0.7, linestyle=":")
    figure.legend(
        *panels[0].get_legend_handles_labels(), fontsize=8, loc="outside lower center", ncols=4
    )
    figure.suptitle(
        "reorder-many: dataset 3 sent by several sources; dotted: 99.97 % mended", fontsize=11
    )
    return save_picture(figure, folder, "reorder-many")


def draw_clock_drift(
    found: Mapping[str, Mapping[str, float]], paper: Mapping[str, tuple[int, int]], *, folder: Path
) -> Path:
    """Draw how many rows are out of order by the drift; return the path of the picture.

    Args:
        found: {drift: {way to merge: rows out of order}}, the same ways for each.
        paper: {drift: rows out of order without sync, and with}.
        folder: where to.
    """
    figure = Figure(figsize=(10.0, 4.6), dpi=110, layout="constrained")
    panel = figure.subplots()
    drifts = list(found)
    ways = list(found[drifts[0]])
    lines = {way: [found[drift][way] for drift in drifts] for way in ways}
    for way, counts in lines.items():
        panel.plot(drifts, counts, marker="o", label=way)
    for place, way in enumerate(("without sync", "with sync")):
        counts = [paper[drift][place] for drift in drifts]
        panel.plot(drifts, counts, "x--", color=("0.3", "0.6")[place], label=f"[thesis], {way}")
    panel.set_yscale("log")
    panel.set_xlabel("by how much one of two clocks is ahead")
    panel.set_ylabel("rows right behind a newer one")
    panel.grid(alpha=0.25)
    figure.legend(
        *panel.get_legend_handles_labels(), fontsize=8, loc="outside lower center", ncols=3
    )
    figure.suptitle("clock-drift: two sources put in one order, one clock wrong", fontsize=11)
    return save_picture(figure, folder, "clock-drift")


def _points(panel: Axes, name: str, outcomes: Sequence[Outcome]) -> None:
    first = outcomes[0]
    x = [one.mean_ms for one in outcomes]
    y = [max(100 - one.accuracy, LEAST_MISSED) for one in outcomes]
    if name == rivals.MP:
        panel.plot(x[:1], y[:1], "o", markersize=9, fillstyle="none", color=COLOURS[name])
    label = f"sequence, {name}" if name in rivals.READINGS else first.name.partition(",")[0]
    start = int(name == rivals.MP)
    (drawn,) = panel.plot(x[start:], y[start:], marker=".", color=COLOURS[name], label=label)
    drawn.set_linewidth(0.9)
    if name == rivals.AQ:
        drawn.set_linestyle("none")


def _axes(panel: Axes) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set_xlabel("mean latency, ms")
    panel.grid(alpha=0.25)
