"""Is anything slower than it was? Benchmarks on the code of BEFORE and on ours, in turns.

Their figures are compared by name. Those of NumPy alone, which neither commit has a part in, are
beside them: what these seem to have changed is what the hour does to a figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.engine.before import HOW, ROOT, before_ref, checkout, child_line, in_turns, ratios
from benchmarks.engine.multinode import need_hosts
from benchmarks.frame import Claim, Options, Result, Spread, check, number

__all__ = ["figures_of", "geometric_mean", "is_yardstick", "run", "slower"]

NAMES = ("merge", "join-throughput", "aggregate", "multinode")
QUICK_NAMES = ("merge",)
TURNS, QUICK_TURNS = 5, 2
MORE_IS_BETTER = ("per_s",)
LESS_IS_BETTER = ("_ms", "us_per", "_ns")
LEFT_OUT = ("ns_per_row", "error_ms", "links_ms", "link_error", "max_ms")
"""Parts of names of what explains other figures, or is of a single result: mostly noise."""


def run(options: Options) -> Result:
    """Measure both commits in turns; claim for each benchmark that it is not slower now."""
    names, turns = (QUICK_NAMES, QUICK_TURNS) if options.quick else (NAMES, TURNS)
    result = Result(
        f"{', '.join(names)}, each as --quick has it, {turns} turns; "
        "now / before, so turned round that above 1 is slower now",
        ["benchmark", "figure", "before", "now", "slower by × (least–most)"],
    )
    result.notes += [
        "both commits' packages are measured by the benchmarks as they are now",
        "within the spread: the geometric mean of a benchmark's figures was 1 or less in a turn",
    ]
    ref = before_ref()
    if ref is None:
        result.claims = [_claim(name, "BEFORE", None) for name in names]
        result.notes.append(f"nothing was measured: {HOW}")
        return result
    if "multinode" in names:
        need_hosts()  # now, not in a quarter of an hour
    with checkout(ref) as tree:
        for name in names:
            _compare(result, name, options, turns=turns, ref=ref, tree=tree)
    return result


def figures_of(figures: Mapping[str, Any], *, above: str = "") -> Iterator[tuple[str, float]]:
    """Yield what is a speed or a time, by its whole name; of a spread the median."""
    for name, value in figures.items():
        whole = f"{above}, {name}" if above else name
        if any(part in name for part in LEFT_OUT):
            continue
        is_spread = isinstance(value, Mapping) and "repetitions" in value
        if isinstance(value, Mapping) and not is_spread:
            yield from figures_of(value, above=whole)
            continue
        figure = value["median"] if is_spread else value
        is_number = isinstance(figure, int | float) and not isinstance(figure, bool)
        if is_number and _is_more_better(whole) is not None:
            yield whole, float(figure)


def slower(name: str, ratio: Spread) -> Spread:
    """Return now / before of a figure as how much slower it is now: above 1 is slower."""
    if not _is_more_better(name):
        return ratio
    return Spread(1 / ratio.median, 1 / ratio.most, 1 / ratio.least, ratio.repetitions)


def geometric_mean(values: Sequence[float]) -> float:
    """Return it; of at least one value."""
    return math.exp(sum(map(math.log, values)) / len(values))


def is_yardstick(name: str) -> bool:
    """Whether a figure is of NumPy alone."""
    return "offline" in name


def _is_more_better(name: str) -> bool | None:
    """Return whether more of a figure is better; None: it is neither a speed nor a time."""
    last = name.rpartition(", ")[2]
    if any(last.endswith(part) for part in MORE_IS_BETTER):
        return True
    if any(part in last for part in LESS_IS_BETTER):
        return False
    return None


def _compare(
    result: Result, name: str, options: Options, *, turns: int, ref: str, tree: Path
) -> None:
    # Many short turns tell more of two commits than a few long ones: an hour is not like the next.
    words = ["benchmarks", name, "--quick", "--json", "--seed", str(options.seed)]

    def measured(folder: Path) -> dict[str, float]:
        said = child_line(folder, words)
        check("figures" in said, f"{name} cannot run in {folder}: {said.get('left_out')}")
        return dict(figures_of(said["figures"]))

    pairs = in_turns(lambda: measured(tree), lambda: measured(ROOT), times=turns)
    found = {figure: slower(figure, ratio) for figure, ratio in ratios(pairs).items()}
    for figure, spread in found.items():
        old, new = (Spread.of([pair[n][figure] for pair in pairs]) for n in (0, 1))
        result.rows.append([name, figure, number(old.median), number(new.median), spread])
    result.figures[name] = {"ref": ref, "slower": found}
    for kind, ours in (("its figures", False), ("NumPy alone", True)):
        chosen = [figure for figure in found if is_yardstick(figure) is ours]
        if not chosen:
            continue
        means = [
            geometric_mean([slower(f, Spread.of([new[f] / old[f]])).median for f in chosen])
            for old, new in pairs
        ]
        mean = Spread.of(means)
        result.rows.append([name, f"geometric mean: {kind}", "", "", mean])
        result.figures[name][f"geometric mean, {kind}"] = mean
        if not ours:
            result.claims.append(_claim(name, ref, mean.least))


def _claim(name: str, ref: str, value: float | None) -> Claim:
    return Claim(
        f"{name}: not slower than {ref} within the spread, × in the best turn", value, "<=", 1
    )
