"""The paper's figures: false negatives over a setting, a line for each shedder and rate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.espice.contest import Found, Setting
from benchmarks.espice.shedders import ALL_TYPES, BASELINE, DEFAULT, ESPICE, FEATURED, RANDOM, RATES
from benchmarks.picture import Picture

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
    columns = list(dict.fromkeys(setting.panel for setting in settings))
    size = (4.4 * len(columns), 6.5)
    picture = Picture(title, size, rows=2, columns=len(columns), sharex="col")
    for place, column in enumerate(columns):
        points = [
            (at.x, one)
            for at, one in zip(settings, found, strict=True)
            if at.panel == column and one.is_enough
        ]
        for panel, (what, label) in zip(picture.grid[:, place], FIGURES.items(), strict=True):
            for rate in RATES:
                for shedder, colour in COLOURS.items():
                    of = [
                        (at, one.runs[rate, shedder])
                        for at, one in points
                        if (rate, shedder) in one.runs
                    ]
                    panel.errorbar(
                        [at for at, _ in of],
                        [runs.mean(what) for _, runs in of],
                        [runs.deviation(what) for _, runs in of],
                        color=colour,
                        linestyle=LINES[rate],
                        marker="o",
                        markersize=3,
                        label=f"{shedder}, {rate}" if of else None,
                    )
            panel.set_ylim(bottom=0)
            panel.set_ylabel(label)
            if doubling:
                panel.set_xscale("log", base=2)
        picture.grid[0, place].set_title(column)
        picture.grid[1, place].set_xlabel(x)
    return picture.save(name, legend="first", columns=2)
