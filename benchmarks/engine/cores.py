"""A node's cores: joins and keyed aggregates on one slot and on two, simulated to 64.

One slot has everything, and `replicas=` is not written. Two slots have a source each, as far as
there are two, and a replica each. Both are measured in turns, beside two flows of half the keys
each, and between two runs of NumPy in two processes: that is the ceiling of the machine. What more
slots give to the joins is simulated with costs that were measured here (`cores_simulated.py`). The
simulated flow is that of a user with many slots: its inputs have as many partitions as there are
slots, it has as many replicas, and its sink has no order.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.before import ROOT, Child, before_ref, checkout, in_turns, ratios
from benchmarks.engine.cores_costs import measured_costs, read_costs, save_costs
from benchmarks.engine.cores_one_slot import CHILD, PLACEMENT
from benchmarks.engine.cores_simulated import report_simulated
from benchmarks.engine.cores_work import DENSE, FAR, MEANS, SUMS, Sizes, Work, works_of
from benchmarks.engine.workload import AREAS
from benchmarks.frame import Claim, Options, Result, Spread, check
from benchmarks.jobs import TIMEOUT_S

ONE, TWO, HALVES = "one slot", "two slots", "two flows of half the keys, a slot each"
TARGETS = {DENSE: 0.7, FAR: 0.88, MEANS: 0.6, SUMS: 0.75}
"""{work: part of the ceiling c that two slots must reach, × one slot}"""
LEAST_CEILING = 1.6
BUSY_LOOPS = 2
SPIN_ROWS, SPINS, QUICK_SPINS = 2_000_000, 8, 4
SPUN_S = 120.0


@dataclass(frozen=True)
class Extent:
    """How much runs.

    Attributes:
        sizes: sizes of each work on Ray.
        turns: number of turns there.
        spins: sorts of NumPy that tell the ceiling.
        simulated: sizes of the joins that are simulated.
        sampled: sizes of those by which costs are measured.
        zipf: sizes with Zipf keys, of 200 areas.
        areas: number of areas of the simulated joins: 200 for each slot.
        slots: numbers of slots that are simulated.
    """

    sizes: Sizes
    turns: int
    spins: int
    simulated: Sizes
    sampled: Sizes
    zipf: Sizes
    areas: int
    slots: tuple[int, ...]


FULL = Extent(
    sizes=Sizes(25_000, 10_000, 10_000_000),
    turns=5,
    spins=SPINS,
    simulated=Sizes(1_250, 500, 0),
    sampled=Sizes(500, 250, 0),
    zipf=Sizes(10_000, 0, 0),
    areas=64 * AREAS,
    slots=(1, 2, 8, 64),
)
QUICK = Extent(
    sizes=Sizes(2_000, 500, 500_000),
    turns=1,
    spins=QUICK_SPINS,
    simulated=Sizes(200, 100, 0),
    sampled=Sizes(100, 50, 0),
    zipf=Sizes(1_000, 0, 0),
    areas=8 * AREAS,
    slots=(1, 8),
)


def run(options: Options) -> Result:
    """Measure one and two slots of a node, then simulate up to 64."""
    extent = QUICK if options.quick else FULL
    result = Result(
        f"{extent.turns} turns of each kind of run; events of each work are in the table",
        ["work", "slots", "where", "M events/s", "× one slot", "busy, or what limits it"],
    )
    if (ref := before_ref()) is not None:  # first: an old commit may refuse what we ask
        _beside_before(result, ref, options, extent)
    with tempfile.TemporaryDirectory() as name:
        if (given := os.environ.get("COSTS")) is None:
            path = _measure(result, Path(name), options, extent)
        else:
            path = Path(given)
            result.claims += [Claim(_named(work), None, ">=", TARGETS[work]) for work in TARGETS]
        costs, folder = read_costs(path), Path(name) / "simulated"
        works = works_of(options.seed, extent.simulated, folder, areas=extent.areas)
        works += works_of(options.seed, extent.zipf, Path(name) / "zipf", is_zipf=True)
        for work in works:
            report_simulated(result, work, costs[work.name], Path(name), slots=extent.slots)
    result.notes += [
        "one slot: everything in it, replicas= not written; two: replicas=2 by the simple rule, "
        "each slot a process of its own, on this machine's cores",
        f"{HALVES}: one job, so that both begin at once",
        "the ceiling c: two processes that sort in NumPy at once, × what one does alone; the mean "
        "of before and after the turns",
        f"two busy loops: {BUSY_LOOPS} processes that spin beside it all the while; c is measured "
        "beside them, too",
        "the order of results is that of the keys' hashes: replicas=1 in one slot and replicas=2 "
        "in two had the same bytes",
        "simulated: no result was timed. Costs of slices, messages, rows, parts, comparisons, "
        f"sending, receiving and writing are those of {path}, which a run measures unless "
        "COSTS=<file> names another; a slot is a core, a hop takes 0.1 ms",
        f"simulated on n slots: {extent.areas:,} areas, inputs in n partitions, replicas=n, a sink "
        "with ordered=False that writes parts of each replica. On one: the same rows, an input in "
        "order each, replicas= not written, all in one slot. Its joins search all areas, so a "
        "comparison costs more there than in a replica. Zipf: 200 areas, one of which has 17 % of "
        "the rows",
        "every run's results were compared with the offline query's",
    ]
    return result


def _measure(result: Result, folder: Path, options: Options, extent: Extent) -> Path:
    """Measure on Ray; return the file of the costs."""
    works = works_of(options.seed, extent.sizes, folder / "real")
    costs = {}
    with sw.Cluster.local(nodes=1, cores=2) as cluster:
        before = _ceiling(extent.spins)
        for work in works:
            before = _report_real(result, cluster, work, extent, before=before)
        with _busy_loops(BUSY_LOOPS):
            for work in works[:1] if options.quick else works:
                _report_busy(result, cluster, work, extent)
        sampled = works_of(options.seed, extent.sampled, folder / "sampled", areas=extent.areas)
        sampled += works_of(options.seed, extent.zipf, folder / "zipf sampled", is_zipf=True)
        for work in sampled:
            costs[work.name] = measured_costs(cluster, work, extent.slots)
    return save_costs(costs, is_kept=not options.quick)


def _named(work: str) -> str:
    return f"{work}, 2 slots × one slot: part of the ceiling c"


def _report_real(
    result: Result, cluster: sw.Cluster, work: Work, extent: Extent, *, before: float
) -> float:
    """Measure a work in turns, and claim its part of the ceiling.

    Args:
        result: result of the benchmark, to be filled.
        cluster: a node of two cores.
        work: flow that is measured, and its events.
        extent: number of turns and of events.
        before: the ceiling before it.

    Returns:
        The ceiling after it.
    """
    if work.is_exact:
        _same_bytes(cluster, work)
    reports = _in_turns(cluster, work, (ONE, TWO, HALVES), extent.turns)
    after = _ceiling(extent.spins)
    figures = _tell(result, work, reports, where="real")
    ceiling = statistics.mean([before, after])
    figures["ceiling"] = [before, after]
    share: float | None = figures["ratio"] / ceiling
    if ceiling < LEAST_CEILING:
        share = None
        result.notes.append(
            f"void: {work.name}, c = {ceiling:.2f} is below {LEAST_CEILING}: this machine had no "
            "two cores free, so the claim does not hold"
        )
    else:
        result.notes.append(f"{work.name}: {figures['ratio']:.2f} × one slot, c = {ceiling:.2f}")
    if work.name in TARGETS:  # nothing is claimed of combine="anywhere"
        result.claims.append(Claim(_named(work.name), share, ">=", TARGETS[work.name]))
    result.figures[work.name] = figures
    return after


def _report_busy(result: Result, cluster: sw.Cluster, work: Work, extent: Extent) -> None:
    """Measure one and two slots beside busy loops; nothing is claimed."""
    ceiling = _ceiling(extent.spins)
    reports = _in_turns(cluster, work, (ONE, TWO), extent.turns)
    figures = _tell(result, work, reports, where=f"real, {BUSY_LOOPS} busy loops beside it")
    result.figures[f"{work.name}, busy loops"] = {**figures, "ceiling": ceiling}
    result.notes.append(
        f"{work.name} beside busy loops: {figures['ratio']:.2f} × one slot, c = {ceiling:.2f}"
    )


def _same_bytes(cluster: sw.Cluster, work: Work) -> None:
    """Check that one replica and two have the same results in the same order."""
    _, alone = _finished(cluster, work, work.build(1), PLACEMENT)
    _, divided = _finished(cluster, work, work.build(2), None)
    check(alone.equals(divided), f"{work.name}: replicas=2 has other bytes than replicas=1")


def _in_turns(
    cluster: sw.Cluster, work: Work, kinds: Sequence[str], turns: int
) -> dict[str, list[sw.JobReport]]:
    """Return the reports of each kind of run, made in turns after one to warm up, if several."""
    halves = {"*": "node-1/1"} | {
        f"{stage}-2": "node-1/2" for stage in _stages_of_a_half(cluster, work)
    }
    reports: dict[str, list[sw.JobReport]] = {kind: [] for kind in kinds}
    for _ in range(turns + (turns > 1)):  # a quick run is warm by the runs before
        for kind, own in reports.items():
            flow = work.halves() if kind == HALVES else work.build(None if kind == ONE else 2)
            report, _ = _finished(cluster, work, flow, {ONE: PLACEMENT, HALVES: halves}.get(kind))
            used, expected = {stage.slot for stage in report.stages}, 1 if kind == ONE else 2
            check(len(used) == expected, f"{work.name}, {kind}: {len(used)} slots")
            own.append(report)
    return {kind: own[-turns:] for kind, own in reports.items()}


def _stages_of_a_half(cluster: sw.Cluster, work: Work) -> list[str]:
    names = [stage.name for stage in cluster.plan(work.halves()).stages]
    return [name.removesuffix("-2") for name in names if name.endswith("-2")]


def _finished(
    cluster: sw.Cluster, work: Work, flow: sw.Dataflow, placement: Mapping[str, str] | None
) -> tuple[sw.JobReport, pa.Table]:
    """Run a flow to its end; return its report and the checked rows of all its sinks."""
    with closing(cluster.submit(flow, placement=placement)) as job:
        report = job.wait(timeout=TIMEOUT_S)
        check(report.ledger.is_balanced, f"the ledger does not balance: {report.ledger}")
        tables = [job.result(sink.name) for sink in report.sinks]
    rows = pa.concat_tables(tables)
    if len(tables) > 1 and "window_start" in rows.column_names:
        rows = rows.sort_by("window_start")  # each half has its windows in order
    work.verify(rows)
    return report, rows


def _tell(
    result: Result, work: Work, reports: Mapping[str, list[sw.JobReport]], *, where: str
) -> dict[str, Any]:
    """Add a row for each kind of run; return the figures."""
    rates = {
        kind: Spread.of([work.events / r.elapsed_s / 1e6 for r in own])
        for kind, own in reports.items()
    }
    ratio = rates[TWO].median / rates[ONE].median
    figures: dict[str, Any] = {"ratio": ratio, "events": work.events}
    for kind, own in reports.items():
        last = own[-1]
        busy_s: dict[str, float] = {}
        for stage in last.stages:
            busy_s[stage.slot] = busy_s.get(stage.slot, 0.0) + stage.service_ns / 1e9
        told = ", ".join(f"{slot} {seconds:.2f} s" for slot, seconds in busy_s.items())
        told = f"{work.events / 1e6:g} M events in {last.elapsed_s:.2f} s; {told}"
        slots = {ONE: "1", TWO: "2", HALVES: "2 × half"}[kind]
        times = rates[kind].median / rates[ONE].median
        result.rows.append([work.name, slots, where, rates[kind], times, told])
        figures[f"{kind}, million_per_s"] = rates[kind]
        figures[f"{kind}, busy_s"] = {s.name: s.service_ns / 1e9 for s in last.stages}
    return figures


def _beside_before(result: Result, ref: str, options: Options, extent: Extent) -> None:
    """Compare one slot with a commit's, in turns."""
    setting = {"seed": options.seed, "sizes": astuple(extent.sizes)}
    with (
        checkout(ref) as tree,
        closing(Child(tree, CHILD)) as before,
        closing(Child(ROOT, CHILD)) as now,
    ):
        for child in (before, now):
            child.ask(setting)  # its turn warms up
        pairs = in_turns(lambda: before.ask({}), lambda: now.ask({}), times=extent.turns)
    found = ratios(pairs)
    result.figures["one slot, now by before"] = {"ref": ref, "ratios": found}
    for name, ratio in found.items():
        result.rows.append([name, "1", f"real, by {ref}", "", ratio, "now / before, in turns"])
        what = f"{name}, one slot: × {ref} within the spread, in the best turn"
        result.claims.append(Claim(what, ratio.most, ">=", 1.0))


# -- the machine ---------------------------------------------------------------------------------


def _ceiling(spins: int) -> float:
    """Return how much more two processes of NumPy do at once than one, on this machine now."""
    started = multiprocessing.get_context("spawn")
    with started.Pool(2) as pool:
        pool.map_async(_sort, [1, 1], chunksize=1).get(SPUN_S)  # to warm up: imports
        began_s = time.perf_counter()
        pool.apply_async(_sort, [spins]).get(SPUN_S)
        alone_s = time.perf_counter() - began_s
        began_s = time.perf_counter()
        pool.map_async(_sort, [spins, spins], chunksize=1).get(SPUN_S)
        return 2 * alone_s / (time.perf_counter() - began_s)


def _sort(times: int) -> None:
    values = np.random.default_rng(times).random(SPIN_ROWS)
    for _ in range(times):
        np.sort(values)


@contextlib.contextmanager
def _busy_loops(processes: int) -> Iterator[None]:
    """Have processes beside us that spin."""
    started = multiprocessing.get_context("spawn")
    spinning = [started.Process(target=_spin, daemon=True) for _ in range(processes)]
    for process in spinning:
        process.start()
    try:
        yield
    finally:
        for process in spinning:
            process.terminate()
            process.join()


def _spin() -> None:
    while True:
        pass
