"""The four panels of [ssg] Fig. 12 and 13: latency, slack, slack-ready and detected over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from benchmarks.frame import save_picture
from benchmarks.sltuner.deadline import OURS, Floats, Outcome

SIZE_IN = (11.0, 7.5)
DPI = 110


def draw(outcomes: Sequence[Outcome], name: str, *, folder: Path = Path("out/benchmarks")) -> Path:
    """Draw what the policies made of a run; return the path of the picture, `folder/name.png`."""
    figure = Figure(figsize=SIZE_IN, dpi=DPI, layout="constrained")
    panels: list[tuple[str, Callable[[Outcome], Floats]]] = [
        ("latency (Eq. 2), s", lambda one: one.latency_s),
        ("slack, s (sum over the gates)", _slack),
        ("slack-ready rows a second", lambda one: one.slack_ready),
        ("detected events a second", lambda one: one.detected),
    ]
    axes = figure.subplots(2, 2, sharex=True).ravel()
    colours = cycle(mpl.colormaps["tab20"].colors)  # type: ignore[attr-defined]
    for one in sorted(outcomes, key=lambda one: one.policy == OURS):
        is_front = one.policy == OURS
        colour = "red" if is_front else next(colours)
        for axis, (_, values) in zip(axes, panels, strict=True):
            drawn = values(one)
            known = np.flatnonzero(~np.isnan(drawn))  # nothing left in the other seconds
            axis.plot(
                known,
                drawn[known],
                color=colour,
                linewidth=1.3 if is_front else 0.8,
                alpha=1.0 if is_front else 0.6,
                label=one.policy,
            )
    for axis, (title, _) in zip(axes, panels, strict=True):
        axis.set_title(title, fontsize=10, loc="left")
        axis.grid(alpha=0.25)
        axis.axvline(outcomes[0].first_second, color="grey", linewidth=0.8, linestyle=":")
    axes[0].axhline(outcomes[0].deadline_s, color="black", linewidth=0.8, linestyle="--")
    axes[0].set_ylim(0, 1.6 * outcomes[0].deadline_s)
    axes[1].set_ylim(0, 2.2 * outcomes[0].deadline_s)
    for axis in axes[2:]:
        axis.set_xlabel("second of the run (simulated)")
    axes[0].legend(fontsize=7, ncols=2, loc="upper right")
    figure.suptitle(f"{name}: deadline {outcomes[0].deadline_s:g} s", fontsize=11)
    return save_picture(figure, folder, name)


def _slack(one: Outcome) -> Floats:
    total: Floats = np.sum(list(one.slack_s.values()), axis=0)
    return total
