"""Placement of a flow by a search, which counts thin and long links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from slackwater.runtime.foresight import Workload
from slackwater.runtime.foresight.placement import PlacementProblem, SearchBudget, mace_hc
from slackwater.runtime.foresight.placement.linked import Crossing, LinkedProblem, climb_linked
from slackwater.runtime.foresight.predicted.prediction import Prediction
from slackwater.runtime.foresight.predicted.what_if import network_of
from slackwater.runtime.foresight.query_graph import FloatArray
from slackwater.runtime.plan.slots import SlotPlace
from slackwater.runtime.simulate import LinkModel

__all__ = [
    "better_of",
    "coarser",
    "found_placement",
    "linked_placement",
    "links_matter",
    "searched_placement",
]

SEARCH_MOVES = 20_000
"""Moves that a search for a placement may look at."""
SEARCH_STEPS = 3_000
"""Subintervals that a search looks at, each of several of the prediction where there are more."""
SEARCH_GAIN = 0.01
"""A found placement has to be so much better than the simple rule's to be taken."""
LONG_S = 0.01
"""Links that take longer show in what is predicted, however long subintervals are."""
MOVES = 2_000
"""Moves that a climb may look at: half a second or so for a flow of some ten stages."""


def found_placement(
    made: Prediction, slots: Sequence[SlotPlace], link: LinkModel, *, seed: int = 0
) -> dict[str, str]:
    """Return {stage: slot} of the best placement that a search finds.

    Args:
        made: of the flow, as the simple rule places it.
        slots: those that the search may use.
        link: what lies between nodes.
        seed: of what is drawn.
    """
    looked_at = coarser(made)
    found = searched_placement(looked_at, [slot.name for slot in slots], seed=seed)
    if links_matter(link, width_s=made.work.width_s):
        found = linked_placement(looked_at, slots, link, [made.plan.slots, found], seed=seed)
    return found


def searched_placement(made: Prediction, slots: Sequence[str], *, seed: int = 0) -> dict[str, str]:
    """Return {stage: slot} of the least Mace_WC that Mace-HC finds.

    Source: [mace] §IX-B, Fig. 11.
    """
    graph = made.sample.graph
    number = {name: j for j, name in enumerate(graph.names)}
    place = {slot: i for i, slot in enumerate(slots)}
    said = [name for name, by in made.plan.placed_by.items() if by == "placement"]
    problem = PlacementProblem(
        load_s=made.work.load_s,
        capacity=np.ones(len(slots)),
        width_s=made.work.width_s,
        pinned={number[name]: place[made.plan.slots[name]] for name in said},
        near=[
            (number[name], j)
            for j, one in enumerate(graph.operators)
            for name in one.inputs
            if name in number
        ],
    )
    found = mace_hc(problem, seed, budget=SearchBudget(moves=SEARCH_MOVES))
    return {name: slots[int(found.nodes[j])] for name, j in number.items()}


def coarser(made: Prediction, *, most: int = SEARCH_STEPS) -> Prediction:
    """Return a prediction in at most so many subintervals, for a search."""
    work = made.work
    d = work.load_s.shape[1]
    each = -(-d // most)
    if each == 1:
        return made

    def summed(counts: FloatArray) -> FloatArray:
        return np.add.reduceat(counts, np.arange(0, d, each), axis=-1)

    arrivals = {name: summed(counts) for name, counts in work.arrivals.items()}
    return replace(made, work=Workload(work.width_s * each, arrivals, summed(work.load_s)))


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


def better_of(rule: Prediction, search: Prediction) -> Prediction:
    """Return the one with the lower worst latency, the rule's where they are alike."""
    both = {"simple rule": rule, "search": search}
    each = {way: float("inf") if one.is_behind else one.worst_s for way, one in both.items()}
    # One that falls behind is worse than one in which a gate holds rows that never count.
    mine, its = ((one.is_behind, one.estimate.is_held) for one in both.values())
    is_less = each["search"] < each["simple rule"] * (1 - SEARCH_GAIN)
    is_better = its < mine or (its == mine and is_less)
    told = {way: one.compared_s for way, one in both.items()}
    return replace(search if is_better else rule, considered=told)
