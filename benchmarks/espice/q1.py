"""[espice] Fig. 5a, 5b, 6a: n others near a player after his sprint, on real positions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

import numpy as np

from benchmarks.espice.contest import (
    Setting,
    claim_of_amount,
    claims_of_factor,
    contest,
    header_of,
    told,
)
from benchmarks.espice.panels import draw
from benchmarks.espice.per_window import Selection
from benchmarks.espice.shedders import BASELINE, ESPICE, MAKERS, R1
from benchmarks.espice.soccer import STRIKERS, Positions, positions, query_1, windows_1
from benchmarks.espice.streams import Windows
from benchmarks.espice.trial import Group, Part, Surge, Tally, judged
from benchmarks.frame import Options, Result

COUNTS, QUICK_COUNTS = (2, 3, 4, 5, 6), (2, 4, 6)
RATE_HZ = 4
"""Of each player: windows of 15 s then have about as many events as the paper's (630, 700)."""
NEAR_M = 15.0
WITHIN_S = 15.0
FOLDS = 5
MINUTE_US = 60_000_000
FACTORS = {"first": {"R1": 5.0, "R2": 3.2}, "last": {"R1": 7.0}}
PAPER = {
    ("first", 2.0, "R1"): "9 / 45.6",
    ("first", 6.0, "R1"): "21.2 / 55.9",
    ("last", 2.0, "R1"): "4 / 27",
    ("last", 6.0, "R1"): "6 / 42",
}


def run(options: Options) -> Result:
    """Try each number of others, each selection and each rate."""
    selections: tuple[Selection, ...] = ("first", "last")
    counts = QUICK_COUNTS if options.quick else COUNTS
    settings = [
        Setting(selection, count, partial(groups, count=count, selection=selection))
        for selection in selections
        for count in counts
    ]
    result = Result(
        f"soccer-tromso-zxy-2013, {len(STRIKERS)} strikers, {RATE_HZ} events/s of a player, "
        f"{NEAR_M:g} m, {WITHIN_S:g} s; each fifth minute judged by what the others teach",
        header_of("n"),
    )
    found = contest(settings, options, what="espice-q1")
    told(result, settings, found, paper=PAPER)
    for selection in selections:
        result.claims += claims_of_factor(selection, settings, found, FACTORS[selection])
    result.claims.append(claim_of_amount(found))
    result.notes += variants(options)
    title = "espice-q1: [espice] Fig. 5a, 5b, 6a, real players"
    result.notes.append(f"drawn: {draw('espice-q1', settings, found, x='n', title=title)}")
    return result


def variants(options: Options) -> list[str]:
    """Return what other rates, distances, models and partitions give at n = 4, first, R1."""
    hertz = (1, RATE_HZ) if options.quick else (1, 2, RATE_HZ)
    metres = (NEAR_M,) if options.quick else (10.0, NEAR_M, 20.0)
    lines = []
    for rate_hz in hertz:
        for near_m in metres:
            one = partial(groups, options.seed, count=4, selection="first")
            what = f"n 4, first, R1, {rate_hz} Hz, {near_m:g} m"
            lines.append(f"{what}: {_beside(one(rate_hz=rate_hz, near_m=near_m), R1)}")
    own = groups(options.seed, count=4, selection="first", apart=True)
    lines.append(f"n 4, first, R1, a model for each striker: {_beside(own, R1)}")
    pooled = groups(options.seed, count=4, selection="first")
    pace = Surge(R1.rate, throughput=RATE_HZ * 11.0)
    parts = pace.amount(pooled[0].size).partitions
    lines.append(f"n 4, first, R1, at the pace of the game, ρ {parts}: {_beside(pooled, pace)}")
    return lines


def _beside(of: Sequence[Group], surge: Surge) -> str:
    tallies = {}
    for name in (ESPICE, BASELINE):
        tally = tallies[name] = Tally()
        for group in of:
            tally.add(judged(group, MAKERS[name], surge, seed=1))
    matches = tallies[ESPICE].matches
    shares = ", ".join(f"{name} {one.negatives:.1f} %" for name, one in tallies.items())
    return f"{shares} of {matches} matches"


def groups(
    seed: int,  # noqa: ARG001 - the stream is as it is
    *,
    count: int,
    selection: Selection,
    within_s: float = WITHIN_S,
    rate_hz: int = RATE_HZ,
    near_m: float = NEAR_M,
    apart: bool = False,
) -> list[Group]:
    """Return for each fold the windows of its minutes, and those of all other minutes to train on.

    Args:
        seed: of nothing.
        count: n.
        selection: first or last.
        within_s: length of the windows.
        rate_hz: events a second of each player.
        near_m: the distance.
        apart: a model for each striker; else one for all.
    """
    of = read(rate_hz)
    parts = [
        Part(query_1(of, striker, count, selection, near_m), windows_1(of, striker, within_s))
        for striker in STRIKERS
    ]
    found = []
    for fold in range(FOLDS):
        pairs = [split(of, part, fold) for part in parts]
        if apart:
            found += [Group([one], [other]) for one, other in pairs if len(one.windows)]
        else:
            found.append(Group([one for one, _ in pairs], [other for _, other in pairs]))
    return found


@cache
def read(rate_hz: int) -> Positions:
    """Return the data, read once."""
    return positions(rate_hz)


def split(of: Positions, part: Part, fold: int) -> tuple[Part, Part]:
    """Return the windows of all other minutes, and those of this fold's; none that lie in both."""
    windows: Windows = part.windows
    minute = of.time_us // MINUTE_US
    begins = minute[windows.starts] % FOLDS == fold
    ends = minute[windows.stops - 1] % FOLDS == fold
    training, judged_ = windows.of(~begins & ~ends), windows.of(np.logical_and(begins, ends))
    return Part(part.query, training), Part(part.query, judged_)
