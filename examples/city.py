"""A made-up city: buses that report late, loops that count cars, as [ssg] §6 describes them.

911 buses report every 20 s, 3,504 SCATS loops every minute; `rate` multiplies both. Written as
parquet, in the order of arrival.

    .venv/bin/python -m examples.city FOLDER      two minutes of it, in two files
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

BUSES, BUS_EVERY_S = 911, 20.0
LOOPS, LOOP_EVERY_S = 3_504, 60.0
DAY_NS = 1_706_745_600_000_000_000  # 2024-02-01 00:00 UTC
MS_NS = 1_000_000

Int64Array = npt.NDArray[np.int64]
DelayPolicy = Callable[[Int64Array, np.random.Generator], Int64Array]
"""(event times from the start, ns, sorted) -> arrival times from the start, ns."""


@dataclass(frozen=True, kw_only=True)
class City:
    """What to generate.

    Attributes:
        seconds: length of event time.
        rate: multiplies both report rates; 11 gives about 500 buses and 640 loops a second.
        areas: how many sub-areas the city is split into.
        policy: how late buses are: "zipf", "constant" or "none".
        seed: of everything that is drawn.
    """

    seconds: float = 120.0
    rate: float = 11.0
    areas: int = 200
    policy: str = "zipf"
    seed: int = 7


def generate(city: City, folder: Path) -> tuple[Path, Path]:
    """Write `buses.parquet` and `loops.parquet` into the folder and return their paths.

    Columns: event_time, arrival (timestamp[ms], UTC); then vehicle, area, delay_s (seconds
    behind the timetable) for buses, and loop, area, flow (cars an hour) for loops.
    """
    rng = np.random.default_rng(city.seed)
    folder.mkdir(parents=True, exist_ok=True)
    times, vehicle = _reports(BUSES, BUS_EVERY_S / city.rate, city.seconds, rng)
    arrival = POLICIES[city.policy](times, rng)
    buses = {
        "event_time": _timestamps(times),
        "arrival": _timestamps(arrival),
        "vehicle": pa.array(vehicle, pa.int32()),
        "area": pa.array(rng.integers(0, city.areas, len(times)), pa.int32()),
        "delay_s": pa.array(_bus_delay_s(len(times), rng), pa.int32()),
    }
    times, loop = _reports(LOOPS, LOOP_EVERY_S / city.rate, city.seconds, rng)
    loops = {
        "event_time": _timestamps(times),
        "arrival": _timestamps(times),
        "loop": pa.array(loop, pa.int32()),
        "area": pa.array(loop % city.areas, pa.int32()),
        "flow": pa.array(_flow(len(times), rng), pa.int32()),
    }
    paths = folder / "buses.parquet", folder / "loops.parquet"
    for path, columns in zip(paths, (buses, loops), strict=True):
        pq.write_table(pa.table(columns), path, compression="zstd")
    return paths


def zipf_delays(times_ns: Int64Array, rng: np.random.Generator) -> Int64Array:
    """Arrivals under the alternating Zipf policy, as Fig. 1 and 12 need it.

    For 20 s each insertion takes 0-10 ms, P(k) ∝ 1/(k+1); for the next 50 s 0-2 ms, P(k) ∝
    1/(k+1)^0.35; and so on. Insertion i happens at max(its time, insertion i − 1) + its delay, so
    while they are slower than the reports come, lag builds up to several seconds.
    """
    slow = times_ns % (70 * 10**9) < 20 * 10**9
    drawn = np.where(slow, _zipf(10, 1.0, len(times_ns), rng), _zipf(2, 0.35, len(times_ns), rng))
    # insertion i = S_i + max over j <= i of (t_j − S_{j−1}), S the running sum of the delays.
    total = np.cumsum(drawn * MS_NS)
    before = np.concatenate(([0], total[:-1]))
    return np.asarray(total + np.maximum.accumulate(times_ns - before), dtype=np.int64)


def constant_delays(times_ns: Int64Array, rng: np.random.Generator) -> Int64Array:
    """Bus event i arrives i × 1 ms late, as Fig. 11 and 13 need it."""
    del rng
    return np.asarray(times_ns + np.arange(len(times_ns)) * MS_NS, dtype=np.int64)


def no_delays(times_ns: Int64Array, rng: np.random.Generator) -> Int64Array:
    """Everything arrives when it happens."""
    del rng
    return times_ns


POLICIES: dict[str, DelayPolicy] = {
    "zipf": zipf_delays,
    "constant": constant_delays,
    "none": no_delays,
}


def _zipf(
    largest: int, exponent: float, size: int, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    weights = 1.0 / np.arange(1, largest + 2) ** exponent
    return rng.choice(largest + 1, size=size, p=weights / weights.sum())


def _reports(
    devices: int, every_s: float, seconds: float, rng: np.random.Generator
) -> tuple[Int64Array, Int64Array]:
    """Times (ns from the start, whole ms, sorted) and devices of reports at even intervals."""
    phase = rng.uniform(0, every_s, devices)
    rounds = np.arange(int(seconds / every_s) + 1)
    times_s = (phase[:, None] + rounds[None, :] * every_s).ravel()
    device = np.repeat(np.arange(devices), len(rounds))
    kept = times_s < seconds
    times_ns = (times_s[kept] * 1_000).astype(np.int64) * MS_NS
    order = np.lexsort((device[kept], times_ns))
    return times_ns[order], device[kept][order]


def _bus_delay_s(rows: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    # One bus in ten is more than 300 s behind its timetable.
    return np.where(
        rng.random(rows) < 0.1, rng.integers(301, 900, rows), rng.integers(0, 300, rows)
    )


def _flow(rows: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    # One loop in fifty counts more than 1,000 cars an hour.
    return np.where(
        rng.random(rows) < 0.02, rng.integers(1_001, 2_000, rows), rng.integers(0, 1_000, rows)
    )


def _timestamps(from_start_ns: Int64Array) -> pa.Array:
    milliseconds = (from_start_ns + DAY_NS) // MS_NS
    return pa.array(milliseconds, pa.timestamp("ms", tz="UTC"))


if __name__ == "__main__":
    generate(City(), Path(sys.argv[1]))
