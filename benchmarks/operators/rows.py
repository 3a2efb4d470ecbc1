"""Rows of the questions, drawn from a seed: in order of event time, all values whole numbers.

```
rows      t, k, x, id      10,000 rows a second, 10,000 keys; `id` differs in each row
others    t, k, y          the same, for joins
places    k, place         one row for each key, for look-ups
bids, auctions, persons    columns of Nexmark that its queries read, 10,000 events a second
```
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["KEYS", "Tables", "draw_tables"]

KEYS = 10_000
MEAN_GAP_US = 100
BEGIN_US = 1_700_000_000_000_000
AUCTION_BIDS = 15
"""Bids for each new auction, as 46 of 50 events are bids and 3 are auctions."""
HOT_SHARE = 0.5
HOT_EVERY = 100
OPEN_AUCTIONS = 1_000
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Tables:
    """Tables of all questions, as Arrow; a join has half of the rows on each side."""

    rows: pa.Table
    halves: tuple[pa.Table, pa.Table]
    places: pa.Table
    bids: pa.Table
    auctions: pa.Table
    persons: pa.Table


def draw_tables(seed: int, rows: int) -> Tables:
    """Return the tables of a seed.

    Args:
        seed: seed of all that is drawn.
        rows: rows of each question, those of both inputs together.
    """
    rng = np.random.default_rng(seed)
    plain = _keyed(rng, rows, "x").append_column("id", pa.array(rng.permutation(rows)))
    halves = _keyed(rng, rows // 2, "x"), _keyed(rng, rows - rows // 2, "y")
    places = pa.table({"k": np.arange(KEYS), "place": rng.integers(0, 200, KEYS)})
    persons = rows // 4
    return Tables(
        plain, halves, places, _bids(rng, rows), _auctions(rng, rows - persons), _persons(persons)
    )


def _keyed(rng: np.random.Generator, rows: int, value: str) -> pa.Table:
    return pa.table(
        {
            "t": _times(rng, rows),
            "k": rng.integers(0, KEYS, rows),
            value: rng.integers(0, 1_000, rows),
        }
    )


def _times(rng: np.random.Generator, rows: int, gap_us: int = MEAN_GAP_US) -> pa.Array:
    """Return increasing times, no two alike: so no tie needs a rule."""
    gaps = rng.integers(1, 2 * gap_us, rows)
    return pa.array(BEGIN_US + gaps.cumsum(), pa.timestamp("us"))


def _bids(rng: np.random.Generator, rows: int) -> pa.Table:
    newest = np.arange(rows) // AUCTION_BIDS
    auction = newest - rng.integers(0, OPEN_AUCTIONS, rows)
    hot = newest // HOT_EVERY * HOT_EVERY
    auction = np.where(rng.random(rows) < HOT_SHARE, hot, auction) + OPEN_AUCTIONS
    return pa.table(
        {
            "t": _times(rng, rows),
            "auction": auction,
            "bidder": rng.integers(0, rows // 10 + 1, rows),
            "price": rng.integers(100, 10_000_000, rows),
        }
    )


def _auctions(rng: np.random.Generator, rows: int) -> pa.Table:
    """Return auctions, three for each person; sellers are mostly new."""
    seller = np.maximum(np.arange(rows) // 3 - rng.integers(0, 50_000, rows), 0)
    return pa.table({"t": _times(rng, rows), "auction": np.arange(rows), "seller": seller})


def _persons(rows: int) -> pa.Table:
    times = BEGIN_US + np.arange(1, rows + 1) * 3 * MEAN_GAP_US
    return pa.table({"t": pa.array(times, pa.timestamp("us")), "id": np.arange(rows)})
