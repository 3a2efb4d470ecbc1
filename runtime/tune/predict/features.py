"""Features of a gate at the end of a second, to predict the next one.

Two sets of features: those of [ssg] Eq. 6, and ours, which add the state of the gate: how far its
writers are apart, whether that grows, and the output of `forecast.next_second`.
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
"""Names of our features, in the order of their columns; times in seconds."""
PAPERS = ("slack", "hour", "minute", "second", "readers", "window")
"""Names of the features of Eq. 6."""

FAR_S, NEAR_S = 30, 4
"""Seconds over which the speed of event time and the slope of the skew are measured."""
LEAST_SPEED = 0.01
"""Least speed: event time that stands still is assumed to run as slowly as this."""
MOST_S = 3_600.0
"""Most seconds of a wait or slack; larger ones are cut."""

_COLUMNS = (
    *("skew", "slope", "far_slope", "speed", "held_s", "held", "latency", "rows", "slack_ready"),
    *("slack", "hour", "minute", "second", "readers", "window"),
)


@dataclass(frozen=True)
class Moments:
    """States of a gate at the ends of n seconds, each with the next slack.

    Attributes:
        states: states of steps, shape (n, columns).
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
        # A slack beyond the skew has the same effect as the skew: [ssg] §3.
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
        """Return the features of Eq. 6, shape (n, len(PAPERS)).

        Ready-only counts as a slack of the skew. Hour, minute and second are those of the last
        event processed by then.
        """
        of = dict(zip(_COLUMNS, self.states.T, strict=True))
        slack_s = np.where(np.isfinite(self.slack_s), self.slack_s, of["skew"])
        names = ("hour", "minute", "second", "readers", "window")
        return np.column_stack((slack_s, *(of[name] for name in names)))


@dataclass(frozen=True)
class Examples(Moments):
    """Moments, and the result of the second after each.

    Attributes:
        second: shape (n,), number of the next second.
        latency_s: shape (n,), its latency_op and comm; NaN where no row was processed.
        wait_s: shape (n,), the same or, if longer, the wait of the oldest row at its end.
        slack_ready: shape (n,), slrTuples.
    """

    second: FloatArray
    latency_s: FloatArray
    wait_s: FloatArray
    slack_ready: FloatArray

    def last(self) -> Examples:
        """Return the last example alone; empty if there is no example."""
        return Examples(*(getattr(self, index.name)[-1:] for index in fields(self)))


def examples(samples: Sequence[StageSample]) -> Examples:
    """Return an example for every two consecutive seconds of a gate.

    Args:
        samples: samples of one step, by seconds; where seconds step back or are missing, a new run
            or a gap begins, and no example spans it.
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
    wait_s = [_seconds(max(sample.latency_ns, sample.held_ns) + sample.comm_ns) for sample in after]
    return Examples(
        table,
        np.array(
            [felt_slack_s(sample, speed_of(s)) for sample, s in zip(after, states, strict=True)]
        ),
        np.array([float(sample.second) for sample in after]),
        np.array([_seconds(s.took_ns) if s.rows else np.nan for s in after]),
        np.array(wait_s),
        np.array([float(sample.slack_ready) for sample in after]),
    )


def state(run: Sequence[StageSample]) -> list[float]:
    """Return the state at the end of consecutive seconds, in the order of `_COLUMNS`."""
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
    """Return states a second later, as if each slack had held all along.

    Args:
        states: states of steps, shape (n, columns).
        slack_s: shape (n,), of event time.
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


def held_seconds(features: Sequence[float]) -> float:
    """Return the wait of the oldest row, out of the result of `state`."""
    return features[_COLUMNS.index("held_s")]


def speed_of(features: Sequence[float]) -> float:
    """Return the speed of event time, out of the result of `state`."""
    return features[_COLUMNS.index("speed")]


def felt_slack_s(sample: StageSample, speed: float) -> float:
    """Return the slack of a second, or its hold in event time if less."""
    slack_s, hold_ns = slack_seconds(sample.rule.lead_ns), sample.rule.hold_ns
    return slack_s if hold_ns is None else min(slack_s, _seconds(hold_ns) * speed)


def jump_s(two: Sequence[StageSample]) -> float:
    """Return how far event time ran ahead of the clock between two consecutive seconds.

    0 if they are not consecutive, or at the first events.
    """
    if len(two) < 2 or two[1].second != two[0].second + 1 or two[0].newest_ns == START_NS:
        return 0.0
    return _seconds(two[1].newest_ns - two[0].newest_ns) - 1.0


def slack_seconds(lead_ns: int | None) -> float:
    """Return a slack in seconds; infinite for ready-only, 0 for on arrival."""
    return np.inf if lead_ns is None else max(_seconds(lead_ns), 0.0)


def _speed(far: StageSample, now: StageSample) -> float:
    if now.second == far.second or far.newest_ns == START_NS:
        return 1.0
    return max((now.newest_ns - far.newest_ns) / 1e9 / (now.second - far.second), LEAST_SPEED)


def _skew_s(sample: StageSample) -> float:
    if sample.frontier_ns == START_NS:  # no event has come yet
        return 0.0
    return min(_seconds(sample.skew_ns), MOST_S)


def _seconds(ns: int) -> float:
    return ns / NS_PER_SECOND
