"""The paper's figures: shares of windows above, slack below, a line for each policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from benchmarks.frame import save_picture
from benchmarks.probslack.sweep import Found
from benchmarks.probslack.trial import range_of

COLOURS = {
    "event-driven": "tab:blue",
    "ignore": "tab:grey",
    "mean delay": "tab:brown",
    "ProbSlack": "tab:red",
    "extended": "tab:purple",
    "oracle": "tab:green",
}
"""Of the policies that are drawn."""
OUT = Path("out/benchmarks")


@dataclass(frozen=True)
class Column:
    """Two panels, one above the other.

    Attributes:
        x: what the setting is.
        found: {setting: what was found}.
        budget: {setting: δ}.
        title: above them.
        unit: of slack, with how many of it are a ms.
    """

    x: str
    found: Mapping[float, Found]
    budget: Mapping[float, float]
    title: str = ""
    unit: tuple[str, float] = ("ms", 1.0)


def draw(name: str, columns: Sequence[Column], *, title: str, folder: Path = OUT) -> Path:
    """Draw MER and mean slack of each policy over a setting; return the path of the picture.

    Args:
        name: of the file, without its ending.
        columns: from left to right.
        title: above the picture.
        folder: where it goes.
    """
    width = 8.0 if len(columns) == 1 else 4.2 * len(columns)
    figure = Figure(figsize=(width, 6.5), dpi=110, layout="constrained")
    panels = figure.subplots(2, len(columns), squeeze=False, sharex="col")
    for number, column in enumerate(columns):
        _draw_column(panels[0, number], panels[1, number], column)
    panels[0, 0].legend(fontsize=8, ncol=2)
    figure.suptitle(title, fontsize=11)
    return save_picture(figure, folder, name)


def _draw_column(above: Any, below: Any, column: Column) -> None:
    settings = sorted(column.found)
    unit, per_ms = column.unit
    for policy in next(iter(column.found.values())):
        if policy not in COLOURS:
            continue
        runs = {at: column.found[at][policy] for at in settings}
        for panel, values in (
            (above, {at: [100 * one.mer for one in runs[at]] for at in settings}),
            (below, {at: [per_ms * one.slack_ms for one in runs[at]] for at in settings}),
        ):
            ranges = [range_of(values[at]) for at in settings]
            means, colour = [one.mean for one in ranges], COLOURS[policy]
            low, high = [one.least for one in ranges], [one.most for one in ranges]
            panel.plot(settings, means, color=colour, marker="o", markersize=3, label=policy)
            panel.fill_between(settings, low, high, color=colour, alpha=0.15)
    above.plot(settings, [100 * column.budget[at] for at in settings], "k:", linewidth=1, label="δ")
    above.set_title(column.title, fontsize=9)
    above.set_ylabel("windows that missed something, %")
    below.set_ylabel(f"mean slack, {unit}")
    below.axhline(0, color="grey", linewidth=0.6)
    below.set_xlabel(column.x)
