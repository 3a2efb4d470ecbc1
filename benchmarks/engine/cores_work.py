"""The flows of `cores`: two joins and two keyed aggregates, with their offline results.

The joins have another form for the simulation of many slots, as a user writes it for those:

```
one slot     a file of each source, in order; all steps in the slot; replicas= not written
n slots      a source in n files, row by row in turn: partitions; replicas=n; a sink without an
             order, so that each replica writes its own parts
```
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import slackwater as sw
from benchmarks.engine.aggregate import offline, verify
from benchmarks.engine.running import Arrays, arrays_of, same_rows
from benchmarks.engine.workload import (
    AREAS,
    DELAY_OVER,
    DENSE_OVER,
    KEYS,
    MS,
    WITHIN_NS,
    Ints,
    Mapped,
    MappedParts,
    join_tables,
    late_table,
    write,
    write_parts,
    written,
)
from benchmarks.frame import check
from benchmarks.offline import pairs_within
from slackwater.runtime.plan.traits import Share

RATE = 200  # buses a second in 200 areas, and as many readings: that of `join-throughput`
COUNTED_RATE = 10_000  # events a second of the aggregates
FAR_WITHIN_NS = 300_000 * MS  # 50 comparisons for each row that reaches the join; 2 in 5 s
FAR_FACTOR = 4  # of the predicate, so that few pairs leave
DENSE, FAR = "dense join", "join within 5 minutes"
MEANS, SUMS = "aggregate, float mean", "aggregate, counts and whole sums"
ANYWHERE = "aggregate, float mean, combine='anywhere'"
JOIN, AGGREGATE = "pairs", "sums"
"""Names of the steps with replicas."""
MOST_WHOLE = 10_000

Floats = npt.NDArray[np.float64]
ZIPF: Floats = 1 / np.arange(1, AREAS + 1)
"""Weights of areas: the first has 17 % of all rows."""
AREAS_AT_ONCE = 8  # whose pairs are looked for: all would fill the memory


@dataclass(frozen=True)
class Sizes:
    """Seconds of event time of each join, and events of each aggregate; 0: it does not run."""

    dense_s: int
    far_s: int
    counted: int


@dataclass(frozen=True)
class Work:
    """A flow, with the results that it must have.

    Attributes:
        name: name of the work in tables.
        events: that its sources read.
        operator: the step with the replicas.
        build: makes the flow with `replicas=`; None if they are not written. Its sink is `out`.
        halves: makes two flows of half the keys each, as one job; sinks `out-1` and `out-2`.
        spread: makes the flow for a number of slots, which writes to a folder; see above.
        verify: raises if a run's results are not those of the offline query.
        is_exact: whether results have the same bytes for any number of replicas.
    """

    name: str
    events: int
    operator: str
    build: Callable[[int | None], sw.Dataflow]
    halves: Callable[[], sw.Dataflow]
    verify: Callable[[pa.Table], None]
    is_exact: bool = True
    spread: Callable[[int, Path], sw.Dataflow] | None = None


def works_of(
    seed: int, sizes: Sizes, folder: Path, *, areas: int = AREAS, is_zipf: bool = False
) -> list[Work]:
    """Return the works of some sizes; their inputs are written to a new folder.

    Args:
        seed: of all that is drawn.
        sizes: how much each work has.
        folder: folder to be made.
        areas: number of areas; each has a bus a second, and a reading.
        is_zipf: whether areas have weights, `ZIPF`.
    """
    folder.mkdir()
    works = []
    joins = ((DENSE, sizes.dense_s, WITHIN_NS, 1), (FAR, sizes.far_s, FAR_WITHIN_NS, FAR_FACTOR))
    for name, seconds, within_ns, factor in joins:
        if seconds:
            tables = join_tables(
                seed, events=RATE * seconds * areas // AREAS, seconds=seconds, areas=areas
            )
            if is_zipf:
                tables, name = with_areas(tables, ZIPF, seed), f"{name}, Zipf keys"  # noqa: PLW2901
            works.append(_join_work(name, tables, within_ns, factor, folder))
    if sizes.counted:
        works += _aggregate_works(seed, sizes.counted, folder)
    return works


# -- joins -------------------------------------------------------------------------------------


def _join_work(
    name: str, tables: tuple[pa.Table, pa.Table], within_ns: int, factor: int, folder: Path
) -> Work:
    paths = [write(t, folder / f"{name} {n}") for n, t in enumerate(tables)]
    over = factor * DENSE_OVER
    expected = pairs_of(*map(arrays_of, tables), within_ns=within_ns, over=over)
    parts = [_half(t, "area", folder / f"{name} half {n}") for n, t in enumerate(tables)]

    def build(replicas: int | None) -> sw.Dataflow:
        flow = sw.Dataflow("cores-join")
        add_join(flow, paths, within_ns, replicas, over=over)
        return flow

    def halves() -> sw.Dataflow:
        flow = sw.Dataflow("cores-halves")
        for n, half in enumerate(zip(*parts, strict=True), start=1):
            add_join(flow, half, within_ns, None, over=over, suffix=f"-{n}")
        return flow

    @cache
    def inputs(parts: int) -> Sequence[Mapped | MappedParts]:
        if parts == 1:
            return paths
        return [write_parts(t, folder / f"{name} {n}", parts) for n, t in enumerate(tables)]

    def spread(slots: int, results: Path) -> sw.Dataflow:
        flow, replicas = sw.Dataflow("cores-spread"), slots if slots > 1 else None
        sink = sw.parquet_sink(str(results))
        add_join(flow, inputs(slots), within_ns, replicas, over=over, sink=sink)
        return flow

    def verified(found: pa.Table) -> None:
        same_rows(arrays_of(found), expected, name)

    events = 2 * len(tables[0])
    return Work(name, events, JOIN, build, halves, verified, spread=spread)


def with_areas(
    tables: tuple[pa.Table, pa.Table], weights: Floats, seed: int
) -> tuple[pa.Table, pa.Table]:
    """Return both tables with areas drawn by weights, shape (areas,)."""
    rng = np.random.default_rng(seed + 1)

    def drawn(table: pa.Table) -> pa.Table:
        areas = rng.choice(AREAS, p=weights / weights.sum(), size=len(table)).astype(np.int32)
        return table.set_column(table.column_names.index("area"), "area", pa.array(areas))

    return drawn(tables[0]), drawn(tables[1])


def _half(table: pa.Table, key: str, path: Path) -> list[Mapped]:
    """Write the rows of even keys and those of odd ones."""
    is_odd = table[key].to_numpy() % 2 == 1
    halves = (table.filter(pa.array(is_odd == odd)) for odd in (False, True))
    return [write(half, Path(f"{path} {n}")) for n, half in enumerate(halves)]


def add_join(
    flow: sw.Dataflow,
    inputs: Sequence[Mapped | MappedParts],
    within_ns: int,
    replicas: int | None,
    *,
    over: int,
    suffix: str = "",
    share: Share = "keys",
    sink: sw.connectors.Output | None = None,
) -> None:
    """Add the join of late buses with readings to a flow; to a sink of its own without order."""
    order = {} if sink is None else {"ordered": False}
    left, right = (
        flow.source(f"{name}{suffix}", source, event_time="ts", time_unit="ms")
        for name, source in zip(("bus", "scats"), inputs, strict=True)
    )
    left.filter(sw.col("delay_s") > DELAY_OVER).join(
        right,
        on="area",
        within=f"{within_ns}ns",
        where=sw.col("delay_s") * sw.col("flow") > over,
        share=share,
        name=f"{JOIN}{suffix}",
        **written(replicas),
    ).select("vehicle", "sensor", "ts", "ts_right").sink(
        f"out{suffix}", sink or sw.collect_sink(), **order
    )


def pairs_of(bus: Arrays, loop: Arrays, *, within_ns: int, over: int) -> Arrays:
    """Return the pairs that the join must find, looked for in some areas at a time."""
    late = np.flatnonzero(bus["delay_s"] > DELAY_OVER)
    late, every = (
        late[bus["area"][late].argsort(kind="stable")],
        loop["area"].argsort(kind="stable"),
    )
    areas = int(max(bus["area"].max(), loop["area"].max())) + 1
    stops = [*range(AREAS_AT_ONCE, areas, AREAS_AT_ONCE), areas]
    somes = np.split(late, bus["area"][late].searchsorted(stops[:-1]))
    nears = np.split(every, loop["area"][every].searchsorted(stops[:-1]))
    lefts, rights = [late[:0]], [late[:0]]
    for some, near in zip(somes, nears, strict=True):
        left, right = pairs_within(
            bus["ts"][some] * MS,
            bus["area"][some].astype(np.int64),
            loop["ts"][near] * MS,
            loop["area"][near].astype(np.int64),
            within_ns,
        )
        left, right = some[left], near[right]
        kept = bus["delay_s"][left].astype(np.int64) * loop["flow"][right] > over
        lefts.append(left[kept])
        rights.append(right[kept])
    left, right = np.concatenate(lefts), np.concatenate(rights)
    return {
        "vehicle": bus["vehicle"][left],
        "sensor": loop["sensor"][right],
        "ts": bus["ts"][left],
        "ts_right": loop["ts"][right],
    }


# -- aggregates ----------------------------------------------------------------------------------


def _aggregate_works(seed: int, events: int, folder: Path) -> list[Work]:
    seconds = max(events // COUNTED_RATE, 1)
    table = late_table(seed, events=events, seconds=seconds)
    whole = np.random.default_rng(seed + 2).integers(0, MOST_WHOLE, events)
    table = table.append_column("whole", pa.array(whole))
    source, parts = write(table, folder / "events"), _half(table, "key", folder / "events half")
    arrays = arrays_of(table)
    means, sums = offline(arrays), _sums(arrays)

    def verified_means(found: pa.Table) -> None:
        verify(found, expected=means, what=MEANS)

    def verified_sums(found: pa.Table) -> None:
        same_rows(arrays_of(found.drop_columns("window_end")), sums, SUMS)

    of_means = {"mean": sw.mean("value"), "n": sw.count()}
    of_sums = {"n": sw.count(), "total": sw.sum("whole")}
    return [
        _aggregate_work(MEANS, events, source, parts, of_means, verified_means),
        _aggregate_work(SUMS, events, source, parts, of_sums, verified_sums),
        _aggregate_work(ANYWHERE, events, source, parts, of_means, verified_means, is_exact=False),
    ]


def _aggregate_work(
    name: str,
    events: int,
    source: Mapped,
    parts: Sequence[Mapped],
    functions: dict[str, Any],
    verified: Callable[[pa.Table], None],
    *,
    is_exact: bool = True,
) -> Work:
    anywhere: dict[str, Any] = {"combine": "anywhere"}  # an older commit has no such option

    def add(flow: sw.Dataflow, rows: Mapped, replicas: int | None, suffix: str = "") -> sw.Dataflow:
        flow.source(
            f"events{suffix}",
            rows,
            event_time="ts",
            time_unit="ms",
            out_of_order="sort",
            disorder="500ms",
        ).aggregate(
            by="key",
            window=sw.tumbling("1s"),
            name=f"{AGGREGATE}{suffix}",
            **written(replicas),
            **(functions if is_exact or replicas is None else functions | anywhere),
        ).sink(f"out{suffix}", sw.collect_sink())
        return flow

    def build(replicas: int | None) -> sw.Dataflow:
        return add(sw.Dataflow("cores-aggregate"), source, replicas)

    def halves() -> sw.Dataflow:
        flow = sw.Dataflow("cores-halves")
        for n, half in enumerate(parts, start=1):
            add(flow, half, None, f"-{n}")
        return flow

    return Work(name, events, AGGREGATE, build, halves, verified, is_exact)


def _sums(events: Arrays) -> Arrays:
    """Return counts and sums of each second and key with rows."""
    seconds: Ints = events["ts"] // 1_000
    cells = seconds * KEYS + events["key"]
    counts = np.bincount(cells)
    totals = np.bincount(cells, weights=events["whole"])  # exact below 2**53
    (kept,) = np.nonzero(counts)
    check(float(totals.max(initial=0)) < 2**53, "sums beyond what a float counts exactly")
    return {
        "window_start": kept // KEYS * 1_000 * MS,
        "key": kept % KEYS,
        "n": counts[kept],
        "total": totals[kept].astype(np.int64),
    }
