"""`shed-bound` as a picture: latency over time against the bound; recall, and what is stated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.frame import save_picture

OUT = Path("out/benchmarks")
COLOURS = {
    "unshed": "black",
    "eSPICE": "tab:blue",
    "BL": "tab:red",
    "random": "tab:grey",
}
HIGHEST = 1.6
"""Of the bound, up to which latency is drawn: what is not shed goes much further."""


@dataclass(frozen=True)
class Drawn:
    """A query.

    Attributes:
        asked: its name.
        bound_s: to be kept.
        courses: {who shed: (second, worst latency in s)}.
        recalls: {who shed: (recall, recall as stated)}, 0 to 1; None: nothing is known.
    """

    asked: str
    bound_s: float
    courses: Mapping[str, Sequence[tuple[float, float]]]
    recalls: Mapping[str, tuple[float | None, float | None]]


def draw(queries: Sequence[Drawn], *, surge_s: float) -> Path:
    """Draw all queries, a column for each; return the path of the picture.

    Args:
        queries: what came of each.
        surge_s: when it becomes too much.
    """
    figure = Figure(figsize=(4.4 * len(queries), 6.5), dpi=110, layout="constrained")
    axes = figure.subplots(2, len(queries), squeeze=False, height_ratios=(3, 2))
    for column, one in enumerate(queries):
        _latency(axes[0, column], one, surge_s)
        _recall(axes[1, column], one)
    axes[0, 0].set_ylabel("worst latency of each second, s")
    axes[0, 0].legend(fontsize=8, loc="upper left")
    axes[1, 0].set_ylabel("recall, %")
    axes[1, min(1, len(queries) - 1)].legend(fontsize=8, loc="upper right")
    figure.suptitle("shed-bound: twice what can be done, from the dotted line on")
    return save_picture(figure, OUT, "shed-bound")


def _latency(axis: Axes, one: Drawn, surge_s: float) -> None:
    for name, course in one.courses.items():
        at_s, worst_s = np.array(course).T if len(course) else np.zeros((2, 0))
        axis.plot(at_s, worst_s, label=name, color=COLOURS[name], linewidth=1.1)
    axis.axhline(one.bound_s, color="tab:green", linestyle="--", label="bound")
    axis.axvline(surge_s, color="black", linestyle=":", linewidth=0.8)
    axis.set(xlabel="time of the event, s", ylim=(0, HIGHEST * one.bound_s), title=one.asked)
    axis.grid(alpha=0.3)


def _recall(axis: Axes, one: Drawn) -> None:
    places = np.arange(len(one.recalls))
    for shift, hatch, label in ((-0.2, None, "true"), (0.2, "//", "as the report states it")):
        values = [each[0 if hatch is None else 1] for each in one.recalls.values()]
        bars = axis.bar(
            places + shift,
            [0.0 if value is None else 100 * value for value in values],
            width=0.38,
            color=[COLOURS[name] for name in one.recalls],
            alpha=1.0 if hatch is None else 0.5,
            hatch=hatch,
            label=label,
        )
        axis.bar_label(
            bars,
            ["–" if value is None else f"{100 * value:.0f}" for value in values],
            fontsize=8,
        )
    axis.set_xticks(places, list(one.recalls))
    axis.set_ylim(0, 112)
    axis.grid(axis="y", alpha=0.3)
