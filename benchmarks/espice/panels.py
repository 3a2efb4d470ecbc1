"""The paper's figures: false negatives over a setting, a line for each shedder and rate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.espice.contest import Found, Setting
from benchmarks.espice.shedders import ALL_TYPES, BASELINE, DEFAULT, ESPICE, FEATURED, RANDOM, RATES
from benchmarks.frame import save_picture

COLOURS = {
    ESPICE: "tab:blue",
    DEFAULT: "tab:green",
    FEATURED: "tab:purple",
    BASELINE: "tab:red",
    ALL_TYPES: "tab:orange",
    RANDOM: "tab:grey",
}
"""Of the shedders that are drawn."""
LINES = {"R1": "-", "R2": "--"}
FIGURES = {"negatives": "false negatives, %", "positives": "false positives, %"}
OUT = Path("out/benchmarks")


def draw(
    name: str,
    settings: Sequence[Setting],
    found: Sequence[Found],
    *,
    x: str,
    title: str,
    doubling: bool = False,
) -> Path:
    """Draw false negatives above, false positives below; return the path of the picture.

    Args:
        name: of the file, without its ending.
        settings: what was tried.
        found: what each gave.
        x: what the setting is.
        title: above the picture.
        doubling: whether x doubles from one to the next.
    """
    panels = list(dict.fromkeys(setting.panel for setting in settings))
    figure = Figure(figsize=(4.4 * len(panels), 6.5), dpi=110, layout="constrained")
    axes = figure.subplots(2, len(panels), squeeze=False, sharex="col")
    for column, panel in enumerate(panels):
        points = [
            (at.x, one)
            for at, one in zip(settings, found, strict=True)
            if at.panel == panel and one.is_enough
        ]
        for axis, (what, label) in zip(axes[:, column], FIGURES.items(), strict=True):
            for rate in RATES:
                for shedder, colour in COLOURS.items():
                    drawn = [
                        (at, one.runs[rate, shedder])
                        for at, one in points
                        if (rate, shedder) in one.runs
                    ]
                    axis.errorbar(
                        [at for at, _ in drawn],
                        [runs.mean(what) for _, runs in drawn],
                        [runs.deviation(what) for _, runs in drawn],
                        color=colour,
                        linestyle=LINES[rate],
                        marker="o",
                        markersize=3,
                        label=f"{shedder}, {rate}" if drawn else None,
                    )
            axis.set_ylim(bottom=0)
            axis.set_ylabel(label)
            if doubling:
                axis.set_xscale("log", base=2)
        axes[0, column].set_title(panel, fontsize=9)
        axes[1, column].set_xlabel(x)
    axes[0, 0].legend(fontsize=7, ncol=2)
    figure.suptitle(title, fontsize=11)
    return save_picture(figure, OUT, name)
