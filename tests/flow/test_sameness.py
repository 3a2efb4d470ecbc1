"""`explain` says in its first line whether two runs of a flow write the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import slackwater as sw

ROWS = sw.table(pa.table({"ts": [1, 2], "k": ["a", "b"], "v": [1, 2]}))
SAME = "ready-only (no deadline: gates release only what is ready)"
MAY_DIFFER = "results may differ from run to run"
OTHER_ORDER = "the order of rows may differ from run to run"


def explained(build: Callable[[sw.Dataflow, sw.Stream], Any], **source: Any) -> list[str]:
    flow = sw.Dataflow("f", slack=None)
    rows = flow.source("rows", ROWS, event_time="ts", time_unit="s", **source)
    for stream in build(flow, rows):
        stream.sink(f"out of {stream.name}", sw.collect_sink())
    return flow.explain().splitlines()


def counts(stream: sw.Stream, **settings: Any) -> sw.Stream:
    return stream.aggregate(by="k", window=sw.tumbling("1s"), n=sw.count(), **settings)


def in_time() -> dict[str, Any]:
    return {"close": sw.closing.probslack(miss=0.1)}


@pytest.mark.parametrize(
    ("build", "source", "first"),
    [
        (lambda _, rows: [rows], {}, SAME),
        (lambda _, rows: [counts(rows)], {}, SAME),
        (lambda _, rows: [counts(rows, **in_time())], {"arrival": "ts"}, SAME),
        (lambda flow, rows: [flow.merge(counts(rows, replicas=2))], {}, SAME),
        (lambda _, rows: [counts(rows, replicas=2)], {}, OTHER_ORDER),
        (lambda _, rows: [rows, counts(rows, replicas=2)], {}, OTHER_ORDER),
        (lambda _, rows: [counts(rows, replicas=2).filter(sw.col("n") > 0)], {}, OTHER_ORDER),
        (
            lambda _, rows: [counts(rows, replicas=2, **in_time())],
            {"arrival": "ts"},
            OTHER_ORDER,
        ),
        (lambda _, rows: [rows.dedupe(on="k", within="1s", replicas=2)], {}, OTHER_ORDER),
        (lambda _, rows: [counts(rows, slack="1s")], {}, MAY_DIFFER),
        (lambda _, rows: [counts(rows)], {"idle": "1s"}, MAY_DIFFER),
        (lambda _, rows: [counts(counts(rows), **in_time())], {}, MAY_DIFFER),
        (lambda _, rows: [counts(rows, slack="1s", replicas=2)], {}, MAY_DIFFER),
        (
            lambda _, rows: [counts(rows, late="correct", **in_time())],
            {"arrival": "ts"},
            MAY_DIFFER,
        ),
    ],
)
def test_the_first_line_says_whether_bytes_may_differ(
    build: Callable[[sw.Dataflow, sw.Stream], Any], source: dict[str, Any], first: str
) -> None:
    head, *lines = explained(build, **source)
    assert head.startswith(f"dataflow f: {first}")
    if first == SAME:
        assert not [line for line in lines if "may differ" in line]
    else:
        assert "ready-only" not in head
        assert lines[0].startswith(f"note: {first}, for ")
