"""[espice] Fig. 5c, 5d: n contracts that rise, or n that fall, after a leading one, real quotes."""

from __future__ import annotations

from functools import partial

from benchmarks.espice.contest import (
    TOLD,
    Setting,
    claim_of_amount,
    claims_of_factor,
    contest,
    header_of,
    told,
)
from benchmarks.espice.options import (
    Order,
    opened_by_leading,
    query_2,
    quotes,
    split,
)
from benchmarks.espice.panels import draw
from benchmarks.espice.per_window import Selection
from benchmarks.espice.shedders import FEATURED
from benchmarks.espice.trial import Group, Part
from benchmarks.frame import Options, Result

COUNTS, QUICK_COUNTS = (10, 20, 30, 40, 50, 60, 70, 80), (10, 40, 80)
CONTRACTS = 500
WITHIN_MIN = 4.0
MAKERS_2 = (*TOLD, FEATURED)
FACTORS = {"first": {"R1": 30.0, "R2": 24.0}, "last": {}}


def run(options: Options) -> Result:
    """Try each number of contracts, each selection and each rate."""
    selections: tuple[Selection, ...] = ("first", "last")
    counts = QUICK_COUNTS if options.quick else COUNTS
    settings = [
        Setting(selection, count, partial(groups, count=count, selection=selection))
        for selection in selections
        for count in counts
    ]
    result = Result(
        f"options-goog-1min-2015, the {CONTRACTS} most active contracts, shuffled in each minute, "
        "4 min; the second half judged by what the first teaches",
        header_of("n", MAKERS_2),
    )
    found = contest(settings, options, makers=MAKERS_2, what="espice-q2")
    told(result, settings, found, paper={})
    for selection in selections:
        result.claims += claims_of_factor(selection, settings, found, FACTORS[selection])
    result.claims.append(claim_of_amount(found))
    result.notes.append("the paper's factors, first, at best: 30 at R1, 24 at R2")
    title = "espice-q2: [espice] Fig. 5c, 5d, real quotes"
    result.notes.append(f"drawn: {draw('espice-q2', settings, found, x='n', title=title)}")
    return result


def groups(
    seed: int,
    *,
    count: int,
    selection: Selection,
    order: Order = "a minute",
    within_min: float = WITHIN_MIN,
) -> list[Group]:
    """Return the windows of the second half, and those of the first to train on.

    Args:
        seed: of the order within a minute.
        count: n.
        selection: first or last.
        order: how often the order is drawn.
        within_min: length of the windows.
    """
    of = quotes(CONTRACTS, order=order, seed=seed)
    query = query_2(of, count, selection)
    training, judged = split(of, opened_by_leading(of, within_min))
    return [Group([Part(query, training)], [Part(query, judged)])]
