"""[probslack] Fig. 8: δ from 0.1 to 0.9, f 30 ms, BB."""

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
from benchmarks.probslack.trial import LENGTH_MS, seeds_of

MISSES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FREQUENCY_MS = 30.0
GAIN_MS, ORACLE = 11.0, 2.5
PAPER = (
    "paper: MER from 6.7 % to 55.7 %, mean slack from 10 to −10 ms; ignore 30 %; the oracle from "
    "−7.2 to −28.3 ms, its gain 2 times ProbSlack's"
)


def run(options: Options) -> Result:
    """Try each policy with each δ."""
    seeds = seeds_of(options)
    settings = [("BB", FREQUENCY_MS, miss) for miss in MISSES]
    found = swept(settings, seeds, what="probslack-budget")
    result = Result(
        f"{EVENTS:,} events, BB, {len(seeds)} seeds, f {FREQUENCY_MS:g} ms, "
        f"l {LENGTH_MS / 1000:g} s; mean (least–most) over seeds",
        ["δ", *HEADER],
    )
    for setting in settings:
        tell(result, [setting[2]], f"δ {setting[2]}", found[setting])
    ratios = {str(setting[2]): oracle_ratio(one) for setting, one in found.items()}
    closed = {str(setting[2]): closed_percent(one) for setting, one in found.items()}
    of_all = [(setting[2], one) for setting, one in found.items()]
    result.claims += [
        Claim("MER ≤ δ: highest MER by δ", worst_share(of_all), "<=", 1.0),
        Claim(
            "at δ 0.1 mean slack below event-driven's, ms",
            mean_gain_ms([found[settings[0]]], "ProbSlack"),
            ">=",
            GAIN_MS,
        ),
        Claim("the oracle's gain by ours, most of all δ", max(ratios.values()), "<=", ORACLE),
    ]
    result.figures |= {"oracle_gain_by_ours": ratios, "closed_by_extensions_percent": closed}
    picture = draw(
        "probslack-budget",
        {setting[2]: one for setting, one in found.items()},
        x="δ",
        title="probslack-budget: [probslack] Fig. 8, BB, f 30 ms",
        budget={miss: miss for miss in MISSES},
    )
    result.notes += [
        "the extensions (ε fitted, sliding fit, an early first fit) go "
        f"{min(closed.values()):.0f} to {max(closed.values()):.0f} % of the way to the oracle",
        PAPER,
        f"drawn: {picture}",
    ]
    return result
