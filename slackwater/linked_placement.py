"""A placement for nodes with thin or long links between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from slackwater.prediction import Prediction
from slackwater.runtime.foresight.placement.linked import Crossing, LinkedProblem, climb_linked
from slackwater.runtime.plan.slots import SlotPlace
from slackwater.runtime.simulate import LinkModel
from slackwater.what_if import network_of

__all__ = ["linked_placement", "links_matter"]

LONG_S = 0.01
"""Links that take longer show in what is predicted, however long subintervals are."""
MOVES = 2_000
"""Moves that a climb may look at: half a second or so for a flow of some ten stages."""


def links_matter(link: LinkModel, *, width_s: float) -> bool:
    """Whether links are thin, or so long that a subinterval shows it."""
    models = [link, *link.between.values()]
    longest_ns = max(one.delay_ns + one.jitter_ns for one in models)
    return any(one.bytes_per_s is not None for one in models) or longest_ns / 1e9 > min(
        width_s / 10, LONG_S
    )


def linked_placement(
    made: Prediction,
    slots: Sequence[SlotPlace],
    link: LinkModel,
    starts: Sequence[Mapping[str, str]],
    *,
    seed: int = 0,
) -> dict[str, str]:
    """Return {stage: slot}, the best from these starts and from one slot.

    What was said by hand stays. Source: [mace] §IX-B, §VII-B.
    """
    graph, names = made.sample.graph, [slot.name for slot in slots]
    is_thin = any(one.bytes_per_s is not None for one in (link, *link.between.values()))
    if is_thin and not made.sample.row_bytes:
        return dict(made.plan.slots)  # what rows weigh is not known, and it is not nothing
    number = {name: j for j, name in enumerate(graph.names)}
    place = {name: i for i, name in enumerate(names)}
    node = {name: i for i, name in enumerate(dict.fromkeys(slot.node for slot in slots))}
    hop_s, _ = network_of(link, made.sample).hops_s(slots)
    said = [name for name, by in made.plan.placed_by.items() if by == "placement"]
    pinned = {number[name]: place[made.plan.slots[name]] for name in said}
    problem = LinkedProblem(
        load_s=made.work.load_s,
        capacity=np.ones(len(slots)),
        hosts=np.array([node[slot.node] for slot in slots]),
        crossings=[
            Crossing(
                source=number[feeder],
                target=j,
                sent=made.work.arrivals[feeder] * made.sample.row_bytes.get((feeder, one.name), 0),
            )
            for j, one in enumerate(graph.operators)
            for feeder in dict.fromkeys(one.inputs)
            if feeder in number
        ],
        bytes_per_s={
            (node[a], node[b]): capacity
            for a in node
            for b in node
            if a != b and (capacity := link.of(a, b).bytes_per_s) is not None
        },
        hop_s=np.array([[hop_s.get((a, b), 0.0) for b in names] for a in names]),
        width_s=made.work.width_s,
        pinned=pinned,
    )
    begun = [np.array([place[start[name]] for name in graph.names]) for start in starts]
    together = np.zeros(len(graph.names), dtype=np.intp)
    together[list(pinned)] = list(pinned.values())
    found = climb_linked(problem, [*begun, together], seed, moves=MOVES)
    return {name: names[int(found[j])] for name, j in number.items()}
