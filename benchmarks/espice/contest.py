"""Each shedder on each setting of a query, with several seeds; what is told of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.espice.shedders import (
    AT_LEAST,
    BASELINE,
    DEFAULT,
    ESPICE,
    LETTER,
    MAKERS,
    RANDOM,
    RATES,
)
from benchmarks.espice.trial import Group, MakeShedder, Runs, Tally, judged
from benchmarks.frame import Claim, Options, Result
from benchmarks.side_by_side import crossed

SEEDS, QUICK_SEEDS = 5, 1
ENOUGH = 10
"""Matches for training, and judged, that a share is worth telling of."""
TOLD = (ESPICE, BASELINE, RANDOM, DEFAULT, AT_LEAST, LETTER)


@dataclass(frozen=True)
class Setting:
    """One point of a figure.

    Attributes:
        panel: the figure that it is in.
        x: where in the figure.
        groups: seed of the stream -> what is trained on and judged.
        makers: {name: shedder}; those of the contest if there are none.
    """

    panel: str
    x: float
    groups: Callable[[int], Sequence[Group]]
    makers: Mapping[str, MakeShedder] | None = None


Outcome = tuple[int, dict[tuple[str, str], Tally]]
"""Matches for training; {(rate, shedder): what it did}."""


@dataclass
class Found:
    """What a setting gave.

    Attributes:
        trained: matches for training, the least of seeds.
        runs: {(rate, shedder): of all seeds}.
    """

    trained: int
    runs: dict[tuple[str, str], Runs]

    @property
    def is_enough(self) -> bool:
        """Whether there were so many matches that shares mean something."""
        tallies = next(iter(self.runs.values())).tallies
        return self.trained >= ENOUGH and min(one.matches for one in tallies) >= ENOUGH

    def negatives(self, rate: str, name: str) -> float:
        """Return the mean share of false negatives, %."""
        return self.runs[rate, name].mean("negatives")

    def factor(self, rate: str) -> float:
        """Return how many times more BL loses than eSPICE; one that is not lost counts as half."""
        ours, theirs = self.runs[rate, ESPICE].tallies, self.runs[rate, BASELINE].tallies
        return sum(one.lost for one in theirs) / max(0.5, sum(one.lost for one in ours))


def contest(
    settings: Sequence[Setting],
    options: Options,
    *,
    makers: Sequence[str] = TOLD,
    what: str,
) -> list[Found]:
    """Return what each setting gave, in their order.

    Args:
        settings: what to try.
        options: seeds from its seed on; `quick`: one.
        makers: names of the shedders.
        what: it is, for who waits.
    """
    outcomes = crossed(
        range(len(settings)),
        options.seeds(SEEDS, QUICK_SEEDS),
        lambda number, seed: _one(settings[number], seed, makers),
        what=what,
    )
    found = []
    for of_setting in outcomes.values():
        runs = {key: Runs([tallies[key] for _, tallies in of_setting]) for key in of_setting[0][1]}
        found.append(Found(min(trained for trained, _ in of_setting), runs))
    return found


def _one(setting: Setting, seed: int, makers: Sequence[str]) -> Outcome:
    shedders = setting.makers or {name: MAKERS[name] for name in makers}
    groups = setting.groups(seed)
    trained = sum(
        match is not None for group in groups for part in group.training for match in part.matches
    )
    tallies: dict[tuple[str, str], Tally] = {}
    for rate, surge in RATES.items():
        for name, make in shedders.items():
            tally = tallies[rate, name] = Tally()
            for group in groups:
                tally.add(judged(group, make, surge, seed=seed))
    return trained, tallies


def told(
    result: Result,
    settings: Sequence[Setting],
    found: Sequence[Found],
    *,
    paper: Mapping[tuple[str, float, str], str],
) -> None:
    """Add a row for each setting and rate, and all figures.

    Args:
        result: to add to.
        settings: what was tried.
        found: what each gave.
        paper: {(panel, x, rate): what the paper has of eSPICE / BL, %}.
    """
    for setting, one in zip(settings, found, strict=True):
        for rate in RATES:
            runs = {name: one.runs[rate, name] for r, name in one.runs if r == rate}
            result.figures[f"{setting.panel}, {setting.x:g}, {rate}"] = {
                "trained": one.trained,
                **{name: _figures(of) for name, of in runs.items()},
            }
            row = [setting.panel, f"{setting.x:g}", rate, f"{runs[ESPICE].mean('matches'):.0f}"]
            if not one.is_enough:
                result.rows.append([*row, "too few", *[""] * (len(result.header) - 5)])
                continue
            row += [_cell(runs[ESPICE]), _cell(runs[BASELINE]), _factor(one, rate)]
            row += [share_of(runs[name], "negatives") for name in runs if name not in _APART]
            row += [
                f"{share_of(runs[name], 'negatives')} of {runs[name].mean('share'):.0f}"
                for name in (AT_LEAST, LETTER)
                if name in runs
            ]
            result.rows.append([*row, paper.get((setting.panel, setting.x, rate), "")])


_APART = (ESPICE, BASELINE, AT_LEAST, LETTER)


def header_of(x: str, makers: Sequence[str] = TOLD) -> list[str]:
    """Return the header of the table that `told` fills."""
    return [
        "",
        x,
        "rate",
        "matches",
        "eSPICE: FN / FP / no match, %",
        "BL: FN / FP / no match, %",
        "FN of BL by eSPICE's",
        *(f"{name}: FN, %" for name in makers if name not in _APART),
        *(f"{name}: FN, % of dropped, %" for name in (AT_LEAST, LETTER) if name in makers),
        "paper: FN, eSPICE / BL",
    ]


def share_of(runs: Runs, name: str) -> str:
    """Return a share with its standard deviation over seeds, where it has one."""
    deviation = f" ± {runs.deviation(name):.1f}" if len(runs.tallies) > 1 else ""
    return f"{runs.mean(name):.1f}{deviation}"


def _factor(found: Found, rate: str) -> str:
    """Return the factor as a table has it: where we lose nothing there is none."""
    ours, theirs = (sum(t.lost for t in found.runs[rate, n].tallies) for n in (ESPICE, BASELINE))
    if ours:
        return f"{theirs / ours:.1f}"
    return "none of ours" if theirs else "none"


def _cell(runs: Runs) -> str:
    return (
        f"{share_of(runs, 'negatives')} / {runs.mean('positives'):.1f} / {runs.mean('empty'):.1f}"
    )


def _figures(runs: Runs) -> dict[str, float]:
    return {
        "false_negatives_percent": runs.mean("negatives"),
        "deviation": runs.deviation("negatives"),
        "false_positives_percent": runs.mean("positives"),
        "no_match_percent": runs.mean("empty"),
        "dropped_percent": runs.mean("share"),
        "matches": runs.mean("matches"),
    }


def claims_of_factor(
    panel: str,
    settings: Sequence[Setting],
    found: Sequence[Found],
    factors: Mapping[str, float],
) -> list[Claim]:
    """Return the claims that eSPICE is below BL everywhere, and by the paper's factor somewhere.

    Args:
        panel: of which figure.
        settings: what was tried.
        found: what each gave.
        factors: {rate: the paper's}.
    """
    of_panel = [one for at, one in zip(settings, found, strict=True) if at.panel == panel]
    of_panel = [one for one in of_panel if one.is_enough]
    claims = [
        Claim(
            f"{panel}, {rate}: false negatives of BL by eSPICE's, at best",
            max(one.factor(rate) for one in of_panel),
            ">=",
            factor,
        )
        for rate, factor in factors.items()
    ]
    nearest = max(
        one.negatives(rate, ESPICE) - one.negatives(rate, BASELINE)
        for one in of_panel
        for rate in RATES
    )
    return [
        *claims,
        Claim(f"{panel}: false negatives less BL's, points, most", nearest, "<=", -1e-9),
    ]


def claim_of_amount(found: Sequence[Found]) -> Claim:
    """Return the claim that eSPICE drops x: the largest distance, in points of all events."""
    off = [
        abs(runs.mean("share") - 100 * (1 - 1 / RATES[rate].rate))
        for one in found
        if one.is_enough
        for (rate, name), runs in one.runs.items()
        if name == ESPICE
    ]
    return Claim("what eSPICE drops is x: off by, points of all events", max(off), "<=", 1.0)
