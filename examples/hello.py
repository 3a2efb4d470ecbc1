"""Read this first: two streams that come late, a gate with a slack, a window. It needs no file.

    .venv/bin/python -m examples.hello

Of each car we know when it passed (`event_time`) and when we heard of it (`arrival`). A *gate* puts
the streams into one order. It would wait until nothing older can come; with `slack="2s"` it lets a
row go as soon as another is more than 2 s newer. What comes behind such a row is *late*: it counts
if its window is still open, and otherwise the ledger says so.
"""

from __future__ import annotations

import pyarrow as pa

import slackwater as sw

SECONDS = 30


def cars(flow: sw.Dataflow, street: str, *, late_ms: int) -> sw.Stream:
    """Return a car every second; of those of seconds 10 to 14 we hear `late_ms` late."""
    times = range(0, SECONDS * 1_000, 1_000)
    heard = [0]
    for t in times:
        late = late_ms if 10_000 <= t < 15_000 else 0
        heard.append(max(heard[-1], t + late))  # they come in order: others wait behind these
    return flow.source(
        street,
        sw.table(pa.table({"event_time": times, "arrival": heard[1:]})),
        event_time="event_time",
        arrival="arrival",
        time_unit="ms",
        speed=1.0,  # they arrive at the speed of the clock, here a simulated one
    )


def build() -> sw.Dataflow:
    """Return the flow: how many cars passed in each 5 s."""
    flow = sw.Dataflow("hello", slack="2s")
    both = cars(flow, "mill street", late_ms=1_200).merge(cars(flow, "quay", late_ms=8_500))
    both.aggregate(window=sw.tumbling("5s"), cars=sw.count()).sink("counts", sw.collect_sink())
    return flow


def main() -> None:
    """Run it; print each window's count, and what became of every event."""
    with sw.Simulation(nodes=3) as nodes:  # on a cluster: sw.Cluster.connect("host:6379")
        job = nodes.submit(build())
        ledger = job.wait().ledger
        for row in job.result("counts").to_pylist():
            print(f"{row['window_start']:%M:%S} to {row['window_end']:%M:%S}  {row['cars']:2} cars")
    print(f"{ledger.entered} cars in = {ledger.out} counted + {ledger.late} too late")
    print(f"at the gates {ledger.late_used} came late, {ledger.slack_ready} did not wait")


if __name__ == "__main__":
    main()
