"""Each type through each operator, frame, snapshot and sink: differences from DuckDB.

```
rows of one type ──▶ operator in the simulator, in blocks of 1 to 97 rows ──▶ the same as DuckDB's?
                 ──▶ parquet, JSON lines, CSV, read back by their own readers
                 ──▶ a frame, a snapshot and back
                 ──▶ a slot, and a new slot that is given the log of the first
```
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import slackwater as sw
from benchmarks.engine.values.drawn_types import NESTED, TYPES, drawn_rows
from benchmarks.engine.values.steps import STEPS, Step
from benchmarks.frame import Claim, Options, Result, check, counted
from slackwater.actors.wire.frames import FrameCodec
from slackwater.runtime.config import Limits
from slackwater.runtime.errors import SlackwaterError
from slackwater.runtime.model import Message, Progress
from slackwater.runtime.model.batch import batch_of
from slackwater.runtime.model.plain import from_plain, to_plain
from slackwater.runtime.model.schema import ArrowRows, column_from_arrow, inside_schema
from slackwater.runtime.placement.place import place
from slackwater.runtime.plan.plan import plan_stages
from slackwater.runtime.plan.slot_plan import slot_plan
from slackwater.runtime.schedule import LoggedSlot, Slot, make_slot, replay, replaying
from slackwater.runtime.schedule.actions import Egress, Slice

ROWS = 97
TURNS, QUICK_TURNS = 2, 1
NULLS, QUICK_NULLS = (0.0, 0.3, 1.0), (0.3,)
BLOCKS = (1, 10, ROWS)


def run(options: Options) -> Result:
    """Compare all types with DuckDB, and count the differences."""
    turns, shares = (QUICK_TURNS, QUICK_NULLS) if options.quick else (TURNS, NULLS)
    percents = " and ".join(f"{nulls:.0%}" for nulls in shares)
    result = Result(
        f"{len(TYPES)} types, {ROWS} rows each, {percents} nulls, {turns} turns",
        ["what", "compared", "refused as it should be", "differences"],
    )
    compared, refused, wrong = Counter[str](), Counter[str](), Counter[str]()
    rng = np.random.default_rng(options.seed)
    cases = [(name, nulls) for _ in range(turns) for name in TYPES for nulls in shares]
    for name, nulls in counted(cases, of=len(cases), what="columns"):
        one = drawn_rows(rng, name, rows=ROWS, nulls=nulls)
        other = drawn_rows(rng, name, rows=ROWS, nulls=nulls)
        block = int(rng.choice(BLOCKS))
        for what, outcome in outcomes(name, one, other, block):
            if outcome == "refused":
                refused[what] += 1
            else:
                compared[what] += 1
            if outcome not in ("", "refused"):
                wrong[what] += 1
                where = f"{what}, {name}, {nulls:.0%} null, seed {options.seed}"
                result.notes.append(f"{where}: {outcome}")
    for what in [*STEPS, "parquet", "jsonl", "csv", "frame", "snapshot", "replay"]:
        result.rows.append([what, compared[what], refused[what], wrong[what]])
    result.figures["compared"] = sum(compared.values())
    result.claims.append(Claim("differences from DuckDB", sum(wrong.values()), "<=", 0))
    return result


def outcomes(name: str, one: pa.Table, other: pa.Table, block: int) -> Iterator[tuple[str, str]]:
    """Yield (what was done, how it differs) for a type; "": it does not, or "refused"."""
    for what, step in STEPS.items():
        if step.has(name):
            yield what, of_step(step, one, other, block)
        elif step.is_keyed:
            yield what, of_refusal(step, one, other)
    yield from of_sinks(name, one)
    yield from of_copies(one)
    yield "replay", of_replay(one, block)


def made(step: Step, one: pa.Table, other: pa.Table, block: int) -> pa.Table:
    """Return the rows that a flow makes in the simulator."""
    flow = sw.Dataflow("values")
    streams = [
        flow.source(f"in{n}", sw.table(table, batch_rows=block), event_time="ts")
        for n, table in enumerate((one, other))
    ]
    step.make(*streams).sink("out", sw.collect_sink())
    for n, stream in enumerate(streams):
        stream.sink(f"all{n}", sw.callback_sink(lambda _: None))
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        check(job.wait().ledger.is_balanced, "the ledger does not balance")
        found = job.result("out")
    assert isinstance(found, pa.Table), "a collect sink keeps a table"
    return found


def of_step(step: Step, one: pa.Table, other: pa.Table, block: int) -> str:
    """Return how a step's result differs from DuckDB's; "": it does not."""
    try:
        found = made(step, one, other, block)
    except SlackwaterError as problem:
        return f"refused: {str(problem)[:200]}"
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        database.register("a", one)
        database.register("b", other)
        expected = database.sql(step.sql).to_arrow_table()
    if found.column_names != expected.column_names:
        return f"columns {found.column_names}, not {expected.column_names}"
    ours, theirs = in_order(found), in_order(expected)
    different = [pair for pair in zip(ours, theirs, strict=False) if pair[0] != pair[1]]
    if len(ours) != len(theirs):
        return f"{len(ours)} rows, not {len(theirs)}"
    own = {kind for table in (one, other) for kind in table.schema.types}
    lost = [field for field in found.schema if field.name == "x" and field.type not in own]
    if lost and "explode" not in step.sql and "unnest" not in step.sql:
        return f"type {lost[0].type}"
    return f"{different[0][0]}, not {different[0][1]}" if different else ""


def of_refusal(step: Step, one: pa.Table, other: pa.Table) -> str:
    """Return "refused" if a nested key is; else what came."""
    try:
        made(step, one, other, ROWS)
    except SlackwaterError:
        return "refused"
    return "a nested key was taken"


def in_order(table: pa.Table) -> list[str]:
    """Return the rows as text, sorted: instants in UTC, −0.0 as 0.0."""
    return sorted(str([plain(value) for value in row.values()]) for row in table.to_pylist())


def plain(value: Any) -> Any:
    """Return a value in a form that two engines share."""
    if isinstance(value, float):
        return "nan" if value != value else value + 0.0  # noqa: PLR0124 - NaN
    if isinstance(value, pa.MonthDayNano):  # a duration, as DuckDB has it
        return np.timedelta64(value.days * 86_400_000_000 + value.nanoseconds // 1_000, "us")
    if isinstance(value, list | tuple | dict):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        return [(key, plain(one)) for key, one in parts]
    return _plain_time(value)


def _plain_time(value: Any) -> Any:
    if hasattr(value, "to_pydatetime"):
        value = value.to_pydatetime()
    if hasattr(value, "timestamp"):
        return np.datetime64(value.replace(tzinfo=None) - (value.utcoffset() or _NO_TIME), "us")
    return np.timedelta64(value, "us") if hasattr(value, "total_seconds") else value


_NO_TIME = np.timedelta64(0, "us").astype(object)


def of_sinks(name: str, rows: pa.Table) -> Iterator[tuple[str, str]]:
    """Yield how a type differs after each sink of files."""
    with tempfile.TemporaryDirectory() as folder:
        paths = {kind: Path(folder) / f"out.{kind}" for kind in ("parquet", "jsonl", "csv")}
        flow = sw.Dataflow("sinks")
        stream = flow.source("in", sw.table(rows), event_time="ts")
        stream.sink("parquet", sw.parquet_sink(paths["parquet"]))
        stream.sink("jsonl", sw.jsonl_sink(paths["jsonl"]))
        stream.sink("csv", sw.csv_sink(paths["csv"]))
        with sw.Simulation() as nodes:
            nodes.submit(flow).wait()
        read = pq.read_table(paths["parquet"])
        yield "parquet", "" if in_order(read) == in_order(rows) else "other values"
        lines = paths["jsonl"].read_text().splitlines()
        nulls = [json.loads(line)["x"] is None for line in lines]
        values = rows["x"].to_pylist()
        no_number = [isinstance(one, float) and not np.isfinite(one) for one in values]
        expected = [one is None or gone for one, gone in zip(values, no_number, strict=True)]
        yield "jsonl", "" if nulls == expected else "other nulls"
        if name in NESTED:
            return
        with duckdb.connect() as database:
            query = "SELECT x FROM read_csv(?, all_varchar=true, allow_quoted_nulls=false)"
            back = database.execute(query, [str(paths["csv"])]).fetchall()
        nulls = [row[0] is None for row in back]
        yield "csv", "" if nulls == [one is None for one in values] else "other nulls"


def of_copies(rows: pa.Table) -> Iterator[tuple[str, str]]:
    """Yield how rows differ after a frame, and after a snapshot."""
    schema = inside_schema(rows.schema)
    (block,) = rows.to_batches()
    columns = {
        field.name: column_from_arrow(field.name, block[field.name], field.type, who="values")
        for field in schema
    }
    batch = batch_of(range(ROWS), columns)
    names = schema.names
    sender, receiver = (FrameCodec(schema, columns=names) for _ in range(2))
    frame = sender.encode(Message(batch, Progress.after(batch, 0)), sent_at_ns=0)
    copies = {"frame": receiver.decode(frame)[0].batch, "snapshot": from_plain(to_plain(batch))}
    for what, copy in copies.items():
        back = pa.Table.from_batches([ArrowRows(schema).of(copy)]).cast(rows.schema)
        is_same = in_order(back) == in_order(rows) and back.schema.types == rows.schema.types
        yield what, "" if is_same else "other values or types"


def of_replay(rows: pa.Table, block: int) -> str:
    """Return how rows differ that leave a slot, and one that replays its log; "": they do not."""
    flow = sw.Dataflow("replay")
    stream = flow.source("in", sw.table(rows, batch_rows=block), event_time="ts")
    stream.merge().sink("out", sw.collect_sink())
    plan = place(flow.name, plan_stages(flow.graph), ["slot"])
    slot = make_slot(replace(slot_plan(plan, "slot"), limits=Limits(log=10**6)), start_ns=0)
    assert isinstance(slot, LoggedSlot), "a log was asked for"
    done: list[Slice | None] = []
    while not slot.is_finished:
        done.append(slot.step(len(done)))
        if done[-1] is not None:
            slot.charge(done[-1], 10)
    log = slot.log()
    replayed = replay(Slot("slot", replaying(plan.stages, log), start_ns=0), log)
    first, again = (in_order(_left(slices, rows.schema)) for slices in (done, replayed))
    return "" if first == again == in_order(rows) else "other rows"


def _left(slices: list[Slice | None], schema: pa.Schema) -> pa.Table:
    """Return the rows that slices gave to the sink."""
    to_arrow = ArrowRows(inside_schema(schema))
    batches = [
        to_arrow.of(action.batch)
        for one in slices
        if one is not None
        for action in one.actions
        if isinstance(action, Egress) and action.batch is not None
    ]
    return pa.Table.from_batches(batches, inside_schema(schema))
