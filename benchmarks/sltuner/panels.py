"""The four panels of [ssg] Fig. 12 and 13: latency, slack, slack-ready and detected over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path

import matplotlib as mpl
import numpy as np

from benchmarks.picture import Picture
from benchmarks.sltuner.deadline import OURS, Floats, Outcome


def draw(outcomes: Sequence[Outcome], name: str) -> Path:
    """Draw what the policies made of a run; return the path of the picture."""
    first = outcomes[0]
    title = f"{name}: deadline {first.deadline_s:g} s"
    picture = Picture(title, (11.0, 7.5), rows=2, columns=2, sharex=True)
    series: list[tuple[str, Callable[[Outcome], Floats]]] = [
        ("latency (Eq. 2), s", lambda one: one.latency_s),
        ("slack, s (sum over the gates)", _slack),
        ("slack-ready rows a second", lambda one: one.slack_ready),
        ("detected events a second", lambda one: one.detected),
    ]
    colours = cycle(mpl.colormaps["tab20"].colors)  # type: ignore[attr-defined]
    for one in sorted(outcomes, key=lambda one: one.policy == OURS):
        look = {"color": next(colours), "linewidth": 0.8, "alpha": 0.6}
        if one.policy == OURS:
            look = {"color": "red", "linewidth": 1.3}
        for panel, (_, values) in zip(picture.panels, series, strict=True):
            drawn = values(one)
            known = np.flatnonzero(~np.isnan(drawn))  # nothing left in the other seconds
            panel.plot(known, drawn[known], label=one.policy, **look)
    for panel, (of_panel, _) in zip(picture.panels, series, strict=True):
        panel.set_title(of_panel)
        panel.axvline(first.first_second, color="grey", linewidth=0.8, linestyle=":")
    latency, slack, *below = picture.panels
    latency.axhline(first.deadline_s, color="black", linewidth=0.8, linestyle="--")
    latency.set_ylim(0, 1.6 * first.deadline_s)
    slack.set_ylim(0, 2.2 * first.deadline_s)
    for panel in below:
        panel.set_xlabel("second of the run (simulated)")
    return picture.save(name, legend="first", columns=2)


def _slack(one: Outcome) -> Floats:
    total: Floats = np.sum(list(one.slack_s.values()), axis=0)
    return total
