"""[thesis] Tables 5.4-5.7: order by number beside the K-slack family, one source, three datasets.

AQ-K-slack is tried with many settings, and the best that mends enough counts: its gains are found
by hand in the thesis. Order by number has to do with one setting for all three.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from benchmarks.frame import Claim, Options, Result
from benchmarks.order import rivals
from benchmarks.order.disorder import DATASETS, Arrivals, Dataset, imitated, match_times
from benchmarks.order.pictures import draw_single
from benchmarks.order.replay import Outcome
from benchmarks.side_by_side import side_by_side
from examples.real_data import soccer

MP_TIMES, AQ_TIMES = 90.0, 18.0
PAPER = {  # [thesis] Tables 5.6, 5.7: {dataset: {approach: (mean latency, ms; accuracy, percent)}}
    "dataset 1": {"sequence": (4.09, 99.99), "MP": (399.56, 99.99), "AQ": (79.04, 99.99)},
    "dataset 2": {"sequence": (6.52, 99.97), "MP": (1_397.52, 99.98), "AQ": (176.48, 99.96)},
    "dataset 3": {"sequence": (398.12, 99.98), "MP": (62_507.29, 99.99), "AQ": (10_462.98, 99.98)},
}
Curves = Mapping[str, list[Outcome]]  # {rival: what it made, setting by setting}


def run(options: Options) -> Result:
    """Give every rival the three streams."""
    soccer()  # or say at once that it is not there
    rows = " / ".join(f"{one.rows:,}" for one in DATASETS)
    result = Result(
        f"{rows} rows at 15,000/s, virtual time, the machines alone",
        ["dataset", "policy", "mean, ms", "max, ms", "since event, ms", "mended, %", "paper"],
    )
    made = _rivals(options)
    tasks = {  # the longest first
        (dataset.name, name): partial(_curve, dataset, options, made[name])
        for dataset in reversed(DATASETS)
        for name in reversed(made)
    }
    found = dict(zip(tasks, side_by_side([*tasks.values()], what="reorder-single"), strict=True))
    curves = {one.name: {name: found[one.name, name] for name in made} for one in DATASETS}
    for dataset, each in curves.items():
        _tell(result, dataset, each)
    result.notes += [
        "latency is from when a row was sent to us; since event: from its event time",
        f"paper: mean latency, ms, and accuracy, %: {_paper()}",
        f"sequence is that with the mended timer, {rivals.ONE_MS} ms at most; AQ-K-slack the best "
        "of its settings; in hindsight: with the wait that is best for these very rows",
        f"drawn: {draw_single(curves)}",
    ]
    return result


def _rivals(options: Options) -> dict[str, Callable[[Arrivals], list[Outcome]]]:
    caps_ms = rivals.QUICK_CAPS_MS if options.quick else rivals.CAPS_MS
    fewer_ms = rivals.QUICK_CAPS_MS if options.quick else rivals.FEWER_CAPS_MS
    return {
        rivals.K_SLACK: partial(rivals.of_k_slack, caps_ms=caps_ms),
        rivals.MP: partial(rivals.of_mp, caps_ms=caps_ms),
        rivals.AQ: partial(rivals.of_aq, quick=options.quick),
        **{
            reading: partial(
                rivals.of_sequence,
                reading=reading,
                caps_ms=caps_ms if reading == rivals.MENDED else fewer_ms,
            )
            for reading in rivals.READINGS
        },
    }


def _curve(
    dataset: Dataset, options: Options, made: Callable[[Arrivals], list[Outcome]]
) -> list[Outcome]:
    number = int(dataset.name[-1])
    rng = np.random.default_rng([options.seed, number])
    return made(imitated(dataset, match_times(dataset.rows), rng))


def _tell(result: Result, dataset: str, curves: Curves) -> None:
    mp, as_it_comes, aq = curves[rivals.MP][0], curves[rivals.AQ][0], rivals.best(curves[rivals.AQ])
    sequence = _with_wait(curves[rivals.MENDED], rivals.ONE_MS)
    thesis = {name: _with_wait(curves[name], rivals.THESIS_MS) for name in rivals.READINGS}
    shown = [
        (mp, "MP"),
        (as_it_comes, ""),
        (aq, "AQ"),
        *((one, "sequence" if name == rivals.PLAIN else "") for name, one in thesis.items()),
        (sequence, ""),
        (rivals.best(curves[rivals.MENDED]), "hindsight"),
        (rivals.best(curves[rivals.LEARNING]), "hindsight"),
        (rivals.best(curves[rivals.K_SLACK]), "hindsight"),
    ]
    figures = {}
    for one, key in shown:
        known = PAPER[dataset].get(key)
        paper = "" if known is None else "{:,.2f}, {} %".format(*known)
        accuracy = f"{one.accuracy:.3f}"
        latency = (one.mean_ms, one.most_ms, one.since_event_ms)
        name = f"{one.name} (in hindsight)" if key == "hindsight" else one.name
        result.rows.append([dataset, name, *latency, accuracy, paper])
        figures[name] = one.figures()
    figures["curves"] = {
        name: [[one.name, one.mean_ms, one.accuracy] for one in found]
        for name, found in curves.items()
    }
    result.figures[dataset] = figures
    result.claims += [
        *_claims(f"{dataset}, sequence, timer mended, {rivals.ONE_MS} ms", sequence, mp, aq),
        _mends(f"{dataset}, Eq. 3.11 as it stands", thesis[rivals.PLAIN]),
        *_claims(f"{dataset}, timer mended, the thesis' 500 ms", thesis[rivals.MENDED], mp, aq),
    ]


def _claims(who: str, one: Outcome, mp: Outcome, aq: Outcome) -> list[Claim]:
    return [
        _mends(who, one),
        Claim(f"{who}: times under MP-K-slack", mp.mean_ms / one.mean_ms, ">=", MP_TIMES),
        Claim(f"{who}: times under the best AQ-K-slack", aq.mean_ms / one.mean_ms, ">=", AQ_TIMES),
    ]


def _mends(who: str, one: Outcome) -> Claim:
    still = 100 * (100 - one.accuracy)
    what = f"not mended, of 10,000 (accuracy ≥ {rivals.ENOUGH} %)"
    return Claim(f"{who}: {what}", still, "<=", rivals.MAY_STAY)


def _with_wait(curve: list[Outcome], longest_ms: int) -> Outcome:
    return next(one for one in curve if one.name.endswith(f", {longest_ms} ms"))


def _paper() -> str:
    return "; ".join(
        f"{name}: " + ", ".join(f"{who} {ms:,} ({mends})" for who, (ms, mends) in each.items())
        for name, each in PAPER.items()
    )
