"""A small process for all tests of sinks, whose copies are killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from benchmarks.engine.sinks.killed import killed_at
from slackwater.actors.sinks.outputs import csv_sink, jsonl_sink, parquet_sink
from tests.support.sinks import write_row_by_row


@pytest.fixture(scope="session")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., bool]]:
    """`killed_at` in a small process: to fork the one with all tests takes many times as long.

    It has written once, so that no child of it loads pandas, for which Arrow then looks.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as small:
        for of in (parquet_sink, jsonl_sink, csv_sink):
            out = of(tmp_path_factory.mktemp("first"))
            small.submit(write_row_by_row, out, [1]).result()
        yield lambda *args, **options: small.submit(killed_at, *args, **options).result()
