"""Slots of many stages: what a row costs where 10 of them have rows, and where 300 have.

```
10 stages     5 × (source ─▶ sink), 60,000 rows each     the same rows, slices and messages in all,
300 stages    150 × the same, 2,000 rows each            so what differs is the choice of the next
```
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.frame import Claim, Options, Result, Spread, check
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import Plan, plan_stages
from slackwater.runtime.schedule import Slot
from slackwater.runtime.schedule.actions import Egress

FEW, MANY = 10, 300
SLICE_ROWS = 64
"""Of a first slice, so that both slots have equally many: longer ones grow stage by stage."""
MOST = 1.1
TURNS = 9


def run(options: Options) -> Result:
    """Run slots of both sizes in turns, each with all rows."""
    rows = 300_000 if options.quick else 1_200_000
    result = Result(
        f"{rows:,} rows in all, slices of {SLICE_ROWS} rows, a source and a sink for each two "
        f"stages; {TURNS} turns after one to warm up",
        ["stages", "slices", "CPU, ns a row"],
    )
    plans = {stages: _plan(stages // 2, rows // (stages // 2)) for stages in (FEW, MANY)}
    found: dict[int, list[float]] = {stages: [] for stages in plans}
    slices: dict[int, int] = {}
    for turn in range(TURNS + 1):
        for stages in sorted(plans, reverse=bool(turn % 2)):
            took_ns, slices[stages] = _took(plans[stages], rows)
            if turn:
                found[stages].append(took_ns / rows)
    for stages, each in found.items():
        result.rows.append([stages, slices[stages], Spread.of(each)])
    ratio = statistics.median(found[MANY]) / statistics.median(found[FEW])
    result.claims.append(Claim(f"CPU a row, {MANY} stages × {FEW}", ratio, "<=", MOST))
    result.figures["ns a row"] = {str(n): Spread.of(each) for n, each in found.items()}
    result.notes.append("CPU: of the process, from the first slice to the end; inputs are open")
    return result


def _plan(pairs: int, rows: int) -> Plan:
    flow = sw.Dataflow("many stages")
    for n in range(pairs):
        times = np.arange(rows) * pairs + n  # all sources are equally far, and take turns
        table = sw.table(pa.table({"ts": times, "value": times}))
        flow.source(f"rows-{n}", table, event_time="ts").sink(f"out-{n}", sw.collect_sink())
    return place(flow.name, plan_stages(flow.graph), ["slot"])


def _took(plan: Plan, rows: int) -> tuple[int, int]:
    """Return the CPU time of a run, ns, and how many slices it had."""
    limits = sw.Limits(max_slice_rows=SLICE_ROWS)
    slot = Slot("slot", plan.stages_of("slot"), start_ns=0, limits=limits)
    slot.open(0)
    now_ns = slices = left = 0
    began_ns = time.process_time_ns()
    while (done := slot.step(now_ns)) is not None:
        slices += 1
        left += _egress(done.actions)
        now_ns += 1_000
        slot.charge(done, 1_000)
    took_ns = time.process_time_ns() - began_ns
    check(slot.is_finished, "a stage has not seen its end")
    check(left == rows, f"{left} rows left, and {rows} came")
    return took_ns, slices


def _egress(actions: Sequence[object]) -> int:
    return sum(len(a.batch) for a in actions if isinstance(a, Egress) and a.batch is not None)
