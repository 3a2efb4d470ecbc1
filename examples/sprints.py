"""Who comes near a player after his sprint? Then the same with more work than can be done in time.

Positions of a team's players, twenty times a second each, as sensors sent them. From each sprint on
(5 m/s or more) a window of 15 s; in it a match is the first four team-mates that come near. Under
overload events are dropped so that the answer is there within a second: by what they are likely to
be worth, and, to compare, by chance.

    python -m examples.sprints          DATA=<folder with the soccer data>
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import slackwater as sw
from examples.real_data import soccer

STRIKER = 10
NEAR_M = 15.0
RATE_HZ = 20
PAIR_US = 220
"""What an event costs in each of its windows, in the simulation; these overlap."""


def positions(seconds: int = 600) -> pa.Table:
    """Return positions, with how far each player is from the striker's last one."""
    table = pq.read_table(soccer() / "tromso_anzhi_10min.parquet")
    time_us = table["event_time_us"].to_numpy()
    time_us = time_us - time_us[0]
    player = table["player"].to_numpy()
    slot = time_us * RATE_HZ // 1_000_000
    _, kept = np.unique(player * (slot.max() + 1) + slot, return_index=True)
    kept.sort()
    kept = kept[time_us[kept] < seconds * 1_000_000]
    x_m, y_m, speed = (table[name].to_numpy()[kept] for name in ("x_m", "y_m", "speed_mps"))
    own = np.where(player[kept] == STRIKER, np.arange(len(kept)), -1)
    last = np.maximum.accumulate(own)
    away_m = np.where(last >= 0, np.hypot(x_m - x_m[last], y_m - y_m[last]), np.inf)
    return pa.table(
        {
            "time": time_us[kept],
            "player": player[kept],
            "speed": speed.astype(np.float64),
            "away_m": away_m,
        }
    )


def build(
    seen: sw.connectors.Input,
    *,
    shed: sw.shedding.EventShedding | None = None,
    speed: float | None = None,
) -> sw.Dataflow:
    """Return the flow: after each sprint the first four that come near."""
    flow = sw.Dataflow("sprints")
    players = flow.source("positions", seen, event_time="time", time_unit="us", speed=speed)
    sprint = sw.patterns.event("sprint", of_type=STRIKER, where=sw.col("speed") >= 5)
    near = sw.patterns.event(
        "near", where=(sw.col("away_m") <= NEAR_M) & (sw.col("player") != STRIKER)
    )
    found = players.pattern(
        sw.patterns.seq(sprint, sw.patterns.any_of(4, near, distinct="player")),
        type="player",
        window=sw.patterns.opened_by(sprint, within="15s"),
        matches=1,
        id="player",
        shed=shed,
        name="company",
    )
    found.sink("found", sw.collect_sink())
    return flow


def matches(rows: pa.Table) -> set[tuple[object, str]]:
    """Return what tells matches apart: their windows and their events."""
    return set(zip(rows["window_start"].to_pylist(), rows["events"].to_pylist(), strict=True))


def main() -> None:
    """Look for company at leisure, then with a fifth more work than can be done."""
    table = positions()
    job = sw.Simulation(nodes=1).submit(build(sw.table(table)))
    report = job.wait()
    rows = job.result("found")
    every = matches(rows)
    print(f"at leisure: {len(every)} sprints with company; the first {rows['events'][0]}")
    print(report.ledger)
    costs = sw.testing.CostModel(per_row_ns=0, per_slice_ns=0, per_comparison_ns=PAIR_US * 1000)
    ways = {
        "nothing shed": None,
        "by utility": sw.shedding.espice("1s", drops="pairs", first=16, every=64),
        "by chance": sw.shedding.espice("1s", drops="pairs", first=10**9),
    }
    for name, shed in ways.items():
        flow = build(sw.table(table), shed=shed or sw.shedding.espice("1h", drops="pairs"), speed=1)
        job = sw.Simulation(nodes=1, cost=costs).submit(flow)
        report = job.wait()
        (counts,) = [one.shedding for one in report.stages if one.shedding is not None]
        found = matches(job.result("found"))
        guess, most = counts.lost_share, "" if counts.is_judged else "at most "
        print(
            f"{name:<13} slowest {report.sinks[0].latency.max_ns / 1e9:5.2f} s; "
            f"{counts.dropped / counts.pairs:.0%} of pairs dropped; of the matches "
            f"{1 - len(found & every) / len(every):.0%} are lost"
            + ("" if guess is None else f" (it says: {most}{guess:.0%} since it began)")
            + f", {len(found - every)} are others"
        )
        print(f"{'':<13} {report.ledger}")


if __name__ == "__main__":
    main()
