"""The three datasets of [thesis] §5.1, imitated: how many rows come late, and by how much.

The thesis has them as pictures (Fig. 5.2-5.5) and this text: dataset 1 "mainly two significant late
arrivals", on average 0.1 to 0.3 ms, 750 to 1000 ms at most; dataset 2 a "much wider distribution",
less than 1 ms on average, less than 2 s at most; dataset 3 1 to 7 ms, up to 30 s. Table 5.2 has how
many events are out of order. Ours draw so:

| dataset | mean delay of a second's late rows | far delays |
| --- | --- | --- |
| 1 | evenly in 0.1–0.3 ms | 2 and 3 rows, a third and two thirds through, evenly in 750–1000 ms |
| 2 | evenly in 0.2–0.9 ms | one a second, by the logarithm evenly in 10 ms–1.8 s |
| 3 | evenly in 1–7 ms | one each 3 s, by the logarithm evenly in 30 ms–30 s |

Late rows are drawn at random, as many as give the table's number out of order; their delay is one
row's spacing, and beyond it exponential. The largest far delay is the maximum itself. The rows are
those of a soccer match, sped up to 15,000 a second, its two breaks closed, and repeated, time going
on; numbers follow event time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow.parquet as pq

from examples.real_data import soccer
from slackwater.runtime.model import NS_PER_SECOND, Int64Array

MS = 1_000_000
RATE = 15_000
SPACING_NS = NS_PER_SECOND // RATE
_BREAK_US = 1_000_000


@dataclass(frozen=True)
class Dataset:
    """What a dataset of the thesis is like; lengths in ms.

    Attributes:
        rows, out_of_order: [thesis] Table 5.2.
        mean_ms: between which the mean delay of a second's late rows lies.
        far_ms: between which the few far delays lie.
        every_s: one of those comes in so many seconds; None: they come at `peaks`.
        peaks: (share of the stream that is over, rows that are far behind there).
    """

    name: str
    rows: int
    out_of_order: int
    mean_ms: tuple[float, float]
    far_ms: tuple[float, float]
    every_s: float | None = None
    peaks: tuple[tuple[float, int], ...] = ()

    def shortened(self, rows: int) -> Dataset:
        """Return one of fewer rows, as much out of order."""
        share = self.out_of_order / self.rows
        return Dataset(
            self.name,
            rows,
            round(share * rows),
            self.mean_ms,
            self.far_ms,
            self.every_s,
            self.peaks,
        )


DATASETS = (
    Dataset("dataset 1", 499_982, 62_473, (0.1, 0.3), (750, 1_000), peaks=((1 / 3, 2), (2 / 3, 3))),
    Dataset("dataset 2", 499_499, 62_409, (0.2, 0.9), (10, 1_800), every_s=1),
    Dataset("dataset 3", 999_499, 83_212, (1, 7), (30, 30_000), every_s=3),
)


@dataclass(frozen=True)
class Arrivals:
    """Rows in the order in which they arrive; each of shape (rows,).

    Attributes:
        event_ns: when each happened: at its source, and sent at once.
        arrival_ns: when it arrived, ascending.
        number: its place by event time among those of its source, from 0.
        source: which source it is of.
    """

    event_ns: Int64Array
    arrival_ns: Int64Array
    number: Int64Array
    source: Int64Array

    @property
    def out_of_order(self) -> int:
        """Rows behind a newer one that came just before. Source: [thesis] §5.2.2, item 2."""
        return steps_back(self.event_ns)

    @classmethod
    def of(cls, event_ns: Int64Array, delay_ns: Int64Array, source: int = 0) -> Arrivals:
        """Return rows, given by event time, in the order of their arrivals."""
        arrival_ns = event_ns + delay_ns
        order = np.argsort(arrival_ns, kind="stable")
        return cls(event_ns[order], arrival_ns[order], order, np.full(len(order), source))


def steps_back(event_ns: Int64Array) -> int:
    """Return how many rows are older than the one just before them."""
    return int((event_ns[1:] < event_ns[:-1]).sum())


def match_times(rows: int) -> Int64Array:
    """Return the ascending event times of a match at 15,000 rows a second; shape (rows,).

    Raises:
        NoRealData: there is no match.
    """
    path = next(iter(sorted(soccer().glob("*.parquet"))))
    table = pq.read_table(path, columns=["event_time_us"])
    times_us = table["event_time_us"].to_numpy().astype(np.int64)
    steps_us = np.diff(times_us, prepend=times_us[0])
    steps_us[steps_us > _BREAK_US] = 0
    played = np.cumsum(steps_us).astype(np.float64)
    once_ns = len(played) * NS_PER_SECOND // RATE
    place = (played * (once_ns - SPACING_NS) / played[-1]).astype(np.int64)
    times = -(-rows // len(place))
    laps = np.arange(times, dtype=np.int64)[:, None] * once_ns
    repeated: Int64Array = (laps + place[None, :]).reshape(-1)[:rows]
    return repeated


def imitated(dataset: Dataset, event_ns: Int64Array, rng: np.random.Generator) -> Arrivals:
    """Return a dataset as it arrives, drawn as the table above says.

    Args:
        dataset: what it is like.
        event_ns: shape (dataset.rows,), ascending.
        rng: draws which rows are late, and by how much.
    """
    rows = len(event_ns)
    most = min(2 * dataset.out_of_order, rows)
    chosen = rng.permutation(rows)[:most]
    body_ns = _body_ns(dataset, event_ns[chosen], rng)
    far_at, far_ns = _far(dataset, event_ns, rng)

    def with_late(number: int) -> Arrivals:
        delay_ns = np.zeros(rows, dtype=np.int64)
        delay_ns[chosen[:number]] = body_ns[:number]
        delay_ns[far_at] = far_ns
        return Arrivals.of(event_ns, delay_ns)

    least = 0
    while most - least > max(1, dataset.out_of_order // 2_000):  # as many as the table says
        middle = (least + most) // 2
        if with_late(middle).out_of_order < dataset.out_of_order:
            least = middle
        else:
            most = middle
    return with_late(most)


def _body_ns(dataset: Dataset, event_ns: Int64Array, rng: np.random.Generator) -> Int64Array:
    second = event_ns // NS_PER_SECOND
    mean_ns = MS * rng.uniform(*dataset.mean_ms, int(second.max(initial=0)) + 1)[second]
    drawn = SPACING_NS + rng.exponential(np.maximum(mean_ns - SPACING_NS, 1))
    return drawn.astype(np.int64)


def _far(
    dataset: Dataset, event_ns: Int64Array, rng: np.random.Generator
) -> tuple[Int64Array, Int64Array]:
    """Return the rows that are far behind, and by how much; each of shape (far rows,)."""
    rows = len(event_ns)
    least, most = dataset.far_ms
    if dataset.every_s is None:
        at = np.concatenate(
            [int(where * rows) + 20 * np.arange(number) for where, number in dataset.peaks]
        )
        far_ms = rng.uniform(least, most, len(at))
    else:
        starts = np.arange(0, rows, round(RATE * dataset.every_s))
        at = np.minimum(starts + rng.integers(0, round(RATE * dataset.every_s)), rows - 1)
        far_ms = np.exp(rng.uniform(np.log(least), np.log(most), len(at)))
    # Whole within the stream, so that a maximum is one of what arrives before its end.
    left_ms = (event_ns[-1] - event_ns[at]) / MS
    far_ms = np.minimum(far_ms, np.maximum(left_ms, least))
    if left_ms[0] > most:
        far_ms[0] = most
    return at, (MS * far_ms).astype(np.int64)


SHIFT_NS = 3 * MS
"""How much later each source sends than the one before it. Source: [thesis] §5.1.2."""


def from_several(
    dataset: Dataset, event_ns: Int64Array, rng: np.random.Generator, *, sources: int
) -> Arrivals:
    """Return a dataset sent by several sources, each with delays of its own.

    Args:
        dataset: what each source sends.
        event_ns: shape (dataset.rows,), ascending, of source 0; source i sends the same 3 ms · i
            later.
        rng: draws the delays.
        sources: how many, at least 1.
    """
    each = [imitated(dataset, event_ns + SHIFT_NS * one, rng) for one in range(sources)]
    arrival_ns = np.concatenate([one.arrival_ns for one in each])
    order = np.argsort(arrival_ns, kind="stable")
    return Arrivals(
        np.concatenate([one.event_ns for one in each])[order],
        arrival_ns[order],
        np.concatenate([one.number for one in each])[order],
        np.repeat(np.arange(sources), [len(one.number) for one in each])[order],
    )
