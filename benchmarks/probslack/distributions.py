"""[probslack] Fig. 6: five combinations of distributions, f from 5 to 40 ms, δ 0.3."""

from __future__ import annotations

from pathlib import Path

from benchmarks.frame import Claim, Options, Result
from benchmarks.picture import Picture
from benchmarks.probslack.panels import COLOURS
from benchmarks.probslack.streams import DISTRIBUTIONS, EVENTS
from benchmarks.probslack.sweep import (
    HEADER,
    Found,
    gain_ms,
    pooled,
    slack_of,
    swept,
    tell,
    worst_share,
)
from benchmarks.probslack.trial import FREQUENCIES_MS, LENGTH_MS, range_of, seeds_of

MISS = 0.3
QUICK_FREQUENCIES_MS = (5, 20, 40)
GAIN_MS = 14.0
PAPER = "MER at most 20 %, mean 13.7 %; ignore 35 %; mean delay 5 %; 7.6 times faster"


def run(options: Options) -> Result:
    """Try each policy on each combination."""
    seeds = seeds_of(options)
    frequencies = QUICK_FREQUENCIES_MS if options.quick else FREQUENCIES_MS
    settings = [(name, float(at), MISS) for name in DISTRIBUTIONS for at in frequencies]
    found = swept(settings, seeds, what="probslack-distributions", alone=False)
    result = Result(
        f"{EVENTS:,} events, {len(seeds)} seeds, f {', '.join(map(str, frequencies))} ms, "
        f"l {LENGTH_MS / 1000:g} s, δ {MISS}; mean (least–most) over seeds and f",
        ["distributions", *HEADER],
    )
    by_name = {
        name: pooled([found[setting] for setting in settings if setting[0] == name])
        for name in DISTRIBUTIONS
    }
    for name, one in by_name.items():
        tell(result, name, one)
    every = pooled(list(by_name.values()))
    tell(result, "all", every, paper=PAPER)
    gains = {name: gain_ms(one) for name, one in by_name.items()}
    by_f = {
        f"{at:g}": gain_ms(pooled([found[name, at, MISS] for name in DISTRIBUTIONS]))
        for at in map(float, frequencies)
    }
    result.claims += [
        Claim("MER ≤ δ always: highest MER by δ", worst_share([(MISS, every)]), "<=", 1.0),
        Claim("extended, too", worst_share([(MISS, every)], "extended"), "<=", 1.0),
        Claim(
            "mean slack below event-driven's, ms, least of five combinations",
            min(gains.values()),
            ">=",
            GAIN_MS,
        ),
    ]
    event_driven, ours = (slack_of(every, name).mean for name in ("event-driven", "ProbSlack"))
    result.figures |= {
        "gain_ms": gains,
        "gain_ms_by_f": by_f,
        "event_driven_by_probslack": event_driven / ours,
    }
    result.notes += [
        f"as a ratio: event-driven {event_driven:.2f} ms / ProbSlack {ours:.2f} ms = "
        f"{event_driven / ours:.1f} (paper 7.6); with means around zero it says little",
        "ms below event-driven's by f: " + ", ".join(f"{at} {ms:.1f}" for at, ms in by_f.items()),
        f"drawn: {draw(by_name)}",
    ]
    return result


def draw(found: dict[str, Found]) -> Path:
    """Draw Fig. 6: bars of the mean, lines from least to most; return the path of the picture."""
    title = "probslack-distributions: [probslack] Fig. 6, δ 0.3, all f"
    picture = Picture(title, (8.5, 6.0), rows=2, sharex=True)
    above, below = picture.panels
    policies = [policy for policy in next(iter(found.values())) if policy in COLOURS]
    for number, policy in enumerate(policies):
        at = [name + 0.13 * (number - len(policies) / 2 + 0.5) for name in range(len(found))]
        for panel, ranges in (
            (above, [range_of(100 * run.mer for run in one[policy]) for one in found.values()]),
            (below, [range_of(run.slack_ms for run in one[policy]) for one in found.values()]),
        ):
            panel.bar(at, [one.mean for one in ranges], 0.12, color=COLOURS[policy], label=policy)
            least, most = [one.least for one in ranges], [one.most for one in ranges]
            panel.vlines(at, least, most, "k", linewidth=0.8)
    above.axhline(100 * MISS, color="black", linestyle=":", linewidth=1)
    above.set_ylabel("windows that missed something, %")
    below.axhline(0, color="grey", linewidth=0.6)
    below.set_ylabel("mean slack, ms")
    below.set_xticks(range(len(found)), list(found))
    return picture.save("probslack-distributions", legend="first", columns=3)
