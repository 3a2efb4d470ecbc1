"""The events that the benchmarks run on, drawn from a seed, and the inputs that hand them over."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import slackwater as sw
from slackwater.runtime.sources.spec import END_OF_INPUT, EndOfInput

MS = 1_000_000
AREAS, VEHICLES, SENSORS, KEYS = 200, 911, 3_504, 1_000
DELAY_OVER, FLOW_OVER = 300, 1_000
MEAN_DELAY_S = DELAY_OVER / math.log(10)  # exponential, so that 10 % of buses are over
MEAN_FLOW = FLOW_OVER / math.log(50)  # 2 % of sensors
DENSE_OVER = 400_000  # delay_s × flow
WITHIN = "5s"
WITHIN_NS = 5_000 * MS
BLOCK_ROWS = 65_536  # a source cuts blocks into takes of at most 10,000 rows

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Mapped:
    """Rows in an Arrow IPC file, mapped into memory where the source runs.

    The file lies in the page cache (it has just been written), so that opening it copies nothing
    and reading it costs what touching its pages costs: no file is read while the clock runs.

    Attributes:
        path: path of the file.
    """

    reads_inline: ClassVar[bool] = True
    blocks_stay: ClassVar[bool] = True
    is_history: ClassVar[bool] = True
    path: str

    def describe(self) -> str:
        """Return its path."""
        return f"memory-mapped {self.path}"

    def schema(self) -> pa.Schema:
        """Return its columns."""
        with pa.memory_map(self.path) as file:
            return pa.ipc.open_file(file).schema

    def open(self) -> MappedReader:
        """Map it."""
        return MappedReader(self)


@dataclass(frozen=True)
class MappedParts:
    """Rows of several such files, each a partition with an order of its own.

    Attributes:
        files: files, each of them a partition.
    """

    reads_inline: ClassVar[bool] = True
    blocks_stay: ClassVar[bool] = True
    is_history: ClassVar[bool] = True
    replay: ClassVar[str] = "exact"
    files: tuple[Mapped, ...]

    def describe(self) -> str:
        """Return how many they are."""
        return f"{len(self.files)} memory-mapped files"

    def schema(self) -> pa.Schema:
        """Return their columns."""
        return self.files[0].schema()

    def partitions(self) -> list[sw.connectors.Partition]:
        """Return them by number."""
        return [sw.connectors.Partition(str(number)) for number in range(len(self.files))]

    def open(self, name: str = "", at: bytes | None = None) -> MappedReader:
        """Map a partition, at its beginning."""
        del at  # no position is given out
        return self.files[int(name)].open()


class MappedReader:
    """Hands the blocks of a file over, as views of it."""

    def __init__(self, spec: Mapped) -> None:
        self._file = pa.memory_map(spec.path)
        self._blocks = pa.ipc.open_file(self._file)
        self._next = 0

    def poll(self) -> pa.RecordBatch | EndOfInput:
        """Return the next block, or END_OF_INPUT."""
        if self._next >= self._blocks.num_record_batches:
            return END_OF_INPUT
        self._next += 1
        return self._blocks.get_batch(self._next - 1)

    def close(self) -> None:
        """Unmap it."""
        self._file.close()


def write(table: pa.Table, path: Path) -> Mapped:
    """Write a table as an uncompressed Arrow IPC file, and return it as an input."""
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=BLOCK_ROWS)
    return Mapped(str(path))


def write_parts(table: pa.Table, path: Path, parts: int) -> MappedParts:
    """Write each row in turn to another file of several, and return them as partitions."""
    places = np.arange(len(table))
    return MappedParts(
        tuple(
            write(table.take(places[part::parts]), Path(f"{path} {part + 1} of {parts}"))
            for part in range(parts)
        )
    )


def join_tables(
    seed: int, *, events: int, seconds: int, areas: int = AREAS
) -> tuple[pa.Table, pa.Table]:
    """Return Bus(ts, area, delay_s, vehicle) and Scats(ts, area, flow, sensor), each in order.

    Args:
        seed: of all that is drawn.
        events: of each.
        seconds: of event time that they are spread over, at random.
        areas: number of areas, all alike.
    """
    rng = np.random.default_rng(seed)

    def times() -> Ints:
        return np.sort(rng.integers(0, seconds * 1_000, events))

    return _buses(rng, times(), areas), _loops(rng, times(), areas)


def _buses(rng: np.random.Generator, ts_ms: Ints, areas: int = AREAS) -> pa.Table:
    rows = len(ts_ms)
    return pa.table(
        {
            "ts": ts_ms,
            "area": rng.integers(0, areas, rows, dtype=np.int32),
            "delay_s": rng.exponential(MEAN_DELAY_S, rows).astype(np.int32),
            "vehicle": rng.integers(0, VEHICLES, rows, dtype=np.int32),
        }
    )


def _loops(rng: np.random.Generator, ts_ms: Ints, areas: int = AREAS) -> pa.Table:
    rows = len(ts_ms)
    return pa.table(
        {
            "ts": ts_ms,
            "area": rng.integers(0, areas, rows, dtype=np.int32),
            "flow": rng.exponential(MEAN_FLOW, rows).astype(np.int32),
            "sensor": rng.integers(0, SENSORS, rows, dtype=np.int32),
        }
    )


def paced_tables(seed: int, *, rate: int, seconds: int) -> tuple[pa.Table, pa.Table]:
    """Return the same with column `arrival` (timestamp[ns]), for a run of wall-clock time.

    Half of `rate` events a second are buses, at regular intervals. Scats arrive as they happen;
    buses late by `lag_ns`, none before the one ahead of it.
    """
    rng = np.random.default_rng(seed)
    rows = rate // 2 * seconds
    happened = np.arange(rows) * (seconds * 1_000 * MS // rows)
    arrived = np.maximum.accumulate(happened + lag_ns(rng, happened))
    ts = pa.array(happened // MS)
    stamps = [pa.array(a).view(pa.timestamp("ns")) for a in (arrived, happened)]
    buses, loops = _buses(rng, ts.to_numpy()), _loops(rng, ts.to_numpy())
    return buses.append_column("arrival", stamps[0]), loops.append_column("arrival", stamps[1])


def lag_ns(rng: np.random.Generator, times_ns: Ints) -> Ints:
    """Return how late buses of these times arrive: a wave of a minute, and levels of 2 s."""
    weights = 1 / np.arange(1, 11) ** 1.5  # Zipf(1.5) over 0 … 9
    seconds = times_ns / (1_000 * MS)
    places = (seconds // 2).astype(np.int64)
    level = rng.choice(10, p=weights / weights.sum(), size=int(places.max()) + 1) * 66
    lag_ms = 700 * (1 + np.sin(2 * np.pi * seconds / 60)) + level[places]
    return (lag_ms.clip(0, 2_000) * MS).astype(np.int64)


def late_table(seed: int, *, events: int, seconds: int) -> pa.Table:
    """Return Event(ts, key, value) as they arrive: 10 % of them up to 500 ms late."""
    rng = np.random.default_rng(seed)
    ts = np.sort(rng.integers(0, seconds * 1_000, events))
    late = np.where(rng.random(events) < 0.1, rng.integers(1, 501, events), 0)
    order = (ts + late).argsort(kind="stable")
    return pa.table(
        {
            "ts": ts[order],
            "key": rng.integers(0, KEYS, events, dtype=np.int32),
            "value": rng.normal(size=events),
        }
    )


def join_flow(
    buses: Mapped,
    loops: Mapped,
    sink: sw.connectors.Output,
    *,
    is_dense: bool = False,
    over: tuple[float, float] = (DELAY_OVER, FLOW_OVER),
    slack: str | None = None,
    replicas: int | None = None,
) -> sw.Dataflow:
    """Return the join of late buses and busy sensors, sink `pairs`.

    Inputs with an `arrival` column are replayed at the speed of the clock, and their results carry
    both arrivals instead of `delay_s` and `flow`.
    """
    flow = sw.Dataflow("join", slack=slack)
    left = _source(flow, "bus", buses).filter(sw.col("delay_s") > over[0])
    right = _source(flow, "scats", loops)
    where = None
    if is_dense:
        where = sw.col("delay_s") * sw.col("flow") > DENSE_OVER
    else:
        right = right.filter(sw.col("flow") > over[1])
    if "arrival" in left.columns:
        left, right = left.drop("delay_s"), right.drop("flow")
    left.join(right, on="area", within=WITHIN, where=where, **written(replicas)).sink("pairs", sink)
    return flow


def written(replicas: int | None) -> dict[str, Any]:
    """Return `replicas=` as a keyword; none if not written: older commits refuse None."""
    return {} if replicas is None else {"replicas": replicas}


def _source(flow: sw.Dataflow, name: str, source: Mapped) -> sw.Stream:
    if "arrival" in source.schema().names:
        return flow.source(
            name, source, event_time="ts", time_unit="ms", arrival="arrival", speed=1.0
        )
    return flow.source(name, source, event_time="ts", time_unit="ms")
