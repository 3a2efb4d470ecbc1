"""The part of `hop` that runs on a host of the cluster: round trips there, one JSON line back.

`python -m benchmarks.engine.hop_on_hosts '{"address": …, "turns": …, "trips": …}'`. The benchmark
itself stands outside, where no address of the hosts leads.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from benchmarks.engine.hop_ends import OURS, RAY, SIZES, HopEnds, summary
from benchmarks.frame import check
from slackwater.actors.nodes.ray_nodes import RayNodes


def main(task: dict[str, Any]) -> dict[str, Any]:
    """Return {rows: {way: its figures}} between the first two nodes of the cluster."""
    turns, trips = task["turns"], task["trips"]
    with RayNodes.connect(task["address"]) as cluster:
        check(len(cluster.nodes) == 2, f"{len(cluster.nodes)} nodes joined of 2")
        ends = HopEnds(cluster.nodes)
        check(not ends.is_local, "two hosts are joined by a Unix socket")
        found = {}
        for rows in SIZES:
            took = ends.measure((OURS, *RAY), rows=rows, turns=turns, trips=trips)
            found[str(rows)] = {way: summary(took[way]) for way in took}
    return found


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
