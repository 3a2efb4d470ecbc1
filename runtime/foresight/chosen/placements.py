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
"""Most moves that a search for a placement evaluates."""
SEARCH_STEPS = 3_000
"""Most subintervals of a search; of more, several of the prediction become one."""
SEARCH_GAIN = 0.01
"""Least relative gain over the simple rule's placement, for a search's placement to be chosen."""
LONG_S = 0.01
"""Delay above which links show in a prediction, however long its subintervals are."""
MOVES = 2_000
"""Most moves of a climb: half a second or so for a flow of some ten stages."""


def found_placement(
    made: Prediction, slots: Sequence[SlotPlace], link: LinkModel, *, seed: int = 0
) -> dict[str, str]:
    """Return {stage: slot} of the best placement that a search finds.

    Args:
        made: prediction of the flow, placed by the simple rule.
        slots: slots that the search may use.
        link: the links between nodes.
        seed: seed of random starts.
    """
    coarse = coarser(made)
    placement = searched_placement(coarse, [slot.name for slot in slots], seed=seed)
    if links_matter(link, width_s=made.work.width_s):
        placement = linked_placement(coarse, slots, link, [made.plan.slots, placement], seed=seed)
    return placement


def searched_placement(made: Prediction, slots: Sequence[str], *, seed: int = 0) -> dict[str, str]:
    """Return {stage: slot} of the least Mace_WC that Mace-HC finds.

    Source: [mace] §IX-B, Fig. 11.
    """
    graph = made.sample.graph
    number = {name: j for j, name in enumerate(graph.names)}
    place = {slot: i for i, slot in enumerate(slots)}
    fixed = [name for name, by in made.plan.placed_by.items() if by == "placement"]
    problem = PlacementProblem(
        load_s=made.work.load_s,
        capacity=np.ones(len(slots)),
        width_s=made.work.width_s,
        pinned={number[name]: place[made.plan.slots[name]] for name in fixed},
        near=[
            (number[name], j)
            for j, operator in enumerate(graph.operators)
            for name in operator.inputs
            if name in number
        ],
    )
    search_result = mace_hc(problem, seed, budget=SearchBudget(moves=SEARCH_MOVES))
    return {name: slots[int(search_result.nodes[j])] for name, j in number.items()}


def coarser(made: Prediction, *, most: int = SEARCH_STEPS) -> Prediction:
    """Return a prediction in at most `most` subintervals, for a search."""
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
    """Whether links have a capacity, or a delay that a subinterval shows."""
    models = [link, *link.between.values()]
    longest_ns = max(model.delay_ns + model.jitter_ns for model in models)
    return any(model.bytes_per_s is not None for model in models) or longest_ns / 1e9 > min(
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

    Stages that the user placed stay. Source: [mace] §IX-B, §VII-B.
    """
    graph, names = made.sample.graph, [slot.name for slot in slots]
    is_thin = any(model.bytes_per_s is not None for model in (link, *link.between.values()))
    if is_thin and not made.sample.row_bytes:
        return dict(made.plan.slots)  # the bytes of rows are unknown, but not zero
    number = {name: j for j, name in enumerate(graph.names)}
    place = {name: i for i, name in enumerate(names)}
    node = {name: i for i, name in enumerate(dict.fromkeys(slot.node for slot in slots))}
    hop_s, _ = network_of(link, made.sample).hops_s(slots)
    fixed = [name for name, by in made.plan.placed_by.items() if by == "placement"]
    pinned = {number[name]: place[made.plan.slots[name]] for name in fixed}
    problem = LinkedProblem(
        load_s=made.work.load_s,
        capacity=np.ones(len(slots)),
        hosts=np.array([node[slot.node] for slot in slots]),
        crossings=[
            Crossing(
                source=number[feeder],
                target=j,
                sent=made.work.arrivals[feeder]
                * made.sample.row_bytes.get((feeder, reader.name), 0),
            )
            for j, reader in enumerate(graph.operators)
            for feeder in dict.fromkeys(reader.inputs)
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
    nodes = climb_linked(problem, [*begun, together], seed, moves=MOVES)
    return {name: names[int(nodes[j])] for name, j in number.items()}


def better_of(rule: Prediction, search: Prediction) -> Prediction:
    """Return the prediction with the lower worst latency; of equal ones, the rule's."""
    both = {"simple rule": rule, "search": search}
    each = {way: float("inf") if made.is_behind else made.worst_s for way, made in both.items()}
    # A growing backlog is worse than a gate that holds rows, which never count.
    mine, other = ((made.is_behind, made.estimate.is_held) for made in both.values())
    is_less = each["search"] < each["simple rule"] * (1 - SEARCH_GAIN)
    is_better = other < mine or (other == mine and is_less)
    considered = {way: made.compared_s for way, made in both.items()}
    return replace(search if is_better else rule, considered=considered)
