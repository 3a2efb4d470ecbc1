"""The picture of `mace-ray`: latency over time for one seed, and errors by number of nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.mace.on_ray.judge import FIRST, SPREAD, by_second, named
from benchmarks.mace.trial import SAMPLE
from benchmarks.picture import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from benchmarks.mace.on_ray.slept import Ran

STATISTICS = (named(FIRST, SAMPLE), named(SPREAD, SAMPLE))


def draw(found: Mapping[int, Sequence[Ran]]) -> Path:
    """Draw runs on so many nodes: {nodes: a run of each seed}; return the path of the picture."""
    title = "mace-ray: predicted and measured on local Ray nodes"
    picture = Picture(title, (11.0, 4.5), columns=2, width_ratios=(3, 2))
    over_time, by_nodes = picture.panels
    nodes = min(found)
    _over_time(over_time, found[nodes][0], nodes=nodes)
    for shift, statistics, colour in zip((-0.15, 0.15), STATISTICS, ("C3", "C0"), strict=True):
        for count, each in found.items():
            errors = [100 * ran.judged(statistics).error("held up") for ran in each]
            at = np.full(len(errors), count + shift)
            by_nodes.plot(at, errors, ".", color=colour, alpha=0.6)
            label = statistics if count == nodes else None
            by_nodes.plot(count + shift, np.median(errors), "_", ms=16, color=colour, label=label)
    by_nodes.axhline(3, color="grey", linewidth=0.8)
    by_nodes.set_xticks(list(found))
    by_nodes.set_xlabel("nodes (14 operators); bar: median of the seeds")
    by_nodes.set_ylabel("error of the worst latency, %")
    by_nodes.set_ylim(bottom=0)
    return picture.save("mace-ray")


def _over_time(panel: Axes, ran: Ran, *, nodes: int) -> None:
    run = ran.run
    panel.step(run.begins_s, run.worst_s, where="post", color="0.4", label="measured, worst of 1 s")
    for statistics, colour in zip(STATISTICS, ("C3", "C0"), strict=True):
        predicted_s = by_second(run, ran.estimates[statistics])
        panel.step(run.begins_s, predicted_s, where="post", color=colour, label=statistics)
    panel.set_title(f"14 operators on {nodes} nodes, the first seed")
    panel.set(xlabel="stimulus time, s", ylabel="latency, s")
