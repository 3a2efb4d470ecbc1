"""Limits of one's own: how much memory a gate may take while one source is far ahead of another.

Run it:      python -m examples.own_limits
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import slackwater as sw

TIGHT = sw.Limits(credit_rows=100, gate_rows=200, max_slice_rows=50, min_slice_rows=1)
"""A gate that holds 200 rows of a source asks it for no more, and 100 may be under way then."""


def build(*, rows: int = 5_000) -> sw.Dataflow:
    """Return a merge of two sources; one has all its rows at once, the other has them by and by."""
    flow = sw.Dataflow("own-limits")
    at = np.arange(rows) * 1_000_000  # ns: a row each millisecond
    there, comes = (
        flow.source(name, sw.table(pa.table({"ts": at, "n": at})), event_time="ts", speed=speed)
        for name, speed in (("there", None), ("comes", 1.0))
    )
    there.merge(comes, name="both").sink("out", sw.collect_sink())
    return flow


def held(limits: sw.Limits | None = None) -> tuple[int, int]:
    """Return how many rows the gate held at most, and how many came out."""
    with sw.Simulation(2) as nodes:
        report = nodes.submit(build(), limits=limits).wait()
    gate = next(stage for stage in report.stages if stage.name == "both")
    return gate.max_gate_rows, report.sinks[0].rows


def main() -> None:
    """Compare."""
    for name, limits in (("defaults", None), ("tight", TIGHT)):
        most, out = held(limits)
        print(f"{name:<10} {most:6,} rows held at most, {out:,} out")


if __name__ == "__main__":
    main()
