"""Log-linear buckets: every power of two of nanoseconds in equal parts.

A float64 already is such a bucket number: its exponent is the power of two, the first bits
of its mantissa are the part. So one conversion and one shift find a whole batch's buckets.

```
bits = 2    1 ns        2 ns        4 ns                    8 ns
            |0 |1 |2 |3 |4 |5 |6 |7 |8   |9   |10  |11  |12 ...
```
"""

from __future__ import annotations

import numpy as np

from slackwater.runtime.model import BoolArray, Int64Array

_MANTISSA_BITS = 52
_EXPONENT_BIAS = 1023


def buckets_of(values_ns: Int64Array, *, bits: int) -> Int64Array:
    """Return each value's bucket, shape (rows,); 2^bits buckets to a power of two.

    Args:
        values_ns: shape (rows,), each at least 1 ns.
        bits: the relative error of a bucket's middle is at most 2^-(bits + 1).
    """
    number = values_ns.astype(np.float64).view(np.int64)
    number >>= _MANTISSA_BITS - bits
    number -= _EXPONENT_BIAS << bits
    return number


def rows_by_bucket(
    buckets: Int64Array, rows: Int64Array | None = None, *, least: int = 0
) -> Int64Array:
    """Return the rows of each bucket, to the last with any or to `least`.

    Args:
        buckets: shape (values,), the bucket of each value.
        rows: shape (values,), number of rows that have each value, below 2^53 in all; None if each
            has one.
        least: least number of buckets.
    """
    counts = np.bincount(buckets, rows, minlength=least)
    return counts.astype(np.int64, copy=False)  # exact: floats of whole numbers below 2^53


def rows_where(mask: BoolArray, rows: Int64Array | None = None) -> int:
    """Return the number of rows of the values for which `mask`, shape (values,), is true."""
    return int(np.count_nonzero(mask) if rows is None else np.add.reduce(rows[mask]))


def bucket_floor_ns(bucket: int, *, bits: int) -> int:
    """Return the least whole number of nanoseconds that falls into a bucket."""
    power, part = divmod(bucket, 1 << bits)
    return -(-((1 << power) * ((1 << bits) + part)) >> bits)


def bucket_middle_ns(bucket: int, *, bits: int) -> int:
    """Return a bucket's middle, in whole nanoseconds that fall into it."""
    power, part = divmod(bucket, 1 << bits)
    twice = 2 * ((1 << bits) + part) + 1
    return max(((1 << power) * twice) >> (bits + 1), bucket_floor_ns(bucket, bits=bits))


def bucket_at(counts: Int64Array, q: float) -> int:
    """Return the bucket of the value of rank ⌈q · count⌉, at least 1.

    Args:
        counts: shape (buckets,), rows in each; not all zero.
        q: quantile, from 0 to 1.
    """
    running = np.cumsum(counts)
    rank = max(1, int(np.ceil(q * int(running[-1]))))
    return int(np.searchsorted(running, min(rank, int(running[-1]))))
