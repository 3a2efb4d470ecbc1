"""Series of latency over stimulus time, for the picture of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from slackwater.runtime.measure.buckets import (
    bucket_at,
    bucket_middle_ns,
    buckets_of,
    rows_by_bucket,
)
from slackwater.runtime.model import NS_PER_SECOND, Int64Array

MAX_BINS = 512

_BITS = 3
_LEAST_NS = 1 << 10  # 1 µs; lower latencies count as this in the quantiles
_MOST_NS = (1 << 46) - 1  # 19.5 h; higher latencies count as this
_FIRST_BUCKET = 10 << _BITS
_BUCKETS = 36 << _BITS


@dataclass(frozen=True)
class SeriesBin:
    """Latencies of the events whose stimulus fell in [start_ns, start_ns + width_ns).

    The quantiles are within 7 %, and between 1 µs and 19.5 h; the maximum is exact.
    """

    start_ns: int
    width_ns: int
    count: int
    p50_ns: int
    p99_ns: int
    max_ns: int


class LatencySeries:
    """Latencies in bins of stimulus time, 1 s wide; at most `MAX_BINS`.

    When more would be needed, neighbours merge and the width doubles, so that memory stays
    below 1.2 MB and a run of any length has a picture. Bins lie at multiples of their width,
    so series of several nodes merge bin by bin.
    """

    __slots__ = ("_counts", "_first", "_max_ns", "width_ns")

    def __init__(self) -> None:
        self.width_ns = NS_PER_SECOND
        self._first = 0  # number of the first bin: it starts at _first · width_ns
        self._counts = np.zeros((0, _BUCKETS), dtype=np.int64)  # (bins, buckets)
        self._max_ns = np.zeros(0, dtype=np.int64)  # (bins,)

    def __repr__(self) -> str:
        return f"LatencySeries({len(self._max_ns)} bins of {self.width_ns / NS_PER_SECOND:g} s)"

    def add(
        self, stimulus_ns: Int64Array, latency_ns: Int64Array, rows: Int64Array | None = None
    ) -> None:
        """Count these latencies; negative ones as 0.

        Args:
            stimulus_ns: times of the stimuli, int64, shape (values,).
            latency_ns: latencies of rows, int64, shape (values,).
            rows: shape (values,), number of rows that have each pair; None if each has one.
        """
        if len(stimulus_ns) == 0:
            return
        earliest = int(np.minimum.reduce(stimulus_ns))
        latest = int(np.maximum.reduce(stimulus_ns))
        self._cover(earliest, latest)
        within = np.minimum(np.maximum(latency_ns, _LEAST_NS), _MOST_NS)
        buckets = buckets_of(within, bits=_BITS)
        buckets -= _FIRST_BUCKET
        start = earliest // self.width_ns - self._first
        if start == latest // self.width_ns - self._first:  # most batches: one bin
            self._counts[start] += rows_by_bucket(buckets, rows, least=_BUCKETS)
            self._max_ns[start] = max(self._max_ns[start], np.maximum.reduce(latency_ns))
            return
        bins = stimulus_ns // self.width_ns
        bins -= self._first
        np.maximum.at(self._max_ns, bins, latency_ns)
        bins *= _BUCKETS
        bins += buckets
        np.add.at(self._counts.reshape(-1), bins, 1 if rows is None else rows)

    def bins(self) -> list[SeriesBin]:
        """Return the bins that hold any rows, in time order."""
        made = []
        for row in np.flatnonzero(self._counts.any(axis=1)).tolist():
            counts, most = self._counts[row], int(self._max_ns[row])
            p50, p99 = (
                min(bucket_middle_ns(bucket_at(counts, q) + _FIRST_BUCKET, bits=_BITS), most)
                for q in (0.5, 0.99)
            )
            start_ns = (self._first + row) * self.width_ns
            made.append(SeriesBin(start_ns, self.width_ns, int(counts.sum()), p50, p99, most))
        return made

    def merge(self, other: LatencySeries) -> None:
        """Add all counts of the other series, which stays as it is."""
        if len(other._max_ns) == 0:
            return
        added = other._copy()
        while added.width_ns < self.width_ns:
            added._double()
        while self.width_ns < added.width_ns:
            self._double()
        self._cover(
            added._first * added.width_ns, (added._first + len(added._max_ns)) * added.width_ns - 1
        )
        while added.width_ns < self.width_ns:
            added._double()
        start = added._first - self._first
        rows = slice(start, start + len(added._max_ns))
        self._counts[rows] += added._counts
        self._max_ns[rows] = np.maximum(self._max_ns[rows], added._max_ns)

    def to_json(self) -> dict[str, Any]:
        """Return the series as plain JSON values, each bin with quantiles for people.

        `buckets` is [bucket, rows, bucket, rows, …] for the buckets that hold any.
        """
        described = []
        for interval in self.bins():
            counts = self._counts[interval.start_ns // self.width_ns - self._first]
            filled = np.flatnonzero(counts)
            described.append(
                {
                    "start_ns": interval.start_ns,
                    "count": interval.count,
                    "p50_ns": interval.p50_ns,
                    "p99_ns": interval.p99_ns,
                    "max_ns": interval.max_ns,
                    "buckets": np.stack([filled, counts[filled]], axis=1).ravel().tolist(),
                }
            )
        return {"width_ns": self.width_ns, "bins": described}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> LatencySeries:
        """Return the series that `to_json` described.

        Raises:
            KeyError, TypeError, ValueError: `plain` is not such a series.
        """
        made = cls()
        made.width_ns = int(plain["width_ns"])
        seconds, rest = divmod(made.width_ns, NS_PER_SECOND)
        if rest or seconds < 1 or seconds & (seconds - 1):
            raise ValueError(f"width_ns={made.width_ns} must be 1 s, 2 s, 4 s, …")
        starts = [int(described["start_ns"]) for described in plain["bins"]]
        if not starts:
            return made
        if (max(starts) - min(starts)) // made.width_ns >= MAX_BINS:
            raise ValueError(f"a latency series has at most {MAX_BINS} bins")
        made._cover(min(starts), max(starts))
        for start_ns, described in zip(starts, plain["bins"], strict=True):
            row = start_ns // made.width_ns - made._first
            flat = np.asarray(described["buckets"], dtype=np.int64)
            if not 0 <= flat[0::2].min() <= flat[0::2].max() < _BUCKETS:
                raise ValueError(f"a bucket of a series must be in 0 … {_BUCKETS - 1}")
            if flat[1::2].min() < 0:
                raise ValueError("the latencies of a bucket are counted from 0 on")
            made._counts[row, flat[0::2]] = flat[1::2]
            made._max_ns[row] = int(described["max_ns"])
        return made

    def _cover(self, earliest_ns: int, latest_ns: int) -> None:
        """Make room for bins between two stimulus times; widen bins if necessary."""
        first, last = earliest_ns // self.width_ns, latest_ns // self.width_ns
        held = len(self._max_ns)
        if held and self._first <= first and last < self._first + held:
            return
        if held:
            first, last = min(first, self._first), max(last, self._first + held - 1)
        else:
            self._first = first
        while last - first >= MAX_BINS:
            self._double()
            first, last = first // 2, last // 2
        self._pad(self._first - first, last - (self._first + len(self._max_ns) - 1))

    def _double(self) -> None:
        """Merge bins 2k and 2k + 1, for all k."""
        self._pad(self._first % 2, (self._first + len(self._max_ns)) % 2)
        pairs = len(self._max_ns) // 2
        self._counts = self._counts.reshape(pairs, 2, _BUCKETS).sum(axis=1)
        self._max_ns = self._max_ns.reshape(pairs, 2).max(axis=1)
        self._first //= 2
        self.width_ns *= 2

    def _pad(self, before: int, after: int) -> None:
        self._counts = np.pad(self._counts, ((before, after), (0, 0)))
        self._max_ns = np.pad(self._max_ns, (before, after))
        self._first -= before

    def _copy(self) -> LatencySeries:
        made = LatencySeries()
        made.width_ns, made._first = self.width_ns, self._first
        made._counts, made._max_ns = self._counts.copy(), self._max_ns.copy()
        return made
