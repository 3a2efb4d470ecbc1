"""The part of `multinode` that runs on a host of the cluster: joins there, one JSON line back.

`python -m benchmarks.engine.on_hosts '{"address": …}'`. The benchmark itself stands outside,
where no address of the hosts leads.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import Any

import pyarrow as pa

import slackwater as sw
from benchmarks.engine.join_latency import MODES, Run, missing_results
from benchmarks.engine.join_throughput import results, verify
from benchmarks.engine.running import arrays_of, join_offline, timed
from benchmarks.engine.workload import Mapped, join_flow
from benchmarks.frame import plain
from benchmarks.jobs import collected
from slackwater.runtime.measure.report import JobReport

MODE = "on arrival"


def main(task: dict[str, Any]) -> dict[str, Any]:
    """Run the joins of one task; return their figures.

    Args:
        task: {"address", "paced": {rate: [path, path]}, "seconds", "bulk": [path, path] or []}.
            The paths are of `workload.write`.
    """
    with sw.Cluster.connect(task["address"]) as cluster:
        figures: dict[str, Any] = {"nodes": len(cluster.nodes)}
        for rate, paths in task["paced"].items():
            figures[rate] = _latency(cluster, int(rate), task["seconds"], paths)
        if task["bulk"]:
            figures["throughput"] = _throughput(cluster, task["bulk"])
    return figures


def _latency(cluster: sw.Cluster, rate: int, seconds: int, paths: list[str]) -> dict[str, Any]:
    bus, loop = (arrays_of(_table(path)) for path in paths)
    inputs = Mapped(paths[0]), Mapped(paths[1])
    run = Run(rate, MODE, 0, seconds, bus, loop, inputs)
    flow = join_flow(*inputs, sw.collect_sink(), over=run.over, slack=MODES[MODE])
    report, rows = collected(cluster.submit(flow, detach=False))
    sink = report.sinks[0]
    p50, p99, most = (sink.latency.quantile(q) / 1e6 for q in (0.5, 0.99, 1))
    return {
        "results": sink.rows,
        "missing": missing_results(run, arrays_of(rows)),
        "p50_ms": p50,
        "p99_ms": p99,
        "max_ms": most,
        "error_ms": sink.error_ns / 1e6,
        "links_ms": _links_ms(report),
        "link_error_ms": max((one.error_ns for one in report.channels), default=0) / 1e6,
    }


def _links_ms(report: JobReport) -> dict[str, list[float]]:
    """Return {channel: [least, mean time on the wire]} of the channels between two hosts."""
    nodes = {stage.name: stage.node for stage in report.stages}
    return {
        one.name: [one.least_link_ns / 1e6, one.link_ns / one.messages / 1e6]
        for one in report.channels
        if one.least_link_ns is not None and nodes[one.source] != nodes[one.target]
    }


def _throughput(cluster: sw.Cluster, paths: list[str]) -> dict[str, Any]:
    bus, loop = (arrays_of(_table(path)) for path in paths)
    expected = results(bus, loop, *join_offline(bus, loop))
    measured = timed(
        cluster,
        partial(join_flow, Mapped(paths[0]), Mapped(paths[1]), sw.collect_sink()),
        placement=None,
        repetitions=2,
        verify=partial(verify, expected=expected, what="throughput"),
    )
    return {"events": measured.events, "million_per_s": measured.million_per_s}


def _table(path: str) -> pa.Table:
    with pa.ipc.open_file(pa.memory_map(path)) as file:
        return file.read_all()


if __name__ == "__main__":
    print(json.dumps(plain(main(json.loads(sys.argv[1])))))
