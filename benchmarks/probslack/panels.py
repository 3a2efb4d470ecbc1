"""The paper's figures: shares of windows above, slack below, a line for each policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.picture import Picture
from benchmarks.probslack.sweep import Found
from slackwater.runtime.closing.policy import FloatArray

COLOURS = {
    "event-driven": "tab:blue",
    "ignore": "tab:grey",
    "mean delay": "tab:brown",
    "ProbSlack": "tab:red",
    "extended": "tab:purple",
    "oracle": "tab:green",
}
"""Of the policies that are drawn."""


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


def draw(name: str, columns: Sequence[Column], *, title: str) -> Path:
    """Draw MER and mean slack of each policy over a setting; return the path of the picture.

    Args:
        name: of the file, without its ending.
        columns: from left to right.
        title: above the picture.
    """
    width = 8.0 if len(columns) == 1 else 4.2 * len(columns)
    picture = Picture(title, (width, 6.5), rows=2, columns=len(columns), sharex="col")
    for number, column in enumerate(columns):
        above, below = picture.grid[:, number]
        _draw_column(above, below, column)
    return picture.save(name, legend="first", columns=2)


def ranged(panel: Any, at: Any, values: FloatArray, policy: str) -> None:
    """Draw the mean over runs, and their range, of a policy: values of shape (runs, settings)."""
    colour = COLOURS[policy]
    panel.plot(at, values.mean(axis=0), color=colour, linewidth=1, label=policy)
    panel.fill_between(at, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.15)


def _draw_column(above: Any, below: Any, column: Column) -> None:
    settings = sorted(column.found)
    unit, per_ms = column.unit
    for policy in next(iter(column.found.values())):
        if policy not in COLOURS:
            continue
        runs = [column.found[at][policy] for at in settings]
        mer = np.array([[100 * one.mer for one in each] for each in runs]).T
        slack = np.array([[per_ms * one.slack_ms for one in each] for each in runs]).T
        ranged(above, settings, mer, policy)
        ranged(below, settings, slack, policy)
    above.plot(settings, [100 * column.budget[at] for at in settings], "k:", linewidth=1, label="δ")
    above.set(title=column.title, ylabel="windows that missed something, %")
    below.set_ylabel(f"mean slack, {unit}")
    below.axhline(0, color="grey", linewidth=0.6)
    below.set_xlabel(column.x)
