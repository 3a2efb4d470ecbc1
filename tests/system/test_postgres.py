"""Rows in a table of PostgreSQL, once each, although the process of their sink is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import slackwater as sw
from examples.exactly_once_postgres import PostgresTable, rows_of
from tests.support.endless import HeldInput
from tests.support.postgres import postgres
from tests.support.waiting import until

pytestmark = pytest.mark.ray

ROWS, PER_S = 3_000, 1_000
LIMIT_S, SOON_S = 60.0, 20.0
PLACES = {"*": "node-1", "out": "node-2"}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres() as address:
        yield address


def sums(sink: sw.connectors.Output, *, over: Path | None = None, **options: Any) -> sw.Dataflow:
    """A source, sums of its windows per key, and a sink.

    Args:
        sink: the sink.
        over: a live source, whose last sixth of rows waits until this file is there; if given.
    """
    rng = np.random.default_rng(1)
    times = np.arange(ROWS) * (1_000_000_000 // PER_S)
    data = {"ts": times, "key": np.arange(ROWS) % 20, "value": rng.integers(0, 100, ROWS)}
    flow = sw.Dataflow("sums", **options)
    table = sw.table(pa.table(data))
    held = table if over is None else HeldInput(table, str(over), ROWS * 5 // 6)
    speed = None if over is None else 1.0
    numbers = flow.source("numbers", held, event_time="ts", time_unit="ns", speed=speed)
    windows = numbers.aggregate(
        by="key", window=sw.tumbling("40ms"), total=sw.sum("value"), name="sums"
    )
    windows.sink("out", sink)
    return flow


def has_rows(address: str, table: str) -> bool:
    from adbc_driver_postgresql import dbapi  # noqa: PLC0415 - skipped before, if it is not here

    try:
        return bool(rows_of(address, table))
    except dbapi.ProgrammingError:  # its sink is not open yet
        return False


@pytest.mark.parametrize("options", [{}, {"slack": "5ms"}], ids=["at once", "held"])
def test_a_killed_sink_leaves_the_table_of_an_undisturbed_run(
    cluster: sw.Cluster, tmp_path: Path, server: str, options: dict[str, Any]
) -> None:
    table = f"killed_{len(options)}"
    whole = PostgresTable(server, f"whole_{len(options)}")
    with sw.Simulation() as nodes:
        nodes.submit(sums(whole, **options)).wait()
    over = tmp_path / "over"
    flow = sums(PostgresTable(server, table), over=over, **options)
    word = "exactly once, held:" if options else "exactly once:"
    assert f"out (sink): {word}" in flow.explain(checkpoints=True)
    job = cluster.submit(
        flow, placement=PLACES, checkpoint="200ms", checkpoint_folder=tmp_path / "checkpoints"
    )
    until(partial(has_rows, server, table), within_s=SOON_S, what="rows")
    before = rows_of(server, table)
    os.kill(job.workers()["node-2"], signal.SIGKILL)
    until(lambda: bool(job.metrics.recoveries), within_s=SOON_S, what="a recovery")
    over.touch()
    report = job.wait(timeout=LIMIT_S)
    rows = rows_of(server, table)
    assert len(report.recoveries) == 1, "\n".join(own.cause for own in report.recoveries)
    assert report.ledger.is_balanced
    assert len(before) < len(rows)
    assert sorted(rows) == sorted(rows_of(server, whole.name))
