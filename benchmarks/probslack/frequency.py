"""[probslack] Fig. 7: f from 5 to 40 ms, δ 0.1, BB."""

from __future__ import annotations

from benchmarks.frame import Claim, Options, Result
from benchmarks.probslack.panels import draw
from benchmarks.probslack.streams import EVENTS
from benchmarks.probslack.sweep import (
    HEADER,
    closed_percent,
    mean_gain_ms,
    oracle_ratio,
    swept,
    tell,
    worst_share,
)
from benchmarks.probslack.trial import FREQUENCIES_MS, LENGTH_MS, seeds_of

MISS = 0.1
GAIN_MS, ORACLE = 11.0, 2.5
PAPER = (
    "paper: MER 8 % on average; ProbSlack 1.9 times faster than event-driven on average, at least "
    "1.2 times; ignore 3.7 times less accurate; the oracle's gain 3 times ProbSlack's"
)


def run(options: Options) -> Result:
    """Try each policy with each f."""
    seeds = seeds_of(options)
    settings = [("BB", float(frequency_ms), MISS) for frequency_ms in FREQUENCIES_MS]
    found = swept(settings, seeds, what="probslack-f")
    result = Result(
        f"{EVENTS:,} events, BB, {len(seeds)} seeds, l {LENGTH_MS / 1000:g} s, δ {MISS}; "
        "mean (least–most) over seeds",
        ["f, ms", *HEADER],
    )
    for setting in settings:
        tell(result, [f"{setting[1]:g}"], f"f {setting[1]:g} ms", found[setting])
    every = list(found.values())
    ratios = {f"{setting[1]:g}": oracle_ratio(one) for setting, one in found.items()}
    closed = {f"{setting[1]:g}": closed_percent(one) for setting, one in found.items()}
    result.claims += [
        Claim("MER ≤ δ: highest MER by δ", worst_share([(MISS, one) for one in every]), "<=", 1.0),
        Claim(
            "at δ 0.1 mean slack below event-driven's, ms, least of all f",
            min(mean_gain_ms([one], "ProbSlack") for one in every),
            ">=",
            GAIN_MS,
        ),
        Claim("the oracle's gain by ours, most of all f", max(ratios.values()), "<=", ORACLE),
    ]
    result.figures |= {"oracle_gain_by_ours": ratios, "closed_by_extensions_percent": closed}
    picture = draw(
        "probslack-f",
        {setting[1]: one for setting, one in found.items()},
        x="f, ms",
        title="probslack-f: [probslack] Fig. 7, BB, δ 0.1",
        budget={setting[1]: MISS for setting in settings},
    )
    result.notes += [
        "the extensions (ε fitted, sliding fit, an early first fit) go "
        f"{min(closed.values()):.0f} to {max(closed.values()):.0f} % of the way to the oracle",
        PAPER,
        f"drawn: {picture}",
    ]
    return result
