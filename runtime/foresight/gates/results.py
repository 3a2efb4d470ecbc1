"""Results of an operator after a gate: times and stimuli. Source: [mace] Def. 2.

| result | leaves | stimulus |
| --- | --- | --- |
| a row of a row (merge, dedupe) | with the row | the row's |
| pairs (join) | with the later row of the two | the later of the two |
| windows (aggregate) | when the gate reaches their end | that of the promise that moved the gate |
| rows on its own time (process) | with the row | the row's or its release's, the later |
| intervals (sessions) | when the gate passes their last row and the gap | that of the promise |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from slackwater.runtime.foresight.gates.release import GateTimes
from slackwater.runtime.foresight.gates.streams import Promises, Rows, gathered
from slackwater.runtime.foresight.query_graph import FloatArray
from slackwater.runtime.model import NS_PER_SECOND

__all__ = ["MOST_WINDOWS", "pairs_of", "time_bound", "windows_of"]

PARTNERS = 33
"""Partners computed for each row, from the oldest in reach to the newest."""
MOST_WINDOWS = 20_000
_MOMENT_S = 1 / NS_PER_SECOND
"""Time from the last moment in a window to its end."""


def pairs_of(left: Rows, right: Rows, within_s: float) -> Rows:
    """Return the pairs of rows within an interval, each for many pairs.

    Args:
        left: rows, and the end of the work on each.
        right: the same for the other side.
        within_s: longest distance in event time, on both sides.
    """
    right = right.take(np.argsort(right.event_s, kind="stable"))
    total = np.concatenate([[0.0], np.cumsum(right.count)])
    low = np.searchsorted(right.event_s, left.event_s - within_s, side="left")
    high = np.searchsorted(right.event_s, left.event_s + within_s, side="right")
    has = high > low
    left, low, high = left.take(has), low[has], high[has]
    shares = np.linspace(0.0, 1.0, PARTNERS)
    places = np.rint(low[:, None] + (high - low - 1)[:, None] * shares).astype(np.int64)
    each = left.count * (total[high] - total[low]) / PARTNERS

    def later(mine: FloatArray, theirs: FloatArray) -> FloatArray:
        return np.maximum(mine[:, None], theirs[places]).ravel()

    leaves_s = later(left.at_s, right.at_s)
    return Rows(
        later(left.event_s, right.event_s),
        later(left.stimulus_s, right.stimulus_s),
        leaves_s,
        leaves_s,
        np.repeat(each, PARTNERS),
    )


def waiting(rows: Rows, gate: GateTimes, *, delay_s: float) -> Rows:
    """Return results of a join that wait for older rows without a partner.

    Args:
        rows: results as they are made.
        gate: the gate of the join.
        delay_s: how far its promise must be past a result.
    """
    passed_s = gate.frontier.reached_s(_whole_ns(rows.event_s + delay_s + _MOMENT_S))
    leaves_s = np.maximum(rows.at_s, passed_s)
    by_promise_s = [came.promises.known_stimulus_s(leaves_s) for came in gate.inputs]
    stimulus_s = np.maximum(rows.stimulus_s, np.max(by_promise_s, axis=0))
    return replace(rows, stimulus_s=stimulus_s, left_s=leaves_s, at_s=leaves_s)


def windows_of(gate: GateTimes, *, slide_s: float, from_s: float) -> Rows:
    """Return the windows that close at a gate, one row for the results of each.

    Args:
        gate: the gate of the aggregate.
        slide_s: time from one window to the next.
        from_s: the last moment in one of them: the event time of its results.
    """
    lasts_s = window_lasts_s(gate.inputs[0].rows, slide_s, from_s)
    closes_s = gate.passed_s(_whole_ns(lasts_s + _MOMENT_S))
    known = np.isfinite(closes_s)
    lasts_s, closes_s = lasts_s[known], closes_s[known]
    stimulus_s = np.max([came.promises.known_stimulus_s(closes_s) for came in gate.inputs], axis=0)
    return Rows(lasts_s, stimulus_s, closes_s, closes_s, np.ones(len(lasts_s)))


def window_lasts_s(rows: Rows, slide_s: float, from_s: float) -> FloatArray:
    """Return the last moments in windows over rows, of at most `MOST_WINDOWS`."""
    if not len(rows.event_s):
        return np.zeros(0)
    first = np.ceil((rows.event_s.min() - from_s) / slide_s)
    last = np.floor((rows.event_s.max() - from_s) / slide_s)
    every = max(1.0, np.ceil((last - first) / MOST_WINDOWS))
    return _whole_ns(np.arange(first, last + 1, every) * slide_s + from_s)


def window_promises(promises: Promises, *, slide_s: float, from_s: float) -> Promises:
    """Return the promises after windows: the last moment in the first open window."""
    # In whole nanoseconds: a promise of exactly the end of a window closes it.
    ahead_ns = np.rint((promises.event_s - from_s) * NS_PER_SECOND)
    turns = np.ceil(ahead_ns / np.rint(slide_s * NS_PER_SECOND))
    lasts_s = _whole_ns(turns * slide_s + from_s)
    moved = lasts_s > np.concatenate([[-np.inf], lasts_s[:-1]])
    return Promises(
        lasts_s[moved], promises.stimulus_s[moved], promises.left_s[moved], promises.at_s[moved]
    )


def _whole_ns(seconds: FloatArray) -> FloatArray:
    """Return times rounded to nanoseconds, so that equal ones compare equal."""
    return np.asarray(np.rint(seconds * NS_PER_SECOND) / NS_PER_SECOND)


def time_bound(gate: GateTimes, worked: Sequence[Rows], *, delay_s: float = 0.0) -> Rows:
    """Return the results that rows make on the operator's own time.

    Without a delay these are the rows, with the stimulus of their release if that is later. Else
    they leave when the gate has passed their time and the delay, with the stimulus of the promise
    that moved it.

    Args:
        gate: the gate of the operator.
        worked: rows of each input.
        delay_s: event time from a row to its result; infinite: the end.
    """
    rows = gathered(worked)
    if delay_s:
        event_s = _whole_ns(rows.event_s + delay_s)
        closes_s = gate.passed_s(event_s + _MOMENT_S)
        known = np.isfinite(closes_s)
        rows, closes_s = rows.take(np.flatnonzero(known)), closes_s[known]
        stimulus_s = [came.promises.known_stimulus_s(closes_s) for came in gate.inputs]
        event_s = rows.event_s if np.isinf(delay_s) else event_s[known]
        return Rows(event_s, np.max(stimulus_s, axis=0), closes_s, closes_s, rows.count)
    released_s = np.concatenate(list(gate.released_s))
    by_promise_s = [came.promises.known_stimulus_s(released_s) for came in gate.inputs]
    return replace(rows, stimulus_s=np.maximum(rows.stimulus_s, np.max(by_promise_s, axis=0)))
