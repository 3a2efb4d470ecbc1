"""Which slacks lose the fewest events' order and keep the deadline: greedy hill climbing.

Source: [ssg] §5.2.3. Differs: a step may raise a slack to any value of its grid, not only to the
next one, since slack-ready events stay as many until a slack passes the skew, and then are few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from slackwater.runtime.model import Int64Array

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Options:
    """What the slacks of one gate would do; all of shape (m,), slacks ascending.

    Attributes:
        slacks_ns: the grid.
        latency_ns: latency_op to be expected under each.
        deviation_ns: how sure that is.
        slack_ready: rows a second to be expected under each.
    """

    slacks_ns: Int64Array
    latency_ns: FloatArray
    deviation_ns: FloatArray
    slack_ready: FloatArray


def climb(
    options: Mapping[str, Options],
    start: Mapping[str, int],
    *,
    latency_ns: Callable[[Mapping[str, float], Mapping[str, float]], float],
    deadline_ns: float,
) -> dict[str, int]:
    """Return {gate: place in its grid} of the slacks to set.

    Each step raises the slack that takes away the most slack-ready events, to the smallest value
    that does; of equals the one that costs the least latency. When no raise takes any away, what
    is left of the deadline goes to the gates in turn: it costs nothing now, and the skew may grow.

    Args:
        options: {gate: its grid and what is expected of it}.
        start: {gate: place to begin with}.
        latency_ns: ({gate: latency}, {gate: deviation}) -> what to expect of the flow, [ssg] Eq. 2,
            with the margin that the deviations ask for.
        deadline_ns: what that may be at most.
    """
    places = dict(start)

    def is_allowed(gate: str, place: int) -> bool:
        return latency_ns(*chosen(options, places | {gate: place})) <= deadline_ns

    def raises(gate: str) -> list[int]:
        # One by one: what a model expects need not grow with the slack everywhere.
        above = range(places[gate] + 1, len(options[gate].slacks_ns))
        return [place for place in above if is_allowed(gate, place)]

    while True:
        moves = []
        for gate, option in options.items():
            here, ready = places[gate], option.slack_ready.round(3)
            place = min([here, *raises(gate)], key=ready.__getitem__)  # the first of equals
            if ready[place] < ready[here]:
                more_ns = float(option.latency_ns[place] - option.latency_ns[here])
                moves.append((float(ready[place] - ready[here]), more_ns, gate, place))
        if not moves:
            break
        _, _, gate, place = min(moves)
        places[gate] = place
    before: dict[str, int] = {}
    while before != places:  # a raise of one may make room for another
        before = dict(places)
        for gate in options:
            places[gate] = max([places[gate], *raises(gate)])
    return places


def chosen(
    options: Mapping[str, Options], places: Mapping[str, int]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return ({gate: latency}, {gate: deviation}) of the places chosen."""
    latency = {gate: float(options[gate].latency_ns[at]) for gate, at in places.items()}
    deviation = {gate: float(options[gate].deviation_ns[at]) for gate, at in places.items()}
    return latency, deviation
