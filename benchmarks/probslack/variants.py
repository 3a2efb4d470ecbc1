"""[probslack] §3.3: a maximum allowed latency, and the dual problem; BB, f 30 ms."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.frame import Claim, Options, Result
from benchmarks.probslack.streams import EVENTS, MS, Stream, generated
from benchmarks.probslack.trial import LENGTH_MS, T, range_of, seeds_of, tried, windows_of
from benchmarks.side_by_side import side_by_side
from slackwater.runtime.closing import Closing
from slackwater.runtime.closing.probslack import ProbSlack
from slackwater.runtime.closing.simple import ByTime

FREQUENCY_MS, MISS = 30.0, 0.1
MOST_MS = (0, 2, 5, 10, 15)
"""Maximum allowed latencies."""
SLACKS_MS = (0, 4, 8, 12)
"""Mean slacks that are allowed, of the dual problem."""
SEEDS = 20
Found = dict[str, tuple[float, float, float]]
"""{what: (MER, mean slack in ms, longest slack in ms)}"""


def run(options: Options) -> Result:
    """Try each bound, and fixed slacks beside the dual problem."""
    seeds = seeds_of(options, most=SEEDS)
    runs = side_by_side([partial(_one, seed) for seed in seeds], what="probslack-variants")
    result = Result(
        f"{EVENTS:,} events, BB, {len(seeds)} seeds, f {FREQUENCY_MS:g} ms, "
        f"l {LENGTH_MS / 1000:g} s; mean (least–most) over seeds",
        [
            "policy",
            "bound, ms",
            "MER, %",
            "mean slack, ms",
            "longest, ms",
            "a fixed slack's MER, %",
        ],
    )
    over, over_mean, share = [], [], []
    for most in MOST_MS:
        each = [one[f"at most {most}"] for one in runs]
        over += [longest - most for _, _, longest in each]
        _tell(result, f"δ {MISS}, at most", most, each, None)
    for slack in SLACKS_MS:
        each = [one[f"slack {slack}"] for one in runs]
        fixed = [_fixed_of(one, mean) for one, (_, mean, _) in zip(runs, each, strict=True)]
        over_mean += [mean - slack for _, mean, _ in each]
        share += [mer / max(best, 1e-9) for (mer, _, _), best in zip(each, fixed, strict=True)]
        _tell(result, "dual, mean slack", slack, each, fixed)
    result.claims += [
        Claim("maximum allowed latency passed by, ms, most", max(over), "<=", 0.0),
        Claim("the dual's mean slack above its bound, ms, most", max(over_mean), "<=", 0.0),
        Claim("the dual's misses by a fixed slack's of the same mean, most", max(share), "<=", 1.0),
    ]
    result.notes.append(
        "a fixed slack of the same mean: of all whole ms the two next to it, in the shares that "
        "give that mean"
    )
    return result


def _one(seed: int) -> Found:
    stream = generated("BB", seed)
    found: Found = {}
    for most in MOST_MS:
        found[f"at most {most}"] = _came_to(
            ProbSlack(MISS, at_most_ns=most * MS, fit_rows=T, conditional=False), stream
        )
    for slack in SLACKS_MS:
        policy = ProbSlack(None, slack_ns=slack * MS, fit_rows=T, conditional=False)
        found[f"slack {slack}"] = _came_to(policy, stream)
    for slack in range(31):
        outcome = tried(ByTime(slack * MS), stream, windows_of(FREQUENCY_MS))
        found[f"fixed {slack}"] = (outcome.mer, outcome.slack_ms, outcome.slack_ms)
    return found


def _came_to(policy: Closing, stream: Stream) -> tuple[float, float, float]:
    run = policy.begin(windows_of(FREQUENCY_MS))
    run.observe(stream.types, stream.event_time_ns, stream.arrival_ns)
    closed = run.closings()
    longest_ms = float((closed.closed_at_ns - closed.end_ns).max()) / MS
    counts = run.counts()
    return counts.missed_share, counts.mean_slack_ns / MS, longest_ms


def _fixed_of(found: Found, mean_ms: float) -> float:
    """Return the MER of fixed slacks with this mean; below none at all that of none at all."""
    mers = np.array([found[f"fixed {slack}"][0] for slack in range(31)])
    means = np.array([found[f"fixed {slack}"][1] for slack in range(31)])
    return float(np.interp(mean_ms, means, mers))


def _tell(
    result: Result,
    policy: str,
    bound_ms: int,
    each: list[tuple[float, float, float]],
    fixed: list[float] | None,
) -> None:
    mer, slack, longest = (range_of(values) for values in zip(*each, strict=True))
    percent = range_of(100 * one for one, _, _ in each)
    beside = "" if fixed is None else range_of(100 * one for one in fixed)
    result.rows.append([policy, bound_ms, percent, slack, longest, beside])
    result.figures[f"{policy} {bound_ms} ms"] = {
        "mer": mer.to_json(),
        "slack_ms": slack.to_json(),
        "longest_ms": longest.to_json(),
    }
