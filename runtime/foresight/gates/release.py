"""Release times of a gate, from its inputs' rows and promises. [ssg] Def. 2.1, 3.1.

```
ready        all inputs have promised nothing older
slack        or the newest event so far is further ahead than the slack
hold         or the row, or one after it in the order, has waited that long by the clock
late         a row older than rows that have left leaves on arrival
```

[ssg] releases row by row; here all rows are computed at once, each by its event time alone: ties
between inputs are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from slackwater.runtime.foresight.gates.streams import Promises, Rows, Series
from slackwater.runtime.foresight.query_graph import FloatArray
from slackwater.runtime.model import NS_PER_SECOND, ReleaseRule

__all__ = ["GateTimes", "gate_times"]


@dataclass(frozen=True, eq=False)
class GateTimes:
    """Release times of a gate.

    Attributes:
        inputs: its rows and promises, as they were given.
        released_s: an array for each input, shape (k,): release of each of its rows; infinite:
            after all known times.
        frontier: promises that the gate can pass on.
        rule: its release rule.
    """

    inputs: Sequence[Series]
    released_s: Sequence[FloatArray]
    frontier: Promises
    rule: ReleaseRule

    def passed_s(self, event_s: FloatArray) -> FloatArray:
        """Return when the gate's output reaches these event times: windows close then."""
        return _leave_s(self.inputs, self.frontier, self.rule, event_s)

    def release_stimulus_s(self, released_s: FloatArray) -> FloatArray:
        """Return the earliest stimulus of the arrivals that make the gate release rows.

        Args:
            released_s: shape (k,), release times; without an arrival then, the clock releases rows,
                and its time counts.
        """
        earliest_s = np.full(len(released_s), np.inf)
        for came in self.inputs:
            for part in (came.rows, came.promises):
                then_s = _came_then_s(part.at_s, part.stimulus_s, released_s)
                earliest_s = np.minimum(earliest_s, then_s)
        return np.where(np.isfinite(earliest_s), earliest_s, released_s)


def gate_times(inputs: Sequence[Series], rule: ReleaseRule) -> GateTimes:
    """Return the release times of a gate.

    Args:
        inputs: its rows and promises.
        rule: ready-only, on arrival, with a slack, in full, with or without a hold.
    """
    frontier = frontier_of([came.promises for came in inputs])
    released = [
        np.maximum(came.rows.at_s, _leave_s(inputs, frontier, rule, came.rows.event_s))
        for came in inputs
    ]
    return GateTimes(inputs, released, frontier, rule)


def frontier_of(inputs: Sequence[Promises]) -> Promises:
    """Return the least promise of all inputs, as it moves on."""
    times = np.unique(np.concatenate([promises.event_s for promises in inputs]))
    reached = np.stack([promises.reached_s(times) for promises in inputs])
    at_s = reached.max(axis=0)
    # Its stimulus is the newest of all promises so far.
    stimulus_s = np.max([promises.known_stimulus_s(at_s) for promises in inputs], axis=0)
    known = np.isfinite(at_s)
    at_s = at_s[known]
    return Promises(times[known], np.maximum.accumulate(stimulus_s[known]), at_s, at_s)


def _leave_s(
    inputs: Sequence[Series], frontier: Promises, rule: ReleaseRule, event_s: FloatArray
) -> FloatArray:
    """Return the earliest release of rows of these event times, if they have arrived."""
    times_s = frontier.reached_s(event_s)
    if rule.lead_ns is None and rule.hold_ns is None:
        return times_s
    if rule.lead_ns is not None:
        lead_s = (
            rule.lead_ns + 0.5
        ) / NS_PER_SECOND  # a newest event exactly at the slack releases no row
        newest_s = _first_beyond_s(inputs, event_s + lead_s)
        if rule.waits_in_full:
            ended = frontier.event_s == np.inf
            end_s = float(frontier.at_s[ended][0]) if ended.any() else np.inf
            times_s = np.minimum(newest_s, end_s)
        else:
            times_s = np.minimum(times_s, newest_s)
    if rule.hold_ns is not None:
        times_s = np.minimum(times_s, _held_until_s(inputs, event_s, rule.hold_ns / NS_PER_SECOND))
    return times_s


def _came_then_s(at_s: FloatArray, stimulus_s: FloatArray, when_s: FloatArray) -> FloatArray:
    """Return the stimulus of an arrival exactly then, shape (k,); infinite: no arrival."""
    order = np.lexsort((stimulus_s, at_s))
    places = np.searchsorted(at_s[order], when_s, side="left")
    known_s, known = np.append(at_s[order], np.inf), np.append(stimulus_s[order], np.inf)
    return np.where(known_s[places] == when_s, known[places], np.inf)


def _first_beyond_s(inputs: Sequence[Series], event_s: FloatArray) -> FloatArray:
    """Return the arrivals of the first rows newer than these event times."""
    came_s = np.concatenate([came.rows.at_s for came in inputs])
    order = np.argsort(came_s, kind="stable")
    newest_s = np.maximum.accumulate(np.concatenate([came.rows.event_s for came in inputs])[order])
    places = np.searchsorted(newest_s, event_s, side="right")
    return np.asarray(np.append(came_s[order], np.inf)[places])


def _held_until_s(inputs: Sequence[Series], event_s: FloatArray, hold_s: float) -> FloatArray:
    """Return when a row of these event times, or newer, has waited enough."""
    times_s = np.concatenate([came.rows.event_s for came in inputs])
    came_s = np.concatenate([came.rows.at_s for came in inputs])
    order = np.argsort(times_s, kind="stable")
    earliest_s = np.minimum.accumulate(came_s[order][::-1])[::-1]
    places = np.searchsorted(times_s[order], event_s, side="left")
    return np.asarray(np.append(earliest_s, np.inf)[places] + hold_s)


def delayed(promises: Promises, delay_s: FloatArray | float) -> Promises:
    """Return the promises with a delay, in order."""
    at_s = np.maximum.accumulate(promises.at_s + delay_s)
    return replace(promises, at_s=at_s)


def delayed_rows(rows: Rows, delay_s: FloatArray | float) -> Rows:
    """Return the rows with a delay."""
    return replace(rows, at_s=rows.at_s + delay_s)
