"""[espice] Fig. 9: false negatives over the size of bins, Q1 with n = 5, Q2 with n = 20."""

from __future__ import annotations

from functools import partial

from benchmarks.espice import q1, q2
from benchmarks.espice.contest import Setting, contest, header_of, told
from benchmarks.espice.panels import draw
from benchmarks.espice.shedders import BASELINE, ESPICE, MAKERS, RATES, espice
from benchmarks.frame import Claim, Options, Result

SIZES, QUICK_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256), (1, 8, 64)
"""The paper has up to 64."""
NAMES = (ESPICE, BASELINE)
Q1, Q2 = "Q1, n 5, first", "Q2, n 20, first"


def run(options: Options) -> Result:
    """Try each size of bins with each query and rate."""
    streams = {
        Q1: partial(q1.groups, count=5, selection="first"),
        Q2: partial(q2.groups, count=20, selection="first"),
    }
    settings = [
        Setting(
            panel,
            size,
            groups,
            makers={ESPICE: partial(espice, bin_size=size), BASELINE: MAKERS[BASELINE]},
        )
        for panel, groups in streams.items()
        for size in (QUICK_SIZES if options.quick else SIZES)
    ]
    result = Result("the streams of espice-q1 and espice-q2", header_of("bin size", NAMES))
    found = contest(settings, options, makers=NAMES, what="espice-bins")
    told(result, settings, found, paper={})
    for panel in streams:
        of_panel = [one for at, one in zip(settings, found, strict=True) if at.panel == panel]
        worst = max(
            one.negatives(rate, ESPICE) - one.negatives(rate, BASELINE)
            for one in of_panel
            for rate in RATES
        )
        result.claims.append(
            Claim(f"{panel}: false negatives less BL's, points, most", worst, "<=", -1e-9)
        )
    title = "espice-bins: [espice] Fig. 9"
    path = draw("espice-bins", settings, found, x="positions of a bin", title=title, doubling=True)
    result.notes.append(f"drawn: {path}")
    return result
