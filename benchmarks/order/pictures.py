"""Latency against accuracy, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes

from benchmarks.order import rivals
from benchmarks.order.replay import Outcome
from benchmarks.picture import Picture

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


def draw_single(curves: Mapping[str, Mapping[str, Sequence[Outcome]]]) -> Path:
    """Draw a panel for each dataset; return the path of the picture."""
    title = "each point a setting; dotted: 99.97 % mended; ring: MP-K-slack as it is"
    size = (13.0, 4.9)
    picture = Picture(f"reorder-single: {title}", size, columns=len(curves), sharey=True)
    for panel, (dataset, each) in zip(picture.panels, curves.items(), strict=True):
        for name, outcomes in each.items():
            _points(panel, name, outcomes)
        panel.axhline(100 - rivals.ENOUGH, color="black", linewidth=0.7, linestyle=":")
        panel.set(title=dataset, xscale="log", yscale="log", xlabel="mean latency, ms")
    picture.panels[0].set_ylabel("rows out of order that stay so, %")
    return picture.save("reorder-single", legend="below", columns=6)


def draw_many(found: Mapping[int, Sequence[Outcome]]) -> Path:
    """Draw latency and what stays out of order by the number of sources.

    Args:
        found: {sources: outcomes, in the same order for each}.
    """
    title = "reorder-many: dataset 3 sent by several sources; dotted: 99.97 % mended"
    picture = Picture(title, (10.0, 4.2), columns=2)
    latency, disorder = picture.panels
    sources = list(found)
    for outcomes in zip(*found.values(), strict=True):
        name = outcomes[0].name.partition(",")[0] if "K-slack" in outcomes[0].name else ""
        label = name or outcomes[0].name
        latency.plot(sources, [one.mean_ms for one in outcomes], marker="o", label=label)
        missed = [max(100 - one.accuracy, LEAST_MISSED) for one in outcomes]
        disorder.plot(sources, missed, marker="o", label=label)
    for panel, of_panel in ((latency, "mean latency, ms"), (disorder, "stay out of order, %")):
        panel.set(title=of_panel, yscale="log", xlabel="sources", xticks=sources)
    disorder.axhline(100 - rivals.ENOUGH, color="black", linewidth=0.7, linestyle=":")
    return picture.save("reorder-many", legend="below", columns=4)


def draw_clock_drift(
    found: Mapping[str, Mapping[str, float]], paper: Mapping[str, tuple[int, int]]
) -> Path:
    """Draw how many rows are out of order by the drift; return the path of the picture.

    Args:
        found: {drift: {way to merge: rows out of order}}, the same ways for each.
        paper: {drift: rows out of order without sync, and with}.
    """
    title = "clock-drift: two sources put in one order, one clock wrong"
    picture = Picture(title, (10.0, 4.6))
    (panel,) = picture.panels
    drifts = list(found)
    for way in found[drifts[0]]:
        panel.plot(drifts, [found[drift][way] for drift in drifts], marker="o", label=way)
    for place, way in enumerate(("without sync", "with sync")):
        counts = [paper[drift][place] for drift in drifts]
        panel.plot(drifts, counts, "x--", color=("0.3", "0.6")[place], label=f"[thesis], {way}")
    panel.set(yscale="log", xlabel="by how much one of two clocks is ahead")
    panel.set_ylabel("rows right behind a newer one")
    return picture.save("clock-drift", legend="below", columns=3)


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
