"""Branch and bound among rewritten plans: filter by filter, the lowest bound first.

```
                      bound 3.1: late, busy undecided
          ┌──────────────────┼──────────────────┐
   late at its place   late before jams   late before loops      a child for each place of `late`
      bound 4.0           bound 3.1          bound 5.2           5.2: cut, as a plan costs 4.8
```

A node of the tree has decided the places of some filters. Its bound is the cost of the plan in
which all other filters stand as far upstream as they can, and cost nothing: no plan below it costs
less, if fewer rows never cost more. Source: [mace] §IX-A; branch and bound, its [27].
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import count

from slackwater.runtime.expressions.inside import never_fails
from slackwater.runtime.plan.step import ChoosingStep, filters_among
from slackwater.runtime.rewrite.moves import FlowPlan, Share, rewrites_of, split_all

__all__ = ["Cost", "Price", "SearchResult", "far_up", "search_plans"]

Cost = tuple[float, ...]
"""Cost of a plan: numbers compared from the first on; less is better."""
Price = Callable[[FlowPlan, Collection[str]], Cost]
"""(plan, filters that cost nothing) -> cost of the plan."""


@dataclass(frozen=True)
class SearchResult:
    """Result of a search.

    Attributes:
        plans: the best plans, the best first, each with its cost.
        priced: number of plans that were priced.
        cut: number of nodes that were cut, as no plan below them could be better.
        is_whole: whether all plans were priced or cut; False if the budget was spent.
    """

    plans: tuple[tuple[Cost, FlowPlan], ...]
    priced: int
    cut: int
    is_whole: bool


def far_up(plan: FlowPlan) -> FlowPlan:
    """Return a plan with all filters split and moved as far upstream as possible.

    It is not the best plan: an expensive filter costs most there. But there filters see the most
    rows, above all the filters that saw the fewest, furthest from the sources.
    """
    plan = split_all(plan)
    for atom in _in_order(plan):
        while (made := next(_rewrites_up(plan, atom), None)) is not None:
            plan = made
    return plan


def _rewrites_up(plan: FlowPlan, atom: str) -> Iterator[FlowPlan]:
    # A rewrite that merely divides the filter by sides does not move it up.
    for rewrite, made in rewrites_of(plan, of=_standing_for(plan, (atom,))):
        own = [name for name in rewrite.filters if atom in plan.atoms_of(name)]
        feeds = plan.graph.steps[own[0]].inputs[0]
        if isinstance(rewrite, Share) or atom not in plan.atoms_of(feeds):
            yield made


def _in_order(plan: FlowPlan) -> list[str]:
    return [step.name for step in filters_among(plan.graph.steps.values())]


def search_plans(
    start: FlowPlan, price: Price, *, keep: int = 3, budget: int = 2_000
) -> SearchResult:
    """Return the cheapest rewritten plans of a flow; ties go to fewer rewrites.

    Args:
        start: the flow; its filters are split first.
        price: fewer rows must never cost more, or better plans may be cut.
        keep: number of plans to return, >= 1.
        budget: most plans to price.
    """
    search = _Search(price, keep, budget)
    begin = split_all(start)
    search.grow(begin, _order_of(begin))
    return search.result()


class _Search:
    def __init__(self, price: Price, keep: int, budget: int) -> None:
        self._price, self._keep, self._budget = price, keep, budget
        self._best: list[tuple[Cost, int, FlowPlan]] = []
        self._tried: set[object] = set()
        self._number = count()
        self._cut = 0
        self._priced = 0

    def grow(self, begin: FlowPlan, atoms: tuple[str, ...]) -> None:
        """Search the tree; `atoms` are the filters to place, in this order."""
        self._waiting = [(self._bound(begin, atoms), next(self._number), begin, atoms)]
        while self._waiting and self._priced < self._budget:
            bound, _, plan, undecided = heapq.heappop(self._waiting)
            if self._is_hopeless(bound):
                self._cut += 1 + len(self._waiting)  # no other node has a lower bound
                self._waiting.clear()
            elif not undecided:
                self._take(bound, plan)
            else:
                self._branch(plan, undecided)

    def _branch(self, plan: FlowPlan, undecided: tuple[str, ...]) -> None:
        atom, *rest = undecided
        for child in _places(plan, atom):
            key = (_key(child), tuple(rest))
            if key in self._tried:
                continue
            self._tried.add(key)
            bound = self._bound(child, tuple(rest))
            if self._is_hopeless(bound):
                self._cut += 1
            else:
                heapq.heappush(self._waiting, (bound, next(self._number), child, tuple(rest)))

    def _bound(self, plan: FlowPlan, undecided: tuple[str, ...]) -> Cost:
        self._priced += 1
        if not undecided:
            return (*self._price(plan, ()), float(len(plan.rewrites)))
        hoped, free = _far_up(plan, frozenset(undecided))
        return (*self._price(hoped, free), 0.0)

    def _is_hopeless(self, bound: Cost) -> bool:
        return len(self._best) == self._keep and bound >= self._best[-1][0]

    def _take(self, cost: Cost, plan: FlowPlan) -> None:
        self._best = sorted([*self._best, (cost, next(self._number), plan)], key=_first_two)
        del self._best[self._keep :]

    def result(self) -> SearchResult:
        """Return the best plans so far."""
        plans = tuple((cost, plan) for cost, _, plan in self._best)
        return SearchResult(plans, self._priced, self._cut, is_whole=not self._waiting)


def _first_two(entry: tuple[Cost, int, FlowPlan]) -> tuple[Cost, int]:
    return entry[0], entry[1]


def _order_of(plan: FlowPlan) -> tuple[str, ...]:
    """Return the filters in the order in which they are placed.

    A filter that may refuse a row's value never moves before another filter; so such filters come
    first, while the others are out of their way. Then in order from the sources.
    """
    filters = filters_among(plan.graph.steps.values())
    return tuple(
        step.name
        for step in sorted(filters, key=lambda step: never_fails(step.predicate, step.schema))
    )


def _places(plan: FlowPlan, atom: str) -> Iterator[FlowPlan]:
    """Yield the plan, and all plans that differ by moving this filter alone."""
    tried, waiting = {_key(plan)}, [plan]
    for reached in waiting:  # the list grows in the loop
        yield reached
        for _, made in rewrites_of(reached, of=_standing_for(reached, (atom,))):
            if _key(made) not in tried:
                tried.add(_key(made))
                waiting.append(made)


def _far_up(plan: FlowPlan, atoms: Collection[str]) -> tuple[FlowPlan, frozenset[str]]:
    while (further := _further_up(plan, atoms)) is not None:
        plan = further
    is_theirs = _standing_for(plan, atoms)
    return plan, frozenset(filter(is_theirs, plan.graph.steps))


def _further_up(plan: FlowPlan, atoms: Collection[str]) -> FlowPlan | None:
    """Return the plan with one of these filters further upstream; None if none can move.

    On its way it may pass others of these filters.
    """
    is_theirs = _standing_for(plan, atoms)
    for name in filter(is_theirs, plan.graph.steps):
        further = plan
        while True:
            made = next(rewrites_of(further, of=name.__eq__), None)
            if made is None:
                break
            rewrite, further = made
            if isinstance(rewrite, Share) or not is_theirs(rewrite.past):
                return further
    return None


def _standing_for(plan: FlowPlan, atoms: Collection[str]) -> Callable[[str], bool]:
    """Return a test whether a step is a filter that stands for one of these."""
    steps = plan.graph.steps

    def is_theirs(name: str) -> bool:
        own = plan.atoms_of(name)
        return isinstance(steps[name], ChoosingStep) and any(atom in atoms for atom in own)

    return is_theirs


def _key(plan: FlowPlan) -> object:
    return tuple((step.name, step.inputs) for step in plan.graph.steps.values())
