"""[mace] Fig. 13: Mace-HC beside Corr, Random and Baseline, at equal budget; and a lost node.

The budget is the time that Corr takes to an average load correlation of θ = 0.8, or until it
cannot go on (as many exchanges as there are pairs of nodes bring no 0.001 of it), but `MOST_S` at
most: it may creep on for very long.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from benchmarks.frame import Claim, Options, Result, Spread, check, counted
from benchmarks.mace.fig12 import problem as fig12
from benchmarks.mace.lost_node import replace_lost
from benchmarks.mace.lower_bound import mace_lower_bound_s
from benchmarks.mace.placement_rivals import CorrPlacement, best_random, corr
from benchmarks.picture import Picture
from slackwater.runtime.foresight.placement import (
    FoundPlacement,
    Placed,
    PlacementProblem,
    SearchBudget,
    mace_hc,
    worst_mace_s,
)

SCALES, QUICK_SCALES = (1, 5, 20), (1, 5)
THETA = 0.8
MOST_S, QUICK_MOST_S = 60.0, 8.0
BASELINES, QUICK_BASELINES = 1_000, 100
LOST, TURNS = 5, 3
PAPER = (
    "paper, Fig. 13: Mace-HC lowest at each scale, then Corr; Random and Baseline perform badly; "
    "the text gives the order only"
)


@dataclass(frozen=True)
class Contest:
    """What each algorithm came to at one scale; Mace_WC in seconds."""

    scale: int
    bound_s: float
    baseline: Spread
    random_s: float
    randoms: int
    corr: CorrPlacement
    corr_mace_s: float
    corr_took_s: float
    found: FoundPlacement
    found_took_s: float
    as_listed_s: float

    @property
    def after_a_tenth_s(self) -> float:
        """Mace_WC that the search had after a tenth of Corr's time; by chance before its first."""
        early = [best for at, _, best in self.found.history if at <= self.corr_took_s / 10]
        return min(early, default=self.baseline.median)

    @property
    def near_best_s(self) -> float:
        """How long the search took to come within 2 % of the best that it found."""
        return min(at for at, _, best in self.found.history if best <= 1.02 * self.found.mace_s)


@dataclass(frozen=True)
class Loss:
    """A node is lost: how long the answer takes, and its Mace_WC by that of a whole search."""

    took_s: Spread
    cpu_s: Spread
    cold_s: Spread
    ratio: Spread


def run(options: Options) -> Result:
    """Run all algorithms at each scale, then lose nodes at the largest."""
    scales = QUICK_SCALES if options.quick else SCALES
    result = Result(
        f"scales {', '.join(map(str, scales))}; 600 subintervals; one draw of the load of Fig. 12",
        [
            "scale",
            "lower bound",
            "Mace-HC",
            "as listed",
            "Corr",
            "Random",
            "Baseline",
            "budget, s",
            "correlation",
        ],
    )
    found = [
        contest(scale, options)
        for scale in counted(scales, of=len(scales), what="placement, scales")
    ]
    for one in found:
        _tell(result, one)
    last, largest = found[-1], fig12(scales[-1], options.seed)
    rate = moves_per_second(largest, last.found)
    loss = lose_nodes(largest, last.found)
    result.figures |= {
        "moves_evaluated_per_second": rate,
        "lost_node": {
            "took_s": loss.took_s,
            "cpu_s": loss.cpu_s,
            "cold_s": loss.cold_s,
            "ratio": loss.ratio,
        },
    }
    at = f"scale {last.scale}"
    result.claims += [
        Claim(f"{at}: moves evaluated exactly, 1/s", rate.median, ">=", 20_000),
        Claim(f"{at}: a lost node answered, s", loss.took_s.median, "<=", 0.1),
        Claim(f"{at}: its Mace_WC by that of a whole search", loss.ratio.most, "<=", 1.05),
    ]
    search = last.found
    result.notes += [
        PAPER,
        "as listed: moves only, random starts only, as Fig. 11 has it, in the same time",
        f"{at}: in the search itself {search.evaluated / last.found_took_s:,.0f} moves/s are "
        f"evaluated exactly, and {search.bounded / last.found_took_s:,.0f}/s more are ruled out by "
        f"a lower bound; {search.steps} steps from {search.starts} starts",
        f"{at}: lost nodes answered in {loss.took_s} s, {loss.cpu_s} s of them on the CPU, "
        f"with the last search's running sums at hand, {loss.cold_s} s without; Mace_WC × "
        f"{loss.ratio} of a search from the start",
        "Corr: "
        + "; ".join(
            f"scale {one.scale}: {one.corr.exchanges:,} exchanges to {one.corr.correlation:.3f} "
            f"in {one.corr_took_s:.2f} s, θ {'reached' if one.corr.reached else 'not reached'}; "
            f"Mace-HC is within 2 % of its best after {one.near_best_s:.2f} s"
            for one in found
        ),
        f"drawn: {draw(found)}",
    ]
    return result


def contest(scale: int, options: Options) -> Contest:
    """Run all algorithms at one scale, each with a problem of its own: nobody finds sums made."""
    most_s = QUICK_MOST_S if options.quick else MOST_S
    began_s = perf_counter()
    rival = corr(
        fig12(scale, options.seed), theta=THETA, go_on=lambda _: perf_counter() - began_s < most_s
    )
    # Drawing the load is in it; that is a hundredth of a second.
    took_s = perf_counter() - began_s
    budget = SearchBudget(
        moves=10**12, starts=10**6, patience=10**6, clock=perf_counter, seconds=took_s
    )
    began_s = perf_counter()
    found = mace_hc(fig12(scale, options.seed), options.seed, budget=budget)
    found_took_s = perf_counter() - began_s
    judged = fig12(scale, options.seed)
    check(
        abs(worst_mace_s(judged, found.nodes) - found.mace_s) < 1e-6,
        "the search's Mace_WC is not that of its placement",
    )
    bound_s = mace_lower_bound_s(judged)
    check(bound_s <= found.mace_s + 1e-9, "a placement below the lower bound")
    listed = mace_hc(
        fig12(scale, options.seed), options.seed, budget=budget, swaps="never", from_greedy=False
    )
    drawn = np.random.default_rng(options.seed)
    began_s = perf_counter()
    _, random_s, randoms = best_random(
        judged, drawn, go_on=lambda _: perf_counter() - began_s < took_s
    )
    baselines = QUICK_BASELINES if options.quick else BASELINES
    return Contest(
        scale=scale,
        bound_s=bound_s,
        baseline=Spread.of([worst_mace_s(judged, judged.random(drawn)) for _ in range(baselines)]),
        random_s=random_s,
        randoms=randoms,
        corr=rival,
        corr_mace_s=worst_mace_s(judged, rival.nodes),
        corr_took_s=took_s,
        found=found,
        found_took_s=found_took_s,
        as_listed_s=listed.mace_s,
    )


def moves_per_second(problem: PlacementProblem, found: FoundPlacement) -> Spread:
    """Return how many moves a second are evaluated, all subintervals, none ruled out by a bound.

    All operators of the bottleneck with all other nodes, as a step of the climb would.
    """
    placed = Placed(problem, found.nodes)
    bottleneck = int(placed.worst_s.argmax())
    operators = placed.on(bottleneck)
    targets = np.delete(np.arange(problem.nodes), bottleneck)
    rates = []
    for _ in range(TURNS * 3):
        before, began_s = placed.evaluated, perf_counter()
        while perf_counter() - began_s < 0.3:
            placed.worst_with(operators, targets)
        rates.append((placed.evaluated - before) / (perf_counter() - began_s))
    return Spread.of(rates)


def lose_nodes(problem: PlacementProblem, found: FoundPlacement) -> Loss:
    """Lose some nodes, one at a time, each from the same placement."""
    lost = np.linspace(0, problem.nodes - 1, LOST).astype(int).tolist()
    whole = mace_hc(PlacementProblem(problem.load_s, problem.capacity[1:], problem.width_s), 1)
    took, cpu, cold, ratio = [], [], [], []
    _ = problem.done_s  # as the search has left them
    for node in lost * TURNS:
        began_s, worked_s = perf_counter(), process_time()
        nodes, _ = replace_lost(problem, found.nodes, node)
        took.append(perf_counter() - began_s)
        cpu.append(process_time() - worked_s)
        bare = PlacementProblem(problem.load_s, problem.capacity, problem.width_s)
        began_s = perf_counter()
        replace_lost(bare, found.nodes, node)
        cold.append(perf_counter() - began_s)
        check(not (nodes == node).any(), "an operator is left on a lost node")
        ratio.append(worst_mace_s(problem, nodes) / whole.mace_s)
    return Loss(Spread.of(took), Spread.of(cpu), Spread.of(cold), Spread.of(ratio))


def draw(found: list[Contest]) -> Path:
    """Draw Fig. 13, and how the search falls over time; return the path of the picture."""
    picture = Picture("placement: Mace-HC beside the others", (11.0, 4.6), columns=2)
    bars, lines = picture.panels
    kinds = {
        "Baseline (median)": [one.baseline.median for one in found],
        "Random": [one.random_s for one in found],
        "Corr": [one.corr_mace_s for one in found],
        "Mace-HC as listed": [one.as_listed_s for one in found],
        "Mace-HC": [one.found.mace_s for one in found],
        "lower bound": [one.bound_s for one in found],
    }
    for number, (name, values) in enumerate(kinds.items()):
        bars.bar(np.arange(len(found)) + 0.14 * (number - 2.5), values, 0.13, label=name)
    bars.set_xticks(range(len(found)), [f"scale {one.scale}" for one in found])
    bars.set(yscale="log", title="worst Mace at equal budget, s")
    for one in found:
        at = [max(at, 1e-3) / one.corr_took_s for at, _, _ in one.found.history]
        best = np.minimum.accumulate([best for _, _, best in one.found.history])
        label = f"scale {one.scale}, budget {one.corr_took_s:.2g} s"
        by_bound = [*best / one.bound_s, best[-1] / one.bound_s]
        lines.step([*at, 1.0], by_bound, where="post", label=label)
    lines.axvline(0.1, color="grey", linewidth=0.8, linestyle=":")
    lines.set(xscale="log", ylim=(1.0, 1.3), xlabel="share of Corr's time")
    lines.set_title("Mace-HC: best so far by the lower bound")
    return picture.save("placement")


def _tell(result: Result, one: Contest) -> None:
    best = one.found.mace_s
    result.rows.append(
        [
            one.scale,
            f"{one.bound_s:.2f}",
            f"{best:.2f} (+{100 * (best / one.bound_s - 1):.1f} %)",
            f"{one.as_listed_s:.2f}",
            f"{one.corr_mace_s:.2f}",
            f"{one.random_s:.1f} of {one.randoms:,}",
            str(one.baseline),
            f"{one.corr_took_s:.2f}",
            f"{one.corr.correlation:.2f}",
        ]
    )
    result.figures[f"scale_{one.scale}"] = {
        "lower_bound_s": one.bound_s,
        "mace_hc_s": best,
        "mace_hc_took_s": one.found_took_s,
        "mace_hc_near_best_after_s": one.near_best_s,
        "mace_hc_as_listed_s": one.as_listed_s,
        "corr_s": one.corr_mace_s,
        "corr_took_s": one.corr_took_s,
        "corr_correlation": one.corr.correlation,
        "corr_reached_theta": one.corr.reached,
        "corr_exchanges": one.corr.exchanges,
        "random_s": one.random_s,
        "randoms": one.randoms,
        "baseline_s": one.baseline,
        "evaluated": one.found.evaluated,
        "bounded": one.found.bounded,
    }
    at = f"scale {one.scale}: Mace-HC"
    result.claims += [
        Claim(f"{at} / Corr", best / one.corr_mace_s, "<=", 1 - 1e-6),
        Claim(f"{at} / Random", best / one.random_s, "<=", 1 - 1e-6),
        Claim(f"{at} / Baseline (median)", best / one.baseline.median, "<=", 1 - 1e-6),
        Claim(
            f"{at} after a tenth of Corr's time / its best", one.after_a_tenth_s / best, "<=", 1.02
        ),
    ]
