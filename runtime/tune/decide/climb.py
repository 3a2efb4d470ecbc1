"""Greedy hill climbing for slacks: fewest slack-ready events within the deadline.

Source: [ssg] §5.2.3. Differs: a step may raise a slack to any value of its grid, not only to the
next one, since slack-ready events stay as many until a slack passes the skew, and then are few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from slackwater.runtime.model import Int64Array
from slackwater.runtime.model.subject import Subject

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Options:
    """Predicted effects of one gate's slacks; all of shape (m,), slacks ascending.

    Attributes:
        slacks_ns: the grid.
        latency_ns: latency_op expected under each.
        deviation_ns: standard deviation of that latency.
        slack_ready: rows a second expected under each.
    """

    slacks_ns: Int64Array
    latency_ns: FloatArray
    deviation_ns: FloatArray
    slack_ready: FloatArray


def climb(
    options: Mapping[Subject, Options],
    start: Mapping[Subject, int],
    *,
    latency_ns: Callable[[Mapping[Subject, float], Mapping[Subject, float]], float],
    deadline_ns: float,
) -> dict[Subject, int]:
    """Return {gate: place in its grid} of the slacks to set.

    Each step raises the slack that removes the most slack-ready events, to the smallest value that
    does; among equals the raise that costs the least latency. When no raise removes any, the rest
    of the deadline goes to the gates in turn: it costs nothing now, and the skew may grow.

    Args:
        options: {gate: its grid and predictions}.
        start: {gate: place to begin with}.
        latency_ns: ({gate: latency}, {gate: deviation}) -> latency expected of the flow, [ssg]
            Eq. 2, with the margin for the deviations.
        deadline_ns: largest latency that is allowed.
    """
    places = dict(start)

    def is_allowed(gate: Subject, place: int) -> bool:
        return latency_ns(*chosen(options, places | {gate: place})) <= deadline_ns

    def raises(gate: Subject) -> list[int]:
        # One by one: a model's latency need not grow with the slack everywhere.
        above = range(places[gate] + 1, len(options[gate].slacks_ns))
        return [place for place in above if is_allowed(gate, place)]

    while True:
        moves = []
        for gate, option in options.items():
            here, ready = places[gate], option.slack_ready.round(3)
            place = min([here, *raises(gate)], key=ready.__getitem__)  # the lowest among equals
            if ready[place] < ready[here]:
                more_ns = float(option.latency_ns[place] - option.latency_ns[here])
                moves.append((float(ready[place] - ready[here]), more_ns, gate, place))
        if not moves:
            break
        _, _, gate, place = min(moves)
        places[gate] = place
    before: dict[Subject, int] = {}
    while before != places:  # a raise of one gate may make room for another
        before = dict(places)
        for gate in options:
            places[gate] = max([places[gate], *raises(gate)])
    return places


def chosen(
    options: Mapping[Subject, Options], places: Mapping[Subject, int]
) -> tuple[dict[Subject, float], dict[Subject, float]]:
    """Return ({gate: latency}, {gate: deviation}) of the chosen places."""
    latency = {gate: float(options[gate].latency_ns[at]) for gate, at in places.items()}
    deviation = {gate: float(options[gate].deviation_ns[at]) for gate, at in places.items()}
    return latency, deviation
