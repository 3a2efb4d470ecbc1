"""Events a second of the pattern operator and of others, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.patterns.growth import FLINK, OURS, Growth
from benchmarks.picture import Picture

COLOURS = {OURS: "tab:blue", FLINK: "tab:red"}
TITLES = {"first": "the first match, events used up", "next": "each with the next of its kind"}


def draw(growths: Sequence[Growth], queries: Mapping[str, Mapping[str, float]]) -> Path:
    """Draw a panel for each sequence, and one for the queries; return the path of the picture.

    Args:
        growths: measured.
        queries: {name: {who: million events a second}}.
    """
    title = "events a second of a core, by CPU time; others as far as they came in time"
    picture = Picture(f"pattern-speed: {title}", (11.0, 7.4), rows=2, columns=2, sharey=True)
    for panel, growth in zip(picture.panels, growths, strict=False):
        for who, rates in growth.rates.items():
            events = [1e6 * rate for rate in rates.values()]
            panel.plot(list(rates), events, marker="o", color=COLOURS[who], label=who)
        panel.set(title=f"{growth.name}: {TITLES[growth.rule]}", xlabel="window, events")
        panel.set(xscale="log", yscale="log", ylabel="events/s")
    last = picture.panels[len(growths)]
    people = [who for who in COLOURS if any(who in rates for rates in queries.values())]
    for number, who in enumerate(people):
        places = np.arange(len(queries)) + 0.4 * (number - (len(people) - 1) / 2)
        heights = [1e6 * rates.get(who, 0.0) for rates in queries.values()]
        last.bar(places, heights, width=0.36, color=COLOURS[who], label=who)
    last.set_xticks(range(len(queries)), list(queries))
    last.set(title="the queries of [espice] on real data", yscale="log", ylabel="events/s")
    return picture.save("pattern-speed")
