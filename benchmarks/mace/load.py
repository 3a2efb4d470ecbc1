"""The load of `mace-*`: real visits of the web, which arrive in bursts as [mace] §VIII draws them.

```
rate   H    ████                 ██████████      high periods: 10 s on average
       H/100    ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁          ▁▁▁▁▁  low ones: 30 s;  arrivals within: Poisson
```
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from examples.real_data import web_visits
from slackwater.runtime.foresight.rates import OnOff
from slackwater.runtime.model import NS_PER_SECOND

EVENTS = 75_000
RATE_RATIO, DURATION_RATIO, HIGH_S = 100.0, 0.33, 10.0
HIGH_RATE = 1_000.0
"""Events a second in a high period. A scale: costs are set by the load that is wanted."""

TICK_S = 0.05
"""Events are handed over together so often. A setting of the source (`Limits.source_gap_ns`) would
do the same, but keep a source that is behind waiting, too, while its node turns to later work."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@cache
def visits() -> pa.Table:
    """Return all visits in the order of time: event_time_ms, panelist, url."""
    table = pq.read_table(
        web_visits() / "visits.parquet", columns=["event_time_ms", "panelist", "url"]
    )
    text = {name: pc.cast(table[name], pa.string()) for name in ("panelist", "url")}
    return pa.table({"event_time_ms": table["event_time_ms"], **text})


@cache
def genders() -> dict[str, str]:
    """Return {panelist: male or female}."""
    table = pa.csv.read_csv(web_visits() / "panelists.csv")
    return dict(zip(table["panelist_id"].to_pylist(), table["gender"].to_pylist(), strict=True))


def on_off_s(rng: np.random.Generator, count: int, *, high_rate: float = HIGH_RATE) -> Floats:
    """Return when so many events arrive, seconds from the first, ascending; shape (count,)."""
    share = DURATION_RATIO / (1 + DURATION_RATIO)  # of time that the rate is high
    model = OnOff(
        high_rate * (share + (1 - share) / RATE_RATIO),
        rate_ratio=RATE_RATIO,
        duration_ratio=DURATION_RATIO,
        high_s=HIGH_S,
    )
    at_s = model.arrivals_s(rng, count)
    return np.asarray(at_s - at_s[0])


def patterns_s(rng: np.random.Generator, *, queries: int, is_one: bool = False) -> list[Floats]:
    """Return arrivals for so many queries, `EVENTS` in all or few less; all end together.

    Args:
        rng: draws them.
        queries: how many; each has a part of the rate.
        is_one: one pattern for all of them.
    """
    count, rate = EVENTS // queries, HIGH_RATE / queries
    drawn = 1 if is_one else queries
    all_s = [on_off_s(rng, count, high_rate=rate) for _ in range(drawn)] * (queries // drawn)
    end_s = min(float(at_s[-1]) for at_s in all_s)
    return [at_s[at_s <= end_s] for at_s in all_s]


@cache
def parts(count: int) -> tuple[pa.Table, ...]:
    """Return the visits in so many parts of nearly one size, each of hosts of its own."""
    table = visits()
    hosts = pc.replace_substring_regex(table["url"], r"^[a-z]+://([^/]*).*$", r"\1").to_pylist()
    names, numbers, sizes = np.unique(hosts, return_inverse=True, return_counts=True)
    of = np.zeros(len(names), dtype=np.int64)
    filled = np.zeros(count, dtype=np.int64)
    for name in np.argsort(-sizes, kind="stable"):  # the largest first, each where least is
        of[name] = int(np.argmin(filled))
        filled[of[name]] += sizes[name]
    return tuple(table.filter(pa.array(of[numbers] == part)) for part in range(count))


def own_s(count: int, *, mean_rate: float) -> Floats:
    """Return the data's own arrivals, replayed at so many events a second on average.

    They begin anew when they end. Seconds from the first, shape (count,).
    """
    times_ms = visits()["event_time_ms"].to_numpy()
    once_s = (times_ms - times_ms[0]) / 1e3
    again_s = once_s[-1] + float(np.mean(np.diff(once_s)))
    places = np.arange(count)
    at_s = once_s[places % len(once_s)] + again_s * (places // len(once_s))
    return np.asarray(at_s * (count / mean_rate / at_s[-1]))


def ticked(arrival_s: Floats) -> Floats:
    """Return when events are handed over that arrive at these times: every `TICK_S`, together."""
    at_s = np.ceil(arrival_s / TICK_S) * TICK_S
    return np.asarray(at_s - at_s[0])


def arriving(
    arrival_s: Floats, *, of: pa.Table | None = None, places: Ints | None = None
) -> pa.Table:
    """Return the visits that arrive at these times: ts (ns), panelist, url.

    They begin anew when they end; a visit happens when it arrives.

    Args:
        arrival_s: shape (events,).
        of: the visits; None: all.
        places: shape (events,), which of them; None: one after the other.
    """
    table = visits() if of is None else of
    places = np.arange(len(arrival_s)) if places is None else places
    taken = table.take(pa.array(places % table.num_rows))
    times_ns = np.rint(arrival_s * NS_PER_SECOND).astype(np.int64)
    return pa.table(
        {"ts": times_ns, "panelist": taken["panelist"], "url": taken["url"]}
    ).combine_chunks()
