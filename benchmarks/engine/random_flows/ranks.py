"""Best rows of each key and window, as pandas has them."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

from benchmarks.engine.random_flows.answers import typed
from benchmarks.engine.random_flows.twin import TIME
from slackwater.runtime.operators.aggregate.written import Window


def best(
    rows: pd.DataFrame,
    keys: list[str],
    window: Window,
    order: list[tuple[str, bool]],
    k: int,
    schema: pa.Schema,
) -> pd.DataFrame:
    """Return the first rows of each key and window, ranked by columns, nulls last, then by time.

    Args:
        rows: rows of the input.
        keys: key columns of the rows.
        window: windows.
        order: columns and whether the least is first.
        k: rows of each key and window.
        schema: columns that leave, the last is the rank.
    """
    size, slide = window.size_ns, window.slide_ns
    parts = []
    for back in range(-(-size // slide)):  # each row is in so many windows at most
        start = (rows[TIME] // slide - back) * slide
        inside = rows[TIME] < start + size
        parts.append(rows[inside].assign(window_start=start[inside]))
    ranked = pd.concat(parts, ignore_index=True).sort_values(TIME, kind="stable")
    for name, up in reversed(order):
        ranked = ranked.sort_values(name, ascending=up, kind="stable", na_position="last")
    by = ranked.groupby(["window_start", *keys], dropna=False, sort=False)
    ranked = ranked.assign(place=by.cumcount() + 1)
    ranked = ranked[ranked["place"] <= k]
    ends = ranked["window_start"] + size
    ranked = ranked.assign(window_end=ends, **{TIME: ends - 1})
    ranked = ranked.sort_values(TIME, kind="stable").reset_index(drop=True)
    return typed(ranked[[*schema.names, TIME]], schema)
