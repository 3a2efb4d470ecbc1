"""Q1 of [espice] on `soccer-tromso-zxy-2013`: who is near a player after his sprint.

The data has neither ball nor opponents: a sprint stands for the possession of the ball, a
team-mate within a distance for a defender.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow.parquet as pq

from benchmarks.espice.per_window import NOTHING, Alternative, AnyAfter, Selection
from benchmarks.espice.streams import FloatArray, IntArray, Pace, Query, Windows
from examples.real_data import soccer

STRIKERS = (2, 6, 7, 8, 10, 11, 12, 13, 15, 16)
"""All who have positions of the whole time."""
SPRINT_MPS = 5.0
BREAK_US = 1_000_000
"""A longer time without any event is a break of the recording."""


@dataclass(frozen=True)
class Positions:
    """Positions of players, by time; arrays of shape (events,).

    Attributes:
        time_us: since the first.
        player: code of each event's player.
        x_m, y_m: where.
        speed_mps: how fast.
        tags: shape (players,), the shirt of each code.
    """

    time_us: IntArray
    player: IntArray
    x_m: FloatArray
    y_m: FloatArray
    speed_mps: FloatArray
    tags: IntArray


def positions(rate_hz: int) -> Positions:
    """Return the data with as many events a second of each player: the first of each slot."""
    table = pq.read_table(soccer() / "tromso_anzhi_10min.parquet")
    time_us = table["event_time_us"].to_numpy().astype(np.int64)
    time_us -= time_us[0]
    tags, player = np.unique(table["player"].to_numpy(), return_inverse=True)
    slot = time_us * rate_hz // 1_000_000
    _, kept = np.unique(player * (slot.max() + 1) + slot, return_index=True)
    kept.sort()
    x_m, y_m, speed_mps = (
        table[name].to_numpy().astype(np.float64)[kept] for name in ("x_m", "y_m", "speed_mps")
    )
    return Positions(
        time_us[kept], player[kept].astype(np.int64), x_m, y_m, speed_mps, tags.astype(np.int64)
    )


def query_1(of: Positions, striker: int, count: int, selection: Selection, near_m: float) -> Query:
    """Return `seq(STR; any(n, DF…))`: n others who come near the striker after his sprint.

    Near is by the striker's last position before.

    Args:
        of: the positions.
        striker: his tag.
        count: n.
        selection: first or last.
        near_m: the distance.
    """
    is_striker = of.tags[of.player] == striker
    numbers = np.arange(len(is_striker))
    last = np.maximum.accumulate(np.where(is_striker, numbers, -1))
    away_m = np.hypot(of.x_m - of.x_m[last], of.y_m - of.y_m[last])
    is_near = (last >= 0) & ~is_striker & (away_m <= near_m)
    is_sprint = is_striker & (of.speed_mps >= SPRINT_MPS)
    label = np.where(is_near, of.player, NOTHING).tolist()
    alternative = Alternative(partial(AnyAfter, count, selection), label, is_sprint.tolist())
    each_once = np.ones(len(of.tags), np.int64)
    return Query(of.player, [alternative], is_near | is_sprint, each_once)


def windows_1(of: Positions, striker: int, within_s: float) -> Windows:
    """Return a window for each sprint event of a player, if no break and no end cuts it short."""
    is_striker = of.tags[of.player] == striker
    starts = np.flatnonzero(is_striker & (of.speed_mps >= SPRINT_MPS))
    until_us = of.time_us[starts] + round(within_s * 1e6)
    stops = np.searchsorted(of.time_us, until_us)
    breaks = np.flatnonzero(np.diff(of.time_us) > BREAK_US)  # each behind this event
    pace = pace_of(of, breaks, within_s)
    next_break = np.append(of.time_us[breaks], of.time_us[-1])
    begins_in = np.searchsorted(of.time_us[breaks], of.time_us[starts])
    whole = until_us <= next_break[begins_in]
    return Windows(starts[whole], stops[whole].astype(np.int64), pace)


def pace_of(of: Positions, breaks: IntArray, within_s: float) -> Pace:
    """Return how many events came in such a time before each; soon after a break by less time.

    Args:
        of: the positions.
        breaks: the last event before each break.
        within_s: the time.
    """
    begins = np.append(0, breaks + 1)
    begin = begins[np.searchsorted(begins, np.arange(len(of.time_us)), side="right") - 1]
    time_s = of.time_us / 1e6
    first = np.maximum(np.searchsorted(time_s, time_s - within_s), begin)
    seen_s = np.clip(time_s - time_s[begin], BREAK_US / 1e6, within_s)
    before = (np.arange(len(time_s)) - first) * within_s / seen_s
    return Pace(time_s, within_s, before.astype(np.int64))
