"""The order in which things happened on nine phones, and what of it never came.

Phones and tablets send a message each half second over a phone network, and number them. A quarter
comes behind a newer one of another phone. Here each phone's messages are put in the order of its
numbers, and all of them in one order of event time: a message waits for a number that is missing,
and for phones that have yet to speak, not for as long as any message was ever late. Beside it
MP-K-slack, which knows no numbers and waits for just that.

    python -m examples.phones_in_order          DATA=<folder with umts_d1_d5.parquet>
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import slackwater as sw
from examples.real_data import phone_network
from slackwater.runtime.measure.report import JobReport

WAIT = "10s"
"""Phones lose their network for seconds: so long a number is missed, and a phone may be silent."""
BY_NUMBER: dict[str, Any] = {
    "writer": "device",
    "sequence": "message_id",
    "out_of_order": sw.order.by_sequence(timeout=WAIT, least=WAIT, first=0, merge=True),
}
BY_BUFFER: dict[str, Any] = {"out_of_order": sw.order.mp_k_slack()}


def messages(sessions: int = 5) -> pa.Table:
    """Return the messages of the first sessions of ten minutes, in order of arrival."""
    columns = ["session", "device", "message_id", "detect_time_ms", "server_recv_time_ms"]
    read = pq.read_table(phone_network() / "umts_d1_d5.parquet", columns=columns)
    names = read["session"].unique().to_pylist()[:sessions]
    return read.filter(np.isin(read["session"].to_pylist(), names))


def build(
    seen: sw.connectors.Input, order: dict[str, Any], *, speed: float | None = 1.0
) -> sw.Dataflow:
    """Return the flow: all messages in one order of event time, as `order` has it."""
    flow = sw.Dataflow("phones-in-order")
    phones = flow.source(
        "phones",
        seen,
        event_time="detect_time_ms",
        arrival="server_recv_time_ms",
        time_unit="ms",
        speed=speed,
        **order,
    )
    phones.sink("in-order", sw.collect_sink())
    return flow


def steps_back(rows: pa.Table) -> int:
    """Return how many messages follow one that is newer than they are."""
    times_ms = rows["detect_time_ms"].to_numpy()
    return int((times_ms < np.maximum.accumulate(times_ms)).sum())


def became(report: JobReport) -> str:
    """Return what became of the messages that are not among the results, by name."""
    (source,) = [stage for stage in report.stages if stage.kind == "source"]
    counts = source.counts.by_name()
    return (
        f"{counts['late_dropped']:,} late, {counts['duplicate']:,} duplicate, "
        f"{counts['given_up']:,} numbers given up"
    )


def main(sessions: int = 5) -> None:
    """Put them in order both ways, and print what that took and what it left out."""
    table = messages(sessions)
    print(f"as they came  {steps_back(table):,} of {len(table):,} messages follow a newer one")
    for name, order in (("by number", BY_NUMBER), ("MP-K-slack", BY_BUFFER)):
        job = sw.Simulation(nodes=1).submit(build(sw.table(table), order))
        report = job.wait()
        waits = job.latency["in-order"]
        print(
            f"{name:<13} {steps_back(job.result('in-order'))} do; half of them waited for "
            f"{waits['p50_ms']:,.0f} ms, 99 % for {waits['p99_ms']:,.0f} ms at most; "
            f"{became(report)}"
        )


if __name__ == "__main__":
    main()
