"""Mace-HC: hill climbing from several starts, within a budget. Source: [mace] Fig. 11."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from slackwater.runtime.errors import SettingError
from slackwater.runtime.foresight.placement.climb import Swaps, hill_climb
from slackwater.runtime.foresight.placement.greedy import greedy
from slackwater.runtime.foresight.placement.hops import fewer_hops
from slackwater.runtime.foresight.placement.moves import Placed, worst_mace_s
from slackwater.runtime.foresight.placement.problem import IntArray, PlacementProblem

__all__ = ["FoundPlacement", "SearchBudget", "mace_hc"]


@dataclass(frozen=True, kw_only=True)
class SearchBudget:
    """Budget of a search. Without a clock, equal seeds give equal placements everywhere.

    Attributes:
        moves: most moves evaluated exactly, in all; the last step may exceed it.
        steps: most steps of one climb; the paper has 10,000.
        starts: most placements to climb from: a greedy one, then random ones.
        patience: number of consecutive starts without a better placement, after which it ends.
        gain: the share of Mace_WC that counts as better.
        clock: returns seconds; read before each step. None if time has no limit.
        seconds: time limit by that clock, from its first reading on.
    """

    moves: int = 200_000
    steps: int = 10_000
    starts: int = 20
    patience: int = 5
    gain: float = 0.001
    clock: Callable[[], float] | None = None
    seconds: float = np.inf

    def __post_init__(self) -> None:
        if min(self.moves, self.steps, self.starts, self.patience) < 1 or not self.seconds > 0:
            raise SettingError(
                f"moves={self.moves}, steps={self.steps}, starts={self.starts}, "
                f"patience={self.patience} and seconds={self.seconds} must be above 0"
            )
        if self.clock is None and np.isfinite(self.seconds):
            raise SettingError(
                f"seconds={self.seconds} needs a clock to count them by; give clock= as well, or "
                "a number of moves"
            )


@dataclass(frozen=True, eq=False, kw_only=True)
class FoundPlacement:
    """Placement that a search found.

    Attributes:
        nodes: shape (m,), the node of each operator.
        mace_s: its Mace_WC, in seconds, computed from scratch.
        evaluated: moves whose outcome was computed exactly.
        bounded: moves that a lower bound of their outcome has ruled out.
        steps: moves and exchanges made.
        starts: placements that were climbed from.
        history: (seconds by the budget's clock or 0, evaluated so far, best Mace_WC so far), each
            time that Mace_WC fell.
    """

    nodes: IntArray
    mace_s: float
    evaluated: int
    bounded: int
    steps: int
    starts: int
    history: tuple[tuple[float, int, float], ...]


def mace_hc(
    problem: PlacementProblem,
    rng: np.random.Generator | int,
    *,
    budget: SearchBudget | None = None,
    swaps: Swaps = "first",
    from_greedy: bool = True,
) -> FoundPlacement:
    """Return the best placement that hill climbing finds.

    Args:
        problem: operators to place on nodes.
        rng: a generator, or its seed.
        budget: when the search ends.
        swaps: when climbs exchange operators; in the paper never.
        from_greedy: whether the first start is greedy; in the paper all are random.
    """
    limit = budget or SearchBudget()
    drawn = np.random.default_rng(rng)
    meter = _Meter(limit)
    best: IntArray | None = None
    best_s, steps, starts, in_vain = np.inf, 0, 0, 0
    while best is None or (
        starts < limit.starts and in_vain < limit.patience and meter.has_budget() and best_s > 0
    ):
        start = greedy(problem, drawn) if from_greedy and not starts else problem.random(drawn)
        placed = Placed(problem, start)
        steps += hill_climb(placed, go_on=meter.begin_climb(), swaps=swaps)
        meter.end_climb(placed)
        starts += 1
        in_vain = 0 if placed.mace_s < best_s * (1 - limit.gain) else in_vain + 1
        if placed.mace_s < best_s:
            best, best_s = placed.nodes, placed.mace_s
    best = fewer_hops(problem, best)
    return meter.found(best, worst_mace_s(problem, best), steps=steps, starts=starts)


class _Meter:
    """Meter of a budget, with the history of the best placement."""

    def __init__(self, budget: SearchBudget) -> None:
        self.history: list[tuple[float, int, float]] = []
        self.evaluated = 0
        self.bounded = 0
        self._budget = budget
        self._began_s = budget.clock() if budget.clock else 0.0

    def has_budget(self, evaluated: int = 0) -> bool:
        """Whether budget is left, with `evaluated` moves beside those of past climbs."""
        return (
            self.evaluated + evaluated < self._budget.moves and self._now_s() < self._budget.seconds
        )

    def begin_climb(self) -> Callable[[Placed], bool]:
        """Return the check that a climb makes before each step."""
        steps = 0

        def go_on(placed: Placed) -> bool:
            nonlocal steps
            self._note(placed)
            steps += 1
            return steps <= self._budget.steps and self.has_budget(placed.evaluated)

        return go_on

    def end_climb(self, placed: Placed) -> None:
        self._note(placed)
        self.evaluated += placed.evaluated
        self.bounded += placed.bounded

    def found(self, nodes: IntArray, mace_s: float, *, steps: int, starts: int) -> FoundPlacement:
        return FoundPlacement(
            nodes=nodes,
            mace_s=mace_s,
            evaluated=self.evaluated,
            bounded=self.bounded,
            steps=steps,
            starts=starts,
            history=tuple(self.history),
        )

    def _note(self, placed: Placed) -> None:
        now_s = placed.mace_s
        if not self.history or now_s < self.history[-1][2]:
            self.history.append((self._now_s(), self.evaluated + placed.evaluated, now_s))

    def _now_s(self) -> float:
        return self._budget.clock() - self._began_s if self._budget.clock else 0.0
