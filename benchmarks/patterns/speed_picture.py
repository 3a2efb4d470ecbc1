"""Events a second of the pattern operator and of others, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.frame import save_picture
from benchmarks.patterns.growth import FLINK, OURS, Growth

COLOURS = {OURS: "tab:blue", FLINK: "tab:red"}
TITLES = {"first": "the first match, events used up", "next": "each with the next of its kind"}


def draw(
    growths: Sequence[Growth], queries: Mapping[str, Mapping[str, float]], *, folder: Path
) -> Path:
    """Draw a panel for each sequence, and one for the queries; return the path of the picture.

    Args:
        growths: measured.
        queries: {name: {who: million events a second}}.
        folder: where to put it.
    """
    figure = Figure(figsize=(11.0, 7.4), dpi=110, layout="constrained")
    panels = figure.subplots(2, 2, sharey=True).ravel()
    for panel, growth in zip(panels, growths, strict=False):
        for who, rates in growth.rates.items():
            events = [1e6 * rate for rate in rates.values()]
            panel.plot(list(rates), events, marker="o", color=COLOURS[who], label=who)
        panel.set_xscale("log")
        panel.set_xlabel("window, events")
        _dress(panel, f"{growth.name}: {TITLES[growth.rule]}")
    last = panels[len(growths)]
    people = [who for who in COLOURS if any(who in rates for rates in queries.values())]
    for number, who in enumerate(people):
        places = np.arange(len(queries)) + 0.4 * (number - (len(people) - 1) / 2)
        heights = [1e6 * rates.get(who, 0.0) for rates in queries.values()]
        last.bar(places, heights, width=0.36, color=COLOURS[who], label=who)
    last.set_xticks(range(len(queries)), list(queries))
    _dress(last, "the queries of [espice] on real data")
    figure.suptitle(
        "pattern-speed: events a second of a core, by CPU time; others as far as they came in time",
        fontsize=11,
    )
    return save_picture(figure, folder, "pattern-speed")


def _dress(panel: Axes, title: str) -> None:
    panel.set_yscale("log")
    panel.set_ylabel("events/s")
    panel.set_title(title, fontsize=10, loc="left")
    panel.legend(fontsize=8)
    panel.grid(alpha=0.3)
