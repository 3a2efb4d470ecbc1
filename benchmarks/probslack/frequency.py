"""[probslack] Fig. 7: f from 5 to 40 ms, δ 0.1, BB."""

from __future__ import annotations

from benchmarks.frame import Claim, Options, Result
from benchmarks.probslack.panels import Column, draw
from benchmarks.probslack.streams import EVENTS
from benchmarks.probslack.sweep import (
    HEADER,
    gain_ms,
    oracle_ratio,
    pooled,
    slack_of,
    swept,
    tell,
    tell_what_extensions_close,
    worst_share,
)
from benchmarks.probslack.trial import FREQUENCIES_MS, LENGTH_MS, seeds_of

MISS = 0.1
QUICK_FREQUENCIES_MS = (5, 20, 40)
GAIN_MS, ORACLE = 11.0, 2.5
PAPER = "MER 8 %; 1.9 times faster than event-driven; oracle's gain 3 times"


def run(options: Options) -> Result:
    """Try each policy with each f."""
    seeds = seeds_of(options)
    frequencies = QUICK_FREQUENCIES_MS if options.quick else FREQUENCIES_MS
    settings = [("BB", float(frequency_ms), MISS) for frequency_ms in frequencies]
    found = swept(settings, seeds, what="probslack-f", alone=True)
    result = Result(
        f"{EVENTS:,} events, BB, {len(seeds)} seeds, l {LENGTH_MS / 1000:g} s, δ {MISS}; "
        "mean (least–most) over seeds",
        ["f, ms", *HEADER],
    )
    by_f = {setting[1]: one for setting, one in found.items()}
    for frequency_ms, one in by_f.items():
        tell(result, f"{frequency_ms:g}", one)
    every = pooled(list(by_f.values()))
    tell(result, "all", every, paper=PAPER)
    gains = {f"{at:g}": gain_ms(one) for at, one in by_f.items()}
    ratios = {f"{at:g}": oracle_ratio(one) for at, one in by_f.items()}
    result.figures |= {"gain_ms": gains, "oracle_gain_by_ours": ratios}
    result.claims += [
        Claim("MER ≤ δ: highest MER by δ", worst_share([(MISS, every)]), "<=", 1.0),
        Claim("extended, too", worst_share([(MISS, every)], "extended"), "<=", 1.0),
        Claim(
            "at δ 0.1 mean slack below event-driven's, ms, least of all f",
            min(gains.values()),
            ">=",
            GAIN_MS,
        ),
        Claim("the oracle's gain by ours, most of all f", max(ratios.values()), "<=", ORACLE),
    ]
    faster = slack_of(every, "event-driven").mean / slack_of(every, "ProbSlack").mean
    result.notes.append(f"event-driven's mean slack is {faster:.1f} times ours over all f")
    tell_what_extensions_close(result, {f"f {at:g} ms": one for at, one in by_f.items()})
    column = Column("f, ms", by_f, dict.fromkeys(by_f, MISS))
    title = "probslack-f: [probslack] Fig. 7, BB, δ 0.1"
    result.notes.append(f"drawn: {draw('probslack-f', [column], title=title)}")
    return result
