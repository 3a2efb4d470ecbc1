"""What is known at the end of a second of a gate, to say what the next one brings under a slack.

Two sets of features: those of [ssg] Eq. 6, and ours, which add what the gate itself shows: how far
its writers are apart, whether that grows, and what `forecast.next_second` makes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np

from slackwater.runtime.measure.samples import StageSample
from slackwater.runtime.model import NS_PER_SECOND, START_NS
from slackwater.runtime.tune.predict.forecast import FloatArray, GateStates, next_second

OURS = (
    *("slack", "slack up to the skew", "wait forecast", "slack-ready forecast"),
    *("skew", "slope over 1 s", "slope over 4 s"),
    *("excess of skew", "change of slack", "latency", "held for", "rows", "slack-ready"),
)
"""The names of our features, in the order of their columns; lengths in seconds."""
PAPERS = ("slack", "hour", "minute", "second", "readers", "window")
"""Those of Eq. 6."""

FAR_S, NEAR_S = 30, 4
"""Over how many seconds the speed of event time and the slope of the skew are taken."""
LEAST_SPEED = 0.01
"""Event time that stands still is taken to go on as slowly as this."""
MOST_S = 3_600.0
"""Waits and slacks are cut here."""

_COLUMNS = (
    *("skew", "slope", "far_slope", "speed", "held_s", "held", "latency", "rows", "slack_ready"),
    *("slack", "hour", "minute", "second", "readers", "window"),
)


@dataclass(frozen=True)
class Moments:
    """A gate at the ends of n seconds, and the slack of the second after each.

    Attributes:
        states: shape (n, columns), what was known.
        slack_s: shape (n,), the slack of the next second; infinite: ready-only.
    """

    states: FloatArray
    slack_s: FloatArray

    def ours(self) -> FloatArray:
        """Return our features, shape (n, len(OURS))."""
        of = dict(zip(_COLUMNS, self.states.T, strict=True))
        gates = GateStates(of["skew"], of["slope"], of["speed"], of["held_s"], of["held"])
        slack_s = np.minimum(self.slack_s, MOST_S)
        wait_s, early = next_second(gates, slack_s)
        ahead_s = np.maximum(of["skew"] + of["slope"], 0.0)
        # A slack beyond the skew does as much as the skew: [ssg] §3.
        felt_s = np.minimum(slack_s, np.maximum(ahead_s, of["skew"]))
        plain_s = np.where(np.isfinite(self.slack_s), slack_s, of["skew"])
        before_s = np.minimum(of["slack"], np.maximum(ahead_s, of["skew"]))
        return np.column_stack(
            (
                *(plain_s, felt_s, np.minimum(wait_s, MOST_S), early),
                *(of["skew"], of["slope"], of["far_slope"]),
                *(np.maximum(ahead_s - slack_s, 0.0), felt_s - before_s),
                *(of["latency"], of["held_s"], of["rows"], of["slack_ready"]),
            )
        )

    def papers(self) -> FloatArray:
        """Return the features of Eq. 6, shape (n, len(PAPERS)); ready-only has the slack of skew.

        Hour, minute and second are of the last event worked off by then.
        """
        of = dict(zip(_COLUMNS, self.states.T, strict=True))
        slack_s = np.where(np.isfinite(self.slack_s), self.slack_s, of["skew"])
        names = ("hour", "minute", "second", "readers", "window")
        return np.column_stack((slack_s, *(of[name] for name in names)))


@dataclass(frozen=True)
class Examples(Moments):
    """Moments, and what came of each.

    Attributes:
        second: shape (n,), which second followed.
        latency_s: shape (n,), its latency_op and comm; NaN where nothing was worked off.
        wait_s: shape (n,), the same or, if longer, how long the oldest row had waited at its end.
        slack_ready: shape (n,), slrTuples.
    """

    second: FloatArray
    latency_s: FloatArray
    wait_s: FloatArray
    slack_ready: FloatArray

    def last(self) -> Examples:
        """Return the last one alone; nothing of nothing."""
        return Examples(*(getattr(self, one.name)[-1:] for one in fields(self)))


def examples(samples: Sequence[StageSample]) -> Examples:
    """Return every second of one gate whose second before is there too.

    Args:
        samples: of one stage, by seconds; where they step back, or leave one out, a new run
            begins, or the one that goes on has a gap: nothing is learned across either.
    """
    run: list[StageSample] = []
    states, after = [], []
    for before, now in pairwise(samples):
        if not run or run[-1] is not before:
            run = [before]
        if now.second != before.second + 1:
            run = []
            continue
        states.append(state(run))
        after.append(now)
        run = [*run[-FAR_S:], now]
    table = np.array(states, dtype=np.float64).reshape(len(states), len(_COLUMNS))
    wait_s = [_seconds(max(one.latency_ns, one.held_ns) + one.comm_ns) for one in after]
    return Examples(
        table,
        np.array([felt_slack_s(one, speed_of(s)) for one, s in zip(after, states, strict=True)]),
        np.array([float(one.second) for one in after]),
        np.array([_seconds(s.took_ns) if s.rows else np.nan for s in after]),
        np.array(wait_s),
        np.array([float(one.slack_ready) for one in after]),
    )


def state(run: Sequence[StageSample]) -> list[float]:
    """Return what is known at the end of the last of some seconds in a row, in `_COLUMNS`."""
    now = run[-1]
    before = run[-2] if len(run) > 1 else now
    near, far = run[-min(len(run), NEAR_S + 1)], run[-min(len(run), FAR_S + 1)]
    day_s = (now.last_event_ns // NS_PER_SECOND) % 86_400 if now.last_event_ns > START_NS else 0
    skew_s = _skew_s(now)
    speed = _speed(far, now)
    slack_s = felt_slack_s(now, speed)
    return [
        skew_s,
        skew_s - _skew_s(before),
        (skew_s - _skew_s(near)) / max(now.second - near.second, 1),
        speed,
        _seconds(now.held_ns),
        float(now.held),
        _seconds(now.took_ns),
        float(now.rows),
        float(now.slack_ready),
        min(slack_s, MOST_S),
        float(day_s // 3_600),
        float(day_s // 60 % 60),
        float(day_s % 60),
        float(now.readers),
        _seconds(now.window_ns),
    ]


def settle(states: FloatArray, slack_s: FloatArray) -> FloatArray:
    """Return states a second later, as if the slack of each, shape (n,), had held all along.

    Args:
        states: shape (n, columns).
        slack_s: of event time.
    """
    at = {name: place for place, name in enumerate(_COLUMNS)}
    later = states.copy()
    held_s = states[:, at["held_s"]]
    skew_s = np.maximum(states[:, at["skew"]] + states[:, at["slope"]], 0.0)
    may_wait_s = np.minimum(slack_s, skew_s) / states[:, at["speed"]]
    stays_s = np.minimum(held_s + 1.0, may_wait_s)
    share = np.divide(stays_s, held_s, out=np.ones_like(held_s), where=held_s > 0)
    later[:, at["skew"]] = skew_s
    later[:, at["held_s"]] = stays_s
    later[:, at["held"]] *= share
    later[:, at["latency"]] = np.minimum(states[:, at["latency"]], stays_s)
    later[:, at["slack"]] = np.minimum(slack_s, MOST_S)
    return later


def held_seconds(known: Sequence[float]) -> float:
    """Return how long the oldest row has waited, of what `state` gave."""
    return known[_COLUMNS.index("held_s")]


def speed_of(known: Sequence[float]) -> float:
    """Return how fast event time runs, of what `state` gave."""
    return known[_COLUMNS.index("speed")]


def felt_slack_s(sample: StageSample, speed: float) -> float:
    """Return the slack of a second, or what its hold by the clock is in event time if less."""
    slack_s, hold_ns = slack_seconds(sample.rule.lead_ns), sample.rule.hold_ns
    return slack_s if hold_ns is None else min(slack_s, _seconds(hold_ns) * speed)


def jump_s(two: Sequence[StageSample]) -> float:
    """Return how far event time ran ahead of the clock from a second to the one after it.

    0 where they do not follow each other, or at the first events.
    """
    if len(two) < 2 or two[1].second != two[0].second + 1 or two[0].newest_ns == START_NS:
        return 0.0
    return _seconds(two[1].newest_ns - two[0].newest_ns) - 1.0


def slack_seconds(lead_ns: int | None) -> float:
    """Return a slack in seconds; ready-only is infinite, on arrival none."""
    return np.inf if lead_ns is None else max(_seconds(lead_ns), 0.0)


def _speed(far: StageSample, now: StageSample) -> float:
    if now.second == far.second or far.newest_ns == START_NS:
        return 1.0
    return max((now.newest_ns - far.newest_ns) / 1e9 / (now.second - far.second), LEAST_SPEED)


def _skew_s(sample: StageSample) -> float:
    if sample.frontier_ns == START_NS:  # nothing has come yet
        return 0.0
    return min(_seconds(sample.skew_ns), MOST_S)


def _seconds(ns: int) -> float:
    return ns / NS_PER_SECOND
