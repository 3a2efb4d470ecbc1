"""A column may be named by the empty text, as CSV files of pandas have it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import slackwater as sw

TABLE = {"": [1, 2, 2], "t": [1, 2, 3], "v": [1.5, 2.0, 3.0]}
WINDOW = sw.tumbling("10s")
Made = Callable[[sw.Stream, sw.Stream], sw.Stream]

CALLS: dict[str, tuple[Made, int]] = {
    "sum": (lambda s, _: s.aggregate(window=WINDOW, x=sw.sum("")), 5),
    "count": (lambda s, _: s.aggregate(window=WINDOW, x=sw.count("")), 3),
    "quantile": (lambda s, _: s.aggregate(window=WINDOW, x=sw.quantile("", 0.5)), 2),
    "by": (lambda s, _: s.aggregate(window=WINDOW, by="", x=sw.count()), 1),
    "named so": (
        lambda s, _: s.aggregate(window=WINDOW, **{"": sw.sum("v")}).rename({"": "x"}),
        6.5,
    ),
    "keys": (lambda s, _: s.key_by("").aggregate(window=WINDOW, x=sw.count()), 1),
    "join": (lambda s, o: s.join(o, on="", within="1s").select(x=sw.col("")), 1),
    "join pairwise": (
        lambda s, o: s.join(o, left_on="", right_on="", within="1s").select(x=sw.col("")),
        1,
    ),
    "dedupe": (lambda s, _: s.dedupe("", within="1s").select(x=sw.col("")), 1),
    "select": (lambda s, _: s.select("").rename({"": "x"}), 1),
}


@pytest.mark.parametrize(("made", "first"), CALLS.values(), ids=CALLS)
def test_a_column_without_a_name_is_one_as_others(made: Made, first: float) -> None:
    flow = sw.Dataflow("f")
    one, other = (
        flow.source(name, sw.table(TABLE), event_time="t", time_unit="s") for name in ("a", "b")
    )
    made(one, other).sink("out", sw.collect_sink())
    other.sink("rest", sw.collect_sink())
    assert flow.explain()
    with sw.Simulation() as nodes:
        job = nodes.submit(flow)
        job.wait()
        assert job.result("out").to_pylist()[0]["x"] == first


@pytest.mark.parametrize("text", [",t\n1,2\n", '{"": 1, "t": 2}\n'])
def test_a_column_of_a_file_may_have_no_name(tmp_path: Path, text: str) -> None:
    read: Any = sw.csv if text.startswith(",") else sw.jsonl
    path = tmp_path / "a"
    path.write_text(text)
    assert read(path, types={"": "float64"}, columns=[""]).schema().names == [""]
