"""Samples of a gate whose writers are known exactly, for what predicts them."""

from __future__ import annotations

import numpy as np

from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import ReleaseRule
from slackwater.runtime.model.subject import Subject
from tests.support.graphs import paths

S = 1_000_000_000
PATHS = paths({"buses": (), "loops": (), "join": ("buses", "loops"), "out": ("join",)}, ["join"])
JOIN, OUT = Subject("join"), Subject("out")
RATE = 500.0


def second(
    k: int,
    *,
    skew_s: float,
    slack_s: float,
    slope: float = 0.2,
    held_s: float = 0.0,
    rest_ms: float = 5.0,
) -> dict[Subject, StageSample]:
    """One second of a join whose buses are so far behind, and of the stages around it.

    Args:
        k: which second.
        skew_s: how far the buses are behind at its end; `slope` is how fast that grows.
        slack_s: the slack during it.
        held_s: how long the oldest row had waited when it began; a lower slack lets it go.
        rest_ms: latency of the other stages.
    """
    wait_s = min(skew_s, slack_s)
    longest_s = max(wait_s, held_s)
    early = 0.0 if skew_s <= slack_s else RATE * min(1.0, (skew_s - slack_s) / max(slope, 1e-9))
    early += RATE * max(held_s - slack_s, 0.0)
    newest_ns = (k + 1) * S
    join = StageSample(
        subject=JOIN,
        second=k,
        latency_ns=int(longest_s * S),
        comm_ns=100_000,
        rows=800,
        slack_ready=int(early),
        rule=ReleaseRule.slack(int(slack_s * S)),
        window_ns=5 * S,
        last_event_ns=newest_ns - int(wait_s * S),
        newest_ns=newest_ns,
        frontier_ns=newest_ns - int(skew_s * S),
        held=int(RATE * wait_s),
        held_ns=int(wait_s * S),
    )
    others = {
        step: StageSample(
            subject=step,
            second=k,
            latency_ns=int(rest_ms * 1e6),
            comm_ns=100_000,
            rows=500,
        )
        for step in (Subject("buses"), Subject("loops"), OUT)
    }
    return {JOIN: join, **others}


def course(
    seconds: int, *, seed: int, first: int = 0, rest_ms: float = 5.0
) -> list[dict[Subject, StageSample]]:
    """Seconds of a run whose skew climbs and falls, and whose slack changes now and then."""
    rng = np.random.default_rng(seed)
    skew_s, slack_s, held_s, run = 0.0, 2.0, 0.0, []
    for k in range(first, first + seconds):
        slope = 0.25 if k % 30 < 20 else -0.5
        skew_s = max(skew_s + slope + 0.03 * rng.standard_normal(), 0.0)
        if k % 5 == 0:
            slack_s = float(rng.uniform(0.0, 6.0))
        of = {"skew_s": skew_s, "slack_s": slack_s, "held_s": held_s, "slope": slope}
        run.append(second(k, **of, rest_ms=rest_ms))
        held_s = min(skew_s, slack_s)
    return run
