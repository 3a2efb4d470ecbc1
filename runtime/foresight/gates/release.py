"""When a gate lets rows go, from what its inputs send and promise. Source: [ssg] Def. 2.1, 3.1.

```
ready        all inputs have promised nothing older
slack        or the newest event that has come is further ahead than the slack
hold         or it, or one that comes behind it in the order, has waited so long by the clock
late         one that comes behind what has left goes on as it comes
```

What [ssg] does row by row is done here for all rows at once, each by its event time alone: ties
between inputs are taken to be none.
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
    """When a gate does what.

    Attributes:
        inputs: what came, as it was given.
        released_s: for each input shape (k,), when each of its rows leaves; infinite: not within
            what is known.
        frontier: what the gate can promise behind it, and when.
        rule: by which it goes.
    """

    inputs: Sequence[Series]
    released_s: Sequence[FloatArray]
    frontier: Promises
    rule: ReleaseRule

    def passed_s(self, event_s: FloatArray) -> FloatArray:
        """Return when what leaves has come as far as these event times: windows close then."""
        return _leave_s(self.inputs, self.frontier, self.rule, event_s)

    def let_go_stimulus_s(self, released_s: FloatArray) -> FloatArray:
        """Return the earliest stimulus of what comes to the gate just as it lets rows go.

        Args:
            released_s: shape (k,), when; where nothing comes then, the clock does it, and its time
                counts.
        """
        found = np.full(len(released_s), np.inf)
        for one in self.inputs:
            for part in (one.rows, one.promises):
                found = np.minimum(found, _came_then_s(part.at_s, part.stimulus_s, released_s))
        return np.where(np.isfinite(found), found, released_s)


def gate_times(inputs: Sequence[Series], rule: ReleaseRule) -> GateTimes:
    """Return when a gate lets the rows of its inputs go.

    Args:
        inputs: what comes to it, and when.
        rule: ready-only, on arrival, with a slack, in full, with or without a hold.
    """
    frontier = frontier_of([one.promises for one in inputs])
    released = [
        np.maximum(one.rows.at_s, _leave_s(inputs, frontier, rule, one.rows.event_s))
        for one in inputs
    ]
    return GateTimes(inputs, released, frontier, rule)


def frontier_of(inputs: Sequence[Promises]) -> Promises:
    """Return the least that all inputs have promised, as it moves on."""
    times = np.unique(np.concatenate([one.event_s for one in inputs]))
    reached = np.stack([one.reached_s(times) for one in inputs])
    at_s = reached.max(axis=0)
    # It has the newest stimulus of all promises that have come by then.
    stimulus_s = np.max([one.known_stimulus_s(at_s) for one in inputs], axis=0)
    known = np.isfinite(at_s)
    at_s = at_s[known]
    return Promises(times[known], np.maximum.accumulate(stimulus_s[known]), at_s, at_s)


def _leave_s(
    inputs: Sequence[Series], frontier: Promises, rule: ReleaseRule, event_s: FloatArray
) -> FloatArray:
    """Return when a row of these event times may go, if it has come by then."""
    times_s = frontier.reached_s(event_s)
    if rule.lead_ns is None and rule.hold_ns is None:
        return times_s
    if rule.lead_ns is not None:
        lead_s = (rule.lead_ns + 0.5) / NS_PER_SECOND  # as far ahead is not further
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
    """Return the stimulus of what comes exactly then, shape (k,); infinite: nothing does."""
    order = np.lexsort((stimulus_s, at_s))
    places = np.searchsorted(at_s[order], when_s, side="left")
    known_s, known = np.append(at_s[order], np.inf), np.append(stimulus_s[order], np.inf)
    return np.where(known_s[places] == when_s, known[places], np.inf)


def _first_beyond_s(inputs: Sequence[Series], event_s: FloatArray) -> FloatArray:
    """Return when the first row has come that is newer than these event times."""
    came_s = np.concatenate([one.rows.at_s for one in inputs])
    order = np.argsort(came_s, kind="stable")
    newest_s = np.maximum.accumulate(np.concatenate([one.rows.event_s for one in inputs])[order])
    places = np.searchsorted(newest_s, event_s, side="right")
    return np.asarray(np.append(came_s[order], np.inf)[places])


def _held_until_s(inputs: Sequence[Series], event_s: FloatArray, hold_s: float) -> FloatArray:
    """Return when a row as new, or newer, has waited for the whole hold: all before it go too."""
    times_s = np.concatenate([one.rows.event_s for one in inputs])
    came_s = np.concatenate([one.rows.at_s for one in inputs])
    order = np.argsort(times_s, kind="stable")
    earliest_s = np.minimum.accumulate(came_s[order][::-1])[::-1]
    places = np.searchsorted(times_s[order], event_s, side="left")
    return np.asarray(np.append(earliest_s, np.inf)[places] + hold_s)


def delayed(promises: Promises, delay_s: FloatArray | float) -> Promises:
    """Return the promises as they are handed on so much later, in order."""
    at_s = np.maximum.accumulate(promises.at_s + delay_s)
    return replace(promises, at_s=at_s)


def delayed_rows(rows: Rows, delay_s: FloatArray | float) -> Rows:
    """Return the rows as they are handed on so much later."""
    return replace(rows, at_s=rows.at_s + delay_s)
