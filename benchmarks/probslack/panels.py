"""The paper's figures: shares of windows above, slack below, a line for each policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.frame import save_picture
from benchmarks.probslack.trial import Outcome, range_of

COLOURS = {
    "event-driven": "tab:blue",
    "ignore": "tab:grey",
    "mean delay": "tab:brown",
    "ProbSlack": "tab:red",
    "extended": "tab:purple",
    "oracle": "tab:green",
}
OUT = Path("out/benchmarks")

Found = Mapping[str, Sequence[Outcome]]
"""{policy: of each run}"""


def draw(
    name: str,
    found: Mapping[float, Found],
    *,
    x: str,
    title: str,
    budget: Mapping[float, float],
    folder: Path = OUT,
) -> Path:
    """Draw MER and mean slack of each policy over a setting; return the path of the picture.

    Args:
        name: of the file, without its ending.
        found: {setting: what was found}.
        x: what the setting is.
        title: above the picture.
        budget: {setting: δ}.
        folder: where it goes.
    """
    figure = Figure(figsize=(8.0, 6.5), dpi=110, layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    settings = sorted(found)
    for policy in next(iter(found.values())):
        for panel, values in (
            (above, {at: [100 * one.mer for one in found[at][policy]] for at in settings}),
            (below, {at: [one.slack_ms for one in found[at][policy]] for at in settings}),
        ):
            ranges = [range_of(values[at]) for at in settings]
            low = [one.least for one in ranges]
            high = [one.most for one in ranges]
            panel.plot(
                settings,
                [one.mean for one in ranges],
                color=COLOURS.get(policy),
                marker="o",
                markersize=3,
                label=policy,
            )
            panel.fill_between(settings, low, high, color=COLOURS.get(policy), alpha=0.15)
    above.plot(settings, [100 * budget[at] for at in settings], "k:", linewidth=1, label="δ")
    above.set_ylabel("windows that missed something, %")
    below.set_ylabel("mean slack, ms")
    below.axhline(0, color="grey", linewidth=0.6)
    below.set_xlabel(x)
    above.legend(fontsize=8, ncol=4)
    figure.suptitle(title, fontsize=11)
    return save_picture(figure, folder, name)
