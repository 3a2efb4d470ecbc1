"""Histogram of any number of latencies, in 32 KiB."""

from __future__ import annotations

from collections.abc import Mapping
from operator import mul
from typing import Any

import numpy as np

from slackwater.runtime.measure.buckets import (
    bucket_at,
    bucket_floor_ns,
    bucket_middle_ns,
    buckets_of,
    rows_by_bucket,
    rows_where,
)
from slackwater.runtime.model import Int64Array

_BITS = 6
_BUCKETS = (63 << _BITS) + 1  # every int64 from 1 ns on; the last is 2^63, to which floats round
_LARGEST_NS = 2**63 - 1


class LatencyHistogram:
    """Latencies, counted in buckets; quantiles within 1 % (1/128) of the exact ones.

    Covers all of int64, so 1 µs … 10 h and what lies outside (0 and 1 ns share a bucket).
    Minimum, maximum, count and sum are exact.

    Attributes:
        count: latencies added.
        sum_ns: their sum.
        below_zero: number of negative ones (an error between two clocks); they count as 0.
    """

    __slots__ = ("_counts", "_max_ns", "_min_ns", "below_zero", "count", "sum_ns")

    def __init__(self) -> None:
        self._counts = np.zeros(_BUCKETS, dtype=np.int64)  # rows in each bucket
        self._min_ns = _LARGEST_NS
        self._max_ns = 0
        self.count = 0
        self.sum_ns = 0
        self.below_zero = 0

    def __repr__(self) -> str:
        return f"LatencyHistogram({self.count} rows, p50={self.quantile(0.5)} ns)"

    @property
    def min_ns(self) -> int:
        """Least latency; 0 without latencies."""
        return self._min_ns if self.count else 0

    @property
    def max_ns(self) -> int:
        """Greatest latency; 0 without latencies."""
        return self._max_ns

    def add(self, values_ns: Int64Array, rows: Int64Array | None = None) -> None:
        """Count these latencies; negative ones as 0.

        Args:
            values_ns: latencies, int64, shape (values,).
            rows: shape (values,), number of rows that have each; None if each has one.
        """
        if len(values_ns) == 0:
            return
        count = len(values_ns) if rows is None else int(np.add.reduce(rows))
        least = int(np.minimum.reduce(values_ns))
        if least < 0:
            self.below_zero += rows_where(values_ns < 0, rows)
            values_ns = np.maximum(values_ns, 0)
            least = 0
        most = int(np.maximum.reduce(values_ns))
        self._min_ns = min(self._min_ns, least)
        self._max_ns = max(self._max_ns, most)
        self.count += count
        if most <= _LARGEST_NS // count:
            self.sum_ns += int(np.add.reduce(values_ns if rows is None else values_ns * rows))
        else:  # the sum would overflow int64: a clock is off by years
            each = [1] * count if rows is None else rows.tolist()
            self.sum_ns += sum(map(mul, values_ns.tolist(), each))
        places = buckets_of(values_ns if least else np.maximum(values_ns, 1), bits=_BITS)
        counts = rows_by_bucket(places, rows)
        self._counts[: len(counts)] += counts

    def quantile(self, q: float) -> int:
        """Return the latency of rank ⌈q · count⌉ in nanoseconds; 0 without latencies.

        Raises:
            ValueError: q is not in 0 … 1.
        """
        if not 0 <= q <= 1:
            raise ValueError(f"quantile({q}) must be between 0 and 1; 0.99 is the p99")
        if self.count == 0:
            return 0
        if q in (0, 1):
            return self._max_ns if q else self._min_ns
        middle = bucket_middle_ns(bucket_at(self._counts, q), bits=_BITS)
        return min(max(middle, self._min_ns), self._max_ns)

    def merge(self, other: LatencyHistogram) -> None:
        """Add all counts of the other histogram."""
        self._counts += other._counts
        self._min_ns = min(self._min_ns, other._min_ns)
        self._max_ns = max(self._max_ns, other._max_ns)
        self.count += other.count
        self.sum_ns += other.sum_ns
        self.below_zero += other.below_zero

    def since(self, earlier: LatencyHistogram) -> LatencyHistogram:
        """Return the latencies added after `earlier`, an older state of this histogram.

        Minimum and maximum are then only as good as a bucket (2 %).
        """
        recent = LatencyHistogram()
        recent._counts = self._counts - earlier._counts
        recent.count = self.count - earlier.count
        recent.sum_ns = self.sum_ns - earlier.sum_ns
        recent.below_zero = self.below_zero - earlier.below_zero
        filled = np.flatnonzero(recent._counts)
        if len(filled):
            recent._min_ns = max(self._min_ns, bucket_floor_ns(int(filled[0]), bits=_BITS))
            if filled[0] == 0:  # 0 ns and 1 ns share the first bucket
                recent._min_ns = self._min_ns
            above = bucket_floor_ns(int(filled[-1]) + 1, bits=_BITS)
            recent._max_ns = min(self._max_ns, max(above - 1, recent._min_ns))
        return recent

    def to_json(self) -> dict[str, Any]:
        """Return the histogram as plain JSON values, and some quantiles for people.

        `buckets` is [bucket, rows, bucket, rows, …] for the buckets that hold any.
        """
        filled = np.flatnonzero(self._counts)
        return {
            "count": self.count,
            "sum_ns": self.sum_ns,
            "min_ns": self.min_ns,
            "max_ns": self.max_ns,
            "below_zero": self.below_zero,
            "p50_ns": self.quantile(0.5),
            "p99_ns": self.quantile(0.99),
            "p999_ns": self.quantile(0.999),
            "buckets": np.stack([filled, self._counts[filled]], axis=1).ravel().tolist(),
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> LatencyHistogram:
        """Return the histogram that `to_json` described.

        Raises:
            KeyError, TypeError, ValueError: `plain` is not such a histogram.
        """
        made = cls()
        flat = np.asarray(plain["buckets"], dtype=np.int64)
        filled, rows = flat[0::2], flat[1::2]
        if len(filled) and not 0 <= filled.min() <= filled.max() < _BUCKETS:
            raise ValueError(f"a latency bucket must be in 0 … {_BUCKETS - 1}")
        if len(rows) and (rows.min() < 0 or len(np.unique(filled)) < len(filled)):
            raise ValueError("the latencies of a bucket are counted once, from 0 on")
        made._counts[filled] = rows
        made.count = int(plain["count"])
        if made.count != int(rows.sum()):
            raise ValueError(f"{made.count} latencies, but {rows.sum()} in the buckets")
        made.sum_ns = int(plain["sum_ns"])
        made._min_ns = int(plain["min_ns"]) if made.count else _LARGEST_NS
        made._max_ns = int(plain["max_ns"])
        made.below_zero = int(plain["below_zero"])
        return made
