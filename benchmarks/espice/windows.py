"""[espice] Fig. 8: windows of sizes that vary while the model is built, of one when it is used."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from benchmarks.espice import q1, q2
from benchmarks.espice.contest import Setting, contest, header_of, told
from benchmarks.espice.options import opened_by_leading, query_2, quotes
from benchmarks.espice.options import split as split_quotes
from benchmarks.espice.panels import draw
from benchmarks.espice.shedders import BASELINE, ESPICE, RATES
from benchmarks.espice.soccer import STRIKERS, query_1, windows_1
from benchmarks.espice.streams import Windows
from benchmarks.espice.trial import Group, Part
from benchmarks.frame import Claim, Options, Result

SECONDS = (12.0, 14.0, 16.0, 18.0, 20.0)
MINUTES = (180 / 60, 200 / 60, 240 / 60, 260 / 60, 300 / 60)
NAMES = (ESPICE, BASELINE)
Q1, Q2 = "Q1, n 5, first", "Q2, n 20, first"
SPREAD = 10.0
"""Points that false negatives may differ by from those at 100 %."""


def run(options: Options) -> Result:
    """Try each size of windows with each query and rate."""
    lengths = {Q1: (groups_1, SECONDS), Q2: (groups_2, MINUTES)}
    settings = [
        Setting(
            panel,
            round(100 * length / of[2]),
            partial(groups, length=length),
        )
        for panel, (groups, of) in lengths.items()
        for length in (of[::2] if options.quick else of)
    ]
    result = Result(
        "the streams of espice-q1 and espice-q2; each window trained on has one of five lengths",
        header_of("% of the length", NAMES),
    )
    found = contest(settings, options, makers=NAMES, what="espice-windows")
    told(result, settings, found, paper={})
    for panel in lengths:
        of_panel = {at.x: one for at, one in zip(settings, found, strict=True) if at.panel == panel}
        off = max(
            abs(one.negatives(rate, ESPICE) - of_panel[100].negatives(rate, ESPICE))
            for one in of_panel.values()
            for rate in RATES
        )
        result.claims.append(
            Claim(f"{panel}: false negatives beside those at 100 %, points", off, "<=", SPREAD)
        )
    title = "espice-windows: [espice] Fig. 8"
    x = "length of windows, % of 16 s, of 240 s"
    result.notes.append(f"drawn: {draw('espice-windows', settings, found, x=x, title=title)}")
    return result


def groups_1(seed: int, *, length: float) -> list[Group]:
    """Return Q1's folds: windows of any length to train on, of this many seconds to be judged."""
    of, generator = q1.read(q1.RATE_HZ), np.random.default_rng(seed)
    queries = [query_1(of, striker, 5, "first", q1.NEAR_M) for striker in STRIKERS]
    found = []
    for fold in range(q1.FOLDS):
        training, judged = [], []
        for striker, query in zip(STRIKERS, queries, strict=True):
            each = [
                q1.split(of, Part(query, windows_1(of, striker, seconds)), fold)[0].windows
                for seconds in SECONDS
            ]
            training.append(Part(query, one_of_each(each, generator)))
            whole = Part(query, windows_1(of, striker, length))
            judged.append(q1.split(of, whole, fold)[1])
        found.append(Group(training, judged))
    return found


def groups_2(seed: int, *, length: float) -> list[Group]:
    """Return Q2's halves: windows of any length to train on, of so many minutes to be judged."""
    of, generator = quotes(q2.CONTRACTS, order="a minute", seed=seed), np.random.default_rng(seed)
    query = query_2(of, 20, "first")
    each = [split_quotes(of, opened_by_leading(of, minutes))[0] for minutes in MINUTES]
    judged = split_quotes(of, opened_by_leading(of, length))[1]
    return [Group([Part(query, one_of_each(each, generator))], [Part(query, judged)])]


def one_of_each(of: Sequence[Windows], generator: np.random.Generator) -> Windows:
    """Return for each start a window of a length drawn at random, where that one is whole."""
    starts = np.unique(np.concatenate([windows.starts for windows in of]))
    drawn = generator.integers(len(of), size=len(starts))
    kept = [
        windows.of(np.isin(windows.starts, starts[drawn == number]))
        for number, windows in enumerate(of)
    ]
    begins = np.concatenate([windows.starts for windows in kept])
    order = np.argsort(begins, kind="stable")
    # They are only learnt from, so no size is predicted.
    return Windows(begins[order], np.concatenate([windows.stops for windows in kept])[order])
