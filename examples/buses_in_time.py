"""How many buses of each line are on the road? Counted every 10 s, and not behind the last fix.

Warsaw's buses report by a feed that is polled each dozen seconds: fixes come up to half a minute
late, in no order. Who waits for all of them is half a minute behind. Here windows close when they
have likely seen all: at most a tenth of them may miss a fix, and the report says how many did.

    python -m examples.buses_in_time          DATA=<folder with the Warsaw parquet files>
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import slackwater as sw
from examples.real_data import warsaw
from slackwater.runtime.closing.policy import Closing

STALE_S = 60
FEED_DROPS = "30s"
"""The feed drops fixes that are older than that, so none is further behind the newest."""
WINDOW = sw.sliding("30s", "10s")
IN_TIME = sw.closing.probslack(miss=0.1, tick="1s")
"""Buses take turns, so fixes come in no order; the feed's clock has seconds."""
TO_BE_SURE = sw.closing.event_driven(disorder=FEED_DROPS, tick="1s")


def fixes(rows: int | None = None) -> pa.Table:
    """Return the first fixes of the evening, in order of arrival; stale ones left out."""
    path = sorted(warsaw().glob("*.parquet"))[0]
    columns = ["event_time_s", "recv_time_s", "vehicle", "line"]
    read = pq.read_table(path, columns=columns).slice(0, rows)
    age_s = pc.subtract(read["recv_time_s"], read["event_time_s"])
    return read.filter(pc.less_equal(age_s, STALE_S))


def build(
    seen: sw.connectors.Input,
    close: Closing,
    *,
    speed: float | None = None,
    deadline: str | None = None,
) -> sw.Dataflow:
    """Return the flow: buses of each line in each half minute, as soon as `close` lets them go."""
    flow = sw.Dataflow("buses-in-time", deadline=deadline)
    buses = flow.source(
        "fixes",
        seen,
        event_time="event_time_s",
        arrival="recv_time_s",
        time_unit="s",
        speed=speed,
        out_of_order="late",
        disorder=FEED_DROPS,
    )
    counts = buses.aggregate(by="line", window=WINDOW, fixes=sw.count(), close=close, name="lines")
    counts.sink("on-the-road", sw.collect_sink())
    return flow


def main(rows: int = 100_000) -> None:
    """Count both ways, and print what that took and missed."""
    table = fixes(rows)
    for name, close in (("to be sure", TO_BE_SURE), ("in time", IN_TIME)):
        job = sw.Simulation(nodes=1).submit(build(sw.table(table), close))
        (closing,) = [stage.closing for stage in job.wait().stages if stage.closing is not None]
        print(
            f"{name:<11} {closing.windows:,} windows closed {closing.mean_slack_ns / 1e9:.1f} s "
            f"behind their ends, {closing.missed} missed a fix ({closing.missed_share:.1%})"
        )


if __name__ == "__main__":
    main()
