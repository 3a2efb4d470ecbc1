"""[ssg] Fig. 2-4: what a fixed threshold makes of latency, detected events, out-of-order tuples.

The join of 500 buses and 500 loops a second under the alternating Zipf delay, once for each slack
and once ready-only. The join keeps its rows as the paper's does (`keep="slack"`); beside it stands
the smallest slack with `keep="promise"`, our default. A second is one of high delay while buses
come more than 1 s late, and one of low delay while none is even a quarter second late; what is
between is in neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt

from benchmarks.frame import Claim, Options, Result, check
from benchmarks.picture import Picture
from benchmarks.sltuner import late_city
from benchmarks.sltuner.deadline import Experiment, Floats, Outcome, named
from benchmarks.sltuner.deadline import run as run_once
from benchmarks.sltuner.zipf import flow_of
from examples.city import zipf_delays
from slackwater.runtime.model import NS_PER_SECOND
from slackwater.runtime.plan.traits import Keep
from slackwater.runtime.simulate import CostModel

SECONDS, QUICK_SECONDS = 280, 70  # four waves of 70 s, or one
SLACKS_S = (0.5, 1, 2, 3, 4, 5, 6, 7, 8)
JOIN = "congestion"
HIGH_S, LOW_S = 1.0, 0.25
NOISE_S = 0.02
BEYOND_S = 0.1
"""What a row may wait beyond the slack: event time is seen a little later by the clock."""
PAPER = (
    "[ssg] Fig. 2-4 have no figures in their text. It says: with 1,000 ms latency is kept steady, "
    "large thresholds follow the delay; small ones miss events and raise out-of-order tuples"
)

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Threshold:
    """What one threshold made of the run; arrays by second, shape (seconds,).

    Attributes:
        slack_s: the threshold; inf: ready-only.
        latency_s: of the join, [ssg] Eq. 1; nan where it worked off nothing.
        late: out-of-order tuples.
        detected: results that left.
        lost: out-of-order tuples that came too late to be used, of the whole run.
        slack_ready: of the whole run.
        keep: what the join kept its rows by.
    """

    slack_s: float
    latency_s: Floats
    late: Floats
    detected: Floats
    lost: int
    slack_ready: int
    keep: Keep = "slack"

    @property
    def name(self) -> str:
        """What people call it."""
        if np.isinf(self.slack_s):
            return "ready-only"
        return f"{self.slack_s:g} s" + (", by promise" if self.keep == "promise" else "")


def run(options: Options) -> Result:
    """Run every threshold over the same streams."""
    seconds = QUICK_SECONDS if options.quick else SECONDS
    result = Result(
        f"{seconds} s of virtual time; simulated, one stream seed",
        [
            "threshold",
            "high: mean, s",
            "largest, s",
            "low: mean, s",
            "largest, s",
            "detected",
            "out of order",
            "of them lost",
            "slack-ready",
        ],
    )
    lag_s = most_lag_s(seconds, options.seed)
    high, low = lag_s > HIGH_S, lag_s < LOW_S
    low &= np.roll(low, 1) & np.roll(low, -1)  # rows that wait are of the second before
    found = [one_threshold(slack_s, seconds, options.seed) for slack_s in (*SLACKS_S, np.inf)]
    kept = one_threshold(SLACKS_S[0], seconds, options.seed, keep="promise")
    for one in (kept, *found):
        _tell(result, one, high, low)
    result.claims += _claims(found, high, low, float(lag_s.max()))
    result.claims += _claims_of_kept(kept, found)
    result.notes += [
        f"{high.sum()} s of high delay (up to {lag_s.max():.1f} s), {low.sum()} s of low delay",
        PAPER,
        f"drawn: {draw(found, high)}",
    ]
    return result


def most_lag_s(seconds: int, seed: int) -> Floats:
    """Return how late the latest bus of each second of arrival is, s; shape (seconds,)."""
    times_ns = late_city.times(seconds)
    arrival_ns = zipf_delays(times_ns, np.random.default_rng(seed))  # what `flow_of` draws first
    most_ns = np.zeros(seconds)
    second = np.minimum(arrival_ns // NS_PER_SECOND, seconds - 1)
    np.maximum.at(most_ns, second, arrival_ns - times_ns)
    return most_ns / NS_PER_SECOND


def one_threshold(slack_s: float, seconds: int, seed: int, *, keep: Keep = "slack") -> Threshold:
    """Run the flow under one fixed slack; inf: ready-only."""
    experiment = Experiment(
        "ssg-threshold",
        lambda stream_seed, sink: flow_of(stream_seed, sink, seconds=seconds, keep=keep),
        seconds,
        ("node-1", "node-2", "node-3", "node-4"),
        {JOIN: "node-3", "jams": "node-4"},
        CostModel(),
        first_second=0,
    )
    policy = "ready-only" if np.isinf(slack_s) else f"{round(1_000 * slack_s)}ms"
    outcome = run_once(experiment, named(policy), seed=seed)
    latency_s, late = np.full(seconds, np.nan), np.zeros(seconds)
    for sample in outcome.samples:
        if sample.stage == JOIN and sample.second < seconds:
            late[sample.second] = sample.late
            if sample.rows:
                latency_s[sample.second] = sample.latency_ns / NS_PER_SECOND
    check(outcome.events == 2 * 500 * seconds, f"{policy}: {outcome.events} events entered")
    return Threshold(
        slack_s,
        latency_s,
        late,
        outcome.detected,
        outcome.late_dropped,
        _slack_ready(outcome),
        keep,
    )


def _slack_ready(outcome: Outcome) -> int:
    return sum(sample.slack_ready for sample in outcome.samples)


def _tell(result: Result, one: Threshold, high: Bools, low: Bools) -> None:
    figures = {
        "high_mean_s": float(np.nanmean(one.latency_s[high])),
        "high_most_s": float(np.nanmax(one.latency_s[high])),
        "low_mean_s": float(np.nanmean(one.latency_s[low])),
        "low_most_s": float(np.nanmax(one.latency_s[low])),
        "detected": int(one.detected.sum()),
        "late": int(one.late.sum()),
        "lost": one.lost,
        "slack_ready": one.slack_ready,
    }
    result.rows.append([one.name, *figures.values()])
    result.figures[one.name] = figures


def _claims(found: Sequence[Threshold], high: Bools, low: Bools, skew_s: float) -> list[Claim]:
    mean_s = np.array([np.nanmean(one.latency_s[high]) for one in found])
    detected = np.array([one.detected.sum() for one in found])
    late = np.array([one.late.sum() for one in found])
    slack_ready = np.array([one.slack_ready for one in found])
    above = [one for one in found if one.slack_s > skew_s]
    calm_s = np.array([np.nanmean(one.latency_s[low]) for one in found])
    beyond_s = [np.nanmax(one.latency_s) - one.slack_s for one in found if one not in above]
    steady = next(one for one in found if one.slack_s == 1)
    return [
        Claim(
            "latency (high delay) falls from a threshold to the next, s: at most",
            float((mean_s[:-1] - mean_s[1:]).max()),
            "<=",
            NOISE_S,
        ),
        Claim(
            "largest latency beyond the threshold, s, of those below the largest lag",
            float(max(beyond_s)),
            "<=",
            BEYOND_S,
        ),
        Claim(
            "largest latency of ready-only beyond the largest lag, s",
            float(np.nanmax(found[-1].latency_s)) - skew_s,
            "<=",
            BEYOND_S,
        ),
        Claim(
            "with 1 s: spread of the latency over seconds of high delay, s",
            float(np.nanstd(steady.latency_s[high])),
            "<=",
            BEYOND_S,
        ),
        Claim("out-of-order tuples grow by", float(np.diff(late).max()), "<=", 0),
        Claim("slack-ready rows grow by", float(np.diff(slack_ready).max()), "<=", 0),
        Claim("detected events fall by", float((detected[:-1] - detected[1:]).max()), "<=", 0),
        Claim(
            "out-of-order and slack-ready rows above the largest lag",
            float(sum(one.late.sum() + one.slack_ready for one in above)),
            "<=",
            0,
        ),
        Claim(
            "with 0.5 s: out-of-order tuples in seconds of high delay, share of all of them",
            float(found[0].late[high].sum() / max(late[0], 1)),
            ">=",
            0.5,
        ),
        Claim(
            "latency (low delay): spread over all thresholds, s",
            float(np.ptp(calm_s)),
            "<=",
            NOISE_S,
        ),
    ]


def _claims_of_kept(kept: Threshold, found: Sequence[Threshold]) -> list[Claim]:
    """Return what is claimed of the smallest slack where rows are kept by the promise."""
    same, ready_only = found[0], found[-1]
    return [
        Claim(
            f"{kept.name}: results beside ready-only's",
            float(kept.detected.sum() / ready_only.detected.sum()),
            ">=",
            1.0,
        ),
        Claim(f"{kept.name}: out-of-order tuples lost", float(kept.lost), "<=", 0),
        Claim(
            f"{kept.name}: mean latency beyond that of {same.name}, s",
            float(np.nanmean(kept.latency_s) - np.nanmean(same.latency_s)),
            "<=",
            NOISE_S,
        ),
    ]


def draw(found: Sequence[Threshold], high: Bools) -> Path:
    """Draw the three panels over time; return the path of the picture."""
    title = "ssg-threshold: fixed thresholds under the alternating Zipf delay"
    picture = Picture(title, (11.0, 8.0), rows=3, sharex=True)
    titles = ("latency of the join, s", "detected events a second", "out-of-order tuples a second")
    colours = mpl.colormaps["viridis"](np.linspace(0.95, 0.1, len(found)))
    for one, colour in zip(found, colours, strict=True):
        look = {"color": colour, "linewidth": 0.9}
        if one is found[-1]:
            look = {"color": "black", "linewidth": 1.4, "linestyle": "--"}
        series = (one.latency_s, one.detected, one.late)
        for panel, values in zip(picture.panels, series, strict=True):
            panel.plot(np.arange(len(values)), values, label=one.name, **look)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], high.astype(int), [0]))))
    for panel, of_panel in zip(picture.panels, titles, strict=True):
        panel.set_title(of_panel)
        for begin, end in edges.reshape(-1, 2):
            panel.axvspan(begin, end, color="grey", alpha=0.12, linewidth=0)
    label = f"second of the run (simulated); grey: buses over {HIGH_S:g} s late"
    picture.panels[-1].set_xlabel(label)
    return picture.save("ssg-threshold", legend="first", columns=5)
