"""[probslack] Fig. 8: δ from 0.1 to 0.9, f 30 ms, BB."""

from __future__ import annotations

from benchmarks.frame import Claim, Options, Result
from benchmarks.probslack.panels import Column, draw
from benchmarks.probslack.streams import EVENTS
from benchmarks.probslack.sweep import (
    HEADER,
    gain_ms,
    oracle_ratio,
    swept,
    tell,
    tell_what_extensions_close,
    worst_share,
)
from benchmarks.probslack.trial import LENGTH_MS, seeds_of

MISSES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
QUICK_MISSES = (0.1, 0.3, 0.5, 0.7, 0.9)
FREQUENCY_MS = 30.0
GAIN_MS, ORACLE = 11.0, 2.5
PAPER = {
    0.1: "MER 6.7 %, 10 ms; ignore 30 %; oracle −7.2 ms",
    0.9: "MER 55.7 %, −10 ms; oracle −28.3 ms, gain 2 times ours over all δ",
}


def run(options: Options) -> Result:
    """Try each policy with each δ."""
    seeds = seeds_of(options)
    misses = QUICK_MISSES if options.quick else MISSES
    found = swept(
        [("BB", FREQUENCY_MS, miss) for miss in misses], seeds, what="probslack-budget", alone=True
    )
    by_miss = {setting[2]: one for setting, one in found.items()}
    result = Result(
        f"{EVENTS:,} events, BB, {len(seeds)} seeds, f {FREQUENCY_MS:g} ms, "
        f"l {LENGTH_MS / 1000:g} s; mean (least–most) over seeds",
        ["δ", *HEADER],
    )
    for miss, one in by_miss.items():
        tell(result, f"{miss:g}", one, paper=PAPER.get(miss, ""))
    ratios = {f"{miss:g}": oracle_ratio(one) for miss, one in by_miss.items()}
    result.figures |= {
        "gain_ms": {f"{miss:g}": gain_ms(one) for miss, one in by_miss.items()},
        "oracle_gain_by_ours": ratios,
    }
    of_all = list(by_miss.items())
    result.claims += [
        Claim("MER ≤ δ: highest MER by δ", worst_share(of_all), "<=", 1.0),
        Claim("extended, too", worst_share(of_all, "extended"), "<=", 1.0),
        Claim("at δ 0.1 mean slack below event-driven's, ms", gain_ms(by_miss[0.1]), ">=", GAIN_MS),
        Claim("the oracle's gain by ours, most of all δ", max(ratios.values()), "<=", ORACLE),
    ]
    tell_what_extensions_close(result, {f"δ {miss:g}": one for miss, one in by_miss.items()})
    column = Column("δ", by_miss, {miss: miss for miss in by_miss})
    title = "probslack-budget: [probslack] Fig. 8, BB, f 30 ms"
    result.notes.append(f"drawn: {draw('probslack-budget', [column], title=title)}")
    return result
