"""Windows that close in time on Ray, over real arrivals: `probslack-real`, one f and δ of each.

The same flow as a user writes it, replayed faster than it was, on two local nodes: what windows
missed, how long behind their ends they closed by arrivals, and when their results were there by the
clock. Beside it the event-driven policy. What leaves on Ray must be what the simulator has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import slackwater as sw
from benchmarks.frame import Claim, Options, Result, check
from examples import buses_in_time
from examples.real_data import phone_network
from slackwater.runtime.closing.policy import Closing, ClosingCounts

MISS = 0.1
NODES = 2
SESSION = "d-1"
LIMIT_S = 200.0


@dataclass(frozen=True)
class Case:
    """One data set.

    Attributes:
        build: (rows, policy, speed) -> its flow; the aggregate's sink is `on-the-road`.
        rows: in order of arrival.
        speed: how many times faster than they came they are replayed.
        window: its words.
        in_time, sure: ProbSlack, and the event-driven policy that misses nothing.
    """

    build: Callable[[sw.connectors.Input, Closing, float | None], sw.Dataflow]
    rows: pa.Table
    speed: float
    window: str
    in_time: Closing
    sure: Closing


def run(options: Options) -> Result:
    """Run each data set under both policies on Ray, and once more in the simulator."""
    result = Result(
        f"replayed on {NODES} local nodes{', a part of it' if options.quick else ''}; δ {MISS}",
        [
            "data",
            "policy",
            "windows",
            "missed",
            "MER",
            "mean slack, s",
            "result by the clock, mean, s",
        ],
    )
    with sw.Cluster.local(nodes=NODES) as cluster:
        for name, case in cases(quick=options.quick).items():
            found = {
                policy: _on_ray(cluster, case, closing, name)
                for policy, closing in (("event-driven", case.sure), ("ProbSlack", case.in_time))
            }
            for policy, (closing, done_s) in found.items():
                result.rows.append(
                    [
                        f"{name}, {case.window}, {case.speed:g}×",
                        policy,
                        closing.windows,
                        closing.missed,
                        f"{closing.missed_share:.2%}",
                        f"{closing.mean_slack_ns / 1e9:.3f}",
                        f"{done_s:.3f}",
                    ]
                )
                result.figures[f"{name}_{policy}"] = {
                    "windows": closing.windows,
                    "missed": closing.missed,
                    "mean_slack_s": closing.mean_slack_ns / 1e9,
                    "mean_result_s": done_s,
                }
            (sure, sure_s), (in_time, in_time_s) = found["event-driven"], found["ProbSlack"]
            gain_s = (sure.mean_slack_ns - in_time.mean_slack_ns) / 1e9
            result.claims += [
                Claim(f"{name}: MER ≤ δ", in_time.missed_share, "<=", MISS),
                Claim(f"{name}: mean slack below event-driven's, s", gain_s, ">=", 1e-9),
                Claim(f"{name}: results sooner by the clock, s", sure_s - in_time_s, ">=", 1e-9),
            ]
    result.notes.append(
        "a result's time by the clock counts from when its window ended, in the replay: its slack "
        "divided by the speed, and what messages and work took"
    )
    return result


def cases(*, quick: bool) -> dict[str, Case]:
    """Return the data sets, each of a minute on Ray; quick: of a few seconds."""
    return {
        "buses": Case(
            lambda rows, close, speed: buses_in_time.build(rows, close, speed=speed),
            buses_in_time.fixes(20_000 if quick else 100_000),
            speed=25.0,
            window="f 10 s of 30 s",
            in_time=buses_in_time.IN_TIME,
            sure=buses_in_time.TO_BE_SURE,
        ),
        "phones": Case(
            _phones,
            _messages(1_500 if quick else None),
            speed=12.0,
            window="f 1 s of 1 s",
            in_time=sw.closing.probslack(miss=MISS, type="device"),
            sure=sw.closing.event_driven(type="device"),
        ),
    }


def _messages(rows: int | None) -> pa.Table:
    columns = ["session", "device", "detect_time_ms", "server_recv_time_ms"]
    read = pq.read_table(phone_network() / "umts_d1_d5.parquet", columns=columns)
    return read.filter(pc.equal(read["session"], SESSION)).slice(0, rows)


def _phones(rows: sw.connectors.Input, close: Closing, speed: float | None) -> sw.Dataflow:
    flow = sw.Dataflow("phones-in-time")
    messages = flow.source(
        "messages",
        rows,
        event_time="detect_time_ms",
        arrival="server_recv_time_ms",
        time_unit="ms",
        speed=speed,
        out_of_order="late",
        disorder="10s",
    )
    counts = messages.aggregate(window=sw.tumbling("1s"), n=sw.count(), close=close)
    counts.sink("on-the-road", sw.collect_sink())
    return flow


def _on_ray(
    cluster: sw.Cluster, case: Case, close: Closing, name: str
) -> tuple[ClosingCounts, float]:
    """Return what closing came to, and the mean time from a window's end to its result."""
    job = cluster.submit(case.build(sw.table(case.rows), close, case.speed))
    try:
        report = job.wait(timeout=LIMIT_S)
        check(report.state == "done", f"{name}: {report.error}")
        check(report.ledger.is_balanced, f"{name}: the ledger does not balance: {report.ledger}")
        with sw.Simulation(nodes=1) as nodes:
            same = nodes.submit(case.build(sw.table(case.rows), close, None))
            same.wait()
            check(
                job.result("on-the-road").equals(same.result("on-the-road")),
                f"{name}: other rows left than in the simulator",
            )
    finally:
        job.close()
    (closing,) = [stage.closing for stage in report.stages if stage.closing is not None]
    latency = report.sinks[0].latency
    return closing, latency.sum_ns / max(latency.count, 1) / 1e9
