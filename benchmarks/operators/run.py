"""Operators beside Polars and DuckDB: CPU seconds of one offline batch over the same rows.

Ours goes the whole way: a source, a gate, the step and a sink, in this process, in the simulator.
Each has the rows in memory, in its own form, before the clock starts, and one thread.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import slackwater as sw
from benchmarks.frame import Claim, NotHereError, Options, Result, Spread, check
from benchmarks.operators.questions import QUESTIONS, Question
from benchmarks.operators.rows import draw_tables

ROWS, QUICK_ROWS = 2_000_000, 200_000
TURNS, QUICK_TURNS = 3, 1
SHARE = 0.2
OURS, POLARS, DUCKDB = "ours", "Polars", "DuckDB"
Ask = Callable[[], pa.Table]


def run(options: Options) -> Result:
    """Ask each question of the three in turns, and compare their answers."""
    polars = _polars()
    rows = QUICK_ROWS if options.quick else ROWS
    turns = QUICK_TURNS if options.quick else TURNS
    versions = {POLARS: version("polars"), DUCKDB: version("duckdb")}
    result = Result(
        f"{rows:,} rows a question (a join: of both sides together), {turns} turns after one to "
        f"warm up; {', '.join(' '.join(each) for each in versions.items())}, a thread each",
        ["question", "rows out", "ours, CPU s", "Polars", "DuckDB", "share of the quicker"],
    )
    result.figures["versions"] = versions
    tables = draw_tables(options.seed, rows)
    threads = pa.cpu_count()
    pa.set_cpu_count(1)
    try:
        for question in QUESTIONS:
            _measure(result, question, question.tables(tables), turns, polars)
    finally:
        pa.set_cpu_count(threads)
    result.notes += [
        "CPU seconds of this process, all threads, by turns; rows of the answers are compared",
        "ours: source, gate, step and sink on one simulated node; each reads rows that it holds in "
        "its own form",
    ]
    return result


def _polars() -> ModuleType:
    """Return Polars with one thread, which it reads when it is imported."""
    os.environ["POLARS_MAX_THREADS"] = "1"
    try:
        polars = import_module("polars")
    except ModuleNotFoundError:
        raise NotHereError("there is no Polars; `make setup` installs it") from None
    check(polars.thread_pool_size() == 1, "Polars was imported before, with more threads")
    return polars


def _measure(
    result: Result,
    question: Question,
    tables: dict[str, pa.Table],
    turns: int,
    polars: ModuleType,
) -> None:
    frames = {name: polars.from_arrow(table).rechunk() for name, table in tables.items()}
    connection = duckdb.connect(config={"threads": 1})
    for name, table in tables.items():
        connection.register("arrow", table)
        connection.execute(f"CREATE TABLE {name} AS FROM arrow")
        connection.unregister("arrow")
    inputs = {name: sw.table(table) for name, table in tables.items()}
    asks: dict[str, Ask] = {
        OURS: lambda: _ours(question, inputs),
        POLARS: lambda: (
            question.polars(polars, {n: f.lazy() for n, f in frames.items()}).collect().to_arrow()
        ),
        DUCKDB: lambda: connection.sql(question.sql).to_arrow_table(),
    }
    answers = {who: _sorted(ask()) for who, ask in asks.items()}
    differs = [who for who in (POLARS, DUCKDB) if not _same(answers[OURS], answers[who])]
    spent: dict[str, list[float]] = {who: [] for who in asks}
    for _ in range(turns):
        for who, ask in asks.items():
            spent[who].append(_cpu_s(ask))
    connection.close()
    spreads = {who: Spread.of(seconds) for who, seconds in spent.items()}
    shares = [
        min(others) / own
        for own, *others in zip(*(spent[who] for who in (OURS, POLARS, DUCKDB)), strict=True)
    ]
    share = None if differs else Spread.of(shares)
    if differs:
        result.notes.append(f"{question.name}: void: other rows than {' and '.join(differs)}")
    size = len(next(iter(answers[OURS].values())))
    shown = "void" if share is None else str(share)
    result.rows.append([question.name, f"{size:,}", *spreads.values(), shown])
    result.figures[question.name] = {"rows": size, "cpu_s": spreads, "share": share}
    what = f"{question.name}: speed by that of the quicker of Polars and DuckDB"
    result.claims.append(Claim(what, None if share is None else share.median, ">=", SHARE))


def _ours(question: Question, inputs: Mapping[str, sw.connectors.Input]) -> pa.Table:
    flow = sw.Dataflow("question")
    streams: dict[str, Any] = {
        name: flow.source(name, rows, event_time="t") if "t" in rows.schema().names else rows
        for name, rows in inputs.items()
    }
    question.ours(streams).sink("answer", sw.collect_sink())
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        report = job.wait()
        check(report.state == "done" and not report.ledger.late, f"{report.ledger}")
        return job.result("answer")


def _cpu_s(ask: Ask) -> float:
    gc.collect()
    began = time.process_time()
    ask()
    return time.process_time() - began


def _sorted(table: pa.Table) -> dict[str, Any]:
    """Return the columns by name, in one order of rows: numbers alone, null as −1.

    Times are microseconds, and a text is its place among those of the column.
    """
    columns = {name: _plain(table[name]) for name in sorted(table.column_names)}
    order = np.lexsort(list(columns.values()))
    return {name: values[order] for name, values in columns.items()}


def _plain(column: pa.ChunkedArray) -> Any:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us")).cast(pa.int64())
    elif column.type in (pa.string(), pa.large_string(), pa.string_view()):
        words = column.cast(pa.string())
        column = pc.index_in(words, pc.unique(words).sort()).cast(pa.int64())
    elif not pa.types.is_floating(column.type):
        column = column.cast(pa.int64())
    return column.fill_null(-1).to_numpy()


def _same(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    return ours.keys() == theirs.keys() and all(
        np.array_equal(ours[name], theirs[name]) for name in ours
    )
