"""Cost of a checkpoint: how long a slot's loop stands still, then the file, and the way back.

```
state of 1 M rows or keys ─▶ cut, then steps between slices ─▶ file, in a thread ─▶ read ─▶ restored
                             the loop stands still
```
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import slackwater as sw
from benchmarks.frame import Claim, Options, Result, Spread
from slackwater.actors.checkpoints.part_files import read_part, write_part
from slackwater.runtime.model import Batch, Progress
from slackwater.runtime.model.gate_read import GateRead
from slackwater.runtime.model.later import KEYS_AT_ONCE, Later
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.state import restore, save
from slackwater.runtime.operators.ground.contract import Operator
from slackwater.runtime.plan.plan import plan_stages
from slackwater.runtime.plan.step import Step
from slackwater.runtime.recovery.checkpoint import SlotPart
from slackwater.runtime.registry.operators import make_operator

READ_ROWS = 8_192
MOST_CUT_MS = 5.0
COLUMNS = ("key", "value", "text", "kind")
PATTERN, PROCESS = "pattern", "process"


class Sum:
    """Sum of the values of a key."""

    total = 0.0

    def on_rows(self, _key: int, rows: list[dict[str, Any]]) -> None:
        """Add values; nothing leaves."""
        self.total += sum(row["value"] for row in rows)


def run(options: Options) -> Result:
    """Measure joins, aggregates and a dedupe, and a tenth of the keys of others."""
    rows, turns = (100_000, 3) if options.quick else (1_000_000, 3)
    result = Result(
        f"states of {rows:,} rows or keys, of pattern and process a tenth, in this process; "
        f"median (least–most) of {turns} turns",
        [
            "state",
            "MiB",
            "loop stands still, ms",
            "steps together, ms",
            "file, ms",
            "MiB/s",
            "read, ms",
            "restored, ms",
        ],
    )
    with tempfile.TemporaryDirectory() as folder:
        for step in _steps():
            own = rows // 10 if step.name in {PATTERN, PROCESS} else rows
            result.rows.append(_measured(result, step, own, turns, Path(folder)))
    result.notes += [
        "loop stands still: the cut, or the longest step after it, in which more is saved",
        "file: packed, hashed, written and synced, in a thread beside the slot's loop",
        "restored: from what was read, in a new operator, with its indexes",
    ]
    return result


def _steps() -> Iterator[Step]:
    table = pa.table({"ts": [0], "key": [0], "value": [0.0], "text": ["a"], "kind": ["a"]})
    flow = sw.Dataflow("checkpoints", slack=None)
    left, right = (
        flow.source(name, sw.table(table), event_time="ts").select(*COLUMNS, "ts")
        for name in ("left", "right")
    )
    numbers = left.select("key", "value").join(
        right.select("key", "value"), on="key", within="1000s", name="join"
    )
    with_text = left.select("key", "text").join(
        right.select("key", "value"), on="key", within="1000s", name="join, with text"
    )
    window = sw.tumbling("1000s")
    means = left.aggregate(
        by="key", window=window, n=sw.count(), mean=sw.mean("value"), name="aggregate"
    )
    by_text = left.aggregate(by="text", window=window, n=sw.count(), name="aggregate, by text")
    once = left.dedupe("key", within="1000s", name="dedupe")
    events = [sw.patterns.event(name, of_type=name) for name in ("a", "b")]
    begun = left.pattern(
        sw.patterns.seq(*events), type="kind", within="1000s", by=("key",), name=PATTERN
    )
    objects = left.process(Sum(), {"key": "int64"}, by="key", name=PROCESS)
    wanted = [numbers, with_text, means, by_text, once, begun, objects]
    for stream in wanted:
        stream.sink(f"{stream.name} out", sw.collect_sink())
    steps = {stage.step.name: stage.step for stage in plan_stages(flow.graph)}
    yield from (steps[stream.name] for stream in wanted)


def _filled(step: Step, rows: int) -> Operator:
    operator = make_operator(step, most_kept_rows=2**40)
    ports = len(step.inputs)
    for start in range(0, rows, READ_ROWS):
        batches = [
            _batch(start, min(READ_ROWS, rows - start), slice(port, None, ports))
            for port in range(ports)
        ]
        progress = Progress(start, 0, start)
        operator.work(GateRead(batches, [None] * ports, start, progress), 0)
    return operator


def _batch(start: int, rows: int, own: slice) -> Batch:
    """Return rows of as many keys; each port has every second row, so no two are pairs."""
    numbers = np.arange(start, start + rows)[own]
    return Batch(
        event_time_ns=numbers,
        stimulus_time_ns=numbers,
        columns={
            "key": numbers,
            "value": numbers * 0.5,
            "text": pa.array([f"key {number}" for number in numbers.tolist()]),
            "kind": pa.array(["a"] * len(numbers)),
        },
    )


def _measured(result: Result, step: Step, rows: int, turns: int, folder: Path) -> list[Any]:
    operator = _filled(step, rows)
    gc.collect()
    gc.freeze()  # as in a slot: no collection looks at all keys
    took: dict[str, list[float]] = {"cut": [], "steps": [], "file": [], "read": [], "restored": []}
    mebibytes = 0.0
    for _ in range(turns + 1):  # the first warms up
        later: list[Later] = []
        times = [time.perf_counter()]
        state = to_plain(save(operator, later), where=step.name)
        times.append(time.perf_counter())
        longest_s = max(times[1] - times[0], *map(_longest_step_s, later), 0.0)
        times.append(time.perf_counter())
        entry = write_part(folder, SlotPart("slot", 1, _slot(state), {}, {}, {}))
        times.append(time.perf_counter())
        part = read_part(folder, entry)
        times.append(time.perf_counter())
        restore(
            make_operator(step, most_kept_rows=2**40),
            from_plain(part.state["stream"]["stages"]["own"]),
        )
        times.append(time.perf_counter())
        mebibytes = entry.bytes / 2**20
        (folder / entry.file).unlink()
        for name, begun, ended in zip(took, times, times[1:], strict=False):
            took[name].append((ended - begun) * 1e3)
        took["cut"][-1] = longest_s * 1e3
    spreads = {name: Spread.of(own[1:]) for name, own in took.items()}
    result.figures[step.name] = {name: spread.to_json() for name, spread in spreads.items()}
    result.claims.append(
        Claim(f"{step.name}: the loop stands still, ms", spreads["cut"].median, "<=", MOST_CUT_MS)
    )
    speed = mebibytes / spreads["file"].median * 1e3
    cut, steps, file, read, restored = map(str, spreads.values())
    return [step.name, f"{mebibytes:.1f}", cut, steps, file, f"{speed:,.0f}", read, restored]


def _slot(state: Any) -> dict[str, Any]:
    """Return the snapshot of a slot with one stage."""
    return {"version": 0, "stream": {"stages": {"own": state}}}


def _longest_step_s(later: Later) -> float:
    """Save all of a part; return the time of the longest step."""
    longest_s = 0.0
    while not later.is_done:
        begun = time.perf_counter()
        later.step(KEYS_AT_ONCE)
        longest_s = max(longest_s, time.perf_counter() - begun)
    return longest_s
